/** The live view of a report: the verdict, what to look at, what is sent; the rest is folded. */

import type { SaidPeak } from '../generated/report';
import { REPORT } from '../generated/vocabulary';
import { arrays } from './arrays';
import { paint } from './badge';
import { Code } from './code';
import { button, folded, h, mono } from './dom';
import { points } from './points';
import { Report, readReport, unpacked } from './report';
import { Sent } from './sent';
import { clean } from './slots';
import { Spread } from './spread';
import { Store } from './store';
import { Timeline } from './timeline';
import { typed } from './typed';

/** Lines of code that are shown unasked where no editor has badges. */
const FEW_LINES = 12;
/** Rows of arrays that are drawn unasked. */
const FEW_ARRAYS = 4;

/** Where a report is shown. */
export interface Host {
  /** Whether the editor shows the lines with their badges. */
  editor?: boolean;
  /** Show only the verdict and what to look at, and the rest on demand. */
  brief?: boolean;
  /** Show it in the side panel. */
  open?: () => void;
}

/** A report on the page. */
export interface View {
  /** Look at collectives, by their ids. */
  choose: (...ids: number[]) => void;
  dispose: () => void;
}

/**
 * Draw a report, from the data that its JSON holds, in place of what `place` shows. Data that is
 * no report leaves a sentence that says so.
 */
export function mount(place: HTMLElement, data: unknown, host: Host = {}): View {
  return attempt(place, () => readReport(data), host);
}

/** Draw a report that a notebook keeps, packed or not. */
export async function mountKept(place: HTMLElement, data: unknown, host: Host = {}): Promise<View> {
  try {
    return mount(place, await unpacked(data), host);
  } catch {
    return mount(place, null, host);
  }
}

/** Draw a report that was read already. */
export function mountReport(place: HTMLElement, report: Report, host: Host = {}): View {
  return attempt(place, () => report, host);
}

function attempt(place: HTMLElement, read: () => Report, host: Host): View {
  const root = h('div', { class: 'report' });
  place.replaceChildren(root);
  try {
    return draw(root, read(), host);
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    root.replaceChildren(h('div', { class: 'error', role: 'alert' }, clean(text)));
    return { choose: () => undefined, dispose: () => root.remove() };
  }
}

function draw(root: HTMLElement, report: Report, host: Host): View {
  const store = new Store();
  const rest = [...sending(report, store, host), ...parts(report, store)];
  const brief = host.brief || report.brief;
  root.append(
    head(report, host.open),
    ...verdict(report),
    ...points(report, store),
    ...(brief ? [h('details', null, h('summary', null, REPORT.rest), ...rest)] : rest)
  );
  store.flush();
  return {
    choose: (...ids) => {
      root.querySelectorAll<HTMLDetailsElement>(':scope > details').forEach(each => {
        each.open ||= each.contains(root.querySelector('.shardnb-sends'));
      });
      store.set({ picked: null });
      store.pick('code', ids, report.byId.get(ids[0]) ?? null);
      store.flush();
    },
    dispose: () => {
      store.dispose();
      root.remove();
    }
  };
}

/** What the program runs on, in a line. */
export function head(report: Report, open?: () => void): HTMLElement {
  const parts = report.said.header.map(part => h('span', null, part));
  return h('div', { class: 'header' }, ...parts, open ? button(REPORT.open, open, { class: 'open' }) : null);
}

/** The verdict, what changed since the last run, and how the options that check something ended. */
function verdict({ said }: Report): HTMLElement[] {
  const outcomes = said.outcomes.map(([text, passed]) => {
    const mark = h('span', { class: 'chip' }, passed ? REPORT.passed : passed === false ? REPORT.failed : REPORT.notKnown);
    paint(mark, passed ? 'neutral' : passed === false ? 'red' : 'amber');
    return h('div', { class: 'outcome' }, mark, ' ', text);
  });
  const changed = said.changed ? [h('div', { class: 'faint' }, said.changed)] : [];
  return [h('div', { class: 'verdict' }, said.verdict), ...changed, ...outcomes];
}

