/** The list of collectives: filtered, sorted, and drawn only where it is seen. */

import { REPORT, SIZES } from '../generated/vocabulary';
import { chip } from './badge';
import { OWN_KEYS, button, h, mono, whenSeen } from './dom';
import { product, wholeAxis } from './layout';
import { Collective, Location, Report, home, sent, weight } from './report';
import { fill, grouped } from './slots';
import { Store } from './store';

const ROW = 30;
const SEEN = 8;
const FEW = 4;

export type Key = 'order' | 'kind' | 'result' | 'sends' | 'asked' | 'line';

/** What the filters say; "" or 0 lets all through. */
export interface Filter {
  kind: string;
  axis: string;
  asked: string;
  least: number;
}

const ALL: Filter = { kind: '', axis: '', asked: '', least: 0 };

/** Whether a collective passes the filters. */
export function passes(one: Collective, filter: Filter): boolean {
  return (
    (!filter.kind || one.kind === filter.kind) &&
    (!filter.axis || axesOf(one).includes(filter.axis)) &&
    (!filter.asked || one.say('asked') === filter.asked) &&
    weight(one) >= filter.least
  );
}

/** The columns, and by what each is sorted. */
const COLUMNS: readonly (readonly [Key, string, (one: Collective) => number | string])[] = [
  ['kind', REPORT.columnKind, one => one.say('name')],
  ['result', REPORT.columnResult, one => product(one.shape)],
  ['sends', REPORT.columnSends, weight],
  ['asked', REPORT.columnAsked, one => one.say('cause')],
  ['line', REPORT.columnLine, one => placeNumber(home(one))]
];

function placeNumber(place: Location | null): number {
  return place ? place.source * 1e7 + place.line : Infinity;
}

/** Give the collectives in another order; equal ones stay in program order. */
export function sorted(found: Collective[], key: Key, up: boolean): Collective[] {
  const rank = COLUMNS.find(([name]) => name === key)?.[2];
  if (!rank) {
    return up ? found : [...found].reverse();
  }
  const keyed = found.map(one => ({ one, rank: rank(one) }));
  keyed.sort((a, b) => (a.rank < b.rank ? -1 : a.rank > b.rank ? 1 : 0) * (up ? 1 : -1));
  return keyed.map(item => item.one);
}

export class List {
  readonly element: HTMLElement;

  constructor(
    private readonly report: Report,
    private readonly store: Store
  ) {
    this._scroll = h(
      'div',
      {
        class: 'scroll',
        role: 'listbox',
        tabindex: 0,
        ...OWN_KEYS,
        'aria-label': REPORT.collectives,
        on: {
          scroll: () => {
            this._top = this._scroll.scrollTop;
            this._draw();
          },
          keydown: (event: KeyboardEvent) => this._key(event),
          pointerleave: () => store.set({ pointed: null })
        }
      },
      this._body
    );
    const filters = report.collectives.length > FEW && this._filters();
    const head = h('div', { class: 'row head' }, ...this._buttons.values());
    this.element = h('div', { class: 'list' }, filters, head, this._scroll);
    this._update();
    store.subscribe((_, changed) => changed.has('chosen') && this._follow());
    // What is not on the page yet cannot be scrolled.
    whenSeen(this._scroll, () => this._follow());
  }

  private _filters(): HTMLElement {
    const { collectives } = this.report;
    const most = Math.max(...collectives.map(weight));
    const steps = SIZES.filter(([step]) => step <= most);
    const each = (texts: readonly string[]): [string, string][] =>
      [...new Set(texts)].sort().map(text => [text, text]);
    return h(
      'div',
      { class: 'filters' },
      this._select('kind', each(collectives.map(one => one.kind))),
      this._select('axis', each(collectives.flatMap(axesOf))),
      this._select('asked', each(collectives.map(one => one.say('asked')))),
      this._select('least', steps.map(([step, text]) => [String(step), text])),
      this._count
    );
  }

  /** A filter; of each option the value, and the text that stands for it. */
  private _select(key: keyof Filter, options: readonly [string, string][]): HTMLElement {
    const label = REPORT[key];
    const change = (): void => {
      const { value } = select;
      this._filter = { ...this._filter, [key]: key === 'least' ? Number(value) : value };
      this._update();
    };
    const choices = [['', REPORT.any], ...options].map(([value, text]) => h('option', { value }, text));
    const select = h('select', { on: { change }, 'aria-label': label, ...OWN_KEYS }, ...choices);
    return h('label', { class: 'filter' }, `${label} `, select);
  }

  /** Sort by a column: first the way that is mostly wanted, then the other, then as it was. */
  private _sortBy(key: Key): void {
    const first = key !== 'sends' && key !== 'result';
    if (this._sort.key !== key) {
      this._sort = { key, up: first };
    } else if (this._sort.up === first) {
      this._sort = { key, up: !first };
    } else {
      this._sort = { key: 'order', up: true };
    }
    this._update();
  }

