import { EditorState } from '@codemirror/state';
import { EditorView } from '@codemirror/view';
import { Signal } from '@lumino/signaling';
import { afterEach, describe, expect, it } from 'vitest';

import { Mark, Note, Shown, behind, explainedCell, notesOf, runsAsBefore } from '../src/lab/notes';
import { feed, field } from '../src/lab/badges';
import { readReport } from '../src/view';
import { allReduce, array, sketch, spoken } from './samples';

function notes(data: object, cell = 'here'): Map<string, Note[]> {
  return notesOf({ cell, output: 0, report: readReport(spoken(data)) });
}

describe('the notes of a report', () => {
  it('stand at the lines of the cell that it says', () => {
    const found = notes(sketch());
    expect([...found.keys()]).toEqual(['cell-a']);
    expect(found.get('cell-a')![0]).toMatchObject({ line: 1, code: 'h = x @ W' });
    expect(found.get('cell-a')![0].marks[0]).toMatchObject({
      text: 'mark of 0',
      title: 'head of 0, sends of 0: cause of 0',
      tone: 'amber',
      ids: [0]
    });
  });

  it('stand in the cell of the output where the report names no cell', () => {
    const found = notes({ ...sketch(), sources: [{ name: 'cell', text: 'h = x @ W' }] });
    expect([...found.keys()]).toEqual(['here']);
  });

  it('are others than in the report where Python gives others', () => {
    const few = { ids: '0 1', head: '', sends: 'and 2 more', mark: 'two more' };
    const badges = ['0', '1', '2'].map(ids => ({ ids, head: 'h', sends: 's', mark: `mark of ${ids}` }));
    const found = notes({ ...sketch(), said: { lines: [[{ line: 1, badges, marks: [few] }]] } });
    const [{ marks }] = found.get('cell-a')!;
    expect(marks).toMatchObject([{ text: 'two more', title: 'two more', tone: 'neutral', ids: [0, 1] }]);
  });

  it('stand in other cells that the program calls, and in no library', () => {
    const sources = [
      { name: 'cell', text: 'y = f(x)', cell_id: 'cell-a' },
      { name: 'Cell In[2]', text: 'def f(x):\n    return x @ W', cell_id: 'cell-b' },
      { name: 'layers.py', text: 'x\ny' }
    ];
    const frames = [
      { source: 2, line: 1 },
      { source: 1, line: 2 },
      { source: 0, line: 1 }
    ];
    const badges = [{ ids: '0', head: 'h', sends: 's', mark: 'm' }];
    const led = (line: number): object[] => [{ line, badges }];
    const said = { lines: [led(1), led(2), led(1)] };
    const found = notes({ ...sketch(), sources, said, collectives: [{ ...allReduce(), frames }] });
    expect([...found.keys()].sort()).toEqual(['cell-a', 'cell-b']);
    expect(found.get('cell-b')![0].line).toBe(2);
  });

  it('give the placement of an array once for its name', () => {
    const location = { source: 0, line: 2 };
    const y = { ...array('y', [256, 1024], [['data'], []], [64, 1024]), location };
    const found = notes({ ...sketch(), values: [y], outputs: [y] });
    expect(found.get('cell-a')!.find(note => note.line === 2)!.types).toEqual([
      { name: 'y', text: 'type of y' }
    ]);
  });
});

describe('a report of a %%shard cell', () => {
  const shown = (text: string, cell_id?: string): Shown => {
    const sources = [{ name: 'cell', text, ...(cell_id && { cell_id }) }];
    return { cell: 'here', output: 0, report: readReport(spoken({ ...sketch(), sources })) };
  };
  const CELL = "%%shard x=P('data')\nh = x @ W";

  it.each([
    ['as it ran', CELL, true],
    ['with another line of code', "%%shard x=P('data')\ng = 1\nh = x @ W", true],
    ['with other spaces, which say nothing', "\n%%shard  x=P('data') \nh = x @ W", true],
    ['with another spec', "%%shard x=P('model')\nh = x @ W", false],
    ['without its magic', 'h = x @ W', false],
    ['with its magic switched off', "# %%shard x=P('data')\nh = x @ W", false],
    ['with another magic before it', "%%time\n%%shard x=P('data')\nh = x @ W", false],
    ['emptied', '', false]
  ])('holds for the cell %s: %#', (_, code, holds) => {
    expect(runsAsBefore(shown(CELL), code)).toBe(holds);
  });

  it('counts every magic that the cell began with', () => {
    const timed = shown(`%%time\n${CELL}`);
    expect(runsAsBefore(timed, `%%time\n${CELL}`)).toBe(true);
    expect(runsAsBefore(timed, CELL)).toBe(false);
  });

  it('holds for any text where it came of a function, without a magic', () => {
    expect(runsAsBefore(shown('def f(x):\n    return x @ W'), '')).toBe(true);
  });

  it('explains the cell that it says, or the one that has it as output', () => {
    expect(explainedCell(shown(CELL, 'other'))).toBe('other');
    expect(explainedCell(shown(CELL))).toBe('here');
    const { report } = shown(CELL);
    expect(explainedCell({ cell: 'here', output: 0, report: { ...report, sources: [] } })).toBeNull();
  });
});

