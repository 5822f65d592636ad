import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import widget from '../src/widget';
import { judged } from '../src/widget/predict';
import { readReport } from '../src/view/report';
import { HOSTILE, allReduce, array, sketch, spoken } from './samples';

/** The kernel's side: holds state, keeps what is sent. */
class Kernel {
  sent: any[] = [];
  private readonly _calls: [string, () => void][] = [];

  constructor(readonly state: Record<string, any>) {}

  get(name: string): any {
    return this.state[name] ?? {};
  }

  send(content: object): void {
    this.sent.push(content);
  }

  on(event: string, call: () => void): void {
    this._calls.push([event, call]);
  }

  off(event: string, call: () => void): void {
    const at = this._calls.findIndex(one => one[0] === event && one[1] === call);
    this._calls.splice(at, 1);
  }

  /** Set a trait, as the kernel does. */
  set(name: string, value: unknown): void {
    this.state[name] = value;
    this._calls.filter(([event]) => event === `change:${name}`).forEach(([, call]) => call());
  }

  get listeners(): number {
    return this._calls.length;
  }
}

const PLAN = {
  axes: [
    { name: 'data', size: 4, type: 'auto' },
    { name: 'model', size: 2, type: 'auto' }
  ],
  specs: { x: [['data'], ['model']], W: [['model'], []] }
};
const INPUTS = [
  { pattern: 'x', names: ['x'], shape: [256, 512], dtype: 'f32', alike: [] },
  { pattern: 'W', names: ['W'], shape: [512, 1024], dtype: 'f32', alike: [] }
];

function written(report: object): string {
  return JSON.stringify(spoken(report));
}

function compiled(number: number, report = sketch()): object {
  const codes = [{ title: '%%shard', text: '%%shard x=P()' }];
  const specs = { x: "P('data', 'model')", W: 'P()' };
  const questions = [{ line: 1, place: 'Line 1', text: 'h', sent: [], before: 0, why: '' }];
  return { number, plan: PLAN, report: written(report), codes, specs, questions, said: 'all is compiled' };
}

function exploring(report = sketch()): Kernel {
  const subject = { title: 'f', types: ['auto', 'explicit'], target: 'cpu', inputs: INPUTS };
  return new Kernel({ view: 'explorer', subject, plan: PLAN, compiled: compiled(0, report), pins: [] });
}

let host: HTMLElement;
let end: () => void;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  document.body.append((host = document.createElement('div')));
});
afterEach(() => {
  end();
  host.remove();
  vi.useRealTimers();
});

function show(kernel: Kernel): Kernel {
  end = widget.render({ model: kernel, el: host });
  return kernel;
}

function choose(name: string, index: number): void {
  const list = host.querySelector<HTMLSelectElement>(`select[aria-label^="${name}"]`)!;
  list.selectedIndex = index;
  list.dispatchEvent(new Event('change'));
}

function text(selector: string): string {
  return host.querySelector(selector)?.textContent ?? '';
}

