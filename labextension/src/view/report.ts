/**
 * A report as `shardnb.report.json` writes it, read into plain objects in which every field has
 * a value. Devices are named by their position in the mesh, row-major over its axes.
 */

export const MIME_TYPE = 'application/vnd.shardnb.report.v1+json';
export const VERSION = 1;

/** The mesh axes that split each dimension, major first; `[]` where a dimension is whole. */
export type Spec = readonly (readonly string[])[];
export type Groups = readonly (readonly number[])[];
export type AskedBy = 'called' | 'requested' | 'inferred';

export interface Axis {
  name: string;
  size: number;
  type: string;
}

export interface Mesh {
  axes: readonly Axis[];
  device_ids: readonly number[];
  target: string;
  platform: string;
  kind: string;
  emulated: boolean;
  coords: readonly (readonly number[])[] | null;
}

/** A line of `Report.sources[source]`, counted from 1. */
export interface Place {
  source: number;
  line: number;
  function: string;
}

export interface Source {
  name: string;
  text: string;
  first_line: number;
  cell_id: string | null;
}

/** One op along which a mesh axis travelled; `number` is Shardy's count of its steps, in time. */
export interface Step {
  op: string;
  direction: string;
  source: string;
  target: string;
  location: Place | null;
  number: number;
}

/** What put a mesh axis on a value: `steps` lead there from the origin, or from value `after`. */
export interface Origin {
  axis: string;
  kind: string;
  name: string;
  location: Place | null;
  steps: readonly Step[] | null;
  after: number | null;
}

/** A mesh axis that an operand has and the result has not, and what stopped it. */
export interface Blocked {
  axis: string;
  value: string;
  reason: string;
  why: string;
}

export interface Value {
  name: string;
  dtype: string;
  shape: readonly number[];
  spec: Spec | null;
  shard_shape: readonly number[];
  unreduced: readonly string[];
  grid: readonly number[] | null;
  blocks: readonly number[] | null;
  requested: Spec | null;
  closed_over: boolean;
  location: Place | null;
  details: string;
  op: string;
  manual: readonly string[];
  propagated: Spec | null;
  origins: readonly Origin[];
  blocked: readonly Blocked[];
}

export interface Fix {
  edit: string;
  collectives: readonly [number, number];
  wire_bytes: readonly [number, number];
  memory_bytes: readonly [number, number];
  location: Place | null;
}

export interface Collective {
  id: number;
  kind: string;
  axes: readonly string[] | null;
  groups: Groups;
  dtype: string;
  shape: readonly number[];
  wire_bytes: number;
  trips: number | null;
  least_trips: number;
  generated: boolean | null;
  asked_by: AskedBy | null;
  reason: string | null;
  why: string;
  detail: string | null;
  full_remat: boolean;
  producer: string | null;
  producer_spec: Spec | null;
  consumer: string | null;
  needed_spec: Spec | null;
  phase: string | null;
  seconds: number | null;
  fixes: readonly Fix[] | null;
  combined_with: readonly number[];
  frames: readonly Place[];
  within: readonly string[];
  op_name: string;
  instruction: string;
  channel: number | null;
  made_as: string | null;
  algorithm: string | null;
  overlap: Overlap | null;
}

export interface Overlap {
  ops: number;
  names: readonly string[];
  cycles: number | null;
}

export interface Finding {
  kind: string;
  message: string;
  location: Place | null;
  wasted_bytes: number | null;
  details: string;
  /** The arrays that it is about, to be drawn. */
  values: readonly Value[];
}

/** A name that an equation binds; `type` has its placement. */
export interface TypedValue {
  name: string;
  type: string;
}

/** An equation of a program with placements in its types; without `primitive`, parameters. */
export interface TypedLine {
  primitive: string;
  binds: readonly TypedValue[];
  operands: readonly string[];
  parameters: string;
  within: readonly string[];
  inserted: boolean;
  location: Place | null;
}

export interface Memory {
  arguments: number;
  outputs: number;
  temporaries: number;
  aliased: number;
  code: number;
}

export interface Run {
  trace_seconds: number | null;
  compile_seconds: number | null;
  explain_seconds: number | null;
  run_seconds: number | null;
}

/** Seconds of a call on a hardware, by formulas; null where a part is not known. */
export interface Cost {
  hardware: string;
  communication_seconds: number;
  compute_seconds: number | null;
  memory_seconds: number | null;
  by_axis: Readonly<Record<string, number>>;
  assumptions: readonly string[];
  assumed: boolean;
  unpriced: number;
  uncounted: number;
}

export interface Report {
  title: string;
  mesh: Mesh;
  inputs: readonly Value[];
  outputs: readonly Value[];
  values: readonly Value[];
  collectives: readonly Collective[];
  findings: readonly Finding[];
  memory: Memory | null;
  cost: Cost | null;
  sources: readonly Source[];
  versions: Readonly<Record<string, string>>;
  notes: readonly string[];
  typed: readonly TypedLine[];
  run: Run;
  texts: Readonly<Record<string, string>>;
  version: number;
}

type Data = Record<string, unknown>;