describe('the place of a type', () => {
  it.each([
    ['h', 'h = x @ W', 1],
    ['h', '    h  = x', 5],
    ['b', 'a, b = f(x)', 4],
    ['h', 'h += x', 1],
    ['x', 'h = x @ W', null],
    ['h', 'h == x', null],
    ['h', 'f(h)', null],
    ['h', 'm.h = 3', null],
    ["p['w']", "p['w'] = 3", null],
    ['h', 'h: Array = x', 1]
  ])('of %s in `%s` is %s', (name, code, place) => expect(behind(name, code)).toBe(place));
});

describe('the badges of an editor', () => {
  const views: EditorView[] = [];
  afterEach(() => views.splice(0).forEach(view => view.destroy()));

  const CODE = '%%shard\nh = x @ W\ny = h';
  const mark: Mark = { text: 'a badge', title: 't', tone: 'neutral' as const, cell: 'c', output: 0, ids: [7] };
  const report = readReport(spoken({ ...sketch(), sources: [{ name: 'cell', text: CODE }] }));
  const note: Note = {
    shown: { cell: 'c', output: 0, report },
    line: 2,
    code: 'h = x @ W',
    marks: [mark],
    types: [{ name: 'h', text: 'f32[4]' }]
  };

  async function editor(wish = {}): Promise<{ view: EditorView; opened: Mark[]; source: any }> {
    const opened: Mark[] = [];
    const source: any = { about: () => [note], holds: () => true };
    source.changed = new Signal<object, void>(source);
    const wishes: any = { badges: true, types: true, ...wish };
    wishes.changed = new Signal<object, void>(wishes);
    const extensions = [field(one => opened.push(one)), feed('c', source, wishes)];
    const parent = document.body;
    const view = new EditorView({ state: EditorState.create({ doc: CODE, extensions }), parent });
    views.push(view);
    await Promise.resolve();
    return { view, opened, source };
  }

  function lines(view: EditorView): string[] {
    return [...view.dom.querySelectorAll('.cm-line')].map(line => line.textContent ?? '');
  }

  it('stand at the end of their line, the type behind the name', async () => {
    const { view } = await editor();
    expect(lines(view)).toEqual(['%%shard', 'h: f32[4] = x @ Wa badge', 'y = h']);
  });

  it('follow their line when others come before it', async () => {
    const { view } = await editor();
    view.dispatch({ changes: { from: 8, insert: 'new\nlines\n' } });
    expect(lines(view)[3]).toBe('h: f32[4] = x @ Wa badge');
  });

  it('vanish when their line changes, and come back when it is undone', async () => {
    const { view } = await editor();
    view.dispatch({ changes: { from: 8, insert: 'g' } });
    expect(lines(view)[1]).toBe('gh = x @ W');
    view.dispatch({ changes: { from: 8, to: 9 } });
    expect(lines(view)[1]).toBe('h: f32[4] = x @ Wa badge');
  });

  it('vanish with their line', async () => {
    const { view } = await editor();
    view.dispatch({ changes: { from: 8, to: 18 } });
    expect(lines(view)).toEqual(['%%shard', 'y = h']);
  });

  it('open the collective', async () => {
    const { view, opened } = await editor();
    view.dom.querySelector('button')!.click();
    expect(opened).toEqual([mark]);
  });

  it('stay with their line when another report comes', async () => {
    const { view, source } = await editor();
    view.dispatch({ changes: { from: 8, insert: 'new\n' } });
    source.changed.emit();
    await Promise.resolve();
    expect(lines(view)[2]).toBe('h: f32[4] = x @ Wa badge');
  });

  it('stay away from a line that was deleted when another report comes', async () => {
    const { view, source } = await editor();
    view.dispatch({ changes: { from: 8, to: 18 } });
    view.dispatch({ changes: { from: 8, insert: 'h = x @ W\n' } });
    source.changed.emit();
    await Promise.resolve();
    expect(lines(view)[1]).toBe('h = x @ W');
  });

  it('come and go with the reports', async () => {
    const { view, source } = await editor();
    source.about = () => [];
    source.changed.emit();
    await Promise.resolve();
    expect(lines(view)[1]).toBe('h = x @ W');
  });

  it('vanish while their report does not hold, and come back to where their line is', async () => {
    const { view, source } = await editor();
    view.dispatch({ changes: { from: 8, insert: 'new\n' } });
    source.holds = () => false;
    source.changed.emit();
    await Promise.resolve();
    expect(lines(view)).toEqual(['%%shard', 'new', 'h = x @ W', 'y = h']);
    source.holds = () => true;
    source.changed.emit();
    await Promise.resolve();
    expect(lines(view)[2]).toBe('h: f32[4] = x @ Wa badge');
  });

  it('show no types where they are switched off', async () => {
    const { view } = await editor({ types: false });
    expect(lines(view)[1]).toBe('h = x @ Wa badge');
  });

  it('let go of the reports when the editor goes', async () => {
    const { view, source } = await editor();
    view.destroy();
    expect(() => source.changed.emit()).not.toThrow();
  });
});
