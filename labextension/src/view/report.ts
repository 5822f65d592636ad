/**
 * A report as `shardnb.views.live` writes it, read into plain objects in which every field has a
 * value. Devices are named by their position in the mesh, row-major over its axes.
 */

import type * as Data from '../generated/report';
import { REPORT, SHAPES, VERSION } from '../generated/vocabulary';
import { clean, fill } from './slots';

export type { LedLine, Location, Mesh, Source, Step, TypedLine } from '../generated/report';

/** The mesh axes that split each dimension, major first; `[]` if a dimension is not sharded. */
export type Spec = readonly (readonly string[])[];

/** What Python says of a thing, by the name of the text. */
interface Said<T> {
  say: (text: T) => string;
}

export type Collective = Data.Collective & Said<Data.CollectiveText>;
export type Value = Data.Value & Said<Data.ArrayText> & { texts: Texts };
export type Finding = Omit<Data.Finding, 'values'> & { values: readonly Value[] };

export interface Report
  extends Omit<Data.Report, 'inputs' | 'outputs' | 'values' | 'collectives' | 'findings'> {
  inputs: readonly Value[];
  outputs: readonly Value[];
  values: readonly Value[];
  collectives: readonly Collective[];
  findings: readonly Finding[];
  said: Data.Said;
  histories: readonly History[];
  byId: ReadonlyMap<number, Collective>;
  /** The colour of each collective, by its id. */
  tones: ReadonlyMap<number, Data.Tone>;
  /** How much is shown in line. */
  brief: boolean;
}

/**
 * When a value got the axes of its spec, null where that is not known: from each of `steps` on it
 * lay otherwise, and `first` is the place of the first of these states among the texts of arrays.
 */
export interface History {
  when: readonly number[] | null;
  steps: readonly number[];
  first: number;
}

type Fields = Record<string, unknown>;

/** Read a report's data; throws an `Error` that says the problem with data that is not a report. */
export function readReport(data: unknown): Report {
  const whole = record(data, REPORT.theData);
  if (typeof whole.version !== 'number') {
    throw wrong(REPORT.noVersion);
  }
  if (whole.version > VERSION) {
    throw new Error(fill(REPORT.tooNew, { version: whole.version, known: VERSION }));
  }
  if (!whole.said) {
    throw new Error(REPORT.noWords);
  }
  const table = whole.group_table ?? [];
  if (!Array.isArray(table)) {
    throw wrong(fill(REPORT.notList, { part: 'group_table' }));
  }
  const read = filled(whole, 'Report') as unknown as Report;
  const said = filled(whole.said, 'Said') as unknown as Data.Said;
  const { axes, device_ids: devices } = read.mesh;
  const size = axes.reduce((product, axis) => product * axis.size, 1);
  if (axes.length && devices.length !== size) {
    throw wrong(fill(REPORT.otherDevices, { size }));
  }
  const texts = reader(said.arrays);
  let number = 0;
  const values = (found: readonly Data.Value[]): Value[] =>
    found.map(value => spoken(checked(value), number++, texts));
  const shown = {
    ...read,
    said,
    inputs: values(read.inputs),
    outputs: values(read.outputs),
    values: values(read.values),
    findings: read.findings.map(found => ({ ...found, values: values(found.values) })),
    collectives: collectives(read.collectives, table, reader(said.collectives))
  };
  return {
    ...shown,
    histories: histories(said, read.values.length, number),
    byId: new Map(shown.collectives.map(one => [one.id, one])),
    tones: new Map(said.rows.flatMap(({ ids, tone }) => numbers(ids).map(id => [id, tone] as const))),
    brief: whole.view === 'brief'
  };
}

export function isPacked(data: unknown): data is { deflated: string; view?: unknown } {
  return typeof (data as { deflated?: unknown } | null)?.deflated === 'string';
}

