/** The explorer: each click is answered by a preview, and by the compiled program once it is there. */

import { REPORT, WIDGETS } from '../generated/vocabulary';
import { CARDS, arrays } from '../view/arrays';
import { copier } from '../view/points';
import { button, folded, h, heading } from '../view/dom';
import { Spread } from '../view/spread';
import { Report, readReport } from '../view/report';
import { Store } from '../view/store';
import { clean, cleanLines } from '../view/slots';
import { head, mountReport, sending } from '../view/view';
import { Edits, Note, Recipe } from './edits';
import { History } from './history';
import { Model, Plan, Subject, Written, copyOf } from './model';
import { Picker } from './picker';
import { Pin, table } from './pins';
import { Question, Quiz } from './predict';
import { Search, Searched } from './search';

/** Quiet time after a click before the plan is compiled. */
const QUIET = 150;
const LATE = 3000;

interface Code {
  title: string;
  text: string;
}

/** What the chip says of the pictures. */
const STATES = {
  asked: WIDGETS.stateAsked,
  preview: WIDGETS.statePreview,
  compiled: WIDGETS.stateCompiled,
  refused: WIDGETS.stateRefused,
  stopped: WIDGETS.stateStopped
};

export function explorer(model: Model, root: HTMLElement): () => void {
  const view = new Explorer(model, root);
  return () => view.dispose();
}

class Explorer {
  constructor(
    private readonly model: Model,
    root: HTMLElement
  ) {
    const subject = model.get('subject') as Subject;
    const { plan } = model.get('compiled') as { plan: Plan };
    this._number = Number(model.get('compiled').number ?? 0);
    if (subject.inputs) {
      this._edits = new Edits({ edit: (edit, name) => this._edit(edit, name), go: steps => this._go(steps) }, subject.state);
      const alike = (name: string): void => this._edit('alike', name);
      this._picker = new Picker(subject, copyOf(plan), () => this._picked(), alike, this._edits.element);
      this._history = new History(plan);
      root.addEventListener('keydown', this._keys);
    }
    root.append(
      h('div', { class: 'header' }, this._title, this._picker ? null : h('span', null, WIDGETS.alone)),
      ...(this._picker ? [this._picker.element] : []),
      this._error,
      h('div', { class: 'state' }, this._chip, this._status, this._stop, ...(this._picker ? this._search.buttons : []), this._pin),
      this._search.element,
      this._pins,
      this._grids,
      this._stale,
      this._sent,
      this._inside,
      this._codes,
      this._whole
    );
    this._title.textContent = clean(subject.title ?? '');
    for (const [event, call] of this._events) {
      model.on(event, call);
    }
    this._compiledCame();
    this._drawPins();
    this._search.show(model.get('search') as Searched);
  }

  dispose(): void {
    this._events.forEach(([event, call]) => this.model.off(event, call));
    clearTimeout(this._compiling);
    clearTimeout(this._late);
    this._stores.forEach(store => store.dispose());
    this._ends.forEach(end => end());
  }

  private readonly _events: readonly (readonly [string, () => void])[] = [
    ['change:answer', () => this._answered()],
    ['change:compiled', () => this._compiledCame()],
    ['change:edited', () => this._editCame()],
    ['change:search', () => this._search.show(this.model.get('search') as Searched)],
    ['change:pins', () => this._drawPins()]
  ];

  // What is asked

  /** Ask for a preview of the present plan; while one is on its way, the newest plan waits. */
  private _changed(): void {
    this._await();
    if (!this._waiting) {
      this._ask();
    }
  }

  /** Await the answer to a new question. */
  private _await(): void {
    this._number += 1;
    this._error.hidden = true;
    clearTimeout(this._compiling);
    clearTimeout(this._late);
    this._say('asked', WIDGETS.asking);
    this._late = window.setTimeout(() => {
      this._status.textContent = WIDGETS.late;
    }, LATE);
  }

  /** A control was used. */
  private _picked(): void {
    if (this._picker) {
      this._history?.push(this._picker.plan);
    }
    this._edits?.show(null);
    this._allow();
    this._changed();
  }

  /** Show another plan, which can be undone, with a note on what changed. */
  private _take(plan: Plan, note: Note | null = null): void {
    this._picker?.show(plan);
    this._picked();
    this._edits?.show(note);
  }