  private _update(): void {
    const { key, up } = this._sort;
    const found = this.report.collectives.filter(one => passes(one, this._filter));
    this._shown = sorted(found, key, up);
    COLUMNS.forEach(([column, label]) => {
      const arrow = column === key ? (up ? ' \u2191' : ' \u2193') : '';
      this._buttons.get(column)?.setAttribute('aria-pressed', String(column === key));
      this._buttons.get(column)?.replaceChildren(label + arrow);
    });
    // What is little is not written as nothing.
    const [part, all] = [found, this.report.collectives].map(sum);
    const percent = all ? (100 * part) / all : 100;
    const share = part && percent < 0.95 ? percent.toPrecision(1) : String(Math.round(percent));
    const shown = grouped(found.length);
    this._count.textContent = fill(this.report.said.filtered, { shown, share });
    this._body.style.height = `${this._shown.length * ROW}px`;
    this._scroll.style.height = `${Math.min(SEEN, Math.max(1, this._shown.length)) * ROW}px`;
    this._scroll.scrollTop = this._top = 0;
    this._drawn = [-1, -1];
    this._draw();
  }

  /** Draw the rows that are seen, and a few around them. */
  private _draw(): void {
    const first = Math.max(0, Math.floor(this._top / ROW) - 2);
    const last = Math.min(this._shown.length, first + SEEN + 5);
    if (first === this._drawn[0] && last === this._drawn[1]) {
      return;
    }
    this._drawn = [first, last];
    const rows = this._shown.slice(first, last).map((one, i) => this._row(one, first + i));
    this._body.replaceChildren(...(rows.length ? rows : [h('div', { class: 'faint' }, REPORT.none)]));
    this._choose();
  }

  private _row(one: Collective, index: number): HTMLElement {
    const place = home(one);
    const row = h(
      'div',
      {
        class: 'row',
        role: 'option',
        id: `${this._id}-${one.id}`,
        'aria-setsize': this._shown.length,
        'aria-posinset': index + 1,
        on: {
          click: () => this.store.set({ chosen: one }),
          pointerenter: () => this.store.set({ pointed: one })
        }
      },
      mono(one.say('name')),
      mono(one.say('array')),
      h('span', null, one.say('size') + one.say('trips')),
      h('span', null, chip(one)),
      h('span', { class: 'place' }, place ? String(place.line) : '?')
    );
    row.style.top = `${index * ROW}px`;
    if (place && place.source > 0) {
      row.lastElementChild?.setAttribute('title', one.say('at'));
    }
    return row;
  }

  private _key(event: KeyboardEvent): void {
    const at = this._shown.indexOf(this.store.focus.chosen as Collective);
    const moves: Record<string, number> = {
      ArrowDown: at + 1,
      ArrowUp: at - 1,
      PageDown: at + SEEN,
      PageUp: at - SEEN,
      Home: 0,
      End: this._shown.length - 1
    };
    const next = moves[event.key];
    if (next !== undefined && this._shown.length) {
      event.preventDefault();
      event.stopPropagation();
      const index = Math.max(0, Math.min(this._shown.length - 1, next));
      this.store.set({ chosen: this._shown[index] });
    }
  }

  /** Bring the chosen row into sight. */
  private _follow(): void {
    const index = this._shown.indexOf(this.store.focus.chosen as Collective);
    const top = index * ROW;
    const there = index >= 0 && this._scroll.isConnected;
    if (there && (top < this._top || top + ROW > this._top + SEEN * ROW)) {
      this._scroll.scrollTop = this._top = Math.max(0, top - (SEEN * ROW) / 2);
      this._draw();
    }
    this._choose();
  }

  private _choose(): void {
    const { chosen } = this.store.focus;
    const id = chosen ? `${this._id}-${chosen.id}` : '';
    for (const row of this._body.children) {
      row.setAttribute('aria-selected', String(row.id === id));
    }
    this._scroll.setAttribute('aria-activedescendant', id);
  }

  private readonly _id = `shardnb-${Math.random().toString(36).slice(2)}`;
  private readonly _scroll: HTMLElement;
  private readonly _body = h('div', { class: 'rows' });
  private readonly _count = h('span', { class: 'faint', 'aria-live': 'polite' });
  private readonly _buttons = new Map(
    COLUMNS.map(([key, label]) => {
      const sort = button(label, () => this._sortBy(key), { class: 'sort' });
      return [key, sort] as const;
    })
  );
  private _shown: Collective[] = [];
  // Kept here, since to ask the page for it makes the browser lay everything out.
  private _top = 0;
  private _filter: Filter = ALL;
  private _sort: { key: Key; up: boolean } = { key: 'order', up: true };
  private _drawn: [number, number] = [-1, -1];
}

function axesOf(one: Collective): readonly string[] {
  return (one.axes ?? []).map(wholeAxis);
}

function sum(found: readonly Collective[]): number {
  return found.reduce((bytes, one) => bytes + sent(one), 0);
}
