/** Arrays: how each is sharded into blocks, and which devices hold them. */

import type { SaidArrays } from '../generated/report';
import { button, h, mono, whenSeen } from './dom';
import { Layout, layoutOf } from './layout';
import { MeshPanel } from './mesh';
import { pickButton } from './pick';
import { blockText, blocksBesideText, valuePicture } from './pictures';
import { Location, Report, Value, home, numbers } from './report';
import { clean } from './slots';
import { Focus, Picked, Store } from './store';
import { Tiles } from './tiles';

const BOX = { width: 204, height: 208 };

/** Rows of so few arrays are cards at once; more are a list, with a card for the chosen one. */
export const CARDS = 8;

interface Row {
  name: string;
  size: string;
  members: readonly Value[];
}

/** The inputs and outputs, equal ones together, and the mesh with the holders of the one pointed at. */
export function arrays(
  report: Report,
  store: Store,
  shown: readonly ('inputs' | 'outputs')[] = ['inputs', 'outputs']
): HTMLElement {
  const { said } = report;
  const rows = shown.flatMap(part => rowsOf(said[part], report[part]));
  const mesh = new MeshPanel(report, store, 'value').element;
  if (!rows.length) {
    return h('div', { class: 'faint' }, said.inputs.summary);
  }
  if (rows.length <= CARDS) {
    const cards = rows.map(row => {
      const related = relatedTo(row.members, report);
      const { element } = card(row, report, store, related);
      element.addEventListener('click', () => store.pick('arrays', related, null));
      return { element, related };
    });
    follow('arrays', cards, store, (element, out) => element.toggleAttribute('data-out', out));
    return h('div', { class: 'cards' }, ...cards.map(({ element }) => element), mesh);
  }
  const stage = h('div', { class: 'stage' });
  return h('div', { class: 'main spread' }, list(rows, report, store, stage), h('div', null, stage, mesh));
}

function rowsOf(said: SaidArrays, values: readonly Value[]): Row[] {
  return said.members.map((members, i) => ({
    name: said.names[i],
    size: said.sizes[i],
    members: numbers(members).map(at => values[at])
  }));
}

function card({ name, members }: Row, report: Report, store: Store, related?: readonly number[]): Card {
  return new Card(members[0], report, store, name, related);
}

function list(rows: readonly Row[], report: Report, store: Store, stage: HTMLElement): HTMLElement {
  let shown: Card | null = null;
  const drawn = rows.map(row => {
    const related = relatedTo(row.members, report);
    const first = row.members[0];
    const pick = (): void => {
      shown?.dispose();
      shown = card(row, report, store);
      stage.replaceChildren(shown.element);
      store.set({ value: first });
      store.pick('arrays', related, null);
      drawn.forEach(each => each.element.setAttribute('aria-pressed', String(each.row === row)));
    };
    const element = button('', pick, { class: 'value', 'aria-pressed': 'false' });
    const details = [row.size, first.say('copies')].filter(Boolean).join(', ');
    element.append(h('b', null, row.name), mono(first.say('type')), h('span', { class: 'faint' }, details));
    return { row, element, related };
  });
  follow('arrays', drawn, store, (element, out) => (element.hidden = out));
  return h('div', { class: 'values' }, ...drawn.map(({ element }) => element));
}

interface Related {
  element: HTMLElement;
  related: readonly number[];
}

/** Let arrays step back that what is picked elsewhere has nothing to do with, if it has with some. */
export function follow(
  part: Picked['from'],
  drawn: readonly Related[],
  store: Store,
  put: (element: HTMLElement, out: boolean) => void
): void {
  const draw = ({ picked }: Focus): void => {
    const ids = picked && picked.from !== part ? picked.ids : null;
    const meant = ({ related }: Related): boolean => related.some(id => ids?.has(id));
    const some = drawn.some(meant);
    drawn.forEach(each => put(each.element, some && !meant(each)));
  };
  store.subscribe((focus, changed) => changed.has('picked') && draw(focus));
  draw(store.focus);
}

/** Give the collectives that move an array, or are for it; with `lines`, those of its line, too. */
export function relatedTo(members: readonly Value[], report: Report, lines = false): number[] {
  const keys = members.flatMap(({ name, location }) => [name, ...(lines && location ? [placeKey(location)] : [])]);
  const index = indexOf(report);
  return [...new Set(keys.flatMap(key => index.get(key) ?? []))].sort((a, b) => a - b);
}

const indexes = new WeakMap<Report, Map<string, number[]>>();

/** The ids of collectives by the names of their arrays, and by their places. */
function indexOf(report: Report): Map<string, number[]> {
  const index = indexes.get(report) ?? new Map<string, number[]>();
  if (!indexes.has(report)) {
    indexes.set(report, index);
    for (const one of report.collectives) {
      const place = home(one);
      for (const key of [one.role_of, one.producer, place && placeKey(place)]) {
        if (key) {
          index.get(key)?.push(one.id) ?? index.set(key, [one.id]);
        }
      }
    }
  }
  return index;
}

/** No name of an array has a line break. */
function placeKey({ source, line }: Location): string {
  return `\n${source}:${line}`;
}

export class Card {
  readonly element: HTMLElement;
  /** Let go of the store, for a card that leaves before the view does. */
  readonly dispose: () => void;

  /** `name` stands for several that are equal; its name is a button where it picks `related`. */
  constructor(
    private readonly value: Value,
    private readonly report: Report,
    private readonly store: Store,
    name = clean(value.name),
    related?: readonly number[]
  ) {
    this._layout = layoutOf(value, report.mesh);
    const drawn = value.shape.includes(0) ? null : this._layout;
    const texts = (['held', 'copies', 'remarks'] as const).map(text => value.say(text));
    const enter = (): void => store.set({ value });
    const leave = (): void => store.set({ value: null });
    const type = mono(value.say('type'));
    this.element = h(
      'div',
      {
        class: 'card',
        on: { pointerenter: enter, pointerleave: leave, focusin: enter, focusout: leave }
      },
      h('div', { class: 'name' }, related ? pickButton(name, related, store) : h('b', null, name), ' ', type),
      h('div', { class: 'faint' }, texts.filter(Boolean).join('; ')),
      drawn && this._tiles.element
    );
    if (drawn) {
      this._tiles.layOut(valuePicture(value, report.mesh, drawn));
      whenSeen(this.element, () => {
        this._painted = true;
        this._tiles.paint();
      });
    }
    this.dispose = store.subscribe(({ device }, changed) => {
      if (changed.has('device') && this._painted && this._layout && !this._inside) {
        this._tiles.mark(device === null ? [] : [this._layout.blocks[device]]);
      }
    });
  }

  private _point(block: number | null): void {
    const { mesh } = this.report;
    const layout = this._layout as Layout;
    this._inside = block !== null;
    this._tiles.mark(block === null ? [] : [block]);
    this.store.set({ device: layout.holders.get(block ?? -1)?.[0] ?? null });
    const texts =
      block === null
        ? []
        : [blockText(block, this.value, mesh, layout), blocksBesideText(block, mesh, layout)];
    this._tiles.say(texts.filter(Boolean).join('; '));
  }

  private readonly _layout: Layout | null;
  private readonly _tiles = new Tiles(BOX, block => this._point(block));
  private _painted = false;
  /** Whether the pointer is inside: its block is marked then, whichever device is looked at. */
  private _inside = false;
}
