import { describe, expect, it } from 'vitest';

import { arrange, placeAt } from '../src/view/geometry';
import { step } from '../src/view/tiles';

const BOX = { width: 300, height: 200 };

describe('an arrangement', () => {
  it('puts rows below each other and columns side by side', () => {
    const { x, y, tile } = arrange([4, 2], BOX);
    expect([...x]).toEqual([0, tile.width, 0, tile.width, 0, tile.width, 0, tile.width]);
    expect(y[7]).toBe(3 * tile.height);
  });

  it.each([[[128, 16]], [[2048]], [[2048, 1]], [[1, 2048]], [[32, 8, 8]], [[8, 4, 4, 4, 4]]])(
    'keeps %j in its box, each place by itself',
    grid => {
      const drawn = arrange(grid, BOX);
      const corners = new Set([...drawn.x].map((x, i) => `${x} ${drawn.y[i]}`));
      expect(corners.size).toBe(2048);
      expect(drawn.width).toBeLessThanOrEqual(BOX.width);
      expect(drawn.height).toBeLessThanOrEqual(BOX.height);
    }
  );

  it('does not fold what fits as it is', () => {
    expect(arrange([16, 1], BOX).folded).toBe(false);
    expect(arrange([2048, 1], BOX).folded).toBe(true);
  });

  it('finds the place at a point', () => {
    const drawn = arrange([2, 2, 2], BOX);
    for (let place = 0; place < 8; place++) {
      expect(placeAt(drawn, drawn.x[place] + 2, drawn.y[place] + 2)).toBe(place);
    }
    expect(placeAt(drawn, -1, 0)).toBeNull();
  });

  it('is walked by the arrow keys', () => {
    const drawn = arrange([4, 2], BOX);
    expect(step(drawn, null, 'ArrowDown')).toBe(0);
    expect(step(drawn, 0, 'ArrowDown')).toBe(2);
    expect(step(drawn, 2, 'ArrowRight')).toBe(3);
    expect(step(drawn, 3, 'ArrowRight')).toBe(3);
    expect(step(drawn, 3, 'End')).toBe(7);
    expect(step(drawn, 3, 'x')).toBeNull();
  });
});
