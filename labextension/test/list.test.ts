import { describe, expect, it } from 'vitest';

import { passes, sorted } from '../src/view/list';
import { readReport } from '../src/view/report';
import { many, spoken } from './samples';

const report = readReport(spoken(many(20)));
const all = [...report.collectives];
const NONE = { kind: '', axis: '', asked: '', least: 0 };

describe('the filters', () => {
  it.each([
    [{ kind: 'all-gather' }, 7],
    [{ axis: 'model' }, 20],
    [{ axis: 'data' }, 0],
    [{ asked: 'inferred' }, 20],
    [{ asked: 'called' }, 0],
    [{ least: 10240 }, 11]
  ])('let %j pass %d of 20', (filter, number) => {
    expect(all.filter(one => passes(one, { ...NONE, ...filter })).length).toBe(number);
  });

  it('take a part of an axis for the axis', () => {
    const part = { ...all[0], axes: ['data:(2)2'] };
    expect(passes(part, { ...NONE, axis: 'data' })).toBe(true);
  });
});

describe('the order', () => {
  it('is by bytes, the most first', () => {
    expect(sorted(all, 'sends', false)[0].id).toBe(19);
  });

  it('keeps program order among equals', () => {
    const ids = sorted(all, 'line', true).map(one => one.id);
    expect(ids.slice(0, 4)).toEqual([0, 10, 1, 11]);
  });
});
