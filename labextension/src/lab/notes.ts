/** What a report says at the lines of a notebook's cells. */

import type { Badge, LedLine, Source, Tone } from '../generated/report';
import { EDITOR } from '../generated/vocabulary';
import { Report, Value, numbers } from '../view/report';
import { fill } from '../view/slots';

/** A collective, or some alike, at the end of a line. */
export interface Mark {
  text: string;
  title: string;
  tone: Tone;
  /** The cell whose output holds the report, the report's number there, and the collectives. */
  cell: string;
  output: number;
  ids: readonly number[];
}

/** The placement of an array after its name in a line. */
export interface Type {
  name: string;
  text: string;
  /** Not compiled: of a preview, or of the line as it was before the last edit. */
  state?: 'preview' | 'pending';
  /** Whether it is another than that of the compiled program. */
  changed?: boolean;
}

/** What is said of an edited line: that the types are a preview, or what is wrong with it. */
export interface Sign {
  kind: 'preview' | 'pending' | 'hint';
  text: string;
}

/** What a report says at a line of a cell. */
export interface Note {
  line: number;
  marks: readonly Mark[];
  types: readonly Type[];
  sign?: Sign;
}

/** A report in a cell's outputs. */
export interface Shown {
  cell: string;
  output: number;
  report: Report;
}

/** The text of a cell as it is now; undefined where the notebook does not have the cell. */
export type TextOf = (cell: string) => string | undefined;

/**
 * Return what a report says about cells, by cell id. A report says nothing once the cell that it
 * explains differs from what was compiled: another line, or another `%%shard` line, can change
 * what every line sends. About a cell that defines called functions it says nothing once that
 * cell differs.
 */
export function notesOf(shown: Shown, textOf: TextOf): Map<string, Note[]> {
  const notes = new Map<string, Note[]>();
  for (const [i, source] of shown.report.sources.entries()) {
    const cell = cellOf(shown, i);
    const now = cell === null || !source.text ? undefined : textOf(cell);
    const moved = now === undefined ? null : shift(source, now);
    if (i === 0 && now !== undefined && moved === null) {
      break;
    }
    if (cell !== null && moved !== null) {
      const here = notesAt(shown, i).map(note => ({ ...note, line: note.line + moved }));
      notes.set(cell, [...(notes.get(cell) ?? []), ...here]);
    }
  }
  return notes;
}

/** Return the cell that a source of a report is; null for a file. */
export function cellOf({ report, cell }: Shown, source: number): string | null {
  return report.sources[source]?.cell_id ?? (source === 0 ? cell : null);
}

/**
 * Return how many lines further down a source's lines are in a cell's text, or null where the
 * text differs from what was compiled. Empty lines at the top of a cell are not always counted by
 * IPython, so only they can move the others. The source of an explained function is the function
 * alone: it has no cell id, and the rest of the cell does not matter.
 */
export function shift(source: Source, code: string): number | null {
  const compiled = source.text.trimEnd().split('\n');
  const now = code.trimEnd().split('\n');
  if (source.cell_id === null && !/^\s*%%/.test(source.text)) {
    const first = source.first_line - 1;
    return same(compiled, now.slice(first, first + compiled.length)) ? 0 : null;
  }
  const [before, after] = [compiled, now].map(lines => lines.findIndex(line => line !== ''));
  return same(compiled.slice(before), now.slice(after)) ? after - before : null;
}

function same(some: readonly string[], others: readonly string[]): boolean {
  return some.join('\n') === others.join('\n');
}

// Most changes leave most reports as they are.
const known = new WeakMap<Report, Map<string, Note[]>>();

/** Return what a report says at the lines of one of its sources. */
export function notesAt(shown: Shown, source: number): Note[] {
  const { report, cell, output } = shown;
  const key = `${cell} ${output} ${source}`;
  const all = known.get(report) ?? new Map<string, Note[]>();
  known.set(report, all);
  const notes = all.get(key) ?? read(shown, source);
  all.set(key, notes);
  return notes;
}

function read(shown: Shown, source: number): Note[] {
  const types = typesAt(shown.report, source);
  const led = new Map((shown.report.said.lines[source] ?? []).map(one => [one.line, one]));
  return [...new Set([...led.keys(), ...types.keys()])].map(line => ({
    line,
    marks: badges(led.get(line)).map(badge => mark(badge, shown)),
    types: types.get(line) ?? []
  }));
}

/** Give the badges of a line in the editor. */
function badges(led: LedLine | undefined): readonly Badge[] {
  return led?.marks.length ? led.marks : (led?.badges ?? []);
}

function mark(badge: Badge, { cell, output }: Shown): Mark {
  const { ids, head, sends, cause, tone, mark: text } = badge;
  const title = head && fill(EDITOR.markTitle, { head, sends, cause });
  return { text, title: title || text, tone, cell, output, ids: numbers(ids) };
}

/** Give the types by line; where a line gives a name twice, the program's own array counts. */
export function typesAt({ values, outputs }: Report, source: number): Map<number, Type[]> {
  const types = new Map<number, Type[]>();
  const seen = new Set<string>();
  for (const value of [...values, ...outputs]) {
    const key = `${value.location?.line} ${value.name}`;
    if (value.location?.source === source && !seen.has(key)) {
      seen.add(key);
      types.set(value.location.line, [...(types.get(value.location.line) ?? []), typed(value)]);
    }
  }
  return types;
}

function typed(value: Value): Type {
  return { name: value.name, text: value.say('type') };
}

/** Give the position after a name that a line assigns, or null: after `h` in `h = x @ W`. */
export function behind(name: string, code: string): number | null {
  if (!/^[\p{L}_][\p{L}\p{N}_]*$/u.test(name)) {
    return null;
  }
  const targets = /^[^=#'"]*?(?=[-+*/@%&|^]?=(?!=))/.exec(code)?.[0] ?? '';
  const found = new RegExp(`(?<![\\p{L}\\p{N}_.])${name}(?![\\p{L}\\p{N}_(.[])`, 'u').exec(targets);
  return found && found.index + name.length;
}
