/** How placements spread through the program: Shardy's steps in time, and why, in words. */

import { valueType } from './content';
import { Origin, Place, Report, Step, Value } from './report';
import { specText, sizeOf, wholeAxis } from './spec';
import { clean } from './units';

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
  return clean(`the split over ${axis} goes ${stepText(step, report)}, from ${step.source} to ${step.target}`);
}

/**
 * Give a value as it was after the steps up to a number: of its spec the axes that had come. Null
 * where it is not known when one of them came.
 */
export function valueAt(report: Report, index: number, number: number): Value | null {
  const value = report.values[index];
  if (value.spec === null || number === Infinity) {
    return value;
  }
  const times = new Map(value.spec.flat().map(axis => [axis, arrival(report, index, axis)]));
  if ([...times.values()].includes(null)) {
    return null;
  }
  const spec = value.spec.map(axes => axes.filter(axis => (times.get(axis) ?? 0) <= number));
  const blocks = spec.map(axes => axes.reduce((all, axis) => all * sizeOf(axis, report.mesh), 1));
  const shard = value.shape.map((size, dim) => Math.ceil(size / blocks[dim]));
  return { ...value, spec, shard_shape: shard, propagated: null };
}

/** Give the number of the step with which an axis came to a value: 0 where it was there before. */
function arrival(report: Report, index: number, axis: string): number | null {
  const seen = new Set<number>();
  for (let at: number | null = index; at !== null && !seen.has(at); ) {
    seen.add(at);
    const origin = originOf(report.values[at], axis);
    if (!origin || origin.steps === null) {
      return null;
    }
    if (origin.steps.length) {
      return origin.steps[origin.steps.length - 1].number;
    }
    [at, axis] = [origin.after, origin.axis];
  }
  return 0;
}

function originOf(value: Value | undefined, axis: string): Origin | undefined {
  const origins = value?.origins ?? [];
  const near = origins.find(origin => wholeAxis(origin.axis) === wholeAxis(axis));
  return origins.find(origin => origin.axis === axis) ?? near;
}

/** Say why a value has its placement: the same words as `shardnb.report.why`. */
export function whyText(report: Report, index: number): string {
  const value = report.values[index];
  const start = `${value.name} is ${valueType(value)}${where(report, value)}`;
  if (value.spec === null) {
    return clean(`${start}: no mesh axes say how it lies`);
  }
  const parts = [...causes(report, index), ...value.blocked.map(stopped)];
  if (!parts.length && !value.spec.flat().length) {
    parts.push('every device holds all of it');
  }
  if (value.propagated) {
    parts.push(
      `Shardy gave ${specText(value.propagated)}, the compiled program has ` +
        `${specText(value.spec)}: the compiled program is trusted`
    );
  }
  return clean(start + (parts.length ? `: ${parts.join('; ')}` : ''));
}

function stopped({ axis, value, why }: Value['blocked'][number]): string {
  return `${axis} of ${value} was not kept: ${why}`;
}

function where(report: Report, value: Value): string {
  const { location, manual } = value;
  let text = at(report, location);
  if (location && value.name.includes(' at line ')) {
    text = text.replace(` at line ${location.line}`, '');
  }
  const inside = manual.join(', ');
  return inside ? `${text}, one device's part inside a shard_map over ${inside}` : text;
}

function at(report: Report, location: Place | null): string {
  if (!location) {
    return '';
  }
  const source = location.source > 0 ? report.sources[location.source] : undefined;
  return ` at line ${location.line}${source ? ` of ${source.name}` : ''}`;
}

function causes(report: Report, index: number): string[] {
  const { origins } = report.values[index];
  if (origins.length && origins.every(origin => origin.kind === 'type')) {
    return ['its type says so (the mesh is explicit there)'];
  }
  const said = new Map<string, string[]>();
  for (const origin of origins) {
    const cause = causeText(report, index, origin);
    said.set(cause, [...(said.get(cause) ?? []), origin.axis]);
  }
  return [...said].map(([cause, axes]) => `${axes.join(' and ')} ${cause}`);
}

function causeText(report: Report, index: number, origin: Origin): string {
  if (origin.kind === 'type') {
    return 'stands in its type (explicit)';
  }
  if (origin.kind === 'unknown') {
    return 'came from a place that is not known';
  }
  return `came from ${sourceText(report, origin)}${wayText(report, index, origin)}`;
}

function sourceText(report: Report, { kind, name, location }: Origin): string {
  switch (kind) {
    case 'constraint':
      return `the constraint ${name}${at(report, location)}`;
    case 'output':
      return `the spec of the output ${name}`;
    case 'shard_map':
      return `the specs of the shard_map${at(report, location)}`;
    default:
      return name;
  }
}

function wayText(report: Report, index: number, origin: Origin): string {
  const steps = chain(report, index, origin.axis);
  if (steps === null) {
    return ' (along which ops is not known)';
  }
  const said = steps.map(step => stepText(step, report));
  if (said.length > 6) {
    said.splice(2, said.length - 4, `${said.length - 4} more ops`);
  }
  return said.map(step => `, ${step}`).join('');
}

function stepText(step: Step, report: Report): string {
  const beside = step.direction === 'sideways' ? ' (to its other operand)' : '';
  return `${step.direction} through ${step.op}${at(report, step.location)}${beside}`;
}

/** Give all the steps from the origin of an axis to a value, or null where a part is not known. */
function chain(report: Report, index: number, axis: string): readonly Step[] | null {
  let steps: readonly Step[] = [];
  const seen = new Set<number>();
  for (let place: number | null = index; place !== null && !seen.has(place); ) {
    seen.add(place);
    const origin = originOf(report.values[place], axis);
    if (!origin || origin.steps === null) {
      return null;
    }
    steps = [...origin.steps, ...steps];
    [place, axis] = [origin.after, origin.axis];
  }
  return steps;
}
