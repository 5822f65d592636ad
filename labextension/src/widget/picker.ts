/** The controls of a plan: the axes of the mesh, and a spec for each input. */

import { REPORT, WIDGETS } from '../generated/vocabulary';
import { button, h, heading, mono } from '../view/dom';
import { clean, fill, numbered } from '../view/slots';
import { Choice, choices, devices, extended, renamed, shapes, without } from './choices';
import { Input, Plan, Subject, Written, copyOf } from './model';

const MOST_AXES = 5;
const MOST_SHAPES = 120;
const SHOWN = 12;
const NAMED = 8;

/** Tells of every change of a plan; each control is reached by the keys and says what it is. */
export class Picker {
  readonly element: HTMLElement;

  constructor(
    private readonly subject: Subject,
    private _plan: Plan,
    private readonly change: (plan: Plan) => void,
    private readonly alike: (name: string) => void,
    above: HTMLElement
  ) {
    this.element = h('div', { class: 'picker' }, above, this._axes, this._inputs);
    this._draw();
  }

  get plan(): Plan {
    return this._plan;
  }

  /** Show how the plan's specs are written. */
  tell(written: Written): void {
    this._written = written;
    this._specs.forEach(([name, said]) => (said.textContent = written[name] ?? ''));
  }

  /** Show another plan, without telling of it. */
  show(plan: Plan): void {
    this._plan = copyOf(plan);
    this._draw();
  }

  private _set(plan: Plan): void {
    this._plan = plan;
    this._draw();
    this.change(plan);
  }

  /** Draw all controls; the one that had the focus has it again. */
  private _draw(): void {
    const key = document.activeElement?.getAttribute('data-key');
    const focused = this.element.contains(document.activeElement) ? key : null;
    const { inputs } = this.subject;
    this._specs = [];
    this._applies = [];
    const rows = inputs.flatMap(input => this._bySpec(input)).map((input, i) => this._input(input, i));
    const rest = rows.slice(SHOWN);
    const more = h(
      'details',
      { hidden: !rest.length, open: this._open },
      h('summary', null, numbered(WIDGETS.moreInputs, rest.length)),
      ...rest
    );
    more.addEventListener('toggle', () => (this._open = more.open));
    this._axes.replaceChildren(heading(REPORT.mesh), ...this._mesh());
    this._inputs.replaceChildren(heading(WIDGETS.inputs), ...rows.slice(0, SHOWN), more);
    if (focused) {
      const found = [...this.element.querySelectorAll<HTMLElement>('[data-key]')];
      found.find(one => one.getAttribute('data-key') === focused)?.focus();
    }
  }

  private _mesh(): HTMLElement[] {
    const { axes } = this._plan;
    const add = button(WIDGETS.addAxis, () => this._set(extended(this._plan)), {
      'data-key': 'add',
      disabled: axes.length >= MOST_AXES
    });
    return [
      ...axes.map((_, i) => this._axis(i)),
      h(
        'div',
        { class: 'axis' },
        h('span', null, numbered(WIDGETS.devices, devices(axes))),
        this._shapes(),
        add
      )
    ];
  }

  private _axis(index: number): HTMLElement {
    const now = this._plan.axes[index];
    const axis = clean(now.name);
    const name = h('input', {
      type: 'text',
      class: 'field name',
      value: now.name,
      'data-key': `name${index}`,
      'aria-label': fill(WIDGETS.axisName, { number: index + 1 }),
      on: entered(() => {
        const written = name.value.trim();
        if (written !== this._plan.axes[index]?.name) {
          this._set(renamed(this._plan, index, written));
        }
      })
    });
    const size = h('input', {
      type: 'number',
      class: 'field size',
      min: 1,
      value: now.size,
      'data-key': `size${index}`,
      'aria-label': fill(WIDGETS.axisSize, { axis }),
      on: entered(() => {
        const written = Math.max(1, Math.floor(Number(size.value)) || 1);
        if (written !== this._plan.axes[index]?.size) {
          this._edit(plan => plan.axes[index] && (plan.axes[index].size = written));
        }
      })
    });
    const { types } = this.subject;
    const label = fill(WIDGETS.axisType, { axis });
    const type = select(types, now.type, `type${index}`, label, chosen =>
      this._edit(plan => (plan.axes[index].type = types[chosen]))
    );
    const gone = button('\u00d7', () => this._set(without(this._plan, index)), {
      'data-key': `gone${index}`,
      disabled: this._plan.axes.length < 2,
      'aria-label': fill(WIDGETS.axisRemove, { axis })
    });
    return h('div', { class: 'axis' }, name, ' = ', size, type, gone);
  }

  private _edit(edit: (plan: Plan) => void): void {
    const plan = copyOf(this._plan);
    edit(plan);
    this._set(plan);
  }

