/** The explorer: each click is answered by a preview, and by the compiled program once it is there. */

import { WIDGETS } from '../generated/vocabulary';
import { arrays } from '../view/arrays';
import { copier } from '../view/points';
import { button, folded, h, heading } from '../view/dom';
import { Spread } from '../view/spread';
import { Report, readReport } from '../view/report';
import { Store } from '../view/store';
import { clean, cleanLines } from '../view/slots';
import { head, mountReport, sending } from '../view/view';
import { Model, Plan, Subject, Written, copyOf } from './model';
import { Picker } from './picker';
import { Pin, table } from './pins';
import { Quiz } from './predict';

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
    this._picker = subject.inputs ? new Picker(subject, copyOf(plan), () => this._changed()) : null;
    root.append(
      h('div', { class: 'header' }, this._title, this._picker ? null : h('span', null, WIDGETS.alone)),
      ...(this._picker ? [this._picker.element] : []),
      this._error,
      h('div', { class: 'state' }, this._chip, this._status, this._stop, this._pin),
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
    ['change:pins', () => this._drawPins()]
  ];

  // What is asked

  /** Ask for a preview of the present plan; while one is on its way, the newest plan waits. */
  private _changed(): void {
    this._number += 1;
    this._error.hidden = true;
    clearTimeout(this._compiling);
    clearTimeout(this._late);
    this._say('asked', WIDGETS.asking);
    this._late = window.setTimeout(() => {
      this._status.textContent = WIDGETS.late;
    }, LATE);
    if (!this._waiting) {
      this._ask();
    }
  }

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
      this._error.textContent = cleanLines(answer.said);
      this._error.hidden = false;
      this._say('refused', WIDGETS.before);
      return;
    }
    if (answer.kind === 'preview') {
      this._drawGrids(readReport(JSON.parse(answer.report)), 'preview');
    }
    this._picker?.tell((answer.specs ?? {}) as Written);
    this._say(answer.kind === 'preview' ? 'preview' : 'asked', answer.said);
    this._sent.toggleAttribute('data-stale', true);
    this._stale.hidden = false;
    this._stale.textContent = WIDGETS.stale;
    this._compiling = window.setTimeout(() => this._send('compile', this._number), QUIET);
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
    this._drawSent(report);
    this._drawCodes(compiled.codes as Code[]);
    this._picker?.tell(compiled.specs as Written);
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
  }

  private _drawGrids(report: Report, kind: string): void {
    const store = this._newStore(0);
    this._grids.replaceChildren(head(report), arrays(report, store));
    const { values } = report;
    this._inside.replaceChildren(...(values.length ? [new Spread(report, store).element] : []));
    [this._grids, this._inside].forEach(part => part.setAttribute('data-kind', kind));
  }

  private _drawSent(report: Report): void {
    const store = this._newStore(1);
    this._sent.replaceChildren(heading(WIDGETS.sends), ...sending(report, store));
    this._sent.toggleAttribute('data-stale', false);
    this._ends.splice(0).forEach(end => end());
    this._whole.replaceChildren(
      this._folded(WIDGETS.guess, place => {
        const quiz = new Quiz(report, place);
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
      if (plan && this._picker) {
        this._picker.show(plan);
        this._changed();
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
  private readonly _picker: Picker | null;
  private readonly _stores: Store[] = [];
  private readonly _ends: (() => void)[] = [];
  private _number = 0;
  private _waiting = 0;
  private _compiling = 0;
  private _late = 0;
}
