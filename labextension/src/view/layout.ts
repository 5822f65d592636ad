/** How an array lies on a mesh: its blocks, who holds each, and where a block begins and ends. */

import { Mesh, Value } from './report';
import { blocksOf, gridOf, sizeOf, wholeAxis } from './spec';

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

/** Say how many devices hold each block alike, and along which axes; "" where it is one. */
export function copies(value: Value, mesh: Mesh): string {
  if (value.spec === null) {
    const layout = layoutOf(value, mesh);
    const counts = new Set([...(layout?.holders.values() ?? [])].map(found => found.length));
    const sorted = [...counts].sort((a, b) => a - b);
    return !layout || sorted.join() === '1' ? '' : `x${sorted.join(' or x')} copies`;
  }
  const pending = value.unreduced.reduce((product, axis) => product * sizeOf(axis, mesh), 1);
  const blocks = gridOf(value, mesh).reduce((product, size) => product * size, 1);
  const number = Math.floor(mesh.device_ids.length / (blocks * pending));
  return number > 1 ? `x${number} copies over ${free(value, mesh).join(', ')}` : '';
}

/** Name the axes along which the devices hold the same. */
function free(value: Value, mesh: Mesh): string[] {
  const used = new Set([...value.unreduced, ...(value.spec ?? []).flat()]);
  const parts = new Set([...used].filter(axis => wholeAxis(axis) !== axis).map(wholeAxis));
  return mesh.axes
    .filter(axis => axis.size > 1 && !used.has(axis.name))
    .map(axis => (parts.has(axis.name) ? `the rest of ${axis.name}` : axis.name));
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
