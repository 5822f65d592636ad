/** The check of a shard_map: its specs, the body with what varies after each line, the verdict. */

import { REPORT, WIDGETS } from '../generated/vocabulary';
import { copier } from '../view/points';
import { button, h, heading, mono } from '../view/dom';
import { Source, lineAt, readReport } from '../view/report';
import { clean, cleanLines, fill } from '../view/slots';
import { View, mountReport } from '../view/view';
import { Choice, choices } from './choices';
import { Axis, Model, copyOf } from './model';
import { dimensions } from './picker';

interface Shard {
  name: string;
  spec: string;
  shape: number[] | null;
  local_shape: number[] | null;
  dtype: string;
  varying: string[] | null;
}

interface Bind {
  name: string;
  type: string;
  varying: string[] | null;
}

interface Line {
  primitive: string;
  binds: Bind[];
  operands: string[];
  within: string[];
  inserted: boolean;
  location: { source: number; line: number } | null;
}

interface Missing {
  why: string;
  fix: string;
  other_fix: string;
}

interface Checked {
  number: number;
  failed?: string;
  accepted: boolean;
  /** The mesh, the verdict in a word and in a sentence, the specs as they are chosen. */
  said: { mesh: string; verdict: string; sentence: string; inputs: string[]; outputs: string[] };
  error: string;
  message: string;
  steps: { name: string; passed: boolean | null; message: string }[];
  inputs: Shard[];
  outputs: Shard[];
  lines: Line[];
  missing: Missing[];
  problems: { message: string; fix: string }[];
  region: string;
  report: string | null;
  sources: Source[];
}

interface Pick {
  name: string;
  shape: number[];
  spec: string[][];
}

interface Picks {
  axes: Axis[];
  inputs: Pick[];
  outputs: Pick[];
}

export function check(model: Model, root: HTMLElement): () => void {
  const view = new Check(model, root);
  return () => view.dispose();
}

class Check {
  constructor(
    private readonly model: Model,
    root: HTMLElement
  ) {
    this._picks = copyOf(model.get('pick')) as Picks;
    root.append(this._head, this._pickers(), this._body);
    model.on('change:data', this._came);
    this._draw();
  }

  dispose(): void {
    this.model.off('change:data', this._came);
    this._view?.dispose();
  }

  private readonly _came = (): void => this._draw();

  private _pickers(): HTMLElement {
    const { axes, inputs, outputs } = this._picks;
    if (!inputs?.length) {
      return h('div');
    }
    const compile = button(WIDGETS.compile, () => this._ask('compile'));
    const rows = (part: string, picks: Pick[]): HTMLElement[] =>
      picks.map((pick, i) => this._row(pick, axes, `${part}${i}`));
    return h(
      'div',
      { class: 'picker even' },
      h('div', { class: 'inputs' }, heading('in_specs'), ...rows('in', inputs)),
      h('div', { class: 'inputs' }, heading('out_specs'), ...rows('out', outputs ?? []), compile)
    );
  }

  private _row(pick: Pick, axes: Axis[], key: string): HTMLElement {
    const spec = h('span', { class: 'faint' });
    this._specs.set(key, spec);
    const dims = dimensions(pick.name, key, pick.shape, pick.spec, {
      choices: size => (key.startsWith('out') ? joined(axes, size) : choices(axes, size)),
      choose: (dim, chosen) => {
        pick.spec[dim] = chosen;
        this._ask('check');
      }
    });
    return h(
      'div',
      { class: 'input' },
      h('div', { class: 'what' }, h('b', null, clean(pick.name)), ' ', spec),
      h('div', { class: 'dims' }, ...dims)
    );
  }

  private _ask(kind: string): void {
    this._number += 1;
    const specs = (picks: Pick[] = []): string[][][] => picks.map(pick => pick.spec);
    const { inputs, outputs } = this._picks;
    this.model.send({ kind, number: this._number, inputs: specs(inputs), outputs: specs(outputs) });
    this._body.toggleAttribute('data-stale', true);
  }

  private _draw(): void {
    const found = this.model.get('data') as Checked;
    if (found.number < this._number) {
      return;
    }
    this._body.toggleAttribute('data-stale', false);
    const { said } = found;
    const kind = found.accepted ? 'accepted' : 'refused';
    this._head.replaceChildren(
      h('b', null, said.mesh),
      h('span', { class: 'chip', 'data-kind': kind }, said.verdict),
      h('span', { role: 'status' }, clean(said.sentence))
    );
    said.inputs.forEach((text, i) => this._specs.get(`in${i}`)?.replaceChildren(text));
    said.outputs.forEach((text, i) => this._specs.get(`out${i}`)?.replaceChildren(text));
    this._body.replaceChildren(
      ...(found.failed ? [h('div', { class: 'error', role: 'alert' }, clean(found.failed))] : []),
      ...missing(found),
      shards(found),
      body(found),
      steps(found),
      ...message(found),
      ...this._compiled(found)
    );
  }

  /** The compiled program of an accepted one. */
  private _compiled(found: Checked): HTMLElement[] {
    this._view?.dispose();
    this._view = null;
    if (!found.report) {
      return [];
    }
    const report = readReport(JSON.parse(found.report));
    const place = h('div');
    const open = (): void => {
      this._view ??= mountReport(place, report);
    };
    const title = h('summary', null, WIDGETS.program);
    const region = found.region && h('p', null, mono(clean(found.region)));
    return [h('details', { on: { toggle: open } }, title, region || null, place)];
  }