/** The lines with what each sends, and what is sent in all. */
export function sending(report: Report, store: Store, host: Host = {}): HTMLElement[] {
  const sent = report.said.rows.length ? [new Sent(report, store).element] : [];
  const code = new Code(report, store).element;
  const lines = code.querySelectorAll('.shardnb-line').length;
  // A point quotes its line already, as an editor shows them all.
  const open = !host.editor && lines <= FEW_LINES && !report.said.points.length;
  return [...sent, ...(lines ? [part(REPORT.sourceLines, '', code, open)] : [])];
}

/** What is folded: arrays, memory, values, types, notes; of few arrays the pictures are open. */
function parts(report: Report, store: Store): HTMLElement[] {
  const { said } = report;
  const rows = said.inputs.members.length + said.outputs.members.length;
  const summary = [said.inputs.summary, said.outputs.summary].join('; ');
  const drawn = arrays(report, store);
  const [total, ...others] = said.memory;
  const values = h('div');
  const fill = (): void => values.append(new Spread(report, store).element);
  return [
    part(REPORT.arrays, rows ? summary : '', drawn, rows <= FEW_ARRAYS),
    ...measured(report, store),
    part(REPORT.memory, total, others.length ? memory(report) : null),
    ...(report.values.length ? [folded(REPORT.values, values, fill, said.values.summary)] : []),
    ...(report.typed.length ? [typed(report)] : []),
    ...(said.cost ? [part(REPORT.time, said.cost, list(said.assumptions))] : []),
    ...(report.notes.length ? [part(REPORT.notes, '', list(report.notes.map(clean)))] : []),
    h('div', { class: 'faint about' }, said.about)
  ];
}

/** What was measured of a run, with a timeline under it. */
function measured(report: Report, store: Store): HTMLElement[] {
  const { said } = report;
  if (!said.measured || !said.timeline) {
    return said.measured ? [part(REPORT.measured, said.measured, null)] : [];
  }
  const body = h('div');
  const fill = (): void => body.append(new Timeline(report, store).element);
  return [folded(REPORT.measured, body, fill, said.measured)];
}

/** A part under its title, with a line that says the most of it. */
function part(title: string, summary: string, body: HTMLElement | null, open = false): HTMLElement {
  const line = [h('b', null, title), ' ', h('span', { class: 'faint' }, summary)];
  return body ? h('details', { open }, h('summary', null, ...line), body) : h('div', { class: 'fact' }, ...line);
}

function list(texts: readonly string[]): HTMLElement {
  return h('ul', { class: 'notes' }, ...texts.map(text => h('li', null, text)));
}

const PARTS = ['arguments', 'outputs', 'temporaries'] as const;

/** The memory's parts in words, with a bar of them. */
function memory({ memory: held, said }: Report): HTMLElement {
  const bar = h('div', { class: 'bar', 'aria-hidden': 'true' });
  const texts = PARTS.map((name, i) => {
    const text = said.memory[i + 1];
    const piece = h('span', { class: `part ${name}`, title: text });
    piece.style.flexGrow = String(held?.[name] ?? 0);
    bar.append(piece);
    return h('span', { class: 'held' }, h('span', { class: `swatch ${name}` }), text);
  });
  return h('div', null, ...texts, bar, ...(said.peak ? [peak(said.peak)] : []));
}

const HELD = [REPORT.heldBytes, REPORT.heldValues, REPORT.heldShape, REPORT.heldLine];

/** What is alive when most of the memory is in use, the largest first. */
function peak({ when, rows, rest }: SaidPeak): HTMLElement {
  if (!rows.length) {
    return h('div', { class: 'faint' }, when);
  }
  const head = h('tr', null, ...HELD.map(text => h('th', { scope: 'col' }, text)));
  const body = rows.map(([bytes, values, shape, line]) =>
    h('tr', null, h('td', { class: 'number' }, bytes), h('td', null, values), h('td', null, mono(shape)), h('td', null, line))
  );
  return h('div', { class: 'peak' }, h('div', null, when), h('table', null, head, ...body), h('div', { class: 'faint' }, rest));
}
