/** What there is to choose: how axes can split a dimension, how devices make a mesh. */

import { WIDGETS } from '../generated/vocabulary';
import { fill } from '../view/slots';
import { Axis, Plan, Specs, copyOf } from './model';

/** A way to split a dimension: its axes, major first, and whether they divide it. */
export interface Choice {
  axes: string[];
  label: string;
}

/** Give the ways to split a dimension of so many elements. */
export function choices(axes: readonly Axis[], size: number): Choice[] {
  const most = axes.length <= 3 ? axes.length : 2;
  const found: Axis[][] = [[]];
  for (let i = 0; i < found.length; i++) {
    if (found[i].length < most) {
      found.push(...axes.filter(axis => !found[i].includes(axis)).map(axis => [...found[i], axis]));
    }
  }
  return found.map(chosen => ({ axes: chosen.map(axis => axis.name), label: label(chosen, size) }));
}

function label(chosen: readonly Axis[], size: number): string {
  if (!chosen.length) {
    return WIDGETS.whole;
  }
  const parts = chosen.reduce((product, axis) => product * axis.size, 1);
  const slots = { axes: chosen.map(axis => axis.name).join(', '), size: size / parts };
  return fill(size % parts ? WIDGETS.doesNotDivide : WIDGETS.splitOver, slots);
}

/** Give the ways to lay devices out along so many axes: `[[8, 1], [4, 2], ...]`. */
export function shapes(devices: number, axes: number): number[][] {
  if (axes <= 1) {
    return axes === 1 ? [[devices]] : [];
  }
  const found: number[][] = [];
  for (let size = devices; size >= 1; size--) {
    if (devices % size === 0) {
      found.push(...shapes(devices / size, axes - 1).map(rest => [size, ...rest]));
    }
  }
  return found;
}

export function devices(axes: readonly Axis[]): number {
  return axes.reduce((product, axis) => product * axis.size, 1);
}

/** Rename an axis, in the mesh as in every spec. */
export function renamed(plan: Plan, index: number, name: string): Plan {
  const before = plan.axes[index].name;
  const axes = plan.axes.map((axis, i) => (i === index ? { ...axis, name } : axis));
  return { axes, specs: mapped(plan.specs, one => (one === before ? name : one)) };
}

/** Take an axis away; what it sharded is replicated along it. */
export function without(plan: Plan, index: number): Plan {
  const gone = plan.axes[index].name;
  const axes = plan.axes.filter((_, i) => i !== index);
  return { axes, specs: mapped(plan.specs, one => (one === gone ? null : one)) };
}

const NAMES = ['data', 'model', 'seq', 'expert', 'stage'];

/** Add an axis of one device. */
export function extended(plan: Plan): Plan {
  const known = plan.axes.map(axis => axis.name);
  const name = NAMES.find(one => !known.includes(one)) ?? `axis${known.length}`;
  return { ...copyOf(plan), axes: [...plan.axes, { name, size: 1, type: 'auto' }] };
}

function mapped(specs: Specs, change: (axis: string) => string | null): Specs {
  const kept = (axes: string[]): string[] =>
    axes.map(change).filter((axis): axis is string => axis !== null);
  return Object.fromEntries(Object.entries(specs).map(([name, spec]) => [name, spec.map(kept)]));
}
