/** The live view of a report: what is sent, who asked, why, what would remove it. */

import { Card, arrays } from './arrays';
import { Code } from './code';
import { about, header, memoryText, summary } from './content';
import { Detail } from './detail';
import { h } from './dom';
import { List } from './list';
import { MeshPanel } from './mesh';
import { Collective, Finding, Memory, Report, readReport } from './report';
import { Spread } from './spread';
import { Store } from './store';
import { typed } from './typed';
import { clean, count, size } from './units';
import * as words from './words';

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
    ...(report.typed.length ? [typed(report)] : []),
    ...Object.entries(report.texts).map(([name, text]) => program(name, text))
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
  const [first, ...others] = header(report);
  return h('div', { class: 'header' }, h('b', null, first), ...others.map(part => h('span', null, part)));
}

/** The lines with what each sends, the list of collectives, and one of them at length. */
export function sending(report: Report, store: Store): HTMLElement[] {
  return [
    new Code(report, store).element,
    h('div', { class: 'summary' }, summary(report)),
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
    (most, one) => (most && words.weight(most) >= words.weight(one) ? most : one),
    null
  );
}

function facts(report: Report, store: Store): HTMLElement {
  const rows = [fact('memory', memory(report.memory, report.outputs.length))];
  if (report.cost) {
    const assumed = report.cost.assumptions.map(one => `- ${one}`).join('\n');
    const more = assumed ? folded('what is assumed', assumed) : null;
    rows.push(fact('time', h('div', null, words.bound(report.cost), more)));
  }
  report.findings.forEach(one => rows.push(fact('finding', finding(one, report, store))));
  report.notes.forEach(note => rows.push(fact('note', h('span', null, clean(note)))));
  const said = about(report).join(' ');
  if (said) {
    rows.push(fact('about', h('span', { class: 'faint' }, said)));
  }
  return h('dl', { class: 'facts' }, ...rows.flat());
}

function fact(label: string, body: HTMLElement): HTMLElement[] {
  return [h('dt', null, label), h('dd', null, body)];
}

const PARTS = ['arguments', 'outputs', 'temporaries'] as const;

/** The memory in words, with a bar of its parts. */
function memory(held: Memory | null, outputs: number): HTMLElement {
  const bar = h('span', { class: 'bar', 'aria-hidden': 'true' });
  for (const part of PARTS) {
    const piece = h('span', { class: `part ${part}`, title: `${part} ${size(held?.[part] ?? 0)}` });
    piece.style.flexGrow = String(held?.[part] ?? 0);
    bar.append(piece);
  }
  const words = memoryText(held, outputs).split(', ');
  const parts = words.map((text, i) =>
    h('span', null, held && h('span', { class: `swatch ${PARTS[i]}` }), text + (words[i + 1] ? ', ' : ''))
  );
  return h('div', null, ...parts, held && bar);
}

function finding(one: Finding, report: Report, store: Store): HTMLElement {
  const place = one.location ? ` ${words.at(one.location, report)}` : '';
  const price = one.wasted_bytes === null ? '' : `  (${size(one.wasted_bytes)} wasted)`;
  return h(
    'div',
    null,
    h('b', null, `${clean(one.kind)}${place}`),
    `: ${clean(one.message)}${price}`,
    one.values.length
      ? h('div', { class: 'cards' }, ...one.values.map(value => new Card('', value, report, store).element))
      : null,
    one.details ? folded('details', one.details) : null
  );
}

/** The text of a program, drawn when it is opened. */
function program(name: string, text: string): HTMLElement {
  const lines = count(text.split('\n').length, 'line');
  return folded(`${clean(name)} program, ${lines}, ${size(text.length)}`, text);
}

function folded(title: string, text: string): HTMLElement {
  const body = h('pre', { class: 'raw' });
  const open = (): void => {
    body.textContent ||= text.split('\n').map(clean).join('\n');
  };
  return h('details', { on: { toggle: open } }, h('summary', null, title), body);
}

