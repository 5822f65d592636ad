import { Signal } from '@lumino/signaling';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { Edited, edited, parted, previewNotes } from '../src/lab/edited';
import { Note, Shown } from '../src/lab/notes';
import { Answer, Channel, Preview, Previews, Question } from '../src/lab/previews';
import { readReport } from '../src/view';
import { array, sketch, spoken } from './samples';

const BODY = 'h = f(x)\ny = h';
const CELL = `%%shard x=P('data')\n${BODY}`;
const OTHER = `%%shard x=P('model')\n${BODY}`;
const THIRD = `%%shard x=P()\n${BODY}`;
const TYPES = [[0, 2, 'h', 'f32[8@model]']] as const;

class Kernel implements Channel {
  free = true;
  readonly freed = new Signal<this, void>(this);
  readonly answered = new Signal<this, Answer>(this);
  readonly lost = new Signal<this, void>(this);
  readonly asked: Question[] = [];
  retried = 0;
  prepared = 0;

  ask(question: Question): void {
    this.asked.push(question);
  }

  prepare(): void {
    this.prepared++;
  }

  retry(): void {
    this.retried++;
  }

  answer(kind: Answer['kind'], more: Partial<Answer> = {}): void {
    this.answered.emit({ number: this.asked.at(-1)!.number, kind, ...more });
  }
}

describe('previews of edited lines', () => {
  let kernel: Kernel;
  let previews: Previews;
  let told: number;

  beforeEach(() => {
    vi.useFakeTimers();
    kernel = new Kernel();
    previews = new Previews(kernel);
    told = 0;
    previews.changed.connect(() => told++);
  });
  afterEach(() => vi.useRealTimers());

  function edit(code: string): void {
    previews.edited('a', code);
    vi.advanceTimersByTime(20);
  }

  it('are asked of the kernel, and known once it answers', () => {
    edit(OTHER);
    expect(kernel.asked).toEqual([{ number: 1, cell: 'a', code: OTHER }]);
    expect(previews.of('a', OTHER)).toEqual({ types: 'compiled', fresh: false, hint: '' });
    kernel.answer('preview', { types: TYPES });
    expect(previews.of('a', OTHER)).toEqual({ types: TYPES, fresh: true, hint: '' });
    expect(told).toBe(1);
    expect(previews.of('a', CELL)).toBeNull();
  });

  it('are asked one at a time, the newest next, and edits at once are one', () => {
    edit(OTHER);
    previews.edited('a', CELL.replace('data', 'd'));
    previews.edited('a', CELL.replace('data', 'da'));
    edit(THIRD);
    expect(kernel.asked).toHaveLength(1);
    kernel.answer('preview', { types: TYPES });
    expect(kernel.asked.map(({ code }) => code)).toEqual([OTHER, THIRD]);
    expect(previews.of('a', THIRD)!.fresh).toBe(false);
  });

  it('leave the last one in place, not fresh, until the next one comes', () => {
    edit(OTHER);
    kernel.answer('preview', { types: TYPES });
    edit(THIRD);
    expect(previews.of('a', THIRD)).toEqual({ types: TYPES, fresh: false, hint: '' });
  });

  it('say what is wrong once the hand rests, and not before', () => {
    edit(OTHER);
    kernel.answer('refused', { said: 'no such axis' });
    expect(previews.of('a', OTHER)!.hint).toBe('');
    vi.advanceTimersByTime(500);
    expect(previews.of('a', OTHER)).toEqual({ types: null, fresh: true, hint: 'no such axis' });
  });

  it('say nothing of a wrong line that was edited on', () => {
    edit(OTHER);
    kernel.answer('refused', { said: 'no such axis' });
    edit(THIRD);
    kernel.answer('preview', { types: TYPES });
    vi.advanceTimersByTime(1000);
    expect(previews.of('a', THIRD)).toEqual({ types: TYPES, fresh: true, hint: '' });
  });

  it('are not asked of a kernel that runs a cell, and are when it is done', () => {
    kernel.free = false;
    edit(OTHER);
    edit(THIRD);
    expect(kernel.asked).toEqual([]);
    expect(previews.of('a', THIRD)!.types).toBeNull();
    kernel.free = true;
    kernel.freed.emit();
    expect(kernel.asked.map(({ code }) => code)).toEqual([THIRD]);
  });

  it('wait for a kernel that traces a cell, without haste', () => {
    edit(OTHER);
    kernel.answer('busy');
    expect(kernel.asked).toHaveLength(1);
    vi.advanceTimersByTime(250);
    expect(kernel.asked).toHaveLength(2);
  });

  it('vanish where the kernel does not answer, and are asked for again when it is free', () => {
    edit(OTHER);
    vi.advanceTimersByTime(1100);
    expect(previews.of('a', OTHER)!.types).toBeNull();
    edit(THIRD);
    expect(kernel.asked).toHaveLength(1);
    kernel.freed.emit();
    expect(kernel.asked.at(-1)!.code).toBe(THIRD);
    kernel.answered.emit({ number: 1, kind: 'preview', types: TYPES });
    expect(previews.of('a', THIRD)!.fresh).toBe(false);
  });

  it('are none where the kernel does not know the cell', () => {
    edit(OTHER);
    kernel.answer('unknown');
    expect(previews.of('a', OTHER)).toEqual({ types: null, fresh: true, hint: '' });
  });

  it('are forgotten with the kernel, and when the cell runs', () => {
    edit(OTHER);
    kernel.lost.emit();
    expect(previews.of('a', OTHER)).toBeNull();
    edit(THIRD);
    expect(kernel.asked).toHaveLength(2);
    previews.runs('a');
    expect([previews.of('a', THIRD), kernel.retried]).toEqual([null, 1]);
  });

  it('ask nothing twice', () => {
    edit(OTHER);
    kernel.answer('preview', { types: TYPES });
    edit(OTHER);
    kernel.freed.emit();
    expect(kernel.asked).toHaveLength(1);
  });
});

