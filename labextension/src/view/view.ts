/** The live view of a report: what is sent, who asked, why, what would remove it. */

import { REPORT } from '../generated/vocabulary';
import { Card, arrays } from './arrays';
import { Code } from './code';
import { Detail } from './detail';
import { folded, h } from './dom';
import { List } from './list';
import { MeshPanel } from './mesh';
import { Collective, Report, readReport, weight } from './report';
import { clean, cleanLines } from './slots';
import { Spread } from './spread';
import { Store } from './store';
import { typed } from './typed';

/** A report on the page. */
export interface View {
  /** Look at a collective, by its id. */
  choose: (id: number) => void;
  dispose: () => void;
}

/**
 * Draw a report, from the data that its JSON holds, in place of what `host` shows. Data that is
 * no report leaves a sentence that says so.
 */
export function mount(host: HTMLElement, data: unknown): View {
  return attempt(host, () => readReport(data));
}

/** Draw a report that was read already. */
export function mountReport(host: HTMLElement, report: Report): View {
  return attempt(host, () => report);
}

function attempt(host: HTMLElement, read: () => Report): View {
  const root = h('div', { class: 'report' });
  host.replaceChildren(root);
  try {
    return draw(root, read());
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    root.replaceChildren(h('div', { class: 'error', role: 'alert' }, clean(text)));
    return { choose: () => undefined, dispose: () => root.remove() };
  }
}

function draw(root: HTMLElement, report: Report): View {
  const store = new Store();
  const { collectives } = report;
  root.append(
    head(report),
    ...sending(report, store),
    arrays(report, store),
    ...(report.values.length ? [new Spread(report, store).element] : []),
    facts(report, store),
    ...(report.typed.length ? [typed(report)] : [])
  );
  store.set({ chosen: heaviest(collectives) });
  store.flush();
  return {
    choose: id => {
      store.set({ chosen: collectives.find(one => one.id === id) ?? store.focus.chosen });
      store.flush();
    },
    dispose: () => {
      store.dispose();
      root.remove();
    }
  };
}

/** What the program runs on, in a line. */
export function head(report: Report): HTMLElement {
  const [first, ...others] = report.said.header;
  return h('div', { class: 'header' }, h('b', null, first), ...others.map(part => h('span', null, part)));
}

/** The lines with what each sends, the list of collectives, and one of them at length. */
export function sending(report: Report, store: Store): HTMLElement[] {
  const code = new Code(report, store).element;
  const list = report.collectives.length > 1 ? [new List(report, store).element] : [];
  const main = [new Detail(report, store), new MeshPanel(report, store)].map(part => part.element);
  const summary = h('div', { class: 'summary' }, report.said.summary);
  return [code, summary, ...list, h('div', { class: 'main' }, ...main)];
}

/** Give the collective that sends most. */
export function heaviest(collectives: readonly Collective[]): Collective | null {
  return collectives.reduce<Collective | null>(
    (most, one) => (most && weight(most) >= weight(one) ? most : one),
    null
  );
}

function facts(report: Report, store: Store): HTMLElement {
  const { said, findings, notes } = report;
  const assumed = said.assumptions.map(text => `- ${text}`).join('\n');
  const time = h('div', null, said.cost, assumed ? more(REPORT.assumed, assumed) : null);
  const rows: [string, HTMLElement][] = [
    [REPORT.memory, memory(report)],
    ...(said.cost ? [[REPORT.time, time] as [string, HTMLElement]] : []),
    ...findings.map((_, i): [string, HTMLElement] => [REPORT.finding, finding(i, report, store)]),
    ...notes.map((note): [string, HTMLElement] => [REPORT.note, h('span', null, clean(note))])
  ];
  if (said.about) {
    rows.push([REPORT.about, h('span', { class: 'faint' }, said.about)]);
  }
  const drawn = rows.flatMap(([label, body]) => [h('dt', null, label), h('dd', null, body)]);
  return h('dl', { class: 'facts' }, ...drawn);
}

const PARTS = ['arguments', 'outputs', 'temporaries'] as const;

/** The memory in words, with a bar of its parts. */
function memory({ memory: held, said }: Report): HTMLElement {
  const bar = h('span', { class: 'bar', 'aria-hidden': 'true' });
  PARTS.forEach((part, i) => {
    const piece = h('span', { class: `part ${part}`, title: said.memory[i] });
    piece.style.flexGrow = String(held?.[part] ?? 0);
    bar.append(piece);
  });
  const parts = said.memory.map((text, i) => {
    const swatch = held && h('span', { class: `swatch ${PARTS[i]}` });
    return h('span', null, swatch, text + (said.memory[i + 1] ? ', ' : ''));
  });
  return h('div', null, ...parts, held && bar);
}

function finding(number: number, report: Report, store: Store): HTMLElement {
  const { values, details } = report.findings[number];
  const [head, text] = report.said.findings[number];
  const cards = values.map(value => new Card('', value, report, store).element);
  return h(
    'div',
    null,
    h('b', null, head),
    `: ${text}`,
    cards.length ? h('div', { class: 'cards' }, ...cards) : null,
    details ? more(REPORT.details, details) : null
  );
}

/** A text under a summary. */
function more(title: string, text: string): HTMLElement {
  const body = h('pre', { class: 'raw' });
  return folded(title, body, () => body.append(cleanLines(text)));
}