const AXIS = { type: 'auto' };
const MESH = { target: 'cpu', platform: 'cpu', kind: 'cpu', emulated: false, coords: null };
const PLACE = { function: '' };
const SOURCE = { text: '', first_line: 1, cell_id: null };
const VALUE = {
  unreduced: [],
  grid: null,
  blocks: null,
  requested: null,
  closed_over: false,
  location: null,
  details: '',
  op: '',
  manual: [],
  propagated: null,
  origins: [],
  blocked: []
};
const ORIGIN = { name: '', location: null, steps: [], after: null };
const STEP = { location: null, number: 0 };
const FIX = { location: null };
const COLLECTIVE = {
  trips: 1,
  least_trips: 0,
  generated: false,
  asked_by: null,
  reason: null,
  why: '',
  detail: null,
  full_remat: false,
  producer: null,
  producer_spec: null,
  consumer: null,
  needed_spec: null,
  phase: null,
  seconds: null,
  fixes: null,
  combined_with: [],
  frames: [],
  within: [],
  op_name: '',
  instruction: '',
  channel: null,
  made_as: null,
  algorithm: null,
  overlap: null,
};
const OVERLAP = { ops: 0, names: [], cycles: null };
const FINDING = { location: null, wasted_bytes: null, details: '', values: [] };
const TYPED = { operands: [], parameters: '', within: [], inserted: false, location: null };
const COST = {
  compute_seconds: null,
  memory_seconds: null,
  by_axis: {},
  assumptions: [],
  assumed: false,
  unpriced: 0,
  uncounted: 0
};
const MEMORY = { aliased: 0, code: 0 };
const RUN = { trace_seconds: null, compile_seconds: null, explain_seconds: null, run_seconds: null };

/** Read a report's data; throws an `Error` that says what is wrong with data that is none. */
export function readReport(data: unknown): Report {
  const whole = record(data, 'the data');
  if (typeof whole.version !== 'number') {
    throw new Error('this is no report: it has no version number');
  }
  if (whole.version > VERSION) {
    throw new Error(
      `the report has version ${whole.version}, and this view reads up to ${VERSION}: ` +
        'update shardnb to see it'
    );
  }
  const table = list(whole, 'group_table') as Groups[];
  return {
    title: String(whole.title ?? ''),
    mesh: mesh(record(whole.mesh, 'mesh')),
    inputs: list(whole, 'inputs').map(value),
    outputs: list(whole, 'outputs').map(value),
    values: list(whole, 'values').map(value),
    collectives: list(whole, 'collectives').map(item => collective(item, table)),
    findings: list(whole, 'findings').map(finding),
    memory: whole.memory ? filled<Memory>(whole.memory, MEMORY) : null,
    cost: whole.cost ? filled<Cost>(whole.cost, COST) : null,
    sources: list(whole, 'sources').map(item => filled<Source>(item, SOURCE)),
    versions: (whole.versions ?? {}) as Record<string, string>,
    notes: list(whole, 'notes') as string[],
    typed: list(whole, 'typed').map(typedLine),
    run: filled<Run>(whole.run ?? {}, RUN),
    texts: (whole.texts ?? {}) as Record<string, string>,
    version: whole.version
  };
}

function mesh(data: Data): Mesh {
  const axes = list(data, 'axes').map(axis => filled<Axis>(axis, AXIS));
  const size = axes.reduce((product, axis) => product * axis.size, 1);
  if (axes.length && list(data, 'device_ids').length !== size) {
    throw new Error(`this is no report: its mesh of ${size} places has other devices`);
  }
  return { ...filled<Mesh>(data, MESH), axes };
}

function value(item: unknown): Value {
  const read = filled<Value>(item, VALUE);
  if (read.spec === undefined) {
    read.spec = null;
  }
  const dims = read.shape.length;
  if (read.shard_shape.length !== dims || (read.spec !== null && read.spec.length !== dims)) {
    throw new Error(`this is no report: the array ${read.name} has parts of another rank`);
  }
  const origins = read.origins.map(origin);
  return { ...read, location: place(read.location), origins };
}

function origin(item: unknown): Origin {
  const read = filled<Origin>(item, ORIGIN);
  const steps = read.steps && read.steps.map(step => filled<Step>(step, STEP));
  return { ...read, steps };
}

function collective(item: unknown, table: Groups[]): Collective {
  const read = filled<Collective>(item, COLLECTIVE);
  const groups = table[read.groups as unknown as number];
  if (!Array.isArray(groups)) {
    throw new Error(`this is no report: collective ${read.id} has no groups`);
  }
  const fixes = read.fixes && read.fixes.map(fix => filled<Fix>(fix, FIX));
  const frames = read.frames.map(frame => filled<Place>(frame, PLACE));
  const overlap = read.overlap && filled<Overlap>(read.overlap, OVERLAP);
  return { ...read, axes: read.axes ?? null, groups, fixes, frames, overlap };
}

function finding(item: unknown): Finding {
  const read = filled<Finding>(item, FINDING);
  return { ...read, location: place(read.location), values: read.values.map(value) };
}

function typedLine(item: unknown): TypedLine {
  const read = filled<TypedLine>(item, TYPED);
  return { ...read, location: place(read.location) };
}

function place(item: unknown): Place | null {
  return item ? filled<Place>(item, PLACE) : null;
}

function filled<T>(item: unknown, defaults: object): T {
  return { ...defaults, ...record(item, 'a part of it') } as T;
}

function record(item: unknown, name: string): Data {
  if (typeof item !== 'object' || item === null || Array.isArray(item)) {
    throw new Error(`this is no report: ${name} is not an object`);
  }
  return item as Data;
}

function list(data: Data, name: string): unknown[] {
  const items = data[name] ?? [];
  if (!Array.isArray(items)) {
    throw new Error(`this is no report: ${name} is not a list`);
  }
  return items;
}
