import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { View, mount } from '../src/view';
import { HOSTILE, allReduce, many, sketch, spread } from './samples';

let host: HTMLElement;
let view: View;

beforeEach(() => document.body.append((host = document.createElement('div'))));
afterEach(() => {
  view.dispose();
  host.remove();
});

function show(data: unknown): string {
  view = mount(host, data);
  return host.textContent ?? '';
}

function texts(selector: string): string[] {
  return [...host.querySelectorAll(selector)].map(found => found.textContent ?? '');
}

describe('the view', () => {
  it('says what is sent, who asked, why, and what would remove it', () => {
    const text = show(sketch());
    expect(text).toContain('mesh data=4 x model=2 (auto, auto)');
    expect(text).toContain(
      '1 collective: 256 KiB sent by each device a run; 0 called, 0 requested, 1 inferred'
    );
    expect(text).toContain('Both operands of x @ W are split over model');
    expect(text).toContain("Try: x=P('data') W=P(None, 'model') (no collective, +128 KiB a device");
  });

  it('draws the arrays that a finding is about', () => {
    const [x] = sketch().inputs as object[];
    const values = [x, x];
    show({ ...sketch(), findings: [{ kind: 'remat', message: 'whole on each device', values }] });
    expect(host.querySelectorAll('.shardnb-facts .shardnb-card').length).toBe(2);
  });

  it('says what the step takes, and what is assumed', () => {
    const cost = {
      hardware: 'TPU v5e',
      communication_seconds: 0.002,
      compute_seconds: 0.001,
      memory_seconds: 0.004,
      assumptions: ['a ring']
    };
    expect(show({ ...sketch(), cost })).toContain(
      'on TPU v5e: memory-bound: 1.00 ms to compute at least, 4.00 ms for memory at most, ' +
        '2.00 ms to communicate, by formulas'
    );
    expect(host.textContent).toContain('what is assumed');
  });

  it('puts a collective at the end of its line', () => {
    show(sketch());
    const [first, second] = [...host.querySelectorAll('.shardnb-line')];
    expect(first.textContent).toContain(
      'h = x @ W' + 'all-reduce[model] f32[64, 1024] sends 256 KiB inferred, partial-sum'
    );
    expect(second.textContent).not.toContain('all-reduce');
  });

  it('says in one line that nothing is sent', () => {
    expect(show({ ...sketch(), collectives: [], group_table: [] })).toContain('no communication');
  });

  it('tells the collective that is chosen', () => {
    show({ ...sketch(), collectives: [allReduce(), { ...allReduce(), id: 7, why: 'a second one' }] });
    view.choose(7);
    expect(texts('.shardnb-because')).toEqual(['A second one.']);
    const selected = host.querySelector('.shardnb-rows [aria-selected=true]');
    expect(selected?.getAttribute('aria-posinset')).toBe('2');
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
    [{ ...sketch(), collectives: [{ id: 3, groups: 9, frames: [] }] }, 'collective 3 has no groups'],
    [{ ...sketch(), mesh: { axes: [{ name: 'data', size: 4 }], device_ids: [0, 1] } }, 'has other devices'],
    [{ ...sketch(), inputs: [{ name: 'x', shape: [4], spec: [['nope']], shard_shape: [4] }] }, 'nope']
  ])('says of %j that it is no report it can show', (data, words) => {
    expect(show(data)).toContain(words);
  });

  it('does not say of an operation that it uses its own partial sum', () => {
    const own = { ...allReduce(), producer: 'result of dot_general', consumer: 'dot_general' };
    show({ ...sketch(), collectives: [{ ...own, producer_spec: [['data']], needed_spec: null }] });
    const chain = texts('.shardnb-chain > li');
    expect(chain[0]).toBe("result of dot_general lies as P('data')");
    expect(chain).toHaveLength(2);
  });

  it('says what to do where nothing is sent', () => {
    show({ ...sketch(), collectives: [] });
    expect(texts('.shardnb-detail')).toEqual([
      'Point at an array: the mesh shows which block of it each device holds.'
    ]);
  });

  it('steps through the propagation of placements', () => {
    show({ ...sketch(), values: spread() });
    const types = (): string[] => texts('.shardnb-value > code');
    expect(types()).toEqual(['f32[256@data, 1024]', 'f32[256@data, 1024@model]']);
    const back = host.querySelector<HTMLElement>('[aria-label="step back"]')!;
    back.click();
    expect(types()).toEqual(['f32[256@data, 1024]', 'f32[256@data, 1024]']);
    expect(texts('.shardnb-stepper')[0]).toContain(
      'step 2 of 3: the split over data goes forward through tanh at line 2, from h to y'
    );
    back.click();
    back.click();
    expect(types()).toEqual(['f32[256, 1024]', 'f32[256, 1024]']);
  });

  it('says why a value lies as it does', () => {
    show({ ...sketch(), values: spread() });
    expect(texts('.shardnb-why')).toEqual([
      'h is f32[256@data, 1024] at line 1: ' +
        'data came from x, forward through dot_general at line 1'
    ]);
  });
});
