/** Edits of many specs at once: recipes, mirrored state, undo and redo; and what they changed. */

import { WIDGETS } from '../generated/vocabulary';
import { button, h, mono } from '../view/dom';
import { clean } from '../view/slots';

/** A recipe, with its button's text. */
export interface Recipe {
  name: string;
  label: string;
}

/** What an edit changed: its name, sentences, specs with their arrays, reasons with those left. */
export interface Note {
  title: string;
  notes: string[];
  placed: [string, string][];
  left: [string, string][];
}

interface Calls {
  edit: (edit: string, name: string) => void;
  go: (steps: number) => void;
}

export class Edits {
  constructor(
    private readonly calls: Calls,
    hasState: boolean
  ) {
    const mirror = button(WIDGETS.mirror, () => calls.edit('mirror', ''), { title: WIDGETS.mirrorTitle });
    this.element = h(
      'div',
      { class: 'edits' },
      h('div', { class: 'axis' }, h('b', null, WIDGETS.recipes), this._recipes, hasState && mirror, h('span', { class: 'gap' }), this._undo, this._redo),
      this._note
    );
  }

  /** Offer the recipes for the present mesh. */
  offer(recipes: readonly Recipe[]): void {
    const offered = JSON.stringify(recipes);
    if (offered === this._offered) {
      return; // the button that was pressed keeps the focus
    }
    this._offered = offered;
    const buttons = recipes.map(({ name, label }) => button(clean(label), () => this.calls.edit('recipe', name)));
    this._recipes.replaceChildren(...buttons);
  }

  /** Say which ways there are. */
  allow(undo: boolean, redo: boolean): void {
    const focused = document.activeElement;
    this._undo.disabled = !undo;
    this._redo.disabled = !redo;
    // A button that is disabled would lose the focus, and the keys with it.
    if (focused === this._undo && !undo) {
      this._redo.focus();
    } else if (focused === this._redo && !redo) {
      this._undo.focus();
    }
  }

  /** Show what the last edit changed, or nothing. */
  show(note: Note | null): void {
    const rows = (title: string, pairs: readonly [string, string][]): HTMLElement | null =>
      pairs.length
        ? h(
            'table',
            null,
            h('caption', null, title),
            ...pairs.map(([what, names]) => h('tr', null, h('td', null, clean(what)), h('td', null, mono(clean(names)))))
          )
        : null;
    const tables = note ? [rows(WIDGETS.placed, note.placed), rows(WIDGETS.left, note.left)].filter(one => one) : [];
    this._note.replaceChildren(
      ...(note ? [h('div', { role: 'status' }, h('b', null, clean(note.title)), `. ${clean(note.notes.join(' '))}`)] : []),
      ...(tables.length ? [h('details', null, h('summary', null, WIDGETS.changed), ...tables)] : [])
    );
    this._note.hidden = !note;
  }

  readonly element: HTMLElement;
  private _offered = '';
  private readonly _recipes = h('span', { class: 'buttons' });
  private readonly _note = h('div', { class: 'note', hidden: true });
  private readonly _undo = button(WIDGETS.undo, () => this.calls.go(-1), { title: WIDGETS.undoTitle, disabled: true });
  private readonly _redo = button(WIDGETS.redo, () => this.calls.go(1), { title: WIDGETS.redoTitle, disabled: true });
}