  private readonly _picks: Picks;
  private readonly _head = h('div', { class: 'header' });
  private readonly _body = h('div', { class: 'sent' });
  private readonly _specs = new Map<string, HTMLElement>();
  private _view: View | null = null;
  private _number = 0;
}

/** The ways to join what devices hold along a dimension of a result. */
function joined(axes: readonly Axis[], size: number): Choice[] {
  const parts = (names: string[]): number =>
    names.reduce((all, name) => all * (axes.find(axis => axis.name === name)?.size ?? 1), 1);
  return choices(axes, 0).map(one => ({
    axes: one.axes,
    label: one.axes.length
      ? fill(WIDGETS.inAll, { axes: one.axes.join(', '), size: size * parts(one.axes) })
      : WIDGETS.asItIs
  }));
}

function missing(found: Checked): HTMLElement[] {
  const parts = [...found.missing, ...found.problems.map(one => ({ why: one.message, fix: one.fix, other_fix: '' }))];
  return parts.map(({ why, fix, other_fix: other }) =>
    h(
      'div',
      { class: 'fix' },
      h('div', null, clean(why)),
      ...[fix, other].filter(Boolean).map((text, i) =>
        h('div', null, i ? WIDGETS.or : WIDGETS.write, mono(clean(text)), ' ', copier(text))
      )
    )
  );
}

const COLUMNS = [
  WIDGETS.shardArray,
  WIDGETS.shardSpec,
  WIDGETS.shardWhole,
  WIDGETS.shardLocal,
  WIDGETS.shardVaries
];

function shards(found: Checked): HTMLElement {
  const cells = (shard: Shard, role: string): HTMLElement =>
    row('td', [role, clean(shard.name), clean(shard.spec), dims(shard.shape), dims(shard.local_shape), varies(shard.varying)]);
  return h(
    'div',
    { class: 'pins' },
    heading(WIDGETS.shards),
    h(
      'table',
      { class: 'wholes' },
      h('thead', null, row('th', ['', ...COLUMNS])),
      h(
        'tbody',
        null,
        ...found.inputs.map(one => cells(one, WIDGETS.in)),
        ...found.outputs.map(one => cells(one, WIDGETS.out))
      )
    )
  );
}

function row(tag: 'td' | 'th', texts: readonly string[]): HTMLElement {
  return h('tr', null, ...texts.map(text => h(tag, null, text)));
}

function dims(shape: readonly number[] | null): string {
  return shape ? `[${shape.join(', ')}]` : REPORT.notKnown;
}

function varies(axes: readonly string[] | null): string {
  if (!axes) {
    return WIDGETS.notTracked;
  }
  return axes.length ? clean(axes.join(', ')) : WIDGETS.same;
}

/** The body's lines, each with what it binds and along which axes that may differ. */
function body({ lines, sources }: Checked): HTMLElement {
  let last = '';
  const items: HTMLElement[] = [];
  for (const line of lines) {
    const place = line.location;
    const key = place ? `${place.source}:${place.line}` : '';
    if (place && key !== last) {
      last = key;
      const number = h('span', { class: 'number', 'aria-hidden': 'true' }, String(place.line));
      const text = h('b', null, clean(lineAt(place, sources)));
      items.push(h('li', { class: 'line' }, number, h('code', { class: 'text' }, text)));
    }
    items.push(...line.binds.map(bind => bound(line, bind)));
  }
  return h('div', { hidden: !items.length }, heading(WIDGETS.lines), h('ol', { class: 'lines' }, ...items));
}

function bound(line: Line, bind: Bind): HTMLElement {
  const call = line.primitive ? ` = ${line.primitive} ${line.operands.join(' ')}` : '';
  const note = line.inserted ? WIDGETS.insertedNote : '';
  const kind = !bind.varying ? 'open' : bind.varying.length ? 'varies' : 'same';
  const type = bind.type.replace(/\{.*\}$/, '');
  return h(
    'li',
    { class: 'line' },
    h('span', { class: 'number' }, ''),
    h('code', { class: 'text' }, clean(`    ${bind.name}: ${type}${call}${note}`)),
    h('span', { class: 'chip', 'data-kind': kind }, varies(bind.varying))
  );
}

function steps(found: Checked): HTMLElement {
  const items = found.steps.map(({ name, passed, message }) => {
    const [kind, mark] =
      passed === null
        ? ['open', message ? WIDGETS.notChecked : WIDGETS.notReached]
        : passed
          ? ['accepted', WIDGETS.ok]
          : ['refused', WIDGETS.no];
    const chip = h('span', { class: 'chip', 'data-kind': kind }, mark);
    const text = h('span', null, clean(name) + (message ? `: ${clean(message)}` : ''));
    return h('div', { class: 'step' }, chip, text);
  });
  return h('div', null, heading(WIDGETS.steps), ...items);
}

function message({ message: text, error }: Checked): HTMLElement[] {
  const title = h('summary', null, fill(WIDGETS.ownWords, { error: clean(error) }));
  return text ? [h('details', null, title, h('pre', { class: 'raw' }, cleanLines(text)))] : [];
}
