/** The arrays inside the program, and a slider over the steps by which placements reached them. */

import { REPORT } from '../generated/vocabulary';
import { Card } from './arrays';
import { OWN_KEYS, h, heading } from './dom';
import { Moment, momentText, moments, valueAt } from './propagation';
import { Report, Value } from './report';
import { clean, fill } from './slots';
import { Store } from './store';

export class Spread {
  readonly element: HTMLElement;

  constructor(
    private readonly report: Report,
    private readonly store: Store
  ) {
    this._moments = moments(report);
    this._now = this._moments.length;
    this._label = h('span', { class: 'caption', 'aria-live': 'polite' });
    this._slider = h('input', {
      type: 'range',
      ...OWN_KEYS,
      class: 'slider',
      min: 0,
      max: this._moments.length,
      'aria-label': REPORT.spread,
      on: { input: () => this._go(Number(this._slider.value)) }
    });
    const rows = report.values.map((value, i) => this._row(value, i));
    this._stage = h('div', { class: 'stage' });
    this.element = h(
      'div',
      { class: 'arrays' },
      heading(REPORT.values),
      this._moments.length > 0 && this._stepper(),
      h('div', { class: 'main spread' }, h('div', { class: 'values' }, ...rows), this._stage)
    );
    this._go(this._now);
  }

  private _stepper(): HTMLElement {
    const step = (text: string, name: string, by: number): HTMLElement => {
      const click = (): void => this._go(this._now + by);
      return h('button', { type: 'button', 'aria-label': name, on: { click } }, text);
    };
    return h(
      'div',
      { class: 'stepper' },
      step('\u2190', REPORT.back, -1),
      this._slider,
      step('\u2192', REPORT.on, 1),
      this._label
    );
  }

  private _row(value: Value, index: number): HTMLElement {
    const type = h('code', { class: 'mono' });
    const { source = 0, line = 0 } = value.location ?? {};
    const at = { line, source: clean(this.report.sources[source]?.name ?? '') };
    const where = value.location ? fill(source ? REPORT.lineIn : REPORT.line, at) : '';
    const row = h(
      'button',
      { type: 'button', class: 'value', on: { click: () => this._choose(index) } },
      h('b', null, clean(value.name)),
      type,
      h('span', { class: 'faint' }, value.name.includes(fill(REPORT.line, at)) ? '' : where)
    );
    this._rows.push({ row, type });
    return row;
  }

  /** Show the placements as they were after so many steps. */
  private _go(now: number): void {
    this._now = Math.max(0, Math.min(this._moments.length, now));
    this._slider.value = String(this._now);
    const last = this._moments[this._now - 1];
    this._label.textContent = this._told(last);
    this._rows.forEach(({ row, type }, index) => {
      const value = this._valueNow(index);
      type.textContent = value ? value.say('type') : REPORT.notKnownWhen;
      row.toggleAttribute('data-marked', this._moving(last, index));
    });
    this._draw();
  }

  private _told(last: Moment | undefined): string {
    const all = this._moments.length;
    const said = last && momentText(last, this.report);
    return said ? fill(REPORT.step, { step: this._now, all, said }) : REPORT.firstStep;
  }

  private _moving(last: Moment | undefined, index: number): boolean {
    return last !== undefined && last.step.target === this.report.values[index].name;
  }

  /** Give a value at the present step; after the last one, as the compiled program has it. */
  private _valueNow(index: number): Value | null {
    const last = this._now === this._moments.length;
    return valueAt(this.report, index, last ? Infinity : this._number());
  }

  private _number(): number {
    return this._now > 0 ? this._moments[this._now - 1].step.number : 0;
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
    this._card = value && new Card('', value, this.report, this.store);
    this._stage.replaceChildren(...(this._card ? [this._card.element, why] : [why]));
    this._rows.forEach(({ row }, index) => {
      row.setAttribute('aria-pressed', String(index === this._chosen));
    });
  }

  private readonly _moments: Moment[];
  private readonly _slider: HTMLInputElement;
  private readonly _label: HTMLElement;
  private readonly _stage: HTMLElement;
  private readonly _rows: { row: HTMLElement; type: HTMLElement }[] = [];
  private _card: Card | null = null;
  private _now: number;
  private _chosen = 0;
}
