/** The user's own lines, each with the collectives that it led to at its end. */

import { badge, restBadge } from './badge';
import { h } from './dom';
import { tell } from './entries';
import { Collective, Report, Source } from './report';
import { Store } from './store';
import { clean, count } from './units';
import * as words from './words';

const WHOLE = 200;
const LINES = 16;
const AROUND = 2;

type Led = Map<number, Collective[]>;

/** Draw the sources' lines; a line is marked while its collective or array is looked at. */
export class Code {
  readonly element = h('div', { class: 'code' });

  constructor(
    private readonly report: Report,
    private readonly store: Store
  ) {
    const led = ledBy(report);
    report.sources.forEach((source, i) => {
      const lines = this._lines(source, i, led[i]);
      if (lines.length) {
        this.element.append(...(i ? [h('div', { class: 'faint' }, clean(source.name))] : []));
        this.element.append(h('ol', { class: 'lines', 'aria-label': 'Source lines' }, ...lines));
      }
    });
    store.subscribe(() => this._mark());
  }

  private _lines(source: Source, index: number, led: Led): HTMLElement[] {
    const { shown, rest } = chosenLines(source, index, led);
    const texts = source.text.split('\n');
    const items: HTMLElement[] = [];
    shown.forEach((number, i) => {
      if (i && number > shown[i - 1] + 1) {
        items.push(h('li', { class: 'line gap', 'aria-hidden': 'true' }, '\u22ee'));
      }
      const text = clean(texts[number - source.first_line] ?? '');
      items.push(this._line(`${index}:${number}`, number, text, led.get(number) ?? []));
    });
    if (rest) {
      const more = `and ${count(rest, 'more line')} with collectives`;
      items.push(h('li', { class: 'line faint' }, more));
    }
    return items;
  }

  private _line(key: string, number: number, text: string, led: Collective[]): HTMLElement {
    const { shown, left } = tell(led, this.report);
    const line = h(
      'li',
      { class: 'line', value: number },
      h('span', { class: 'number', 'aria-hidden': 'true' }, String(number)),
      h('code', { class: 'text' }, text || ' '),
      h(
        'span',
        { class: 'badges' },
        ...shown.map(entry => badge(entry, this.store)),
        left.length > 0 && restBadge(left, this.store)
      )
    );
    this._rows.set(key, line);
    return line;
  }

  private _mark(): void {
    const { chosen, pointed, value } = this.store.focus;
    const place = value?.location ?? words.home(pointed ?? chosen ?? NONE, this.report);
    const line = place ? this._rows.get(`${place.source}:${place.line}`) : undefined;
    if (line !== this._marked) {
      this._marked?.removeAttribute('data-marked');
      line?.setAttribute('data-marked', '');
      this._marked = line;
    }
  }

  private readonly _rows = new Map<string, HTMLElement>();
  private _marked: HTMLElement | undefined;
}

const NONE = { frames: [] } as unknown as Collective;

/** Give for each source the collectives by line: the innermost line of each source counts. */
export function ledBy(report: Report): Led[] {
  const led: Led[] = report.sources.map(() => new Map());
  for (const collective of report.collectives) {
    const seen = new Set<number>();
    for (const frame of collective.frames) {
      const lines = led[frame.source];
      if (lines && !seen.has(frame.source) && words.isShown(frame, report)) {
        seen.add(frame.source);
        const found = lines.get(frame.line);
        found ? found.push(collective) : lines.set(frame.line, [collective]);
      }
    }
  }
  return led;
}

/** Choose the lines to show: the explained text whole or around its lines, else the heaviest. */
function chosenLines(source: Source, index: number, led: Led): { shown: number[]; rest: number } {
  const heaviest = [...led.keys()].sort((a, b) => heavy(led.get(b)) - heavy(led.get(a)));
  if (index > 0) {
    const kept = heaviest.slice(0, LINES).sort((a, b) => a - b);
    return { shown: kept, rest: heaviest.length - kept.length };
  }
  const texts = source.text.replace(/\s+$/, '').split('\n');
  const whole = texts.map((_, i) => source.first_line + i).filter((_, i) => texts[0] || i > 0);
  if (!source.text || whole.length <= WHOLE) {
    return { shown: union(source.text ? whole : [], heaviest), rest: 0 };
  }
  const kept = heaviest.slice(0, WHOLE);
  const first = whole[0];
  const last = whole[whole.length - 1];
  const near = kept.flatMap(line => range(Math.max(first, line - AROUND), line + AROUND));
  return { shown: union(near.filter(line => line <= last), kept), rest: heaviest.length - kept.length };
}

function heavy(collectives: readonly Collective[] = []): number {
  return collectives.reduce((sum, one) => sum + words.weight(one), 0);
}

function union(some: readonly number[], others: readonly number[]): number[] {
  return [...new Set([...some, ...others])].sort((a, b) => a - b);
}

function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, i) => first + i);
}
