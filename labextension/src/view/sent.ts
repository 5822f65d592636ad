/** What is sent: a row for equal collectives, and under the row that is chosen its details. */

import type { SaidRow, Tone } from '../generated/report';
import { LEGEND, REPORT } from '../generated/vocabulary';
import { chip } from './badge';
import { Detail } from './detail';
import { button, h, mono } from './dom';
import { Report, numbers } from './report';
import { fill, grouped, numbered } from './slots';
import { Focus, Store } from './store';

/** Rows that are shown at first, and how many more at a time. */
const FEW = 8;
const MORE = 100;

/** A row; its element is made when it is shown first. */
interface Drawn {
  row: SaidRow;
  ids: readonly number[];
  element?: HTMLElement;
}

/** What rows of a program that was measured are sorted by. */
type Order = 'seconds' | 'bytes';

export class Sent {
  readonly element = h('div', { class: 'sends' });

  constructor(
    private readonly report: Report,
    private readonly store: Store
  ) {
    const { rows } = report.said;
    this._rows = rows.map(row => ({ row, ids: numbers(row.ids) }));
    this._timed = report.profile !== null;
    this.element.classList.toggle('shardnb-timed', this._timed);
    this._detail = new Detail(report, store);
    const tones = [...new Set(rows.map(row => row.tone))];
    const legend = tones.length > 1 && h('div', { class: 'legend' }, ...tones.map(legendOf));
    this._drawHead();
    this.element.append(this._head, this._body, legend || '', this._bar);
    this.element.addEventListener('keydown', event => this._key(event));
    store.subscribe((focus, changed) => {
      if (changed.has('picked') || changed.has('chosen')) {
        this._draw(focus);
      }
    });
    this._draw(store.focus);
  }

  private _element({ row, ids }: Drawn): HTMLElement {
    const first = this.report.byId.get(ids[0]) ?? null;
    const pick = (): void => this.store.pick('sent', ids, first);
    const element = button('', pick, { class: 'row', 'aria-expanded': 'false' });
    const took = this._timed ? [row.measured] : [];
    const texts = [mono(row.name), row.what, row.times, row.sends, ...took].map(text => h('span', null, text));
    element.append(...texts, h('span', null, chip(row.cause, row.tone)));
    element.addEventListener('pointerenter', () => this.store.set({ pointed: first }));
    element.addEventListener('pointerleave', () => this.store.set({ pointed: null }));
    return element;
  }

  private _draw({ picked, chosen }: Focus): void {
    const filter = picked && picked.from !== 'sent' ? picked.ids : null;
    const sorted = this._sorted();
    const all = filter ? sorted.filter(({ ids }) => ids.some(id => filter.has(id))) : sorted;
    const shown = all.slice(0, filter ? Math.max(MORE, this._limit) : this._limit);
    const elements = shown.flatMap(drawn => {
      const here = chosen !== null && drawn.ids.includes(chosen.id);
      const element = (drawn.element ??= this._element(drawn));
      element.setAttribute('aria-expanded', String(here));
      return here ? [element, this._detail.element] : [element];
    });
    this._detail.show(chosen, shown.find(({ ids }) => chosen && ids.includes(chosen.id))?.ids ?? []);
    const left = all.length - shown.length;
    const more = button(numbered(REPORT.moreRows, left), () => this._showMore(), { class: 'more' });
    const focused = document.activeElement;
    this._body.replaceChildren(...elements, ...(left > 0 ? [more] : []));
    if (focused instanceof HTMLElement && this._body.contains(focused)) {
      // An element that is moved loses the keys.
      focused.focus({ preventScroll: true });
    }
    const number = filter ? all.flatMap(({ ids }) => ids).filter(id => filter.has(id)).length : 0;
    const slots = { shown: grouped(number), all: grouped(this.report.collectives.length) };
    const clear = button(REPORT.showAll, () => this.store.set({ picked: null, chosen: null }));
    this._bar.replaceChildren(...(filter ? [fill(REPORT.filtered, slots), ' ', clear] : []));
  }

  /** The rows in the order of Python's, the slowest first, or those that send most. */
  private _sorted(): readonly Drawn[] {
    const bytes = (drawn: Drawn): number => drawn.row.bytes;
    return this._order === 'seconds' ? this._rows : [...this._rows].sort((a, b) => bytes(b) - bytes(a));
  }

  private _drawHead(): void {
    const sorter = (text: string, order: Order, title: string): HTMLElement => {
      const sort = (): void => {
        this._order = order;
        this._drawHead();
        this._draw(this.store.focus);
      };
      const on = String(this._order === order);
      return this._timed ? button(text, sort, { class: 'sort', title, 'aria-pressed': on }) : h('span', null, text);
    };
    this._head.replaceChildren(
      h('b', null, REPORT.sent),
      h('span', null, REPORT.columnFor),
      h('span', null, REPORT.columnTimes),
      sorter(REPORT.columnSends, 'bytes', REPORT.byBytes),
      ...(this._timed ? [sorter(REPORT.columnMeasured, 'seconds', REPORT.bySeconds)] : []),
      h('span', null, REPORT.columnWhy)
    );
  }

  private _showMore(): void {
    this._limit += MORE;
    this._draw(this.store.focus);
  }

  /** Move between rows with the arrow keys. */
  private _key(event: KeyboardEvent): void {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const rows = [...this._body.querySelectorAll<HTMLElement>(':scope > button')];
    const at = rows.indexOf(event.target as HTMLElement);
    if (step && at >= 0) {
      event.preventDefault();
      event.stopPropagation();
      rows[Math.max(0, Math.min(rows.length - 1, at + step))].focus();
    }
  }

  private readonly _rows: readonly Drawn[];
  private readonly _detail: Detail;
  private readonly _body = h('div', { class: 'rows' });
  private readonly _bar = h('div', { class: 'filtered', role: 'status' });
  private readonly _head = h('div', { class: 'row head' });
  private readonly _timed: boolean;
  private _order: Order = 'seconds';
  private _limit = FEW;
}

function legendOf(tone: Tone): HTMLElement {
  return chip(LEGEND[tone], tone);
}