  /** The ways to lay the same devices out. */
  private _shapes(): HTMLElement | null {
    const { axes } = this._plan;
    const found = shapes(devices(axes), axes.length).slice(0, MOST_SHAPES);
    if (found.length < 2) {
      return null;
    }
    const texts = found.map(sizes => sizes.join(' x '));
    const now = axes.map(axis => axis.size).join(' x ');
    return select(texts, now, 'shape', WIDGETS.meshShape, chosen =>
      this._edit(plan => plan.axes.forEach((axis, i) => (axis.size = found[chosen][i])))
    );
  }

  /** Arrays of one pattern are picked together while they have the same spec. */
  private _bySpec(input: Input): Input[] {
    const groups = new Map<string, string[]>();
    for (const name of input.names) {
      const spec = JSON.stringify(this._plan.specs[name]);
      groups.set(spec, [...(groups.get(spec) ?? []), name]);
    }
    return [...groups.values()].map(names => ({ ...input, names }));
  }

  private _input(input: Input, number: number): HTMLElement {
    const { names, pattern } = input;
    const label = names.length > 1 ? fill(WIDGETS.family, { pattern, number: names.length }) : names[0];
    const spec = this._plan.specs[names[0]] ?? input.shape.map(() => []);
    const said = h('span', { class: 'faint' }, this._written[names[0]] ?? '');
    this._specs.push([names[0], said]);
    const dims = dimensions(label, `spec${number}`, input.shape, spec, {
      choices: size => choices(this._plan.axes, size),
      choose: (dim, axes) => this._place(input, dim, axes)
    });
    const type = mono(clean(`${input.dtype}[${input.shape.join(', ')}]`));
    const scalar = dims.length ? null : h('span', { class: 'faint' }, WIDGETS.scalar);
    return h(
      'div',
      { class: 'input' },
      h('div', { class: 'what' }, h('b', null, clean(label)), ' ', type, ' ', said, ' ', this._alike(input)),
      h('div', { class: 'dims' }, ...dims, scalar)
    );
  }

  /** A button for the arrays that are alike, while any of them has another spec. */
  private _alike({ names, alike }: Input): HTMLElement {
    const { specs } = this._plan;
    const others = alike.filter(name => !names.includes(name) && specs[name]);
    const apply = button('', () => this.alike(names[0]), { class: 'small' });
    const draw = (): void => {
      const spec = JSON.stringify(this._plan.specs[names[0]]);
      const differing = others.filter(name => JSON.stringify(this._plan.specs[name]) !== spec);
      apply.hidden = !differing.length;
      apply.textContent = numbered(WIDGETS.applyAlike, differing.length);
      apply.title = differing.slice(0, NAMED).join(', ');
    };
    this._applies.push(draw);
    draw();
    return apply;
  }

  /** Change a spec; the controls stay as they are, since what there is to choose does not change. */
  private _place(input: Input, dim: number, axes: string[]): void {
    this._plan = copyOf(this._plan);
    for (const name of input.names) {
      this._plan.specs[name][dim] = axes;
    }
    this._applies.forEach(draw => draw());
    this.change(this._plan);
  }

  private readonly _axes = h('div', { class: 'axes' });
  private readonly _inputs = h('div', { class: 'inputs' });
  private _written: Written = {};
  private _specs: [string, HTMLElement][] = [];
  private _applies: (() => void)[] = [];
  private _open = false;
}

/** What there is to choose for a dimension of so many elements, and what hears of a choice. */
interface Choosing {
  choices: (size: number) => Choice[];
  choose: (dim: number, axes: string[]) => void;
}

/** For each dimension of an array a list of the axes that can split it. */
export function dimensions(
  label: string,
  key: string,
  shape: readonly number[],
  spec: readonly (readonly string[])[],
  { choices, choose }: Choosing
): HTMLElement[] {
  return shape.map((size, dim) => {
    const found = choices(size);
    const now = found.find(one => JSON.stringify(one.axes) === JSON.stringify(spec[dim]));
    const name = fill(WIDGETS.dimension, { name: clean(label), dim, size });
    const labels = found.map(one => one.label);
    const list = select(labels, now?.label ?? '', `${key}:${dim}`, name, chosen =>
      choose(dim, found[chosen].axes)
    );
    const caption = h('span', { class: 'faint' }, fill(WIDGETS.dim, { dim, size }));
    return h('label', { class: 'dim' }, caption, ' ', list);
  });
}

/** Hear of a field's text when it is left or entered: notebooks keep the Enter key to themselves. */
function entered(call: () => void): Record<string, (event: KeyboardEvent) => void> {
  const keydown = (event: KeyboardEvent): void => {
    if (event.key === 'Enter') {
      event.preventDefault();
      call();
    }
  };
  return { change: call, keydown };
}

/** A list to choose from; `call` hears the number of the option. */
export function select(
  options: readonly string[],
  now: string,
  key: string,
  name: string,
  call: (chosen: number) => void
): HTMLSelectElement {
  const list = h(
    'select',
    { 'data-key': key, 'aria-label': name, on: { change: () => call(list.selectedIndex) } },
    ...options.map(option => h('option', { selected: option === now }, option))
  );
  return list;
}
