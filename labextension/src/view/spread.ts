/** The arrays inside the program, and a slider over the steps by which placements reached them. */

import { REPORT } from '../generated/vocabulary';
import { Card, follow, relatedTo } from './arrays';
import { button, h, mono, slider } from './dom';
import { gridOf } from './layout';
import { Report, Step, Value, inState, numbers, placeText } from './report';
import { clean, fill } from './slots';
import { Store } from './store';

/** A step of Shardy's in time: the axis that travels, and along what. */
interface Moment {
  axis: string;
  step: Step;
}

/** A row of equal arrays, and the collectives that have to do with them. */
interface Row {
  element: HTMLElement;
  type: HTMLElement;
  members: readonly number[];
  related: readonly number[];
}

export class Spread {
  readonly element: HTMLElement;

  constructor(
    private readonly report: Report,
    private readonly store: Store
  ) {
    this._moments = moments(report);
    this._chosen = numbers(report.said.values.members[0])[0];
    this._now = this._moments.length;
    this._slider = slider(this._now, REPORT.spread, step => this._go(step));
    const by = (text: string, name: string, steps: number): HTMLElement =>
      button(text, () => this._go(this._now + steps), { 'aria-label': name });
    const stepper = h(
      'div',
      { class: 'stepper' },
      by('\u2190', REPORT.back, -1),
      this._slider,
      by('\u2192', REPORT.on, 1),
      this._label
    );
    const { members, names, sizes } = report.said.values;
    const rows = members.map((text, i) => this._row(numbers(text), names[i], sizes[i]));
    this.element = h(
      'div',
      { class: 'arrays' },
      this._now > 0 && stepper,
      h('div', { class: 'main spread' }, h('div', { class: 'values' }, ...rows), this._stage)
    );
    follow('values', this._rows, store, (row, out) => (row.hidden = out));
    this._go(this._now);
  }

  private _row(members: readonly number[], name: string, size: string): HTMLElement {
    const index = members[0];
    const { location } = this.report.values[index];
    const type = mono('');
    const where = location ? placeText(location, this.report.sources) : '';
    const known = location ? fill(REPORT.line, { line: location.line }) : '';
    const values = members.map(at => this.report.values[at]);
    const related = relatedTo(values, this.report, true);
    const pick = (): void => {
      this._choose(index);
      this.store.pick('values', related, null);
    };
    const row = button('', pick, { class: 'value' });
    // Some names say their line already.
    const caption = [name.includes(known) ? '' : where, size].filter(Boolean).join(', ');
    row.append(h('b', null, name), type, h('span', { class: 'faint' }, caption));
    this._rows.push({ element: row, type, members, related });
    return row;
  }

  /** Show the placements as they were after so many steps. */
  private _go(now: number): void {
    const all = this._moments.length;
    this._now = Math.max(0, Math.min(all, now));
    this._slider.value = String(this._now);
    const last = this._moments[this._now - 1];
    const said = last && momentText(last, this.report);
    this._label.textContent = said
      ? fill(REPORT.step, { step: this._now, all, said })
      : REPORT.firstStep;
    this._rows.forEach(({ element, type, members }) => {
      type.textContent = this._valueNow(members[0])?.say('type') ?? REPORT.notKnownWhen;
      const reached = members.some(at => this.report.values[at].name === last?.step.target);
      element.toggleAttribute('data-marked', reached);
    });
    this._draw();
  }

  /** Give a value at the present step; after the last one, as the compiled program has it. */
  private _valueNow(index: number): Value | null {
    const last = this._now === this._moments.length;
    const step = this._moments[this._now - 1]?.step.number ?? 0;
    return valueAt(this.report, index, last ? Infinity : step);
  }

  private _choose(index: number): void {
    this._chosen = index;
    this._draw();
    this.store.set({ value: this._valueNow(index) });
  }

  private _draw(): void {
    const value = this._valueNow(this._chosen);
    const why = h('p', { class: 'why' }, this.report.values[this._chosen]?.say('why') ?? '');
    this._card?.dispose();
    this._card = value && new Card(value, this.report, this.store);
    this._stage.replaceChildren(...(this._card ? [this._card.element, why] : [why]));
    this._rows.forEach(({ element, members }) => {
      element.setAttribute('aria-pressed', String(members[0] === this._chosen));
    });
  }

  private readonly _moments: Moment[];
  private readonly _slider: HTMLInputElement;
  private readonly _label = h('span', { class: 'caption', 'aria-live': 'polite' });
  private readonly _stage = h('div', { class: 'stage' });
  private readonly _rows: Row[] = [];
  private _card: Card | null = null;
  private _now: number;
  private _chosen: number;
}

/** Give all known steps, in the order in which they were made. */
function moments(report: Report): Moment[] {
  const found = new Map<string, Moment>();
  for (const { axis, steps } of report.values.flatMap(value => value.origins)) {
    for (const step of steps ?? []) {
      found.set(JSON.stringify([axis, step.number, step.source, step.target]), { axis, step });
    }
  }
  return [...found.values()].sort((a, b) => a.step.number - b.step.number);
}

/** Say a step: `the split over data goes forward through dot_general at line 6, from x to h`. */
function momentText({ axis, step }: Moment, report: Report): string {
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
function valueAt(report: Report, index: number, number: number): Value | null {
  const value = report.values[index];
  const { when, steps, first } = report.histories[index];
  if (value.spec === null || number === Infinity || when?.length === 0) {
    return value;
  }
  if (when === null) {
    return null;
  }
  let axis = 0;
  const spec = value.spec.map(axes => axes.filter(() => when[axis++] <= number));
  const grid = gridOf({ ...value, spec }, report.mesh);
  const shard = value.shape.map((size, dim) => Math.ceil(size / grid[dim]));
  const state = first + steps.filter(step => step <= number).length - 1;
  return inState(value, state, { spec, shard_shape: shard, propagated: null });
}
