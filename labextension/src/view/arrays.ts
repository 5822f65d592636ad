/** Arrays as cards: how each is cut into blocks, and which devices hold them. */

import { REPORT } from '../generated/vocabulary';
import { button, h, heading, mono, whenSeen } from './dom';
import { Layout, layoutOf } from './layout';
import { blockText, blocksBesideText, valuePicture } from './pictures';
import { Report, Value } from './report';
import { clean } from './slots';
import { Store } from './store';
import { Tiles } from './tiles';

const BOX = { width: 222, height: 208 };

/** The cards of the inputs and outputs; of many, the heaviest first and the others on demand. */
export function arrays(report: Report, store: Store): HTMLElement {
  const cards = h('div', { class: 'cards' });
  for (const [role, values, { kept, rest }] of [
    [REPORT.input, report.inputs, report.said.inputs],
    [REPORT.output, report.outputs, report.said.outputs]
  ] as const) {
    const shown = (i: number): boolean => !rest || kept.includes(i);
    const draw = (value: Value): HTMLElement => new Card(role, value, report, store).element;
    cards.append(...values.filter((_, i) => shown(i)).map(draw));
    if (rest) {
      const others = values.filter((_, i) => !shown(i));
      const more = button(rest, () => more.replaceWith(...others.map(draw)), { class: 'more' });
      cards.append(more);
    }
  }
  const empty = !report.inputs.length && !report.outputs.length;
  const none = h('div', { class: 'faint' }, empty ? REPORT.notKnown : REPORT.none);
  const shown = cards.childElementCount ? cards : none;
  return h('div', { class: 'arrays' }, heading(REPORT.arrays), shown);
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
    this._layout = layoutOf(value, report.mesh);
    const drawn = value.shape.includes(0) ? null : this._layout;
    const texts = (['held', 'copies', 'remarks'] as const).map(text => value.say(text));
    const enter = (): void => store.set({ value });
    const leave = (): void => store.set({ value: null });
    this.element = h(
      'div',
      {
        class: 'card',
        on: { pointerenter: enter, pointerleave: leave, focusin: enter, focusout: leave }
      },
      h('div', { class: 'role' }, role),
      h('div', { class: 'name' }, h('b', null, clean(value.name)), ' ', mono(value.say('type'))),
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
