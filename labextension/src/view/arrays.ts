/** Arrays as cards: how each is cut into blocks, and which devices hold them. */

import { remarks, shard, valueType } from './content';
import { h, heading, mono, whenSeen } from './dom';
import { Layout, layoutOf } from './layout';
import { blockText, blocksBesideText, valuePicture } from './pictures';
import { Report, Value } from './report';
import { Store } from './store';
import { Picture, Tiles } from './tiles';
import { clean, count, size } from './units';
import { shardBytes } from './weights';

const BOX = { width: 222, height: 208 };
const MOST = 40;

/** The cards of the inputs and outputs; of many, the heaviest first and the others on demand. */
export function arrays(report: Report, store: Store): HTMLElement {
  const cards = h('div', { class: 'cards' });
  for (const [role, values] of [
    ['input', report.inputs],
    ['output', report.outputs]
  ] as const) {
    const draw = (i: number): HTMLElement => new Card(role, values[i], report, store).element;
    const order = values.map((_, i) => i);
    order.sort((a, b) => shardBytes(values[b]) - shardBytes(values[a]));
    const kept = order.slice(0, MOST).sort((a, b) => a - b);
    cards.append(...kept.map(draw));
    if (order.length > MOST) {
      cards.append(rest(order.slice(MOST), role, values, draw));
    }
  }
  const empty = !report.inputs.length && !report.outputs.length;
  const none = h('div', { class: 'faint' }, empty ? 'not known' : 'none');
  return h(
    'div',
    { class: 'arrays' },
    heading('Where the arrays lie'),
    cards.childElementCount ? cards : none
  );
}

/** A button that says what is not drawn, and draws it. */
function rest(
  left: readonly number[],
  role: string,
  values: readonly Value[],
  draw: (i: number) => HTMLElement
): HTMLElement {
  const held = size(left.reduce((total, i) => total + shardBytes(values[i]), 0));
  const text = `and ${count(left.length, `smaller ${role}`)}, ${held} a device`;
  const more = h('button', { type: 'button', class: 'more' }, text);
  more.addEventListener('click', () => more.replaceWith(...left.map(draw)));
  return more;
}

export class Card {
  readonly element: HTMLElement;
  /** Let go of the store, for a card that leaves before the view does. */
  readonly dispose: () => void;

  /** `role` says what it is to the program: `input`, `output`. */
  constructor(
    role: string,
    private readonly value: Value,
    private readonly report: Report,
    private readonly store: Store
  ) {
    const { mesh } = report;
    this._layout = layoutOf(value, mesh);
    this._picture = this._layout && picture(value, report, this._layout);
    this._tiles = new Tiles(BOX, block => this._point(block));
    const held = `${shard(value)}, ${size(shardBytes(value))}`;
    this.element = h(
      'div',
      {
        class: 'card',
        on: {
          pointerenter: () => store.set({ value }),
          pointerleave: () => store.set({ value: null }),
          focusin: () => store.set({ value }),
          focusout: () => store.set({ value: null })
        }
      },
      h('div', { class: 'role' }, role),
      h('div', { class: 'name' }, h('b', null, clean(value.name)), ' ', mono(valueType(value))),
      h('div', { class: 'faint' }, [held, ...remarks(value, mesh)].join('; ')),
      this._picture && this._tiles.element
    );
    if (this._picture) {
      this._tiles.layOut(this._picture);
      whenSeen(this.element, () => this._draw());
    }
    this.dispose = store.subscribe((focus, changed) => {
      if (changed.has('device')) {
        this._mark(focus.device);
      }
    });
  }

  private _draw(): void {
    this._drawn = true;
    this._tiles.paint();
  }

  /** Mark the block that the device under the pointer holds. */
  private _mark(device: number | null): void {
    if (this._drawn && this._layout && !this._inside) {
      this._tiles.mark(device === null ? [] : [this._layout.blocks[device]]);
    }
  }

  private _point(block: number | null): void {
    const layout = this._layout as Layout;
    this._inside = block !== null;
    const holders = block === null ? [] : (layout.holders.get(block) ?? []);
    this._tiles.mark(block === null ? [] : [block]);
    this.store.set({ device: holders[0] ?? null });
    this._tiles.say(block === null ? '' : this._say(block, layout));
  }

  private _say(block: number, layout: Layout): string {
    const { mesh } = this.report;
    const what = blockText(block, this.value, mesh, layout);
    return [what, blocksBesideText(block, mesh, layout)].filter(Boolean).join('; ');
  }

  private readonly _layout: Layout | null;
  private readonly _tiles: Tiles;
  private readonly _picture: Picture | null;
  private _drawn = false;
  private _inside = false;
}

function picture(value: Value, report: Report, layout: Layout): Picture | null {
  return value.shape.includes(0) ? null : valuePicture(value, report.mesh, layout);
}
