/** Arrays as cards: how each is cut into blocks, and which devices hold them. */

import type { Drawn } from '../generated/report';
import { REPORT } from '../generated/vocabulary';
import { h, heading, mono, whenSeen } from './dom';
import { Layout, layoutOf } from './layout';
import { blockText, blocksBesideText, valuePicture } from './pictures';
import { Report, Value } from './report';
import { clean } from './slots';
import { Store } from './store';
import { Picture, Tiles } from './tiles';

const BOX = { width: 222, height: 208 };

/** The cards of the inputs and outputs; of many, the heaviest first and the others on demand. */
export function arrays(report: Report, store: Store): HTMLElement {
  const cards = h('div', { class: 'cards' });
  for (const [role, values, drawn] of [
    [REPORT.input, report.inputs, report.said.inputs],
    [REPORT.output, report.outputs, report.said.outputs]
  ] as const) {
    const draw = (i: number): HTMLElement => new Card(role, values[i], report, store).element;
    const all = values.map((_, i) => i);
    cards.append(...(drawn.rest ? drawn.kept : all).map(draw));
    if (drawn.rest) {
      cards.append(rest(all, drawn, draw));
    }
  }
  const empty = !report.inputs.length && !report.outputs.length;
  const none = h('div', { class: 'faint' }, empty ? REPORT.notKnown : REPORT.none);
  return h(
    'div',
    { class: 'arrays' },
    heading(REPORT.arrays),
    cards.childElementCount ? cards : none
  );
}

/** A button that says what is not drawn, and draws it. */
function rest(
  all: readonly number[],
  { kept, rest: text }: Drawn,
  draw: (i: number) => HTMLElement
): HTMLElement {
  const left = all.filter(i => !kept.includes(i));
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
    const said = (['held', 'copies', 'remarks'] as const).map(text => value.say(text));
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
      h('div', { class: 'name' }, h('b', null, clean(value.name)), ' ', mono(value.say('type'))),
      h('div', { class: 'faint' }, said.filter(Boolean).join('; ')),
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