/** Give the data that a notebook keeps, inflated where it is packed. */
export async function unpacked(data: unknown): Promise<unknown> {
  if (!isPacked(data)) {
    return data;
  }
  const { deflated, view } = data;
  const bytes = Uint8Array.from(atob(deflated), char => char.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  return { ...(await new Response(stream).json()), view };
}

/** Read numbers with spaces between. */
export function numbers(text: string): number[] {
  return text ? text.split(' ').map(Number) : [];
}

/** Read when values got their axes; the texts of their states follow those of all arrays. */
function histories({ arrivals }: Data.Said, values: number, arrays: number): History[] {
  const texts = reader(arrivals ? { arrivals } : {});
  let first = arrays;
  return Array.from({ length: values }, (_, i) => {
    const text = texts('arrivals', i);
    const when = text === '?' ? [] : numbers(text);
    const steps = when.length ? [...new Set([0, ...when])] : [];
    const history = { when: text === '?' ? null : when, steps, first };
    first += steps.length;
    return history;
  });
}

/** Give a value as it was in another state: the placement, and what is said of it. */
export function inState(value: Value, array: number, state: Partial<Value>): Value {
  return { ...spoken(value, array, value.texts), ...state };
}

/** Give the place that a collective is shown at, null where none is known. */
export function home(collective: Collective): Data.Location | null {
  return collective.frames[Number(collective.say('home'))] ?? null;
}

type Place = Pick<Data.Location, 'source' | 'line'>;

/** Give the text of a line, "" where it is not known. */
export function lineAt({ source, line }: Place, sources: readonly Data.Source[]): string {
  const found = sources[source];
  return found?.text.split('\n')[line - found.first_line] ?? '';
}

/** Write a place: `line 3`, or `line 7 of layers.py` outside the explained text. */
export function placeText({ source, line }: Place, sources: readonly Data.Source[]): string {
  const name = source ? sources[source]?.name : undefined;
  return fill(name === undefined ? REPORT.line : REPORT.lineIn, { line, source: clean(name ?? '') });
}

function checked(value: Data.Value): Data.Value {
  const dims = value.shape.length;
  if (value.shard_shape.length !== dims || (value.spec && value.spec.length !== dims)) {
    throw wrong(fill(REPORT.otherRank, { name: value.name }));
  }
  return value;
}

type Texts = (text: string, number: number) => string;

/** Give the way to a text by its column and its row. */
function reader(columns: Data.Said['arrays']): Texts {
  const places = new Map(
    Object.entries(columns).map(([name, { at }]) => [name, numbers(at)])
  );
  return (text, number) => columns[text]?.texts[places.get(text)?.[number] ?? 0] ?? '';
}

function spoken(value: Data.Value, number: number, texts: Texts): Value {
  const why = (): string =>
    fill(texts('why', number), {
      name: clean(value.name),
      type: texts('type', number),
      from: clean(value.origins[0]?.name ?? '')
    });
  return { ...value, say: text => (text === 'why' ? why() : texts(text, number)), texts };
}

/** The texts that refer to what the data holds. */
const TOLD: ReadonlySet<Data.CollectiveText> = new Set(['because', 'further', 'made', 'used']);

function collectives(
  read: readonly Data.Collective[],
  table: readonly unknown[],
  texts: Texts
): Collective[] {
  return read.map((one, number) => {
    const groups = table[one.groups as unknown as number];
    if (!Array.isArray(groups)) {
      throw wrong(fill(REPORT.noGroups, { id: one.id }));
    }
    const slots = (): Record<string, string> => ({
      why: clean(one.why.trim()),
      producer: clean(one.producer ?? ''),
      consumer: clean(one.consumer ?? '')
    });
    const say = (text: Data.CollectiveText): string =>
      TOLD.has(text) ? fill(texts(text, number), slots()) : texts(text, number);
    return Object.assign(one, { groups, say });
  });
}

/** Give a part of the data with every field, and so its own parts. */
function filled(item: unknown, kind: string): Fields {
  const { defaults, parts } = SHAPES[kind];
  const read: Fields = { ...defaults, ...record(item, REPORT.aPart) };
  for (const field in parts) {
    read[field] = inside(read[field], parts[field], field);
  }
  return read;
}

function inside(found: unknown, kind: string, field: string): unknown {
  if (found === null || found === undefined) {
    return found;
  }
  if (Array.isArray(found)) {
    return found.map(item => inside(item, kind, field));
  }
  if (kind.startsWith('*')) {
    const named = Object.entries(record(found, field));
    return Object.fromEntries(named.map(([name, item]) => [name, filled(item, kind.slice(1))]));
  }
  return typeof found === 'object' ? filled(found, kind) : found;
}

function record(item: unknown, name: string): Fields {
  if (typeof item !== 'object' || item === null || Array.isArray(item)) {
    throw wrong(fill(REPORT.notObject, { part: name }));
  }
  return item as Fields;
}

function wrong(why: string): Error {
  return new Error(fill(REPORT.notReport, { why }));
}
