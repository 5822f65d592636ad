/** The plans that were shown, to go back to and forth again. */

import { Plan, copyOf } from './model';

const MOST = 200;

export class History {
  constructor(plan: Plan) {
    this._plans = [copyOf(plan)];
  }

  /** Keep a plan as the newest; what was undone before is dropped. */
  push(plan: Plan): void {
    if (JSON.stringify(plan) !== JSON.stringify(this._plans[this._at])) {
      this._plans.splice(this._at + 1, Infinity, copyOf(plan));
      this._plans.splice(0, this._plans.length - MOST);
      this._at = this._plans.length - 1;
    }
  }

  /** Go so many plans back (or forth), and give that plan; null where there is none. */
  go(steps: number): Plan | null {
    if (!this.has(steps)) {
      return null;
    }
    this._at += steps;
    return copyOf(this._plans[this._at]);
  }

  has(steps: number): boolean {
    return this._at + steps in this._plans;
  }

  private readonly _plans: Plan[];
  private _at = 0;
}