describe('the explorer', () => {
  it('asks for a preview at a click, and for the program once the clicks are over', () => {
    const kernel = show(exploring());
    choose('x, dimension 1', 0);
    expect(kernel.sent.map(one => one.kind)).toEqual(['preview']);
    expect(kernel.sent[0].plan.specs.x).toEqual([['data'], []]);
    kernel.set('answer', { number: 1, kind: 'preview', report: written(sketch()), said: 'an answer' });
    expect(text('.shardnb-state .shardnb-chip')).toBe('preview');
    vi.advanceTimersByTime(200);
    expect(kernel.sent.map(one => one.kind)).toEqual(['preview', 'compile']);
    kernel.set('compiled', compiled(1));
    expect(text('.shardnb-state .shardnb-chip')).toBe('compiled');
  });

  it('asks nothing more while a preview is on its way, then for the newest plan alone', () => {
    const kernel = show(exploring());
    choose('x, dimension 1', 0);
    choose('x, dimension 0', 0);
    choose('W, dimension 0', 0);
    expect(kernel.sent.length).toBe(1);
    kernel.set('answer', { number: 1, kind: 'preview', report: written(sketch()), said: 'an answer' });
    expect(kernel.sent.map(one => one.number)).toEqual([1, 3]);
    expect(kernel.sent[1].plan.specs).toEqual({ x: [[], []], W: [[], []] });
  });

  it('says what is wrong with a plan in place, and keeps the pictures', () => {
    const kernel = show(exploring());
    const before = text('.shardnb-grids');
    choose('x, dimension 1', 1);
    kernel.set('answer', { number: 1, kind: 'refused', said: "uses the mesh axis 'data' twice" });
    expect(text('[role=alert]')).toContain("uses the mesh axis 'data' twice");
    expect(text('.shardnb-grids')).toBe(before);
    vi.advanceTimersByTime(1000);
    expect(kernel.sent.map(one => one.kind)).toEqual(['preview']);
  });

  it('compiles where there is no preview, and says why there is none', () => {
    const kernel = show(exploring());
    choose('x, dimension 1', 0);
    kernel.set('answer', { number: 1, kind: 'none', said: 'No preview.', specs: { x: 'P(x)' } });
    expect(text('.shardnb-status')).toBe('No preview.');
    expect(text('.shardnb-what')).toContain('P(x)');
    vi.advanceTimersByTime(200);
    expect(kernel.sent.map(one => one.kind)).toEqual(['preview', 'compile']);
  });

  it('shows no program of an older plan', () => {
    const kernel = show(exploring());
    choose('x, dimension 1', 0);
    kernel.set('answer', { number: 1, kind: 'preview', report: written(sketch()), said: 'an answer' });
    choose('x, dimension 1', 1);
    kernel.set('compiled', compiled(1));
    expect(text('.shardnb-state .shardnb-chip')).toBe('asked');
  });

  it('goes on where a plan before it was known and came compiled at once', () => {
    const kernel = show(exploring());
    choose('x, dimension 1', 0);
    choose('x, dimension 1', 1);
    kernel.set('compiled', compiled(1));
    expect(kernel.sent.map(one => one.number)).toEqual([1, 2]);
  });

  it('says that the kernel is late', () => {
    show(exploring());
    choose('x, dimension 1', 0);
    vi.advanceTimersByTime(4000);
    expect(text('.shardnb-status')).toContain('it may be running a cell');
  });

  it('renames an axis, and keeps the focus', () => {
    const kernel = show(exploring());
    const field = host.querySelector<HTMLInputElement>('input[aria-label="name of axis 2"]')!;
    field.focus();
    field.value = 'tp';
    field.dispatchEvent(new Event('change'));
    expect(kernel.sent[0].plan.specs.x).toEqual([['data'], ['tp']]);
    expect(document.activeElement?.getAttribute('aria-label')).toBe('name of axis 2');
  });

  it('compares pinned plans and marks the least', () => {
    const pin = (memory: number, sent: number | null): object => ({
      plan: PLAN,
      text: 'a plan',
      figures: [
        { name: 'memory', text: `${memory} held`, value: memory },
        { name: 'sent', text: `${sent} sent`, value: sent }
      ]
    });
    const kernel = show(exploring());
    kernel.set('pins', [pin(4096, null), pin(8192, 0), pin(8192, 7)]);
    const cells = [...host.querySelectorAll('.shardnb-pins tbody td')].map(one => one.textContent);
    expect(cells.slice(0, 3)).toEqual(['a plan', '4096 heldleast', 'null sent']);
    expect(cells.slice(4, 7)).toEqual(['a plan', '8192 held', '0 sentleast']);
    expect(cells.slice(8, 11)).toEqual(['a plan', '8192 held', '7 sent']);
    host.querySelectorAll<HTMLElement>('.shardnb-pins button')[3].click();
    expect(kernel.sent[0]).toEqual({ kind: 'unpin', index: 1, keeps: false });
  });

  it('says of a report alone what it cannot do', () => {
    const plain = { number: 0, plan: null, report: written(sketch()), codes: [], specs: {}, questions: [], said: 'the verdict' };
    show(new Kernel({ view: 'explorer', compiled: plain, pins: [] }));
    expect(text('.shardnb-header')).toContain('sn.explore(fn, *args, mesh=...)');
    expect(host.querySelector('.shardnb-picker')).toBeNull();
    expect(text('.shardnb-status')).toContain('the verdict');
  });

  it('follows another view of the same widget', () => {
    const kernel = show(exploring());
    const plan = { ...PLAN, specs: { x: [[], []], W: [[], []] } };
    kernel.set('compiled', { ...compiled(4), plan, specs: { x: 'P()', W: 'P()' } });
    expect(text('.shardnb-what')).toContain('P()');
    expect(text('.shardnb-state .shardnb-chip')).toBe('compiled');
  });

  it('lets guess what the compiled program sends', () => {
    show(exploring());
    const fold = [...host.querySelectorAll('details')].find(one => one.textContent?.startsWith('Guess'))!;
    fold.dispatchEvent(new Event('toggle'));
    expect(fold.textContent).toContain('Question 1 of 1');
  });

  it('hears nothing more once it is gone', () => {
    const kernel = show(exploring());
    end();
    expect(kernel.listeners).toBe(0);
  });

  it('shows hostile names, and runs none', () => {
    const kernel = exploring({ ...sketch(), title: HOSTILE, inputs: [array(HOSTILE, [4], [[]], [4])] });
    kernel.state.subject = {
      ...kernel.state.subject,
      title: HOSTILE,
      inputs: [{ pattern: HOSTILE, names: [HOSTILE], shape: [4], dtype: HOSTILE, alike: [HOSTILE] }]
    };
    kernel.state.plan = { axes: [{ name: HOSTILE, size: 4, type: 'auto' }], specs: { [HOSTILE]: [[]] } };
    show(kernel);
    kernel.set('answer', { number: 0, kind: 'refused', said: HOSTILE });
    kernel.set('search', { kind: 'fix', state: 'done', said: HOSTILE, rows: [{ about: HOSTILE, code: HOSTILE, effect: HOSTILE, plan: null }] });
    kernel.set('pins', [
      { plan: kernel.state.plan, text: HOSTILE, figures: [{ name: HOSTILE, text: HOSTILE, value: 1 }] }
    ]);
    expect(text('.shardnb-picker')).toContain(HOSTILE);
    expect(host.querySelector('img, script')).toBeNull();
    expect((globalThis as any).harmed).toBeUndefined();
  });
});