  private _edit(edit: string, name: string): void {
    this._await();
    this.model.send({ kind: 'edit', number: this._number, edit, name, plan: this._picker?.plan });
  }

  private _editCame(): void {
    const edited = this.model.get('edited');
    if (edited.number !== this._number) {
      return;
    }
    clearTimeout(this._late);
    if (edited.refused) {
      this._refuse(edited.refused);
      return;
    }
    this._take(edited.plan, edited.note as Note);
  }

  private _go(steps: number): void {
    const plan = this._history?.go(steps);
    if (plan) {
      this._picker?.show(plan);
      this._edits?.show(null);
      this._allow();
      this._changed();
    }
  }

  private _allow(): void {
    this._edits?.allow(this._history?.has(-1) ?? false, this._history?.has(1) ?? false);
  }

  /** Ctrl+Z undoes, with Shift (or Ctrl+Y) it redoes; a text field undoes its own text. */
  private readonly _keys = (event: KeyboardEvent): void => {
    const key = event.key.toLowerCase();
    const isText = (event.target as Element).matches('input[type=text], input[type=number], textarea');
    if ((event.ctrlKey || event.metaKey) && !isText && (key === 'z' || key === 'y')) {
      event.preventDefault();
      event.stopPropagation();
      this._go(key === 'y' || event.shiftKey ? 1 : -1);
    }
  };

  private _ask(): void {
    this._waiting = this._number;
    this._send('preview', this._number);
  }

  private _send(kind: string, number: number): void {
    this.model.send({ kind, number, plan: this._picker?.plan });
  }

  // What is answered

  private _answered(): void {
    const answer = this.model.get('answer');
    if (answer.number >= this._waiting) {
      this._waiting = 0;
    }
    if (answer.number < this._number) {
      this._ask();
      return;
    }
    clearTimeout(this._late);
    if (answer.kind === 'refused' || answer.kind === 'failed') {
      this._refuse(answer.said);
      return;
    }
    if (answer.kind === 'preview') {
      this._drawGrids(readReport(JSON.parse(answer.report)), 'preview');
    }
    this._tellControls(answer);
    this._say(answer.kind === 'preview' ? 'preview' : 'asked', answer.said);
    this._sent.toggleAttribute('data-stale', true);
    this._stale.hidden = false;
    this._stale.textContent = WIDGETS.stale;
    this._compiling = window.setTimeout(() => this._send('compile', this._number), QUIET);
  }

  private _refuse(why: string): void {
    this._error.textContent = cleanLines(why);
    this._error.hidden = false;
    this._say('refused', WIDGETS.before);
  }

  private _tellControls({ specs, recipes }: { specs?: Written; recipes?: Recipe[] }): void {
    this._picker?.tell(specs ?? {});
    this._edits?.offer(recipes ?? []);
  }

  private _compiledCame(): void {
    const compiled = this.model.get('compiled');
    if (compiled.number >= this._waiting) {
      this._waiting = 0;
    }
    if (compiled.number < this._number) {
      // An older plan was in the kernel's memory: its answer came as a compiled one.
      if (!this._waiting && this._chip.getAttribute('data-kind') === 'asked') {
        this._ask();
      }
      return;
    }
    clearTimeout(this._late);
    if (compiled.number > this._number) {
      // Another view of the same widget asked.
      this._number = compiled.number;
      this._picker?.show(compiled.plan);
    }
    const report = readReport(JSON.parse(compiled.report));
    this._error.hidden = true;
    this._stale.hidden = true;
    this._drawGrids(report, 'compiled');
    this._drawSent(report, compiled.questions as Question[]);
    this._drawCodes(compiled.codes as Code[]);
    this._tellControls(compiled);
    this._say('compiled', compiled.said);
    this._pin.disabled = false;
  }

  // What is drawn

  private _say(kind: keyof typeof STATES, text: string): void {
    this._chip.textContent = STATES[kind];
    this._chip.setAttribute('data-kind', kind);
    this._status.textContent = clean(text);
    this._stop.hidden = kind !== 'preview' && kind !== 'asked';
    this._pin.disabled = kind !== 'compiled';
    this._search.allow(kind === 'compiled');
  }

