// Generated from shardnb by labextension/generate.py. Do not edit.

export type Kind = "all-reduce" | "all-gather" | "reduce-scatter" | "all-to-all" | "ragged-all-to-all" | "collective-permute" | "collective-broadcast";
export type Asker = "called" | "requested" | "inferred" | "autodiff" | "made by the partitioner" | "asker unknown";
export type Reason = "partial-sum" | "conflict" | "output-spec" | "whole-axis" | "reshape" | "uneven" | "halo" | "unknown";
export type Phase = "forward" | "backward" | "rematerialised";
export type Role = "gradient" | "gradient-scatter" | "gradient-reshard" | "parameter-gather" | "parameter-update" | "optimizer-state" | "tensor-parallel-sum" | "softmax" | "gradient-norm" | "loss" | "requested-reshard" | "called";
export type FindingKind = "replicated" | "lost sharding" | "state unlike parameters" | "returned otherwise" | "repeated gather" | "activation gather" | "silent replication" | "moved" | "donation" | "full rematerialisation" | "no partitioned form" | "uneven" | "output spec" | "loop condition" | "accumulation" | "loop" | "annotation" | "out-of-memory";
export type OriginKind = "input" | "constraint" | "output" | "shard_map" | "type" | "unknown";
export type Direction = "forward" | "backward" | "sideways";
export type Stop = "reduction" | "whole-axis" | "conflict" | "constraint" | "reshape";
export type AxisType = "auto" | "explicit" | "manual";
export type ArrayText = "type" | "held" | "copies" | "remarks" | "why";
export type CollectiveText = "name" | "array" | "size" | "trips" | "cause" | "grouping" | "at" | "home" | "measured" | "because" | "further" | "made" | "used";
export type AskedBy = "called" | "requested" | "inferred";
export type Ring = "all but its own" | "a result for each other" | "there and back" | "all";
export type Tone = "neutral" | "amber" | "red";

export interface Axis {
  name: string;
  size: number;
  type: AxisType;
}

export interface Badge {
  ids: string;
  head: string;
  sends: string;
  mark: string;
  cause: string;
  tone: Tone;
}

export interface Blocked {
  axis: string;
  value: string;
  reason: Stop;
  why: string;
}

export interface Change {
  name: string;
  before: string | null;
  after: string | null;
}

export interface Collective {
  id: number;
  kind: Kind;
  axes: readonly string[] | null;
  groups: readonly (readonly number[])[];
  dtype: string;
  shape: readonly number[];
  wire_bytes: number;
  trips: number | null;
  generated: boolean | null;
  asked_by: AskedBy | null;
  by_autodiff: boolean;
  reason: Reason | null;
  why: string;
  detail: string | null;
  full_remat: boolean;
  producer: string | null;
  producer_spec: readonly (readonly string[])[] | null;
  producer_shape: readonly number[] | null;
  consumer: string | null;
  needed_spec: readonly (readonly string[])[] | null;
  phase: Phase | null;
  seconds: number | null;
  fixes: readonly Fix[] | null;
  combined_with: readonly number[];
  frames: readonly Location[];
  within: readonly ("conditional" | "while" | "while condition")[];
  branches: readonly (readonly [string, number])[];
  op_name: string;
  module: string;
  instruction: string;
  channel: number | null;
  made_as: Kind | null;
  algorithm: string | null;
  overlap: Overlap | null;
  least_trips: number;
  role: Role | null;
  role_of: string;
  on_accelerators: OnAccelerators | null;
  measured: Measured | null;
}

export interface Column {
  texts: readonly string[];
  at: string;
}

export interface Cost {
  hardware: string;
  source: string;
  communication_seconds: number;
  compute_seconds: number | null;
  memory_seconds: number | null;
  by_axis: Readonly<Record<string, number>>;
  by_phase: Readonly<Record<string, number>>;
  links: Readonly<Record<string, string>>;
  peak_flops: number | null;
  memory_bandwidth: number | null;
  assumptions: readonly string[];
  assumed: boolean;
  unpriced: number;
  uncounted: number;
  memory_size: number | null;
  memory_least_seconds: number | null;
  crossing: Readonly<Record<string, readonly [number, number]>>;
}

export interface DeviceTimeline {
  name: string;
  position: number | null;
  computing: readonly number[];
  communicating: readonly number[];
  ids: readonly number[];
}

export interface Diff {
  changes: readonly Change[];
  kinds: readonly KindChange[];
  wire_bytes: readonly [number, number];
  memory: readonly [number, number] | null;
}

export interface Finding {
  kind: FindingKind;
  message: string;
  location: Location | null;
  wasted_bytes: number | null;
  details: string;
  values: readonly Value[];
  wire_bytes: number | null;
  collectives: readonly number[];
  locations: readonly Location[];
  subject: string;
  edits: readonly ProposedEdit[];
  fixes: readonly Fix[] | null;
}

export interface Fix {
  edit: string;
  collectives: readonly [number, number];
  wire_bytes: readonly [number, number];
  memory_bytes: readonly [number, number];
  location: Location | null;
}

export interface Held {
  name: string;
  use: "argument" | "output" | "temporary";
  bytes: number;
  dtype: string;
  shape: readonly number[];
  count: number;
  location: Location | null;
  phase: Phase | null;
  reused: boolean;
  copied: boolean;
  stacked: boolean;
  sliced: boolean;
  collective: string;
}

export interface KindChange {
  kind: Kind;
  number: number;
  wire_bytes: number;
  at_least: boolean;
}