describe("the explorer's edits of many specs", () => {
  const RECIPES = [{ name: 'fsdp', label: 'FSDP over data' }];
  const FAMILY = {
    pattern: 'w[*]',
    names: ['w[0]', 'w[1]', 'w[2]'],
    shape: [8],
    dtype: 'f32',
    alike: ['w[1]', 'w[2]', 'v']
  };

  function training(specs: Record<string, string[][]>, pattern: object = FAMILY): Kernel {
    const kernel = exploring();
    kernel.state.subject = { ...kernel.state.subject, inputs: [pattern], state: true };
    const plan = { ...PLAN, specs };
    kernel.state.compiled = { ...kernel.state.compiled, plan, recipes: RECIPES };
    return show(kernel);
  }

  function press(name: string): void {
    [...host.querySelectorAll('button')].find(one => one.textContent === name)!.click();
  }

  function names(): string[] {
    return [...host.querySelectorAll('.shardnb-what b')].map(one => one.textContent!);
  }

  const ALL = { 'w[0]': [['data']], 'w[1]': [['data']], 'w[2]': [['data']], v: [['data']] };

  it('asks for a recipe, shows its plan and what it did, and undoes it', () => {
    const kernel = training(ALL);
    press('FSDP over data');
    const { kind, edit, name, number } = kernel.sent[0];
    expect([kind, edit, name]).toEqual(['edit', 'recipe', 'fsdp']);
    const plan = { ...PLAN, specs: { ...ALL, 'w[0]': [[]] } };
    const note = { title: 'FSDP', notes: ['It did.'], placed: [['P()', 'w[0]']], left: [[HOSTILE, 'v']] };
    kernel.set('edited', { number, plan, note });
    expect(text('.shardnb-note')).toContain('FSDP. It did.');
    expect(text('.shardnb-note')).toContain(HOSTILE);
    expect(kernel.sent[1]).toMatchObject({ kind: 'preview', plan });
    press('undo');
    expect(kernel.state.compiled.plan.specs).toEqual(ALL);
    kernel.set('answer', { number: 2, kind: 'none', said: '', specs: {} });
    expect(kernel.sent.at(-1).plan.specs).toEqual(ALL);
    expect(text('.shardnb-note')).toBe('');
    press('redo');
    kernel.set('answer', { number: 3, kind: 'none', said: '', specs: {} });
    expect(kernel.sent.at(-1).plan).toEqual(plan);
  });

  it('undoes with Ctrl+Z and redoes with Shift, but not in a text field', () => {
    const kernel = training(ALL);
    choose('w[*] (3), dimension 0', 0);
    const last = (): unknown => kernel.sent.at(-1).plan.specs['w[0]'];
    const answer = (): void =>
      kernel.set('answer', { number: kernel.sent.at(-1).number, kind: 'none', said: '', specs: {} });
    const key = (element: Element, shiftKey = false): boolean =>
      element.dispatchEvent(new KeyboardEvent('keydown', { key: 'z', ctrlKey: true, shiftKey, bubbles: true, cancelable: true }));
    answer();
    expect(key(host.querySelector('input[type=text]')!)).toBe(true);
    expect(last()).toEqual([[]]);
    expect(key(host.querySelector('select')!)).toBe(false);
    expect(last()).toEqual([['data']]);
    answer();
    key(host.querySelector('select')!, true);
    expect(last()).toEqual([[]]);
  });

  it('picks arrays of one pattern apart where their specs differ, and applies one to all', () => {
    const kernel = training({ ...ALL, 'w[1]': [[]] });
    expect(names()).toEqual(['w[*] (2)', 'w[1]']);
    press('apply to 1 alike');
    expect(kernel.sent[0]).toMatchObject({ kind: 'edit', edit: 'alike', name: 'w[0]' });
  });

  it('says why there is no recipe, and keeps the plan', () => {
    const kernel = training(ALL);
    press('FSDP over data');
    kernel.set('edited', { number: 1, refused: 'it needs a preview' });
    expect(text('[role=alert]')).toBe('it needs a preview');
    expect(kernel.sent.length).toBe(1);
  });

  it('drops an edit that comes after another click', () => {
    const kernel = training(ALL);
    press('FSDP over data');
    choose('w[*] (3), dimension 0', 0);
    kernel.set('edited', { number: 1, plan: PLAN, note: null });
    expect(names()).toEqual(['w[*] (3)']);
  });

  it('searches from the compiled plan, shows how far it is, and takes over what is found', () => {
    const kernel = training(ALL);
    press('find fixes');
    expect(kernel.sent[0]).toMatchObject({ kind: 'fix', plan: { specs: ALL } });
    kernel.set('search', { kind: 'fix', state: 'running', said: 'edits: 1 of 4', done: 1, total: 4, rows: [] });
    expect(host.querySelector('progress')!.value).toBe(1);
    press('stop the search');
    expect(kernel.sent[1].kind).toBe('stop-search');
    const plan = { ...PLAN, specs: { ...ALL, v: [[]] } };
    const rows = [
      { about: 'all-reduce', code: 'v=P()', effect: 'sends less', plan },
      { about: 'all-reduce', code: '--out y=P()', effect: 'sends less', plan: null }
    ];
    kernel.set('search', { kind: 'fix', state: 'done', said: '2 fixes', rows });
    expect(host.querySelector('progress')).toBeNull();
    expect([...host.querySelectorAll('.shardnb-found button')].map(one => one.textContent)).toEqual(['use', 'copy']);
    press('use');
    expect(kernel.sent[2]).toMatchObject({ kind: 'preview', plan });
    const undo = [...host.querySelectorAll('button')].find(one => one.textContent === 'undo')!;
    expect(undo.disabled).toBe(false);
  });
});

