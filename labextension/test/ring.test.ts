import { describe, expect, it } from 'vitest';

import { readReport } from '../src/view/report';
import { Frame, Play, ring } from '../src/view/ring';
import { allReduce, sketch, spoken } from './samples';

function play(kind: string, groups: number[][]): Play {
  const one = { ...allReduce(), kind };
  const report = readReport(
    spoken({ ...sketch(), collectives: [one], group_table: [groups] })
  );
  return ring(report.collectives[0], report.mesh) as Play;
}

/** Write what devices hold: `0:1` is block 0, the sum of one part. */
function held(frame: Frame): string[] {
  return frame.map(row => row.map(cell => (cell ? `${cell.block}:${cell.parts}` : '-')).join(' '));
}

function last(found: Play): string[] {
  return held(found.frames[found.frames.length - 1]);
}

describe('a collective step by step', () => {
  it('gathers: every device ends with every block, after n - 1 steps', () => {
    const found = play('all-gather', [[0, 1, 2]]);
    expect(held(found.frames[0])).toEqual(['0:1 - -', '- 1:1 -', '- - 2:1']);
    expect(held(found.frames[1])).toEqual(['0:1 - 2:1', '0:1 1:1 -', '- 1:1 2:1']);
    expect(last(found)).toEqual(Array(3).fill('0:1 1:1 2:1'));
    expect(found.moves.length).toBe(2);
  });

  it('reduces and scatters: each device ends with its own block, the sum of all parts', () => {
    const found = play('reduce-scatter', [[0, 1, 2]]);
    expect(held(found.frames[0])).toEqual(Array(3).fill('0:1 1:1 2:1'));
    expect(held(found.frames[1])).toEqual(['0:1 1:2 -', '- 1:1 2:2', '0:2 - 2:1']);
    expect(last(found)).toEqual(['0:3 - -', '- 1:3 -', '- - 2:3']);
    expect(found.moves.length).toBe(2);
    expect(found.whole).toBe(3);
  });

  it('reduces for all: 2 (n - 1) steps, each block summed on every device', () => {
    const found = play('all-reduce', [[0, 1, 2, 3]]);
    expect(found.moves.length).toBe(6);
    expect(last(found)).toEqual(Array(4).fill('0:4 1:4 2:4 3:4'));
  });

  it('an all-to-all: device d ends with block d of each', () => {
    const found = play('all-to-all', [[0, 1, 2]]);
    expect(held(found.frames[0])).toEqual(['0:1 0:1 0:1', '1:1 1:1 1:1', '2:1 2:1 2:1']);
    expect(last(found)).toEqual(Array(3).fill('0:1 1:1 2:1'));
    const pairs = found.moves.flat().map(move => `${move.from}-${move.to}`);
    expect(pairs.sort()).toEqual(['0-1', '0-2', '1-0', '1-2', '2-0', '2-1']);
  });

  it('swaps in n - 1 steps where n is a power of two', () => {
    expect(play('all-to-all', [[0, 1, 2, 3]]).moves.map(moves => moves.length)).toEqual([4, 4, 4]);
  });

  it('permutes: who gets nothing holds nothing', () => {
    const found = play('collective-permute', [
      [0, 1],
      [1, 2]
    ]);
    expect(found.members).toEqual([0, 1, 2]);
    expect(last(found)).toEqual(['-', '0:1', '1:1']);
  });

  it('sends in every step of a ring no more than one block from a device', () => {
    for (const kind of ['all-gather', 'reduce-scatter', 'all-reduce', 'all-to-all']) {
      for (const moves of play(kind, [[0, 1, 2, 3, 4, 5, 6, 7]]).moves) {
        expect(new Set(moves.map(move => move.from)).size).toBe(8);
        expect(moves.length).toBe(8);
      }
    }
  });

  it('draws sixteen devices of a larger group, and knows of all', () => {
    const group = Array.from({ length: 256 }, (_, i) => i);
    const one = { ...allReduce(), kind: 'all-gather' };
    const mesh = { axes: [{ name: 'data', size: 256 }], device_ids: group };
    const plain = { version: 1, mesh, collectives: [one], group_table: [[group]] };
    const report = readReport(spoken({ inputs: [], ...plain }));
    const found = ring(report.collectives[0], report.mesh) as Play;
    expect(found.members.length).toBe(16);
    expect(found.all).toBe(256);
    expect(found.sends).toBe(255);
  });

  it('has nothing to play where no device sends, or no ring explains it', () => {
    const report = readReport(spoken({ ...sketch(), group_table: [[[0], [1]]] }));
    expect(ring(report.collectives[0], report.mesh)).toBeNull();
    expect(play('ragged-all-to-all', [[0, 1]])).toBeNull();
    expect(play('<script>', [[0, 1]])).toBeNull();
    expect(play('constructor', [[0, 1]])).toBeNull();
  });
});
