/** Searches for fixes and plans in the kernel: how far they are, and what they found. */

import { WIDGETS } from '../generated/vocabulary';
import { button, h, heading, mono } from '../view/dom';
import { copier } from '../view/points';
import { clean } from '../view/slots';
import { Plan } from './model';

interface Row {
  about: string;
  code: string;
  effect: string;
  plan: Plan | null;
}

/** A search as the kernel tells of it. */
export interface Searched {
  number: number;
  kind: 'fix' | 'plans';
  state: 'running' | 'done' | 'failed';
  said: string;
  done: number;
  total: number;
  rows: Row[];
}

export class Search {
  constructor(ask: (kind: string) => void, private readonly use: (plan: Plan) => void) {
    this._fix = button(WIDGETS.findFixes, () => ask('fix'), { title: WIDGETS.findFixesTitle });
    this._plans = button(WIDGETS.searchPlans, () => ask('plans'), { title: WIDGETS.searchPlansTitle });
    this._stop = button(WIDGETS.stopSearch, () => ask('stop-search'), { hidden: true });
    this.buttons = [this._fix, this._plans];
    this.element = h('div', { class: 'search', hidden: true }, this._head, this._rows);
  }

  /** Say whether the shown plan is compiled, so that it can be searched from. */
  allow(compiled: boolean): void {
    this._fix.disabled = this._plans.disabled = !compiled;
  }

  show(found: Searched): void {
    this.element.hidden = !found.kind;
    if (!found.kind) {
      return;
    }
    const running = found.state === 'running';
    const bar = h('progress', { max: found.total || 1, value: found.total ? found.done : null });
    this._stop.hidden = !running;
    const title = heading(found.kind === 'fix' ? WIDGETS.fixes : WIDGETS.plans);
    const said = h('span', { role: 'status' }, clean(found.said));
    this._head.replaceChildren(title, h('div', { class: 'axis' }, running && bar, said, this._stop));
    this._rows.replaceChildren(...found.rows.map(row => this._row(row)));
  }

  private _row({ about, code, effect, plan }: Row): HTMLElement {
    const use = plan && button(WIDGETS.use, () => this.use(plan));
    return h(
      'div',
      { class: 'found' },
      h('div', null, h('b', null, clean(about)), h('span', { class: 'faint' }, ` ${clean(effect)}`)),
      h('div', { class: 'axis' }, mono(clean(code)), use ?? copier(code))
    );
  }

  readonly element: HTMLElement;
  readonly buttons: readonly HTMLElement[];
  private readonly _fix: HTMLButtonElement;
  private readonly _plans: HTMLButtonElement;
  private readonly _stop: HTMLButtonElement;
  private readonly _head = h('div');
  private readonly _rows = h('div');
}
