/** The kernel's side of a widget, as anywidget hands it over. */

export interface Model {
  get: (name: string) => any;
  send: (content: object) => void;
  on: (event: string, call: () => void) => void;
  off: (event: string, call: () => void) => void;
}

/** A widget's view; gives the way to end it. */
export type Draw = (model: Model, root: HTMLElement) => () => void;

/** An axis of a mesh whose types are chosen by name. */
export interface Axis {
  name: string;
  size: number;
  type: string;
}

/** A placement to choose: the axes of each dimension. */
export type Specs = Record<string, string[][]>;

export interface Plan {
  axes: Axis[];
  specs: Specs;
}

/** Arrays of one pattern; `alike` are those to which its spec can be applied. */
export interface Input {
  pattern: string;
  names: string[];
  shape: number[];
  dtype: string;
  alike: string[];
}

export interface Subject {
  title: string;
  types: string[];
  target: string;
  inputs: Input[];
  /** Whether any array belongs to a parameter, as an optimizer's moments do. */
  state: boolean;
}

/** How specs are written, by the name of the array. */
export type Written = Readonly<Record<string, string>>;

export function copyOf<T>(data: T): T {
  return JSON.parse(JSON.stringify(data)) as T;
}
