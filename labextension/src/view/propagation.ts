/** How placements spread through the program: Shardy's steps in time. */

import { REPORT } from '../generated/vocabulary';
import { gridOf } from './blocks';
import { Report, Step, Value, inState } from './report';
import { clean, fill } from './slots';

/** A step in time: the axis that travels, and along what. */
export interface Moment {
  axis: string;
  step: Step;
}

/** Give all known steps, in the order in which they were made. */
export function moments(report: Report): Moment[] {
  const found = new Map<string, Moment>();
  for (const { origins } of report.values) {
    for (const { axis, steps } of origins) {
      for (const step of steps ?? []) {
        found.set(JSON.stringify([axis, step.number, step.source, step.target]), { axis, step });
      }
    }
  }
  return [...found.values()].sort((a, b) => a.step.number - b.step.number);
}

/** Say a step: `the split over data goes forward through dot_general at line 6, from x to h`. */
export function momentText({ axis, step }: Moment, report: Report): string {
  const { op, source, target, location, direction } = step;
  const name = location?.source ? report.sources[location.source]?.name : undefined;
  const slots = { line: location?.line ?? 0, source: name ?? '' };
  const at = location ? fill(name === undefined ? REPORT.stepAt : REPORT.stepAtIn, slots) : '';
  const aside = direction === 'sideways' ? REPORT.toOther : '';
  return clean(fill(REPORT.moment, { axis, direction, op, at, aside, source, target }));
}

/**
 * Give a value as it was after the steps up to a number. Null where it is not known when one of
 * its axes came.
 */
export function valueAt(report: Report, index: number, number: number): Value | null {
  const value = report.values[index];
  const { spec: whole } = value;
  const { when, steps, first } = report.histories[index];
  if (whole === null || number === Infinity || when?.length === 0) {
    return value;
  }
  if (when === null) {
    return null;
  }
  let axis = 0;
  const spec = whole.map(axes => axes.filter(() => when[axis++] <= number));
  const grid = gridOf({ ...value, spec }, report.mesh);
  const shard = value.shape.map((size, dim) => Math.ceil(size / grid[dim]));
  const state = first + steps.filter(step => step <= number).length - 1;
  return inState(value, state, { spec, shard_shape: shard, propagated: null });
}
