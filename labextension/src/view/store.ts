/** What the reader looks at. Changes are reported once per frame, however many there are. */

import { Collective, Value } from './report';

/** Collectives that all parts but the one they were picked in are filtered by. */
export interface Picked {
  ids: ReadonlySet<number>;
  from: 'points' | 'code' | 'sent' | 'arrays' | 'values';
  /** What was picked: each badge, line, row or array gives its own list of ids. */
  given: readonly number[];
}

export interface Focus {
  /** The collective that is shown in detail. */
  chosen: Collective | null;
  /** The collective under the pointer. */
  pointed: Collective | null;
  /** The array under the pointer, or at the slider's step. */
  value: Value | null;
  /** The position in the mesh of the device under the pointer. */
  device: number | null;
  picked: Picked | null;
}

export type Listener = (focus: Focus, changed: ReadonlySet<keyof Focus>) => void;

export class Store {
  focus: Focus = { chosen: null, pointed: null, value: null, device: null, picked: null };

  /** Change the focus; listeners hear of it in the next frame. */
  set(patch: Partial<Focus>): void {
    for (const key of Object.keys(patch) as (keyof Focus)[]) {
      if (this.focus[key] !== patch[key]) {
        this._changed.add(key);
      }
    }
    Object.assign(this.focus, patch);
    if (this._changed.size && !this._frame) {
      this._frame = requestAnimationFrame(() => this.flush());
    }
  }

  /** Filter by collectives, and tell one of them at length; what is picked again is let go. */
  pick(from: Picked['from'], ids: readonly number[], chosen: Collective | null): void {
    const again = this.focus.picked?.given === ids;
    this.set(again ? { picked: null, chosen: null } : { picked: { from, given: ids, ids: new Set(ids) }, chosen });
  }

  /** Tell the listeners now. */
  flush(): void {
    cancelAnimationFrame(this._frame);
    this._frame = 0;
    const changed = this._changed;
    this._changed = new Set();
    if (changed.size) {
      this._listeners.forEach(listener => listener(this.focus, changed));
    }
  }

  /** Hear of changes; gives the way to hear no more of them. */
  subscribe(listener: Listener): () => void {
    this._listeners.push(listener);
    return () => {
      this._listeners = this._listeners.filter(one => one !== listener);
    };
  }

  dispose(): void {
    cancelAnimationFrame(this._frame);
    this._listeners = [];
  }

  private _changed = new Set<keyof Focus>();
  private _listeners: Listener[] = [];
  private _frame = 0;
}
