/** What a report says at the lines of a notebook's cells. */

import { tell } from '../view/entries';
import { ledBy } from '../view/code';
import { valueType } from '../view/content';
import { Collective, Report, Value } from '../view/report';
import { clean, count, size } from '../view/units';
import * as words from '../view/words';

/** A collective, or some alike, at the end of a line. */
export interface Mark {
  text: string;
  title: string;
  asked: string;
  /** The cell whose output holds the report, the report's number there, and the collective. */
  cell: string;
  output: number;
  id: number;
}

/** The placement of an array after its name in a line. */
export interface Type {
  name: string;
  text: string;
}

/** What is said at a line; `code` is the line's text as it was when it ran. */
export interface Note {
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

const SINGLE = 2;

/**
 * Give what a report says of cells, by cell id: the explained text is the cell that has the
 * output, unless the report says another; library files are no cells.
 */
export function notesOf(shown: Shown): Map<string, Note[]> {
  const { report, cell } = shown;
  const led = ledBy(report);
  const notes = new Map<string, Note[]>();
  report.sources.forEach((source, i) => {
    const home = source.cell_id ?? (i === 0 ? cell : null);
    if (home === null || !source.text) {
      return;
    }
    const codes = source.text.split('\n');
    const types = typesAt(report, i);
    const lines = new Set([...led[i].keys(), ...types.keys()]);
    const found = [...lines]
      .filter(line => codes[line - source.first_line] !== undefined)
      .map(line => ({
        line,
        code: codes[line - source.first_line],
        marks: marks(led[i].get(line) ?? [], shown),
        types: types.get(line) ?? []
      }));
    notes.set(home, [...(notes.get(home) ?? []), ...found]);
  });
  return notes;
}

function marks(collectives: readonly Collective[], { report, cell, output }: Shown): Mark[] {
  const { shown, left } = tell(collectives, report, SINGLE, SINGLE);
  const told = shown.map(({ members, name, array, sends, cause }) => ({
    text: badgeText(members),
    title: `${name} ${array}: ${sends}; ${cause}`,
    asked: members[0].asked_by ?? 'other',
    cell,
    output,
    id: members[0].id
  }));
  if (!left.length) {
    return told;
  }
  const text = `and ${count(left.length, 'more collective')}`;
  return [...told, { text, title: text, asked: 'other', cell, output, id: left[0].id }];
}

/** Write a badge: `all-reduce 256 KiB model x4`, `17 all-reduces 3.2 MiB model`. */
export function badgeText(members: readonly Collective[]): string {
  const [first] = members;
  const axes = first.axes ? clean(first.axes.join(', ')) : words.grouping(first);
  const end = axes && ` ${axes}`;
  if (members.length === 1) {
    return `${first.kind} ${size(first.wire_bytes)}${end}${words.trips(first)}`;
  }
  const least = words.unknown(members) ? 'at least ' : '';
  return `${count(members.length, first.kind)} ${least}${size(words.sent(members))}${end}`;
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
  return { name: value.name, text: valueType(value) };
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
