/** The list of collectives: filtered, sorted, and drawn only where it is seen. */

import { chip } from './badge';
import { OWN_KEYS, h, whenSeen } from './dom';
import { Collective, Report } from './report';
import { wholeAxis } from './spec';
import { Store } from './store';
import { count, grouped, size } from './units';
import * as words from './words';

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
const STEPS = [1024, 65536, 1 << 20, 1 << 24, 1 << 28, 1 << 30];

/** Whether a collective passes the filters. */
export function passes(one: Collective, filter: Filter): boolean {
  return (
    (!filter.kind || one.kind === filter.kind) &&
    (!filter.axis || (one.axes ?? []).map(wholeAxis).includes(filter.axis)) &&
    (!filter.asked || words.asked(one) === filter.asked) &&
    words.weight(one) >= filter.least
  );
}

/** Give the collectives in another order; equal ones stay in program order. */
export function sorted(found: Collective[], key: Key, up: boolean, report: Report): Collective[] {
  if (key === 'order') {
    return up ? found : [...found].reverse();
  }
  const keyed = found.map(one => ({ one, rank: rank(one, key, report) }));
  keyed.sort((a, b) => (a.rank < b.rank ? -1 : a.rank > b.rank ? 1 : 0) * (up ? 1 : -1));
  return keyed.map(item => item.one);
}

function rank(one: Collective, key: Key, report: Report): number | string {
  switch (key) {
    case 'kind':
      return one.kind + words.over(one);
    case 'result':
      return one.shape.reduce((product, dim) => product * dim, 1);
    case 'sends':
      return words.weight(one);
    case 'asked':
      return words.cause(one);
    default: {
      const place = words.home(one, report);
      return place ? place.source * 1e7 + place.line : Infinity;
    }
  }
}

const COLUMNS: readonly (readonly [Key, string])[] = [
  ['kind', 'collective'],
  ['result', 'result'],
  ['sends', 'sends'],
  ['asked', 'asked by, why'],
  ['line', 'line']
];

export class List {
  readonly element: HTMLElement;

  constructor(
    private readonly report: Report,
    private readonly store: Store
  ) {
    this._shown = [...report.collectives];
    this._body = h('div', { class: 'rows' });
    this._scroll = h(
      'div',
      {
        class: 'scroll',
        role: 'listbox',
        tabindex: 0,
        ...OWN_KEYS,
        'aria-label': 'Collectives',
        on: {
          scroll: () => this._scrolled(),
          keydown: (event: KeyboardEvent) => this._key(event),
          pointerleave: () => store.set({ pointed: null })
        }
      },
      this._body
    );
    this._count = h('span', { class: 'faint', 'aria-live': 'polite' });
    const many = report.collectives.length > FEW;
    this.element = h(
      'div',
      { class: 'list' },
      many && this._filters(),
      this._head(),
      this._scroll
    );
    this._update();
    store.subscribe((_, changed) => changed.has('chosen') && this._follow());
    // What is not on the page yet cannot be scrolled.
    whenSeen(this._scroll, () => this._follow());
  }

  private _filters(): HTMLElement {
    const { collectives } = this.report;
    const most = Math.max(...collectives.map(words.weight));
    const steps = STEPS.filter(step => step <= most);
    return h(
      'div',
      { class: 'filters' },
      this._select('kind', distinct(collectives.map(one => one.kind))),
      this._select('axis', distinct(collectives.flatMap(one => (one.axes ?? []).map(wholeAxis)))),
      this._select('asked', distinct(collectives.map(words.asked)), 'asked by'),
      this._select('least', steps.map(String), 'sends at least', step => size(Number(step))),
      this._count
    );
  }

  private _select(
    key: keyof Filter,
    options: readonly string[],
    label: string = key,
    write: (option: string) => string = String
  ): HTMLElement {
    const choices = options.map(option => h('option', { value: option }, write(option)));
    const change = (event: Event): void => {
      const { value } = event.target as HTMLSelectElement;
      this._filter = { ...this._filter, [key]: key === 'least' ? Number(value) : value };
      this._update();
    };
    const any = h('option', { value: '' }, 'any');
    const select = h('select', { on: { change }, 'aria-label': label, ...OWN_KEYS }, any, ...choices);
    return h('label', { class: 'filter' }, `${label} `, select);
  }

  private _head(): HTMLElement {
    const buttons = COLUMNS.map(([key, label]) => {
      const click = (): void => this._sortBy(key);
      const button = h('button', { type: 'button', class: 'sort', on: { click } }, label);
      this._buttons.set(key, button);
      return button;
    });
    return h('div', { class: 'row head' }, ...buttons);
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
    this._shown = sorted(found, key, up, this.report);
    this._buttons.forEach((button, column) => {
      button.setAttribute('aria-pressed', String(column === key));
      const arrow = column === key ? (up ? ' \u2191' : ' \u2193') : '';
      button.textContent = `${COLUMNS.find(([name]) => name === column)?.[1]}${arrow}`;
    });
    const least = words.unknown(found) ? 'at least ' : '';
    const all = count(this.report.collectives.length, 'collective');
    const sum = `${least}${size(words.sent(found))}`;
    this._count.textContent = `${grouped(found.length)} of ${all}, ${sum} a run`;
    this._body.style.height = `${this._shown.length * ROW}px`;
    this._scroll.style.height = `${Math.min(SEEN, Math.max(1, this._shown.length)) * ROW}px`;
    this._scroll.scrollTop = this._top = 0;
    this._drawn = [-1, -1];
    this._draw();
  }

  private _scrolled(): void {
    this._top = this._scroll.scrollTop;
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
    this._body.replaceChildren(...(rows.length ? rows : [h('div', { class: 'faint' }, 'none')]));
    this._choose();
  }

  private _row(one: Collective, index: number): HTMLElement {
    const place = words.home(one, this.report);
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
      h('code', { class: 'mono' }, one.kind + words.over(one)),
      h('code', { class: 'mono' }, words.array(one)),
      h('span', null, size(one.wire_bytes) + words.trips(one)),
      h('span', null, chip(one)),
      h('span', { class: 'place' }, place ? String(place.line) : '?')
    );
    row.style.top = `${index * ROW}px`;
    if (place && place.source > 0) {
      row.lastElementChild?.setAttribute('title', words.at(place, this.report));
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
  private readonly _body: HTMLElement;
  private readonly _count: HTMLElement;
  private readonly _buttons = new Map<Key, HTMLElement>();
  private _shown: Collective[];
  // Kept here, since to ask the page for it makes the browser lay everything out.
  private _top = 0;
  private _filter: Filter = ALL;
  private _sort: { key: Key; up: boolean } = { key: 'order', up: true };
  private _drawn: [number, number] = [-1, -1];
}

function distinct(items: readonly string[]): string[] {
  return [...new Set(items)].sort();
}
