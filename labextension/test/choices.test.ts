import { describe, expect, it } from 'vitest';

import { choices, extended, renamed, shapes, without } from '../src/widget/choices';
import { Plan } from '../src/widget/model';

const AXES = [
  { name: 'data', size: 4, type: 'auto' },
  { name: 'model', size: 2, type: 'auto' }
];
const PLAN: Plan = { axes: AXES, specs: { x: [['data'], ['model']], b: [['model', 'data']] } };

describe('what there is to choose', () => {
  it('splits a dimension over every ordered set of axes', () => {
    expect(choices(AXES, 12).map(one => one.label)).toEqual([
      'not sharded',
      'data: 3 per device',
      'model: 6 per device',
      'data, model: not divisible',
      'model, data: not divisible'
    ]);
  });

  it('lays eight devices out in every way', () => {
    expect(shapes(8, 2)).toEqual([
      [8, 1],
      [4, 2],
      [2, 4],
      [1, 8]
    ]);
    expect(shapes(4, 3).length).toBe(6);
  });

  it('renames an axis in the mesh and in every spec', () => {
    const plan = renamed(PLAN, 1, 'tp');
    expect(plan.axes.map(axis => axis.name)).toEqual(['data', 'tp']);
    expect(plan.specs).toEqual({ x: [['data'], ['tp']], b: [['tp', 'data']] });
  });

  it('takes an axis out of every spec', () => {
    expect(without(PLAN, 0).specs).toEqual({ x: [[], ['model']], b: [['model']] });
  });

  it('adds an axis of one device under a new name', () => {
    expect(extended(PLAN).axes[2]).toEqual({ name: 'seq', size: 1, type: 'auto' });
  });
});
