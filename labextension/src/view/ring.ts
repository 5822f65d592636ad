/** A collective step by step, as a ring of devices makes it: who holds what, and what moves. */

import type { Kind, Ring } from '../generated/report';
import { KINDS, REPORT } from '../generated/vocabulary';
import { Collective, Mesh } from './report';

/** A block that a device holds: which one, and of how many devices it is the sum. */
export interface Cell {
  block: number;
  parts: number;
}

/** The cells of each device; null where it holds nothing. */
export type Frame = readonly (readonly (Cell | null)[])[];

/** A block on its way, from a slot of a device to a slot of another. */
export interface Move {
  from: number;
  to: number;
  slot: number;
  target: number;
  cell: Cell;
}

/**
 * A collective: `frames[i]` is what devices hold before `moves[i]`, the last one the result.
 * `members` are positions in the mesh; a block is complete once it sums `whole` parts. Where `all`
 * is more than the devices that are drawn, they stand for so many.
 */
export interface Play {
  members: readonly number[];
  frames: readonly Frame[];
  moves: readonly (readonly Move[])[];
  blocks: number;
  whole: number;
  all: number;
  /** How many blocks one device sends. */
  sends: number;
  said: readonly string[];
}

/** Devices that are drawn at most; of a larger group as many stand for all. */
export const DRAWN = 16;

type Grid = (Cell | null)[][];

/** Give the steps of a collective, or null for one that no ring explains. */
export function ring(one: Collective, mesh: Mesh): Play | null {
  const kind = kindOf(one);
  if (kind && KINDS[kind].inPairs) {
    return permute(one, mesh);
  }
  const group = one.groups.find(members => members.length > 1);
  const steps = kind && STEPS[kind];
  if (!group || !steps) {
    return null;
  }
  const members = group.slice(0, DRAWN);
  const sends = SENT[KINDS[kind].ring](group.length);
  return { members, ...steps(members.length), all: group.length, sends };
}

/** Give the kind of a collective, null for one that this version does not know. */
export function kindOf({ kind }: Collective): Kind | null {
  return Object.hasOwn(KINDS, kind) ? (kind as Kind) : null;
}

/** Whether a collective's groups are pairs of a source and a target. */
export function isInPairs(one: Collective): boolean {
  const kind = kindOf(one);
  return kind !== null && KINDS[kind].inPairs;
}

/** How many blocks one device of so many sends. */
const SENT: Record<Ring, (n: number) => number> = {
  'all but its own': n => n - 1,
  'a result for each other': n => n - 1,
  'there and back': n => 2 * (n - 1),
  all: () => 1
};

type Steps = Omit<Play, 'members' | 'all' | 'sends'>;

/** How a group of so many devices makes each kind; null where no ring explains it. */
const STEPS: Record<Kind, ((n: number) => Steps) | null> = {
  'all-gather': n => {
    const stage = new Stage(table(n, n, (device, slot) => (device === slot ? 1 : 0)));
    gather(stage, n, REPORT.passes);
    return stage.done(n, 1);
  },
  'reduce-scatter': n => {
    const stage = new Stage(table(n, n, () => 1));
    scatter(stage, n);
    return stage.done(n, n);
  },
  'all-reduce': n => {
    const stage = new Stage(table(n, n, () => 1));
    scatter(stage, n);
    gather(stage, n, REPORT.passesSum);
    return stage.done(n, n);
  },
  'all-to-all': n => {
    const cells = Array.from({ length: n }, (_, block) => Array(n).fill({ block, parts: 1 }));
    const stage = new Stage(cells);
    for (let step = 0; step < n; step++) {
      // In `n` steps a device swaps with everybody once, itself among them.
      stage.step(REPORT.swap, true, device => {
        const to = n & (n - 1) ? (step - device + n) % n : device ^ step;
        return to === device ? null : { to, slot: to, target: device };
      });
    }
    return stage.done(n, 1);
  },
  'collective-broadcast': n => {
    const stage = new Stage(table(n, 1, device => (device ? 0 : 1)));
    for (let step = 0; step < n - 1; step++) {
      stage.step(REPORT.goesOn, false, device =>
        device === step ? { to: step + 1, slot: 0, target: 0 } : null
      );
    }
    return stage.done(1, 1);
  },
  'collective-permute': null,
  'ragged-all-to-all': null
};

/** Every device passes on a block of partial sums, and the next one adds its own part. */
function scatter(stage: Stage, n: number): void {
  for (let step = 0; step < n - 1; step++) {
    stage.step(REPORT.adds, true, device => {
      const slot = (device - step - 1 + 2 * n) % n;
      return { to: (device + 1) % n, slot, target: slot };
    });
  }
}

/** Every device passes on the block that came last, and keeps a copy. */
function gather(stage: Stage, n: number, said: string): void {
  for (let step = 0; step < n - 1; step++) {
    stage.step(said, false, device => {
      const slot = (device - step + n) % n;
      return { to: (device + 1) % n, slot, target: slot };
    });
  }
}

/** Each source sends its block to its target; a device that gets none holds zeros. */
function permute(one: Collective, mesh: Mesh): Play | null {
  const positions = [...new Set(one.groups.flat())].sort((a, b) => a - b);
  const members = positions.slice(0, DRAWN);
  const pairs = one.groups
    .map(([from, to]) => [members.indexOf(from), members.indexOf(to)] as const)
    .filter(([from, to]) => from >= 0 && to >= 0 && from !== to);
  if (!pairs.length || positions.length > mesh.device_ids.length) {
    return null;
  }
  const target = new Map(pairs);
  const stage = new Stage(members.map((_, block) => [{ block, parts: 1 }]));
  stage.step(REPORT.toPartner, true, device => {
    const to = target.get(device);
    return to === undefined ? null : { to, slot: 0, target: 0 };
  });
  return { members, ...stage.done(members.length, 1), all: positions.length, sends: 1 };
}

function table(n: number, slots: number, parts: (device: number, slot: number) => number): Grid {
  return Array.from({ length: n }, (_, device) =>
    Array.from({ length: slots }, (_, slot) => {
      const held = parts(device, slot);
      return held ? { block: slot, parts: held } : null;
    })
  );
}

type Sends = (device: number) => { to: number; slot: number; target: number } | null;

/** Plays steps one after the other. */
class Stage {
  constructor(first: Grid) {
    this._frames = [first];
  }

  /** All devices send at once; `gives` says whether what is sent is gone from its sender. */
  step(said: string, gives: boolean, sends: Sends): void {
    const now = this._frames[this._frames.length - 1];
    const next = now.map(row => [...row]);
    const moves: Move[] = [];
    now.forEach((row, from) => {
      const sent = sends(from);
      const cell = sent && row[sent.slot];
      if (cell) {
        moves.push({ from, ...sent, cell });
        next[from][sent.slot] = gives ? null : cell;
      }
    });
    moves.forEach(({ to, target, cell }) => {
      const own = next[to][target];
      const parts = own && own.block === cell.block && gives ? own.parts + cell.parts : cell.parts;
      next[to][target] = { block: cell.block, parts };
    });
    if (moves.length) {
      this._frames.push(next);
      this._moves.push(moves);
      this._said.push(said);
    }
  }

  done(blocks: number, whole: number): Steps {
    return { frames: this._frames, moves: this._moves, said: this._said, blocks, whole };
  }

  private readonly _frames: Grid[];
  private readonly _moves: Move[][] = [];
  private readonly _said: string[] = [];
}
