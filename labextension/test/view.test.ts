import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { deflateSync } from 'node:zlib';

import { View, mount, mountKept } from '../src/view';
import { HOSTILE, allReduce, array, many, sketch, spoken, spread, timed } from './samples';

let host: HTMLElement;
let view: View;

beforeEach(() => document.body.append((host = document.createElement('div'))));
afterEach(() => {
  view.dispose();
  host.remove();
});

function show(data: Record<string, unknown>): string {
  return mounted(spoken(data));
}

function mounted(data: unknown): string {
  view = mount(host, data);
  return host.textContent ?? '';
}

function texts(selector: string): string[] {
  return [...host.querySelectorAll(selector)].map(found => found.textContent ?? '');
}

function rows(): string[] {
  return texts('.shardnb-rows .shardnb-row > :first-child');
}

function linesOpen(): boolean {
  return host.querySelector('.shardnb-code')!.closest('details')!.open;
}

function openValues(): void {
  const values = [...host.querySelectorAll('details')].find(one => one.textContent?.startsWith('Values'))!;
  values.dispatchEvent(new Event('toggle'));
}

function frame(): Promise<unknown> {
  return new Promise(resolve => requestAnimationFrame(resolve));
}

describe('the view', () => {
  it('says what Python says of a report', () => {
    const text = show(sketch());
    const said = ['devices', 'the verdict', 'name of 0', 'what of 0', 'sends of 0', 'cause of 0', 'about it'];
    said.forEach(words => expect(text).toContain(words));
  });

  it('says what to look at, with the edit to copy', () => {
    const found = { kind: 'lost', message: 'the batch sharding is lost' };
    const text = show({ ...sketch(), findings: [found] });
    expect(texts('.shardnb-points > li')).toHaveLength(1);
    expect(texts('.shardnb-point')).toEqual(['lostits cost']);
    expect(text).toContain('the batch sharding is lost');
    expect(texts('.shardnb-fix')[0]).toContain('Fix: x = f(x) \u2192 the effect');
  });

  it('shows five points, and the others on demand', () => {
    const findings = Array.from({ length: 7 }, (_, i) => ({ kind: `point ${i}`, message: 'm' }));
    show({ ...sketch(), findings });
    expect(texts('.shardnb-points > li')).toHaveLength(5);
    const more = [...host.querySelectorAll('details')].find(one => one.textContent === '2 more to look at')!;
    more.open = true;
    more.dispatchEvent(new Event('toggle'));
    expect(texts('.shardnb-points > li')).toHaveLength(7);
  });

  it('draws the arrays that a finding is about when its details are opened', () => {
    const [x] = sketch().inputs as object[];
    const findings = [{ kind: 'remat', message: 'gathered in full', values: [x, x] }];
    show({ ...sketch(), findings });
    const details = host.querySelector<HTMLDetailsElement>('.shardnb-points details')!;
    expect(details.querySelectorAll('.shardnb-card').length).toBe(0);
    details.dispatchEvent(new Event('toggle'));
    expect(details.querySelectorAll('.shardnb-card').length).toBe(2);
  });

  it('says what changed, and how the options that check something ended', () => {
    const outcomes = [
      ['none is forbidden', true],
      ['they differ', false]
    ];
    show({ ...sketch(), said: { changed: 'one more', outcomes } });
    expect(texts('.shardnb-outcome')).toEqual(['passed none is forbidden', 'failed they differ']);
    expect(host.textContent).toContain('one more');
  });

  it('says what the step takes, and what is assumed', () => {
    const text = show({ ...sketch(), said: { cost: 'two seconds', assumptions: ['a ring'] } });
    expect(text).toContain('two seconds');
    expect(text).toContain('a ring');
  });

  it('puts a collective at the end of its line', () => {
    show(sketch());
    const [first, second] = [...host.querySelectorAll('.shardnb-line')];
    expect(first.textContent).toContain('h = x @ W' + 'head of 0 sends of 0');
    expect(second.textContent).not.toContain('head');
  });

  it('folds the lines where an editor shows them', () => {
    show(sketch());
    expect(linesOpen()).toBe(true);
    view.dispose();
    view = mount(host, spoken(sketch()), { editor: true });
    expect(linesOpen()).toBe(false);
  });

  it('tells the collective that is chosen under its row', () => {
    show({ ...sketch(), collectives: [allReduce(), { ...allReduce(), id: 7, why: 'a second one' }] });
    expect(host.querySelector('.shardnb-main .shardnb-because')).toBeNull();
    view.choose(7);
    expect(texts('.shardnb-because')).toEqual(['a second one']);
    const row = host.querySelector('.shardnb-rows [aria-expanded=true]')!;
    expect(row.textContent).toContain('name of 7');
    expect(row.nextElementSibling?.textContent).toContain('a second one');
  });

  it('steps through equal collectives', async () => {
    const found = [0, 1, 2].map(id => ({ ...allReduce(), id, why: `because ${id}` }));
    const data = spoken({ ...sketch(), collectives: found });
    data.said.rows = [{ ...data.said.rows[0], ids: '0 1 2' }];
    mounted(data);
    host.querySelector<HTMLElement>('.shardnb-rows .shardnb-row')!.click();
    await frame();
    expect(texts('.shardnb-because')).toEqual(['because 0']);
    host.querySelector<HTMLElement>('[aria-label=previous]')!.click();
    await frame();
    expect(texts('.shardnb-because')).toEqual(['because 2']);
    expect(texts('.shardnb-stepper')[0]).toContain('3 of 3');
  });

  it('shows few rows of a long table, and the others on demand', () => {
    show(many(5000));
    expect(rows()).toHaveLength(8);
    host.querySelector<HTMLElement>('.shardnb-more')!.click();
    expect(rows()).toHaveLength(108);
  });

  it('filters the table by the badge that is clicked, until all are wanted again', async () => {
    show(many(30));
    host.querySelectorAll<HTMLElement>('.shardnb-badge')[1].click();
    await frame();
    expect(rows()).toEqual(['name of 10']);
    expect(texts('.shardnb-filtered')[0]).toContain('1 of 30 collectives');
    host.querySelector<HTMLElement>('.shardnb-filtered button')!.click();
    await frame();
    expect(rows()).toHaveLength(8);
  });

  it('lets lines step back that a row is not at', async () => {
    show(many(30));
    host.querySelector<HTMLElement>('.shardnb-rows .shardnb-row')!.click();
    await frame();
    const [first, second] = [...host.querySelectorAll('.shardnb-line')];
    expect([first.hasAttribute('data-out'), second.hasAttribute('data-out')]).toEqual([false, true]);
    expect(rows()).toHaveLength(8);
  });

  it('filters the table by the array that is clicked, where arrays are many', async () => {
    const inputs = Array.from({ length: 9 }, (_, i) => array(`w${i}`, [8], [[]], [8]));
    const found = [0, 1].map(id => ({ ...allReduce(), id, role_of: id ? 'w3' : 'w4' }));
    show({ ...sketch(), inputs, collectives: found });
    host.querySelectorAll<HTMLElement>('.shardnb-value')[3].click();
    await frame();
    expect(rows()).toEqual(['name of 1']);
    expect(host.querySelector('.shardnb-stage')?.textContent).toContain('type of w3');
  });

  it('filters by a line or a card that is clicked, and lets the other cards step back', async () => {
    const found = [0, 1].map(id => ({
      ...{ ...allReduce(), id, role_of: id ? 'W' : 'x' },
      frames: [{ source: 0, line: id + 1 }]
    }));
    show({ ...sketch(), collectives: found });
    host.querySelectorAll<HTMLElement>('.shardnb-line .shardnb-text')[1].click();
    await frame();
    expect(rows()).toEqual(['name of 1']);
    const cards = [...host.querySelectorAll<HTMLElement>('.shardnb-card')];
    expect(cards.map(card => card.hasAttribute('data-out'))).toEqual([true, false, true]);
    cards[0].click();
    await frame();
    expect(rows()).toEqual(['name of 0']);
  });

  it('filters everything by a value inside the program that is clicked, until it is clicked again', async () => {
    const found = [0, 1].map(id => ({
      ...{ ...allReduce(), id, role_of: id ? 'W' : 'x' },
      frames: [{ source: 0, line: id + 1 }]
    }));
    const [, y] = spread();
    show({ ...sketch(), collectives: found, values: [...spread(), { ...y, name: 'z' }] });
    openValues();
    const values = [...host.querySelectorAll<HTMLElement>('.shardnb-values .shardnb-value')];
    values[1].click();
    await frame();
    expect(rows()).toEqual(['name of 1']);
    const out = (selector: string): boolean[] =>
      [...host.querySelectorAll(selector)].map(one => one.hasAttribute('data-out'));
    expect(out('.shardnb-line')).toEqual([true, false]);
    expect(out('.shardnb-cards > .shardnb-card')).toEqual([true, false, true]);
    expect(values.map(value => value.hidden)).toEqual([false, false, false]);
    values[2].click();
    await frame();
    expect(rows()).toEqual(['name of 1']);
    values[2].click();
    await frame();
    expect(rows()).toEqual(['name of 0', 'name of 1']);
  });

  it.each([
    ['badge', '.shardnb-badge', 1],
    ['line', '.shardnb-line .shardnb-number', 1],
    ['row', '.shardnb-rows .shardnb-row', 1],
    ['array', '.shardnb-card .shardnb-pick', 1]
  ])('filters the values inside the program by a %s', async (_, selector, at) => {
    const found = [0, 1].map(id => ({
      ...{ ...allReduce(), id, role_of: id ? 'W' : 'x' },
      frames: [{ source: 0, line: id + 1 }]
    }));
    show({ ...sketch(), collectives: found, values: spread() });
    openValues();
    const pressed = host.querySelectorAll<HTMLElement>(selector)[at];
    expect(pressed.tagName).toBe('BUTTON');
    pressed.click();
    await frame();
    const values = [...host.querySelectorAll<HTMLElement>('.shardnb-values .shardnb-value')];
    expect(values.map(value => value.hidden)).toEqual([true, false]);
    if (pressed.classList.contains('shardnb-pick')) {
      expect(pressed.getAttribute('aria-pressed')).toBe('true');
    }
  });

  it('draws the values that have to do with what was picked before they are opened', async () => {
    show({ ...sketch(), values: spread() });
    host.querySelector<HTMLElement>('.shardnb-badge')!.click();
    await frame();
    openValues();
    const values = [...host.querySelectorAll<HTMLElement>('.shardnb-values .shardnb-value')];
    expect(values.map(value => value.hidden)).toEqual([false, true]);
  });

  it('moves through the rows with the keys', () => {
    show(many(30));
    const [first, second] = [...host.querySelectorAll<HTMLElement>('.shardnb-rows .shardnb-row')];
    first.focus();
    first.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowDown', bubbles: true }));
    expect(document.activeElement).toBe(second);
  });

  it('shows a brief report up to what to look at, and the rest on demand', () => {
    const data = spoken({ ...sketch(), findings: [{ kind: 'lost', message: 'm' }] });
    mounted({ ...data, view: 'brief' });
    expect(host.querySelector('.shardnb-report > .shardnb-sends')).toBeNull();
    expect(host.querySelector('.shardnb-report > .shardnb-points')).not.toBeNull();
    view.choose(0);
    const rest = host.querySelector('.shardnb-sends')!.closest('details')!;
    expect(rest.open).toBe(true);
  });

  it('offers the side panel where there is one', () => {
    let opened = 0;
    show(sketch());
    expect(host.querySelector('.shardnb-open')).toBeNull();
    view.dispose();
    view = mount(host, spoken(sketch()), { open: () => opened++ });
    host.querySelector<HTMLElement>('.shardnb-open')!.click();
    expect(opened).toBe(1);
  });

  it('shows a report that a notebook keeps packed', async () => {
    const bytes = deflateSync(JSON.stringify(spoken(sketch())));
    const kept = { version: 1, deflated: Buffer.from(bytes).toString('base64'), view: 'brief' };
    view = await mountKept(host, kept);
    expect(host.textContent).toContain('the verdict');
    expect(host.querySelector('.shardnb-report > .shardnb-sends')).toBeNull();
  });

  it('says that a packed report is damaged', async () => {
    view = await mountKept(host, { version: 1, deflated: 'AAAA' });
    expect(host.textContent).toContain('not a report');
  });

  it('shows hostile text and runs none of it', () => {
    const one = {
      ...allReduce(),
      kind: HOSTILE,
      why: HOSTILE,
      producer: HOSTILE,
      instruction: HOSTILE,
      axes: [HOSTILE]
    };
    const text = show({
      ...sketch(),
      collectives: [one, { ...one, id: 1 }],
      sources: [{ name: HOSTILE, text: HOSTILE }],
      notes: [HOSTILE],
      findings: [{ kind: HOSTILE, message: HOSTILE, details: HOSTILE }],
      texts: { [HOSTILE]: HOSTILE }
    });
    expect(text).toContain(HOSTILE);
    expect(host.querySelector('img, script')).toBeNull();
    expect((globalThis as any).harmed).toBeUndefined();
  });

  it.each([
    [{ version: 2 }, 'update shardnb to see it'],
    [{}, 'no version number'],
    [null, 'not an object'],
    [sketch(), 'run its cell again'],
    [{ ...spoken(sketch()), collectives: [{ id: 3, groups: 9, frames: [] }] }, 'collective 3 has no groups'],
    [
      { ...spoken(sketch()), mesh: { axes: [{ name: 'data', size: 4 }], device_ids: [0, 1] } },
      'has other devices'
    ],
    [
      { ...spoken(sketch()), inputs: [{ name: 'x', shape: [4], spec: [['nope']], shard_shape: [4] }] },
      'nope'
    ]
  ])('says what is wrong with data that it cannot show, %#', (data, words) => {
    expect(mounted(data)).toContain(words);
  });

  it('fills in the operations around a collective', () => {
    show({ ...sketch(), collectives: [{ ...allReduce(), why: '', producer: 'result of {dot}' }] });
    view.choose(0);
    expect(texts('.shardnb-because')).toEqual(['because of result of {dot}']);
    expect(texts('.shardnb-chain > li')[0]).toBe('result of {dot} is sharded');
  });

  it('steps through the propagation of placements', () => {
    const said = {
      // x, W and the output; h and y; then y at the start, from step 5 and from step 7 on.
      arrays: {
        type: { texts: ['T', 'y without', 'y with data', 'y whole'], at: '0 0 0 0 3 1 2 3' }
      },
      arrivals: { texts: ['', '5 7'], at: '0 1' }
    };
    show({ ...sketch(), values: spread(), said });
    openValues();
    const types = (): string => texts('.shardnb-value > code')[1];
    expect(types()).toBe('y whole');
    const back = host.querySelector<HTMLElement>('[aria-label="step back"]')!;
    back.click();
    expect(types()).toBe('y with data');
    expect(texts('.shardnb-stepper')[0]).toContain(
      'step 2 of 3: the sharding over data propagates forward through tanh at line 2, from h to y'
    );
    back.click();
    back.click();
    expect(types()).toBe('y without');
  });

  it('says why a value has its sharding', () => {
    show({ ...sketch(), values: spread() });
    openValues();
    expect(texts('.shardnb-why')).toEqual(['h is type of h, from x']);
  });
});

