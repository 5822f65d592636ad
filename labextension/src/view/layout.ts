/** How an array lies on a mesh: its blocks, who holds each, and where a block begins and ends. */

import { blocksOf, gridOf } from './blocks';
import { Mesh, Value } from './report';

/** The blocks of an array: `holders` gives for each block the positions that hold it. */
export interface Layout {
  grid: readonly number[];
  blocks: readonly number[];
  holders: ReadonlyMap<number, readonly number[]>;
}

/** Lay a value out, or give null where the report does not know how it lies. */
export function layoutOf(value: Value, mesh: Mesh): Layout | null {
  if (value.spec === null && (value.grid === null || value.blocks === null)) {
    return null;
  }
  const blocks = blocksOf(value, mesh);
  const holders = new Map<number, number[]>();
  blocks.forEach((block, position) => {
    const found = holders.get(block);
    found ? found.push(position) : holders.set(block, [position]);
  });
  return { grid: gridOf(value, mesh), blocks, holders };
}

/** Give the place in a grid of a row-major number. */
export function indexOf(grid: readonly number[], number: number): number[] {
  const index: number[] = [];
  let rest = number;
  for (const size of [...grid].reverse()) {
    index.unshift(rest % size);
    rest = Math.floor(rest / size);
  }
  return index;
}

/** Give the row-major number of a place in a grid. */
export function numberOf(grid: readonly number[], index: readonly number[]): number {
  return grid.reduce((number, size, dim) => number * size + index[dim], 0);
}

/** Write the part of the array that a block is: `[64:128, 0:256]`. */
export function sliceText(value: Value, layout: Layout, block: number): string {
  const parts = indexOf(layout.grid, block).map((place, dim) => {
    const end = value.shape[dim];
    const start = Math.min(end, place * value.shard_shape[dim]);
    return `${start}:${Math.min(end, start + value.shard_shape[dim])}`;
  });
  return `[${parts.join(', ')}]`;
}

/** Give the numbers of the places next to one along each dimension: [dimension, before, after]. */
export function neighbours(
  grid: readonly number[],
  number: number
): (readonly [number, number | null, number | null])[] {
  const index = indexOf(grid, number);
  const beside = (dim: number, step: number): number | null => {
    const place = index[dim] + step;
    return place < 0 || place >= grid[dim] ? null : numberOf(grid, [...index.slice(0, dim), place, ...index.slice(dim + 1)]);
  };
  return grid.flatMap((size, dim) =>
    size > 1 ? [[dim, beside(dim, -1), beside(dim, 1)] as const] : []
  );
}

/** Choose the dimensions that run down and across a drawing: the last two that are split. */
export function plane(grid: readonly number[]): [number | null, number | null] {
  if (grid.length < 2) {
    return [null, grid.length ? 0 : null];
  }
  const dims = grid.map((_, dim) => dim);
  const split = dims.filter(dim => grid[dim] > 1).slice(-2);
  const whole = dims.filter(dim => !split.includes(dim)).reverse();
  const [down, across] = [...split, ...whole.slice(0, 2 - split.length)].sort((a, b) => a - b);
  return [down, across];
}