describe('playing a collective', () => {
  it('steps through the ring and says each step', async () => {
    show(exploring());
    host.querySelector<HTMLElement>('.shardnb-rows .shardnb-row')!.click();
    await new Promise(resolve => requestAnimationFrame(resolve));
    host.querySelector<HTMLElement>('.shardnb-play')!.click();
    expect(text('.shardnb-player .shardnb-caption')).toContain('step 1 of 2');
    host.querySelectorAll<HTMLElement>('.shardnb-player button')[1].click();
    expect(text('.shardnb-player')).toContain('before: each device holds a partial sum of each block');
    const on = host.querySelector<HTMLElement>('[aria-label="step on"]')!;
    on.click();
    expect(text('.shardnb-player .shardnb-caption')).toContain('step 1 of 2: each device sends a block');
    on.click();
    expect(text('.shardnb-player .shardnb-caption')).toContain('done');
    expect(text('.shardnb-player')).toContain('Each device sends 2 blocks, size of 0 in all.');
  });
});

describe('predict, then reveal', () => {
  const asked = (sent: number[], before = 0, why = ''): object => ({ line: 2, place: 'Line 2', text: 'h = x @ W', sent, before, why });

  function quiz(...questions: object[]): Kernel {
    return show(new Kernel({ view: 'predict', data: written(sketch()), questions }));
  }

  it('judges kind and axes apart', () => {
    const sent = readReport(spoken(sketch())).collectives;
    const one = sent[0];
    expect(judged(sent, 'all-reduce', new Set(['model']))).toEqual({ one, kind: true, axes: true });
    expect(judged(sent, 'all-reduce', new Set(['data', 'model']))).toEqual({ one, kind: true, axes: false });
    expect(judged(sent, 'nothing', new Set())).toEqual({ one, kind: false, axes: false });
    expect(judged([], 'nothing', new Set())).toEqual({ one: null, kind: true, axes: true });
  });

  it('takes the collectives of a line in any order, each once', () => {
    const report = { ...sketch(), collectives: [allReduce(), { ...allReduce(), id: 1, axes: ['data'] }] };
    const { collectives } = readReport(spoken(report));
    const guess = judged(collectives, 'all-reduce', new Set(['data']));
    expect(guess).toEqual({ one: collectives[1], kind: true, axes: true });
    expect(judged([collectives[0]], 'all-reduce', new Set(['data'])).axes).toBe(false);
  });

  it('says of a line that sends nothing why, and tells the kernel of the answer', () => {
    const kernel = quiz(asked([], 0, HOSTILE), asked([0]));
    host.querySelector<HTMLElement>('.shardnb-play')!.click();
    expect(text('.shardnb-truth')).toContain(`Right. It sends nothing. ${HOSTILE}`);
    expect(host.querySelector('img, script')).toBeNull();
    const answer = { kind: 'answer', at: 0, guess: 'nothing', axes: [], right: true, sent: null, keeps: false };
    expect(kernel.sent).toEqual([answer]);
    [...host.querySelectorAll('button')].find(one => one.textContent === 'next')!.click();
    host.querySelector<HTMLElement>('.shardnb-play')!.click();
    expect(kernel.sent[1]).toMatchObject({ at: 1, guess: 'nothing', right: false, sent: 0 });
  });

  it('says that it stays where the output around it is kept', () => {
    host.className = 'shardnb-kept';
    const kernel = quiz(asked([0]));
    host.querySelector<HTMLElement>('.shardnb-play')!.click();
    expect(kernel.sent[0].keeps).toBe(true);
  });

  it('has every kind among its answers', () => {
    quiz(asked([0]));
    const kinds = host.querySelector('[aria-label="which collective"], [title="which collective"]')!.textContent!;
    for (const kind of ['nothing', 'all-reduce', 'ragged-all-to-all', 'collective-broadcast', 'collective-permute']) {
      expect(kinds).toContain(kind);
    }
  });

  it('hides the answer until it is asked for, then tells why', () => {
    quiz(asked([0]));
    expect(host.textContent).not.toContain('cause of 0');
    choose('which collective', 1);
    host.querySelectorAll<HTMLInputElement>('input[type=checkbox]')[1].click();
    host.querySelector<HTMLElement>('.shardnb-play')!.click();
    expect(text('.shardnb-truth')).toContain('Right. It is name of 0, 4 groups.');
    expect(text('.shardnb-truth')).toContain('both operands of x @ W are sharded over model'.slice(1));
    expect(text('.shardnb-quiz')).toContain('start again');
  });
});

