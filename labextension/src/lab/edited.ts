/** Notes of a cell whose `%%shard` line is another than the compiled one, from a preview. */

import { EDITOR } from '../generated/vocabulary';
import { Note, Shown, TextOf, Type, cellOf, notesAt, shift, typesAt } from './notes';
import { Preview } from './previews';

/** A cell in which the line alone was edited, and how many lines further down its body is. */
export interface Edited {
  cell: string;
  code: string;
  moved: number;
}

/** Return the cell of a report if its line was edited and its body is the compiled one. */
export function edited(shown: Shown, textOf: TextOf): Edited | null {
  const [source] = shown.report.sources;
  const cell = source?.text ? cellOf(shown, 0) : null;
  const code = cell === null ? undefined : textOf(cell);
  if (cell === null || code === undefined || shift(source, code) !== null) {
    return null;
  }
  const [then, now] = [source.text, code].map(parted);
  const same = then && now && then.body === now.body;
  return same ? { cell, code, moved: now.head - then.head } : null;
}

/**
 * Return the text of a `%%shard` cell after its line, and the number of lines before that; null
 * for another cell. A line that ends in a backslash continues on the next one.
 */
export function parted(code: string): { head: number; body: string } | null {
  const lines = code.trimEnd().split('\n');
  let last = lines.findIndex(line => line !== '');
  if (last < 0 || !/^%%shard(\s|$)/.test(lines[last])) {
    return null;
  }
  while (lines[last].endsWith('\\') && last < lines.length - 1) {
    last++;
  }
  return { head: last + 1, body: lines.slice(last + 1).join('\n') };
}

/** Return what a preview says about cells, by cell id. */
export function previewNotes(
  shown: Shown,
  { cell, code, moved }: Edited,
  preview: Preview,
  textOf: TextOf
): Map<string, Note[]> {
  const notes = new Map<string, Note[]>();
  shown.report.sources.forEach((source, i) => {
    const at = cellOf(shown, i);
    const text = at === null || !source.text ? undefined : textOf(at);
    const by = i === 0 ? moved : text === undefined ? null : shift(source, text);
    if (at !== null && by !== null) {
      const here = notesIn(shown, i, preview).map(note => ({ ...note, line: note.line + by }));
      notes.set(at, [...(notes.get(at) ?? []), ...here]);
    }
  });
  const sign = signOf(preview);
  const line = parted(code)?.head ?? 1;
  return sign ? notes.set(cell, [{ line, marks: [], types: [], sign }, ...(notes.get(cell) ?? [])]) : notes;
}

function notesIn(shown: Shown, source: number, { types, fresh }: Preview): Note[] {
  const compiled = typesAt(shown.report, source);
  if (types === 'compiled') {
    return notesAt(shown, source).map(note => (fresh ? note : pending(note)));
  }
  const state = fresh ? 'preview' : 'pending';
  const lines = new Map<number, Type[]>();
  for (const [, line, name, text] of (types ?? []).filter(one => one[0] === source)) {
    const before = compiled.get(line)?.find(type => type.name === name);
    const type: Type = { name, text, state, changed: before?.text !== text };
    lines.set(line, [...(lines.get(line) ?? []), type]);
  }
  return [...lines].map(([line, all]) => ({ line, marks: [], types: all }));
}

function pending(note: Note): Note {
  return { ...note, marks: [], types: note.types.map(type => ({ ...type, state: 'pending' })) };
}

function signOf({ types, fresh, hint }: Preview): Note['sign'] | null {
  if (hint) {
    return { kind: 'hint', text: hint };
  }
  const known = types !== null && types !== 'compiled';
  return known ? { kind: fresh ? 'preview' : 'pending', text: EDITOR.preview } : null;
}
