/** The layout of an array on a mesh: its blocks, who holds each, and where a block begins and ends. */

import { REPORT } from '../generated/vocabulary';
import { Mesh, Value } from './report';
import { fill } from './slots';

/** The blocks of an array: `holders` gives for each block the positions that hold it. */
export interface Layout {
  grid: readonly number[];
  blocks: readonly number[];
  holders: ReadonlyMap<number, readonly number[]>;
}

/** Lay a value out, or give null where the report does not know its sharding. */
export function layoutOf(value: Value, mesh: Mesh): Layout | null {
  if (value.spec === null && (value.grid === null || value.blocks === null)) {
    return null;
  }
  const blocks = value.spec ? blocksOf(value.spec, mesh) : (value.blocks ?? []);
  const holders = new Map<number, number[]>();
  blocks.forEach((block, position) => {
    const found = holders.get(block);
    found ? found.push(position) : holders.set(block, [position]);
  });
  return { grid: gridOf(value, mesh), blocks, holders };
}

/** Give the number of blocks along each dimension of a value. */
export function gridOf(value: Value, mesh: Mesh): readonly number[] {
  return (
    value.spec?.map(axes => product(axes.map(axis => partOf(axis, mesh).size))) ??
    value.grid ??
    value.shape.map(() => 1)
  );
}

/** Give for each position of the mesh the block that it holds, row-major over the grid. */
function blocksOf(spec: readonly (readonly string[])[], mesh: Mesh): readonly number[] {
  const parts = spec.flat().map(axis => partOf(axis, mesh));
  return mesh.device_ids.map((_, position) =>
    parts.reduce((block, { size, after }) => block * size + (Math.floor(position / after) % size), 0)
  );
}

/**
 * Read an axis, or a part of one as Shardy writes it: `data:(4)2` has 4 parts before it, and 2 of
 * its own. It has `size` values, and `after` positions of the mesh from one to the next.
 */
function partOf(axis: string, mesh: Mesh): { size: number; after: number } {
  const name = wholeAxis(axis);
  const at = mesh.axes.findIndex(each => each.name === name);
  if (at < 0) {
    throw new Error(fill(REPORT.notReport, { why: fill(REPORT.noAxis, { name }) }));
  }
  const whole = mesh.axes[at].size;
  const [before, size] = (PART.exec(axis)?.slice(2) ?? [1, whole]).map(Number);
  const minor = product(mesh.axes.slice(at + 1).map(each => each.size));
  return { size, after: minor * Math.max(1, Math.floor(whole / (before * size))) };
}

const PART = /^(.*):\((\d+)\)(\d+)$/s;

/** Give the mesh axis that an axis or a part of one belongs to. */
export function wholeAxis(axis: string): string {
  return PART.exec(axis)?.[1] ?? axis;
}

export function product(sizes: readonly number[]): number {
  return sizes.reduce((result, size) => result * size, 1);
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
  return grid.flatMap((size, dim) => {
    const step = product(grid.slice(dim + 1));
    const before = index[dim] > 0 ? number - step : null;
    const after = index[dim] < size - 1 ? number + step : null;
    return size > 1 ? [[dim, before, after] as const] : [];
  });
}

/** Choose the dimensions that run down and across a drawing: the last two that are sharded. */
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
