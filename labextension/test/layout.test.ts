import { describe, expect, it } from 'vitest';

import { layoutOf, neighbours, plane, sliceText } from '../src/view/layout';
import { readReport } from '../src/view/report';
import { array, sketch, spoken } from './samples';

const report = readReport(spoken(sketch()));
const [x, W] = report.inputs;

function read(data: object): ReturnType<typeof readReport>['inputs'][number] {
  return readReport(spoken({ ...sketch(), inputs: [data] })).inputs[0];
}

describe('a layout', () => {
  it('gives each device its block, row-major', () => {
    expect(layoutOf(x, report.mesh)?.blocks).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    expect(layoutOf(W, report.mesh)?.blocks).toEqual([0, 1, 0, 1, 0, 1, 0, 1]);
  });

  it('follows the order of the axes that split a dimension', () => {
    const value = read(array('z', [8], [['model', 'data']], [1]));
    expect(layoutOf(value, report.mesh)?.blocks).toEqual([0, 4, 1, 5, 2, 6, 3, 7]);
  });

  it('takes a part of an axis', () => {
    // data:(2)2 is the minor half of data=4: its index is data % 2.
    const value = read(array('z', [8], [['data:(2)2']], [4]));
    expect(layoutOf(value, report.mesh)?.blocks).toEqual([0, 0, 1, 1, 0, 0, 1, 1]);
  });

  it('is null where the report does not know it', () => {
    expect(layoutOf(read({ ...array('z', [8], null, [8]) }), report.mesh)).toBeNull();
  });

  it('says the slice of a block, and cuts the last one', () => {
    const layout = layoutOf(x, report.mesh)!;
    expect(sliceText(x, layout, 3)).toBe('[64:128, 256:512]');
    const odd = read(array('z', [7], [['data']], [2]));
    expect(sliceText(odd, layoutOf(odd, report.mesh)!, 3)).toBe('[6:7]');
  });

  it('knows the blocks beside a block', () => {
    expect(neighbours([4, 2], 3)).toEqual([
      [0, 1, 5],
      [1, 2, null]
    ]);
  });

  it('is drawn by its last two split dimensions', () => {
    expect([plane([]), plane([4]), plane([4, 2]), plane([4, 1, 2, 1])]).toEqual([
      [null, null],
      [null, 0],
      [0, 1],
      [0, 2]
    ]);
  });
});
