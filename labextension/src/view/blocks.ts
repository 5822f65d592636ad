/** The blocks that a placement cuts an array into, and the places of a mesh. */

import { REPORT } from '../generated/vocabulary';
import { Mesh, Value } from './report';
import { fill } from './slots';

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
  const digits = spec.flat().map(axis => digitOf(axis, mesh));
  return positions.map(position =>
    digits.reduce((block, { size, after }) => {
      return block * size + (Math.floor(position / after) % size);
    }, 0)
  );
}

/** An axis as a digit of the positions: how many values it has, and how many positions one is. */
interface Digit {
  size: number;
  after: number;
}

function digitOf(name: string, mesh: Mesh): Digit {
  const [whole, before, size] = partOf(name) ?? [name, 1, meshAxis(name, mesh).size];
  const axis = meshAxis(whole, mesh);
  const behind = mesh.axes.slice(mesh.axes.indexOf(axis) + 1);
  const minor = behind.reduce((product, one) => product * one.size, 1);
  return { size, after: minor * Math.max(1, Math.floor(axis.size / (before * size))) };
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

function meshAxis(name: string, mesh: Mesh): Mesh['axes'][number] {
  const axis = mesh.axes.find(one => one.name === name);
  if (!axis) {
    throw new Error(fill(REPORT.notReport, { why: fill(REPORT.noAxis, { name }) }));
  }
  return axis;
}