describe('the check of a shard_map', () => {
  const data = {
    number: 0,
    accepted: false,
    said: {
      mesh: 'mesh data=4',
      verdict: 'refused',
      sentence: 'JAX refuses it',
      inputs: ["P('data')"],
      outputs: []
    },
    error: 'ValueError',
    message: HOSTILE,
    steps: [{ name: 'no spec uses an axis twice', passed: true, message: '' }],
    inputs: [{ name: 'x', spec: "P('data')", shape: [8], local_shape: [2], dtype: 'f32', varying: ['data'] }],
    outputs: [],
    lines: [
      {
        primitive: 'tanh',
        binds: [{ name: 'a', type: 'f32[2]{V:data}', varying: ['data'] }],
        operands: ['x'],
        within: [],
        inserted: false,
        location: { source: 0, line: 2 }
      }
    ],
    missing: [{ why: 'parts', fix: "jax.lax.psum(x, 'data')", other_fix: '' }],
    problems: [],
    region: '',
    report: null,
    sources: [{ name: 'f', text: 'def f(x):\n    return jnp.tanh(x)', first_line: 1, cell_id: null }]
  };
  const pick = { axes: [PLAN.axes[0]], inputs: [{ name: 'x', shape: [8], spec: [['data']] }], outputs: [] };

  it('shows the verdict, the shapes of one device and what varies at each line', () => {
    show(new Kernel({ view: 'check', data, pick }));
    expect(text('.shardnb-header')).toContain('mesh data=4refusedJAX refuses it');
    expect(text('.shardnb-picker .shardnb-faint')).toBe("P('data')");
    expect(text('tbody')).toContain("inxP('data')[8][2]data");
    expect([...host.querySelectorAll('.shardnb-line')].map(one => one.textContent)).toEqual([
      '2    return jnp.tanh(x)',
      '    a: f32[2] = tanh xdata'
    ]);
    expect(text('.shardnb-fix')).toContain("write jax.lax.psum(x, 'data')");
    expect(host.querySelector('img, script')).toBeNull();
  });

  it('asks for the check of other specs', () => {
    const kernel = show(new Kernel({ view: 'check', data, pick }));
    choose('x, dimension 0', 0);
    expect(kernel.sent).toEqual([{ kind: 'check', number: 1, inputs: [[[]]], outputs: [], keeps: false }]);
    const said = { ...data.said, verdict: 'accepted', inputs: ['P()'] };
    kernel.set('data', { ...data, number: 1, accepted: true, said });
    expect(text('.shardnb-header [data-kind=accepted]')).toBe('accepted');
    expect(text('.shardnb-picker .shardnb-faint')).toBe('P()');
  });
});
