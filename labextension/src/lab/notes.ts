/** What a report says at the lines of a notebook's cells. */

import type { Badge, LedLine, Tone } from '../generated/report';
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
}

/** What a report says at a line; `code` is the line's text as it was when it ran. */
export interface Note {
  shown: Shown;
  line: number;
  code: string;
  marks: readonly Mark[];
  types: readonly Type[];
}

/** A report in a cell's outputs. */
export interface Shown {
  cell: string;
  output: number;
  report: Report;
}

/**
 * Give what a report says of cells, by cell id: the explained text is the cell that has the
 * output, unless the report says another; library files are no cells.
 */
export function notesOf(shown: Shown): Map<string, Note[]> {
  const { report, cell } = shown;
  const notes = new Map<string, Note[]>();
  report.sources.forEach((source, i) => {
    const home = source.cell_id ?? (i === 0 ? cell : null);
    if (home === null || !source.text) {
      return;
    }
    const codes = source.text.split('\n');
    const types = typesAt(report, i);
    const led = new Map((report.said.lines[i] ?? []).map(one => [one.line, one]));
    const lines = new Set([...led.keys(), ...types.keys()]);
    const found = [...lines]
      .filter(line => codes[line - source.first_line] !== undefined)
      .map(line => ({
        shown,
        line,
        code: codes[line - source.first_line],
        marks: badges(led.get(line)).map(badge => mark(badge, shown)),
        types: types.get(line) ?? []
      }));
    notes.set(home, [...(notes.get(home) ?? []), ...found]);
  });
  return notes;
}

/** Give the cell whose text a report explains; null where it is no cell's. */
export function explainedCell({ report, cell }: Shown): string | null {
  return report.sources.length ? (report.sources[0].cell_id ?? cell) : null;
}

/**
 * Whether a cell would run as it ran for a report: its `%%shard` line says how all arrays are
 * sharded, so that with another one, or none, no line sends what it sent.
 */
export function runsAsBefore({ report }: Shown, code: string): boolean {
  const before = magics(report.sources[0]?.text ?? '');
  return !before || magics(code) === before;
}

/** Give the cell magics that a text begins with. */
export function magics(code: string): string {
  const found = /^\s*(?:%%.*(?:\s+|$))*/.exec(code)?.[0] ?? '';
  return found.split(/\s+/).join(' ').trim();
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
function typesAt({ values, outputs }: Report, source: number): Map<number, Type[]> {
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

/** Give the place behind a name that a line assigns, or null: behind `h` in `h = x @ W`. */
export function behind(name: string, code: string): number | null {
  if (!/^[\p{L}_][\p{L}\p{N}_]*$/u.test(name)) {
    return null;
  }
  const targets = /^[^=#'"]*?(?=[-+*/@%&|^]?=(?!=))/.exec(code)?.[0] ?? '';
  const found = new RegExp(`(?<![\\p{L}\\p{N}_.])${name}(?![\\p{L}\\p{N}_(.[])`, 'u').exec(targets);
  return found && found.index + name.length;
}