describe('what was measured', () => {
  beforeEach(() => show(timed()));

  function spans(): string[] {
    return [...host.querySelectorAll('.shardnb-span')].map(span => span.getAttribute('data-id') ?? '');
  }

  function openTimeline(): void {
    const part = [...host.querySelectorAll('details')].find(one => one.textContent?.startsWith('Measured'))!;
    part.dispatchEvent(new Event('toggle'));
  }

  it('stands beside what is sent, the slowest first, and can be sorted by bytes', async () => {
    expect(host.textContent).toContain('took of 0');
    expect(rows()).toEqual(['name of 0', 'name of 1']);
    const [bytes, seconds] = [...host.querySelectorAll<HTMLElement>('.shardnb-sort')];
    bytes.click();
    await frame();
    expect(rows()).toEqual(['name of 1', 'name of 0']);
    host.querySelectorAll<HTMLElement>('.shardnb-sort')[1].click();
    expect(seconds.textContent).toBe('measured');
    expect(rows()).toEqual(['name of 0', 'name of 1']);
  });

  it('has a timeline of the first devices, drawn when it is opened', () => {
    expect(spans()).toEqual([]);
    openTimeline();
    expect(host.textContent).toContain('one run of 8 us');
    expect(texts('.shardnb-device > span')).toEqual(['CPU 0', 'CPU 1', 'CPU 2', 'CPU 3']);
    expect(spans()).toEqual(['0', '1', '0', '1', '0', '1', '0', '1']);
    expect(texts('.shardnb-toggle')).toHaveLength(8);
  });

  it('shows the devices that are selected', () => {
    openTimeline();
    host.querySelectorAll<HTMLElement>('.shardnb-toggle')[0].click();
    host.querySelectorAll<HTMLElement>('.shardnb-toggle')[7].click();
    expect(texts('.shardnb-device > span')).toEqual(['CPU 1', 'CPU 2', 'CPU 3', 'CPU 7']);
  });

  it('shows the devices of a group of the collective that is chosen, and lets it stand out', async () => {
    openTimeline();
    view.choose(0);
    await frame();
    expect(texts('.shardnb-device > span')).toEqual(['CPU 0', 'CPU 1']);
    const faint = [...host.querySelectorAll('.shardnb-other')].map(span => span.getAttribute('data-id'));
    expect(faint).toEqual(['1', '1']);
    expect(host.querySelector('.shardnb-detail')!.textContent).toContain('measured of 0');
  });

  it('leads from a span to its collective', async () => {
    openTimeline();
    host.querySelector('.shardnb-span')!.dispatchEvent(new Event('click'));
    await frame();
    expect(host.querySelector('.shardnb-detail')!.textContent).toContain('name of 0');
  });

  it('shows a name of unknown origin as text', () => {
    const data = timed();
    data.profile.timeline[0].name = HOSTILE;
    view.dispose();
    show(data);
    openTimeline();
    expect(host.querySelector('.shardnb-device img')).toBeNull();
  });
});
