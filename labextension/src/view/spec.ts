/** Placements in the words of JAX, and the blocks that they cut an array into. */

import { Mesh, Spec, Value } from './report';

/** Write a spec as JAX does: `P('data', None, ('x', 'y'))`. */
export function specText(spec: Spec | null, unreduced: readonly string[] = []): string {
  if (spec === null) {
    return 'no mesh axes';
  }
  const entries = spec.map(entryText);
  while (entries[entries.length - 1] === 'None') {
    entries.pop();
  }
  if (unreduced.length) {
    entries.push(`unreduced={${unreduced.map(quoted).join(', ')}}`);
  }
  return `P(${entries.join(', ')})`;
}

function entryText(axes: readonly string[]): string {
  if (!axes.length) {
    return 'None';
  }
  return axes.length === 1 ? quoted(axes[0]) : `(${axes.map(quoted).join(', ')})`;
}

function quoted(name: string): string {
  const quote = name.includes("'") && !name.includes('"') ? '"' : "'";
  return quote + name.replace(/\\/g, '\\\\').replaceAll(quote, `\\${quote}`) + quote;
}

/** Write an array's type with its placement: `f32[256@data, 512]`. */
export function typeText(value: Value): string {
  const dims = value.shape.map((size, dim) => dimText(size, value.spec?.[dim] ?? []));
  const pending = value.unreduced.length ? `{U:${value.unreduced.join(',')}}` : '';
  return `${value.dtype}[${dims.join(', ')}]${pending}`;
}

/** Write one dimension with the axes that split it: `256@data`, `8@(x,y)`, `512`. */
export function dimText(size: number, axes: readonly string[]): string {
  if (!axes.length) {
    return String(size);
  }
  return axes.length === 1 ? `${size}@${axes[0]}` : `${size}@(${axes.join(',')})`;
}

/** Give the number of blocks along each dimension of a value. */
export function gridOf(value: Value, mesh: Mesh): readonly number[] {
  if (value.spec === null) {
    return value.grid ?? value.shape.map(() => 1);
  }
  return value.spec.map(axes => axes.reduce((product, axis) => product * sizeOf(axis, mesh), 1));
}

/** Give for each position of the mesh the block that it holds, row-major over the grid. */
export function blocksOf(value: Value, mesh: Mesh): readonly number[] {
  const positions = mesh.device_ids.map((_, position) => position);
  const { spec } = value;
  if (spec === null) {
    return value.blocks ?? positions.map(() => 0);
  }
  const grid = gridOf(value, mesh);
  return positions.map(position => blockAt(spec, grid, coordinates(position, mesh), mesh));
}

function blockAt(
  spec: Spec,
  grid: readonly number[],
  coordinate: readonly number[],
  mesh: Mesh
): number {
  return spec.reduce((block, axes, dim) => {
    const index = axes.reduce(
      (inner, axis) => inner * sizeOf(axis, mesh) + indexOf(axis, coordinate, mesh),
      0
    );
    return block * grid[dim] + index;
  }, 0);
}

/** Give the index along each axis, in the axes' order, of a position of the mesh. */
export function coordinates(position: number, mesh: Mesh): readonly number[] {
  const result: number[] = [];
  let rest = position;
  for (const axis of [...mesh.axes].reverse()) {
    result.unshift(rest % axis.size);
    rest = Math.floor(rest / axis.size);
  }
  return result;
}

/** Read a part of an axis as Shardy writes it: `data:(4)2` is [data, 4, 2]. */
function partOf(axis: string): [string, number, number] | null {
  const found = /^(.*):\((\d+)\)(\d+)$/s.exec(axis);
  return found && [found[1], Number(found[2]), Number(found[3])];
}

/** Give the mesh axis that an axis or a part of one belongs to. */
export function wholeAxis(axis: string): string {
  return partOf(axis)?.[0] ?? axis;
}

export function sizeOf(axis: string, mesh: Mesh): number {
  return partOf(axis)?.[2] ?? meshAxis(axis, mesh).size;
}

function indexOf(axis: string, coordinate: readonly number[], mesh: Mesh): number {
  const part = partOf(axis);
  const [name, before, size] = part ?? [axis, 1, meshAxis(axis, mesh).size];
  const whole = meshAxis(name, mesh);
  const after = Math.max(1, Math.floor(whole.size / (before * size)));
  return Math.floor(coordinate[mesh.axes.indexOf(whole)] / after) % size;
}

function meshAxis(name: string, mesh: Mesh): Mesh['axes'][number] {
  const axis = mesh.axes.find(one => one.name === name);
  if (!axis) {
    throw new Error(`this is no report: its mesh has no axis ${name}`);
  }
  return axis;
}
