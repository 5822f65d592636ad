/** The live view of a report: what is sent, who asked, why, what would remove it. */

import { REPORT } from '../generated/vocabulary';
import { Card, arrays } from './arrays';
import { Code } from './code';
import { Detail } from './detail';
import { h } from './dom';
import { List } from './list';
import { MeshPanel } from './mesh';
import { Collective, Finding, Report, readReport, weight } from './report';
import { clean } from './slots';
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
  return [
    new Code(report, store).element,
    h('div', { class: 'summary' }, report.said.summary),
    ...(report.collectives.length > 1 ? [new List(report, store).element] : []),
    h(
      'div',
      { class: 'main' },
      new Detail(report, store).element,
      new MeshPanel(report, store).element
    )
  ];
}

/** Give the collective that sends most. */
export function heaviest(collectives: readonly Collective[]): Collective | null {
  return collectives.reduce<Collective | null>(
    (most, one) => (most && weight(most) >= weight(one) ? most : one),
    null
  );
}

function facts(report: Report, store: Store): HTMLElement {
  const { said } = report;
  const rows = [fact(REPORT.memory, memory(report))];
  if (said.cost) {
    const assumed = said.assumptions.map(one => `- ${one}`).join('\n');
    const more = assumed ? folded(REPORT.assumed, assumed) : null;
    rows.push(fact(REPORT.time, h('div', null, said.cost, more)));
  }
  report.findings.forEach((one, i) => {
    rows.push(fact(REPORT.finding, finding(one, said.findings[i], report, store)));
  });
  report.notes.forEach(note => rows.push(fact(REPORT.note, h('span', null, clean(note)))));
  if (said.about) {
    rows.push(fact(REPORT.about, h('span', { class: 'faint' }, said.about)));
  }
  return h('dl', { class: 'facts' }, ...rows.flat());
}

function fact(label: string, body: HTMLElement): HTMLElement[] {
  return [h('dt', null, label), h('dd', null, body)];
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
  const parts = said.memory.map((text, i) =>
    h('span', null, held && h('span', { class: `swatch ${PARTS[i]}` }), text + (said.memory[i + 1] ? ', ' : ''))
  );
  return h('div', null, ...parts, held && bar);
}

function finding(
  one: Finding,
  [head, text]: readonly [string, string],
  report: Report,
  store: Store
): HTMLElement {
  return h(
    'div',
    null,
    h('b', null, head),
    `: ${text}`,
    one.values.length
      ? h('div', { class: 'cards' }, ...one.values.map(value => new Card('', value, report, store).element))
      : null,
    one.details ? folded(REPORT.details, one.details) : null
  );
}

function folded(title: string, text: string): HTMLElement {
  const body = h('pre', { class: 'raw' });
  const open = (): void => {
    body.textContent ||= text.split('\n').map(clean).join('\n');
  };
  return h('details', { on: { toggle: open } }, h('summary', null, title), body);
}