describe('the text of a %%shard cell', () => {
  it.each([
    [CELL, 1, BODY],
    [`\n\n${CELL}\n\n`, 3, BODY],
    ["%%shard x=P() \\\n  W=P()\ny = x", 2, 'y = x'],
    ['%%shard', 1, ''],
    ['%%shard \\', 1, '']
  ])('%j has its line and its body', (code, head, body) => expect(parted(code)).toEqual({ head, body }));

  it.each(['', 'x = 1', '%%sharded\nx', '# %%shard\nx', '%%time\n%%shard\nx'])('is not %j', code =>
    expect(parted(code)).toBeNull()
  );
});

describe('the notes of a preview', () => {
  const DEFINES = 'def f(x):\n    g = x\n    return g';
  const at = (source: number, line: number): object => ({ location: { source, line } });

  function shown(): Shown {
    const sources = [
      { name: 'Cell In[2]', text: CELL, cell_id: 'a' },
      { name: 'Cell In[1]', text: DEFINES, cell_id: 'f' }
    ];
    const values = [
      { ...array('h', [8], [[]], [8]), ...at(0, 2) },
      { ...array('g', [8], [[]], [8]), ...at(1, 2) }
    ];
    const badges = [{ ids: '0', head: 'h', sends: 's', mark: 'm' }];
    const said = { lines: [[{ line: 2, badges }], []] };
    return { cell: 'a', output: 0, report: readReport(spoken({ ...sketch(), sources, values, outputs: [], said })) };
  }

  function notes(code: string, preview: Partial<Preview>, defines = DEFINES): Map<string, Note[]> {
    const texts: Record<string, string> = { a: code, f: defines };
    const report = shown();
    const edit = edited(report, cell => texts[cell]) as Edited;
    const all = { types: null, fresh: true, hint: '', ...preview };
    return previewNotes(report, edit, all, cell => texts[cell]);
  }

  it('stand only where the line is another and the body is the same', () => {
    const find = (code: string): unknown => edited(shown(), cell => (cell === 'a' ? code : undefined));
    expect(find(OTHER)).toEqual({ cell: 'a', code: OTHER, moved: 0 });
    expect([CELL, `${OTHER}\nz = 1`, BODY, OTHER.replace('f(x)', 'g(x)')].map(find)).toEqual([null, null, null, null]);
  });

  it('give the types in every cell of the program, without badges, and say what they are', () => {
    const types = [...TYPES, [1, 2, 'g', 'type of g'] as const];
    const found = notes(OTHER, { types });
    expect(found.get('f')).toEqual([
      { line: 2, marks: [], types: [{ name: 'g', text: 'type of g', state: 'preview', changed: false }] }
    ]);
    const [sign, h] = found.get('a')!;
    expect(sign).toMatchObject({ line: 1, sign: { kind: 'preview' } });
    expect(sign.sign!.text).toContain('not compiled');
    expect(h.types).toEqual([{ name: 'h', text: 'f32[8@model]', state: 'preview', changed: true }]);
  });

  it('move with a line that continues', () => {
    const found = notes(`%%shard x=P() \\\n  W=P()\n${BODY}`, { types: TYPES });
    expect(found.get('a')!.map(note => note.line)).toEqual([2, 3]);
  });

  it('leave out a cell that differs from the compiled one', () => {
    const types = [...TYPES, [1, 2, 'g', 'type of g'] as const];
    expect(notes(OTHER, { types }, `${DEFINES}\n\nz`).has('f')).toBe(false);
  });

  it('are those of the report where the line states the same program', () => {
    const [note] = notes(OTHER, { types: 'compiled' }).get('a')!;
    expect([note.marks.length, note.sign, note.types[0].state]).toEqual([1, undefined, undefined]);
  });

  it('are faded types without badges while the kernel is asked', () => {
    const [note] = notes(OTHER, { types: 'compiled', fresh: false }).get('a')!;
    expect([note.marks, note.types[0].state]).toEqual([[], 'pending']);
    const [sign, h] = notes(OTHER, { types: TYPES, fresh: false }).get('a')!;
    expect([sign.sign!.kind, h.types[0].state]).toEqual(['pending', 'pending']);
  });

  it('are what is wrong alone', () => {
    const found = notes(OTHER, { hint: 'no such axis' });
    const sign = { kind: 'hint', text: 'no such axis' };
    expect(found.get('a')).toEqual([{ line: 1, marks: [], types: [], sign }]);
    expect(found.get('f')).toEqual([]);
  });
});