export interface LedLine {
  line: number;
  badges: readonly Badge[];
  marks: readonly Badge[];
}

export interface Location {
  source: number;
  line: number;
  function: string;
}

export interface Measured {
  seconds: number;
  waiting: number | null;
  hidden: number;
  executions: number;
  at_most: boolean;
}

export interface Memory {
  arguments: number;
  outputs: number;
  temporaries: number;
  aliased: number;
  code: number;
  constants: number;
  host: number;
  peak: Peak | null;
}

export interface Mesh {
  axes: readonly Axis[];
  device_ids: readonly number[];
  target: string;
  platform: string;
  kind: string;
  emulated: boolean;
  coords: readonly (readonly number[])[] | null;
  cores: readonly number[] | null;
  slices: readonly number[] | null;
  hosts: readonly number[] | null;
  domains: readonly number[] | null;
}

export interface NewSpec {
  of: "argument" | "input" | "result" | "value";
  name: string;
  spec: readonly (readonly string[])[];
}

export interface OnAccelerators {
  kind: Kind;
  dtype: string;
  shape: readonly number[];
  wire_bytes: number;
}

export interface Origin {
  axis: string;
  kind: OriginKind;
  name: string;
  location: Location | null;
  steps: readonly Step[] | null;
  after: number | null;
}

export interface Outcome {
  option: "check" | "forbid";
  passed: boolean | null;
  words: readonly string[];
}

export interface Overlap {
  ops: number;
  names: readonly string[];
  cycles: number | null;
}

export interface Peak {
  held: readonly Held[];
  others: number;
  unused: number;
  location: Location | null;
  phase: Phase | null;
}

export interface Profile {
  runs: number;
  devices: number;
  step_seconds: number;
  communication_seconds: number;
  exposed_seconds: number;
  hosts: number;
  platform: string;
  kind: string;
  hardware: string;
  unmeasured: number;
  timeline: readonly DeviceTimeline[];
}

export interface ProposedEdit {
  text: string;
  specs: readonly NewSpec[];
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
  sources: readonly Source[];
  versions: Readonly<Record<string, string>>;
  notes: readonly string[];
  typed: readonly TypedLine[];
  work: Work | null;
  cost: Cost | null;
  partitioned: boolean;
  complete: boolean;
  outcomes: readonly Outcome[];
  profile: Profile | null;
  since: Diff | null;
  run: Run;
  texts: Readonly<Record<string, string>>;
  version: number;
}

export interface Run {
  trace_seconds: number | null;
  compile_seconds: number | null;
  explain_seconds: number | null;
  run_seconds: number | null;
}

export interface Said {
  header: readonly string[];
  verdict: string;
  about: string;
  memory: readonly string[];
  inputs: SaidArrays;
  outputs: SaidArrays;
  values: SaidArrays;
  peak: SaidPeak | null;
  changed: string;
  outcomes: readonly (readonly [string, boolean | null])[];
  points: readonly SaidPoint[];
  rows: readonly SaidRow[];
  measured: string;
  timeline: string;
  cost: string;
  assumptions: readonly string[];
  lines: readonly (readonly LedLine[])[];
  arrays: Readonly<Record<string, Column>>;
  arrivals: Column | null;
  collectives: Readonly<Record<string, Column>>;
}

export interface SaidArrays {
  summary: string;
  names: readonly string[];
  sizes: readonly string[];
  members: readonly string[];
}

export interface SaidEdit {
  code: string;
  effect: string;
  compiled: boolean;
}

export interface SaidPeak {
  when: string;
  rows: readonly (readonly [string, string, string, string])[];
  rest: string;
}

export interface SaidPoint {
  head: string;
  cost: string;
  cause: string;
  tone: Tone;
  ids: string;
  edits: readonly SaidEdit[];
  finding: number;
}

export interface SaidRow {
  ids: string;
  name: string;
  what: string;
  times: string;
  sends: string;
  cause: string;
  tone: Tone;
  measured: string;
  seconds: number;
  bytes: number;
}

export interface Source {
  name: string;
  text: string;
  first_line: number;
  cell_id: string | null;
}

export interface Step {
  op: string;
  direction: Direction;
  source: string;
  target: string;
  location: Location | null;
  number: number;
}

export interface TypedLine {
  primitive: string;
  binds: readonly TypedValue[];
  operands: readonly string[];
  parameters: string;
  within: readonly string[];
  inserted: boolean;
  location: Location | null;
}

export interface TypedValue {
  name: string;
  type: string;
  dtype: string;
  shape: readonly number[];
  spec: readonly (readonly string[])[];
  varying: readonly string[] | null;
  unreduced: readonly string[];
  reduced: readonly string[];
}

export interface Value {
  name: string;
  dtype: string;
  shape: readonly number[];
  spec: readonly (readonly string[])[] | null;
  shard_shape: readonly number[];
  unreduced: readonly string[];
  grid: readonly number[] | null;
  blocks: readonly number[] | null;
  requested: readonly (readonly string[])[] | null;
  closed_over: boolean;
  location: Location | null;
  details: string;
  op: string;
  manual: readonly string[];
  varying: readonly string[] | null;
  propagated: readonly (readonly string[])[] | null;
  origins: readonly Origin[];
  blocked: readonly Blocked[];
  memory: string;
}

export interface Work {
  flops: number;
  accessed_bytes: number;
  uncounted: number;
  least_bytes: number;
}
