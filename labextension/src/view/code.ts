/** The user's own lines, each with the collectives that it led to at its end. */

import { REPORT } from '../generated/vocabulary';
import { badge } from './badge';
import { Child, h } from './dom';
import { pickButton } from './pick';
import { LedLine, Report, Source, home, numbers } from './report';
import { clean, fill, numbered } from './slots';
import { Store } from './store';

/** A longer text is shown around the lines that led to something, so many lines at most. */
const WHOLE = 200;
const AROUND = 2;
/** Lines of another source. */
const LINES = 16;

/** Draw the sources' lines; a line is marked while its collective or array is looked at. */
export class Code {
  readonly element = h('div', { class: 'code' });

  constructor(
    report: Report,
    private readonly store: Store
  ) {
    report.sources.forEach((source, i) => {
      const lines = this._lines(source, i, report.said.lines[i] ?? [], report);
      if (lines.length) {
        this.element.append(...(i ? [h('div', { class: 'faint' }, clean(source.name))] : []));
        this.element.append(h('ol', { class: 'lines', 'aria-label': REPORT.sourceLines }, ...lines));
      }
    });
    store.subscribe(() => this._mark());
  }

  private _lines(
    source: Source,
    index: number,
    led: readonly LedLine[],
    report: Report
  ): HTMLElement[] {
    const { shown, rest } = chosenLines(source, index, led);
    const badges = new Map(led.map(line => [line.line, line.badges]));
    const texts = source.text.split('\n');
    const items = shown.flatMap((number, i) => {
      const drawn = (badges.get(number) ?? []).map(found => badge(found, report, this.store));
      const ids = (badges.get(number) ?? []).flatMap(found => numbers(found.ids));
      const line = codeLine(
        number,
        clean(texts[number - source.first_line] ?? '') || ' ',
        h('span', { class: 'badges' }, ...drawn)
      );
      if (ids.length) {
        const label = { class: 'pick number', 'aria-label': fill(REPORT.line, { line: number }) };
        line.firstElementChild?.replaceWith(pickButton(String(number), ids, this.store, label));
        line.addEventListener('click', ({ target }) => {
          if (!(target as Element).closest('.shardnb-badge')) {
            this.store.pick('code', ids, report.byId.get(ids[0]) ?? null);
          }
        });
      }
      this._rows.set(`${index}:${number}`, { line, ids: new Set(ids) });
      const gap = i > 0 && number > shown[i - 1] + 1;
      return gap ? [h('li', { class: 'line gap', 'aria-hidden': 'true' }, '\u22ee'), line] : [line];
    });
    const more = rest ? [h('li', { class: 'line faint' }, numbered(REPORT.moreLines, rest))] : [];
    return [...items, ...more];
  }

  /** Mark the line that is looked at, and let those step back that what is picked is not at. */
  private _mark(): void {
    const { chosen, pointed, value, picked } = this.store.focus;
    const collective = pointed ?? chosen;
    const place = value?.location ?? (collective && home(collective));
    const key = place ? `${place.source}:${place.line}` : '';
    this._rows.forEach(({ line, ids }, at) => {
      line.toggleAttribute('data-marked', at === key);
      const out = picked && picked.from !== 'code' && ![...picked.ids].some(id => ids.has(id));
      line.toggleAttribute('data-out', Boolean(out));
    });
  }

  private readonly _rows = new Map<string, { line: HTMLElement; ids: ReadonlySet<number> }>();
}

/** A line of the user's with its number, and the badges after it. */
export function codeLine(number: number, text: string, ...behind: Child[]): HTMLElement {
  return h(
    'li',
    { class: 'line', value: number },
    h('span', { class: 'number', 'aria-hidden': 'true' }, String(number)),
    h('code', { class: 'text' }, text),
    ...behind
  );
}

/** Choose the lines to show: the explained text whole or around its lines, else the heaviest. */
function chosenLines(
  source: Source,
  index: number,
  led: readonly LedLine[]
): { shown: number[]; rest: number } {
  const heaviest = led.map(line => line.line);
  const { first_line: first, text } = source;
  const texts = text.replace(/\s+$/, '').split('\n');
  const last = first + texts.length - 1;
  const whole = range(texts[0] ? first : first + 1, last);
  if (index === 0 && (!text || whole.length <= WHOLE)) {
    return { shown: union(text ? whole : [], heaviest), rest: 0 };
  }
  const kept = heaviest.slice(0, index > 0 ? LINES : WHOLE);
  const around = (line: number): number[] =>
    range(Math.max(whole[0], line - AROUND), Math.min(last, line + AROUND));
  const near = index > 0 ? [] : kept.flatMap(around);
  return { shown: union(near, kept), rest: heaviest.length - kept.length };
}

function union(some: readonly number[], others: readonly number[]): number[] {
  return [...new Set([...some, ...others])].sort((a, b) => a - b);
}

function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, i) => first + i);
}