  private _drawGrids(report: Report, kind: string): void {
    const store = this._newStore(0);
    const { values, said } = report;
    const many = said.inputs.members.length + said.outputs.members.length > CARDS;
    const inside = values.length ? [new Spread(report, store).element] : [];
    this._grids.replaceChildren(head(report), this._foldable('arrays', many, arrays(report, store)));
    this._inside.replaceChildren(...inside.map(part => this._foldable('values', many, part)));
    [this._grids, this._inside].forEach(part => part.setAttribute('data-kind', kind));
  }

  /** Parts of a large program are folded, and stay as they were opened from plan to plan. */
  private _foldable(part: 'arrays' | 'values', folds: boolean, element: HTMLElement): HTMLElement {
    if (!folds) {
      return element;
    }
    const fold = h('details', { open: this._open.has(part) }, h('summary', null, REPORT[part]), element);
    fold.addEventListener('toggle', () => (fold.open ? this._open.add(part) : this._open.delete(part)));
    return fold;
  }

  private _drawSent(report: Report, questions: readonly Question[]): void {
    const store = this._newStore(1);
    this._sent.replaceChildren(heading(WIDGETS.sends), ...sending(report, store));
    this._sent.toggleAttribute('data-stale', false);
    this._ends.splice(0).forEach(end => end());
    this._whole.replaceChildren(
      this._folded(WIDGETS.guess, place => {
        const quiz = new Quiz(report, questions, place);
        return () => quiz.dispose();
      }),
      this._folded(WIDGETS.wholeReport, place => {
        const view = mountReport(place, report);
        return () => view.dispose();
      })
    );
  }

  /** What is drawn when it is opened; `draw` gives the way to end it. */
  private _folded(title: string, draw: (place: HTMLElement) => () => void): HTMLElement {
    const place = h('div');
    return folded(title, place, () => this._ends.push(draw(place)));
  }

  private _drawCodes(codes: readonly Code[]): void {
    const texts = codes.map(({ title, text }) => {
      const name = h('div', null, h('b', null, clean(title)), ' ', copier(text));
      return h('div', { class: 'snippet' }, name, h('pre', { class: 'raw' }, cleanLines(text)));
    });
    const title = h('summary', null, WIDGETS.code);
    this._codes.replaceChildren(...(texts.length ? [h('details', null, title, ...texts)] : []));
  }

  private _drawPins(): void {
    const pins = this.model.get('pins') as Pin[];
    const show = (index: number): void => {
      const { plan } = pins[index];
      if (plan) {
        this._take(plan);
      }
    };
    this._pins.replaceChildren(table(pins, show, index => this.model.send({ kind: 'unpin', index })));
  }

  private _newStore(place: number): Store {
    this._stores[place]?.dispose();
    return (this._stores[place] = new Store());
  }

  private readonly _title = h('b');
  private readonly _error = h('div', { class: 'error', role: 'alert', hidden: true });
  private readonly _chip = h('span', { class: 'chip' });
  private readonly _status = h('span', { class: 'status', role: 'status' });
  private readonly _grids = h('div', { class: 'grids' });
  private readonly _inside = h('div', { class: 'grids' });
  private readonly _stale = h('div', { class: 'faint', hidden: true });
  private readonly _sent = h('div', { class: 'sent' });
  private readonly _pins = h('div');
  private readonly _codes = h('div', { class: 'codes' });
  private readonly _whole = h('div');
  private readonly _pin = button(WIDGETS.pin, () => {
    this.model.send({ kind: 'pin', plan: this._picker?.plan ?? null });
  });
  private readonly _stop = button(WIDGETS.stop, () => {
    clearTimeout(this._compiling);
    this.model.send({ kind: 'stop' });
    this._say('stopped', WIDGETS.stopped);
  });
  private readonly _search = new Search(
    kind => this._send(kind, this._number),
    plan => this._take(plan)
  );
  private readonly _picker: Picker | null = null;
  private readonly _edits: Edits | null = null;
  private readonly _history: History | null = null;
  private readonly _stores: Store[] = [];
  private readonly _open = new Set<string>();
  private readonly _ends: (() => void)[] = [];
  private _number = 0;
  private _waiting = 0;
  private _compiling = 0;
  private _late = 0;
}
