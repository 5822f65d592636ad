import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { View, mount } from '../src/view';
import { HOSTILE, allReduce, many, sketch, spoken, spread } from './samples';

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

describe('the view', () => {
  it('says what Python says of a report', () => {
    const text = show(sketch());
    for (const said of ['devices', 'the summary', 'name of 0 at of 0 cause of 0', 'about it']) {
      expect(text).toContain(said);
    }
    expect(text).toContain('both operands of x @ W are split over model');
    expect(text).toContain("Try: x=P('data') W=P(None, 'model') (the effect)");
  });

  it('draws the arrays that a finding is about', () => {
    const [x] = sketch().inputs as object[];
    const values = [x, x];
    show({ ...sketch(), findings: [{ kind: 'remat', message: 'whole on each device', values }] });
    expect(host.querySelectorAll('.shardnb-facts .shardnb-card').length).toBe(2);
  });

  it('says what the step takes, and what is assumed', () => {
    const text = show({ ...sketch(), said: { cost: 'two seconds', assumptions: ['a ring'] } });
    expect(text).toContain('two seconds');
    expect(text).toContain('what is assumed');
  });

  it('puts a collective at the end of its line', () => {
    show(sketch());
    const [first, second] = [...host.querySelectorAll('.shardnb-line')];
    expect(first.textContent).toContain(
      'h = x @ W' + 'head of 0 sends of 0 cause of 0'
    );
    expect(second.textContent).not.toContain('head');
  });

  it('tells the collective that is chosen', () => {
    show({ ...sketch(), collectives: [allReduce(), { ...allReduce(), id: 7, why: 'a second one' }] });
    view.choose(7);
    expect(texts('.shardnb-because')).toEqual(['a second one']);
    const selected = host.querySelector('.shardnb-rows [aria-selected=true]');
    expect(selected?.getAttribute('aria-posinset')).toBe('2');
  });

  it('gives the line of the frame that Python names, and none where there is none', () => {
    const frames = [1, 2].map(line => ({ source: 0, line }));
    const found = [0, 1].map(id => ({ ...allReduce(), id, frames }));
    const data = spoken({ ...sketch(), collectives: found });
    data.said.collectives.home = { texts: ['1', '-'], at: '0 1' };
    mounted(data);
    expect(texts('.shardnb-place')).toEqual(['2', '?']);
  });

  it('begins with the collective that sends most', () => {
    show(many(30));
    const selected = host.querySelector('.shardnb-rows [aria-selected=true]');
    expect(selected?.getAttribute('aria-posinset')).toBe('30');
  });

  it('draws only the rows of a long list that are seen', () => {
    show(many(5000));
    expect(host.querySelectorAll('.shardnb-rows .shardnb-row').length).toBeLessThan(30);
  });

  it('moves through the list with the keys', async () => {
    show(many(30));
    view.choose(0);
    const list = host.querySelector('[role=listbox]')!;
    list.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowDown' }));
    await new Promise(resolve => requestAnimationFrame(resolve));
    const selected = host.querySelector('.shardnb-rows [aria-selected=true]');
    expect(selected?.getAttribute('aria-posinset')).toBe('2');
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
    expect(texts('.shardnb-because')).toEqual(['because of result of {dot}']);
    expect(texts('.shardnb-chain > li')[0]).toBe('result of {dot} lies');
  });

  it('says which part of the bytes the filters let through', () => {
    show({ ...many(20), said: { filtered: '{shown} of 20, {share} %' } });
    const select = host.querySelector<HTMLSelectElement>('select[aria-label=kind]')!;
    // Ids 1, 4, ... 19 of 0 to 19 are all-gathers: 2 + 5 + ... + 20 = 77 of 210 KiB.
    select.value = 'all-gather';
    select.dispatchEvent(new Event('change'));
    expect(texts('.shardnb-filters')[0]).toContain('7 of 20, 37 %');
  });

  it('says what to do where nothing is sent', () => {
    show({ ...sketch(), collectives: [] });
    expect(texts('.shardnb-detail')).toEqual([
      'Point at an array: the mesh shows which block of it each device holds.'
    ]);
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
    const types = (): string => texts('.shardnb-value > code')[1];
    expect(types()).toBe('y whole');
    const back = host.querySelector<HTMLElement>('[aria-label="step back"]')!;
    back.click();
    expect(types()).toBe('y with data');
    expect(texts('.shardnb-stepper')[0]).toContain(
      'step 2 of 3: the split over data goes forward through tanh at line 2, from h to y'
    );
    back.click();
    back.click();
    expect(types()).toBe('y without');
  });

  it('says why a value lies as it does', () => {
    show({ ...sketch(), values: spread() });
    expect(texts('.shardnb-why')).toEqual(['h is type of h, from x']);
  });
});
