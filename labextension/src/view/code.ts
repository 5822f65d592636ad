/** The user's own lines, each with the collectives that it led to at its end. */

import { REPORT } from '../generated/vocabulary';
import { badge } from './badge';
import { h } from './dom';
import { Collective, LedLine, Report, Source, home } from './report';
import { clean, numbered } from './slots';
import { Store } from './store';

const WHOLE = 200;
const LINES = 16;
const AROUND = 2;

/** Draw the sources' lines; a line is marked while its collective or array is looked at. */
export class Code {
  readonly element = h('div', { class: 'code' });

  constructor(
    private readonly report: Report,
    private readonly store: Store
  ) {
    const { lines: led } = report.said;
    report.collectives.forEach(one => this._byId.set(one.id, one));
    report.sources.forEach((source, i) => {
      const lines = this._lines(source, i, led[i] ?? []);
      if (lines.length) {
        this.element.append(...(i ? [h('div', { class: 'faint' }, clean(source.name))] : []));
        this.element.append(h('ol', { class: 'lines', 'aria-label': REPORT.sourceLines }, ...lines));
      }
    });
    store.subscribe(() => this._mark());
  }

  private _lines(source: Source, index: number, led: readonly LedLine[]): HTMLElement[] {
    const { shown, rest } = chosenLines(source, index, led);
    const badges = new Map(led.map(one => [one.line, one]));
    const texts = source.text.split('\n');
    const items: HTMLElement[] = [];
    shown.forEach((number, i) => {
      if (i && number > shown[i - 1] + 1) {
        items.push(h('li', { class: 'line gap', 'aria-hidden': 'true' }, '\u22ee'));
      }
      const text = clean(texts[number - source.first_line] ?? '');
      items.push(this._line(`${index}:${number}`, number, text, badges.get(number)));
    });
    if (rest) {
      items.push(h('li', { class: 'line faint' }, numbered(REPORT.moreLines, rest)));
    }
    return items;
  }

  private _line(key: string, number: number, text: string, led?: LedLine): HTMLElement {
    const badges = (led?.badges ?? []).map(one => {
      const leads = this._byId.get(one.id);
      return leads ? badge(one, leads, this.store) : null;
    });
    const line = h(
      'li',
      { class: 'line', value: number },
      h('span', { class: 'number', 'aria-hidden': 'true' }, String(number)),
      h('code', { class: 'text' }, text || ' '),
      h(
        'span',
        { class: 'badges' },
        ...badges
      )
    );
    this._rows.set(key, line);
    return line;
  }

  private _mark(): void {
    const { chosen, pointed, value } = this.store.focus;
    const place = value?.location ?? home(pointed ?? chosen ?? NONE, this.report);
    const line = place ? this._rows.get(`${place.source}:${place.line}`) : undefined;
    if (line !== this._marked) {
      this._marked?.removeAttribute('data-marked');
      line?.setAttribute('data-marked', '');
      this._marked = line;
    }
  }

  private readonly _byId = new Map<number, Collective>();
  private readonly _rows = new Map<string, HTMLElement>();
  private _marked: HTMLElement | undefined;
}

const NONE = { frames: [] } as unknown as Collective;

/** Choose the lines to show: the explained text whole or around its lines, else the heaviest. */
function chosenLines(
  source: Source,
  index: number,
  led: readonly LedLine[]
): { shown: number[]; rest: number } {
  const heaviest = led.map(one => one.line);
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

function union(some: readonly number[], others: readonly number[]): number[] {
  return [...new Set([...some, ...others])].sort((a, b) => a - b);
}

function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, i) => first + i);
}
