import { EditorState } from '@codemirror/state';
import { EditorView } from '@codemirror/view';
import { Signal } from '@lumino/signaling';
import { afterEach, describe, expect, it } from 'vitest';

import { Mark, Note, behind, notesOf, shift } from '../src/lab/notes';
import { feed, field } from '../src/lab/badges';
import { readReport } from '../src/view';
import { allReduce, array, sketch, spoken } from './samples';

function notes(data: object, cell = 'here'): Map<string, Note[]> {
  const report = readReport(spoken(data));
  const texts = new Map(report.sources.map(({ cell_id, text }) => [cell_id ?? cell, text]));
  return notesOf({ cell, output: 0, report }, id => texts.get(id));
}

describe('the notes of a report', () => {
  it('stand at the lines of the cell that it says', () => {
    const found = notes(sketch());
    expect([...found.keys()]).toEqual(['cell-a']);
    expect(found.get('cell-a')![0]).toMatchObject({ line: 1 });
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
  const CELL = "%%shard x=P('data')\nh = f(x)\ny = h";
  const DEFINES = 'def f(x):\n    return x @ W';

  /** The cells that have notes, and their lines, while the cells' texts are these. */
  function about(calling: string | undefined, defining: string | undefined): object {
    const sources = [
      { name: 'Cell In[2]', text: CELL, cell_id: 'calls' },
      { name: 'Cell In[1]', text: DEFINES, cell_id: 'defines' }
    ];
    const badges = [{ ids: '0', head: 'h', sends: 's', mark: 'm' }];
    const said = { lines: [[{ line: 2, badges }], [{ line: 2, badges }]] };
    const report = readReport(spoken({ ...sketch(), sources, said, values: [], outputs: [] }));
    const texts: Record<string, string | undefined> = { calls: calling, defines: defining };
    const found = notesOf({ cell: 'calls', output: 0, report }, id => texts[id]);
    return Object.fromEntries([...found].map(([cell, all]) => [cell, all.map(note => note.line)]));
  }

  it('speaks of its cell and of the one that defines what it calls', () => {
    expect(about(CELL, DEFINES)).toEqual({ calls: [2], defines: [2] });
  });

  it.each([
    ['another line of code', `${CELL}\ng = 1`],
    ['a line less', CELL.slice(0, -6)],
    ['another spec', CELL.replace('data', 'model')],
    ['other spaces', CELL.replace('h =', 'h  =')],
    ['no magic', CELL.slice(20)],
    ['its magic switched off', `# ${CELL}`],
    ['another magic before it', `%%time\n${CELL}`],
    ['nothing', '']
  ])('says nothing of any cell once its cell has %s', (_, code) => {
    expect(about(code, DEFINES)).toEqual({});
  });

  it.each([
    ['has another line', `${DEFINES}\n`.replace('return', 'pass\n    return')],
    ['is empty', ''],
    ['was deleted', undefined]
  ])('says nothing of the cell with the function alone once that %s', (_, code) => {
    expect(about(CELL, code)).toEqual({ calls: [2] });
  });

  it('does not mind empty lines around a text, and moves with those above', () => {
    expect(about(`${CELL}\n`, `\n\n${DEFINES}\n\n`)).toEqual({ calls: [2], defines: [4] });
  });

  it('speaks of the cell with the function where its cell was deleted', () => {
    expect(about(undefined, DEFINES)).toEqual({ defines: [2] });
  });
});

describe('the source of an explained function', () => {
  const source = { name: 'f', text: 'def f(x):\n    return x @ W', first_line: 3, cell_id: null };

  it.each([
    ['stands where it stood', 'a = 1\n\ndef f(x):\n    return x @ W\nexplain(f, x)', 0],
    ['stands there in a cell that differs elsewhere', 'b\nc\ndef f(x):\n    return x @ W', 0],
    ['is a line further up', '\ndef f(x):\n    return x @ W', null],
    ['is another', 'a = 1\n\ndef f(x):\n    return x @ V', null],
    ['is not in the cell', 'explain(f, x)', null]
  ])('%s', (_, code, moved) => expect(shift(source, code)).toBe(moved));
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
  const note: Note = {
    line: 2,
    marks: [mark],
    types: [{ name: 'h', text: 'f32[4]' }]
  };

  async function editor(wish = {}): Promise<{ view: EditorView; opened: Mark[]; source: any }> {
    const opened: Mark[] = [];
    const source: any = { about: () => [note] };
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

  it('stand at the end of their line, the type after the name', async () => {
    const { view } = await editor();
    expect(lines(view)).toEqual(['%%shard', 'h: f32[4] = x @ Wa badge', 'y = h']);
  });

  it('keep their place in an edit that no report has answered yet', async () => {
    const { view } = await editor();
    view.dispatch({ changes: { from: 8, insert: '\n' } });
    expect(lines(view)[2]).toBe('h: f32[4] = x @ Wa badge');
  });

  it('open the collective', async () => {
    const { view, opened } = await editor();
    view.dom.querySelector('button')!.click();
    expect(opened).toEqual([mark]);
  });

  it('come and go with the reports', async () => {
    const { view, source } = await editor();
    source.about = () => [];
    source.changed.emit();
    await Promise.resolve();
    expect(lines(view)[1]).toBe('h = x @ W');
  });

  it('are not shown at a line that the cell does not have', async () => {
    const { view, source } = await editor();
    source.about = () => [{ ...note, line: 4 }];
    source.changed.emit();
    await Promise.resolve();
    expect(lines(view)).toEqual(['%%shard', 'h = x @ W', 'y = h']);
  });

  it('show no types where they are switched off', async () => {
    const { view } = await editor({ types: false });
    expect(lines(view)[1]).toBe('h = x @ Wa badge');
  });

  it('give way to a preview, which says that it is one below its line', async () => {
    const { view, source } = await editor();
    const types = [{ name: 'h', text: 'f32[8]', state: 'preview', changed: true }];
    const sign = { kind: 'preview', text: 'not compiled' };
    source.about = () => [
      { line: 1, marks: [], types: [], sign },
      { line: 2, marks: [], types }
    ];
    source.changed.emit();
    await Promise.resolve();
    expect(lines(view)).toEqual(['%%shard', 'h: f32[8] = x @ W', 'y = h']);
    const below = view.dom.querySelector<HTMLElement>('.shardnb-sign')!;
    expect([below.textContent, below.dataset.kind]).toEqual(['not compiled', 'preview']);
    expect(below.previousElementSibling?.textContent).toBe('%%shard');
    const type = view.dom.querySelector<HTMLElement>('.shardnb-type')!;
    expect([type.dataset.state, type.hasAttribute('data-changed')]).toEqual(['preview', true]);
  });

  it('leave an editor alone that never had any', async () => {
    const { view, source } = await editor();
    source.about = () => [];
    source.changed.emit();
    await Promise.resolve();
    const before = view.state;
    source.changed.emit();
    await Promise.resolve();
    expect(view.state).toBe(before);
  });

  it('let go of the reports when the editor goes', async () => {
    const { view, source } = await editor();
    view.destroy();
    expect(() => source.changed.emit()).not.toThrow();
  });
});
