/** Predict, then reveal: guess what a line sends, and along which axes; then see, and why. */

import { KINDS, REPORT, WIDGETS } from '../generated/vocabulary';
import { arrays } from '../view/arrays';
import { codeLine } from '../view/code';
import { Detail } from '../view/detail';
import { button, h, heading, mono } from '../view/dom';
import { wholeAxis } from '../view/layout';
import { Collective, Report, readReport } from '../view/report';
import { clean, fill } from '../view/slots';
import { Store } from '../view/store';
import { head } from '../view/view';
import { Model } from './model';
import { select } from './picker';

const NOTHING = WIDGETS.nothing;
const ANSWERS: readonly string[] = [NOTHING, ...Object.keys(KINDS)];

/** A question as the kernel words it; `sent` are ids, none for a line that sends nothing. */
export interface Question {
  /** The line of the explained text, null for another. */
  line: number | null;
  place: string;
  text: string;
  sent: readonly number[];
  /** How many of them were asked for before: any that is left is a right answer. */
  before: number;
  /** Why nothing is sent. */
  why: string;
}

/** What was answered, for the kernel to keep. */
interface Answer {
  kind: 'answer';
  at: number;
  guess: string;
  axes: string[];
  right: boolean;
  sent: number | null;
}

export interface Judgement {
  /** What is shown: the collective that was guessed, or the nearest; null for nothing. */
  one: Collective | null;
  kind: boolean;
  axes: boolean;
}

/** Judge a guess by those that are left to name at its line, in whatever order they are named. */
export function judged(left: readonly Collective[], kind: string, axes: ReadonlySet<string>): Judgement {
  if (!left.length) {
    return { one: null, kind: kind === NOTHING, axes: true };
  }
  const judgements = left.map(one => {
    const truth = new Set((one.axes ?? []).map(wholeAxis));
    const same = truth.size === axes.size && [...truth].every(axis => axes.has(axis));
    return { one, kind: kind === one.kind, axes: one.axes === null || same };
  });
  return judgements.find(each => each.kind && each.axes) ?? judgements.find(each => each.kind) ?? judgements[0];
}

export function predict(model: Model, root: HTMLElement): () => void {
  const report = readReport(JSON.parse(model.get('data')));
  const quiz = new Quiz(report, model.get('questions') as Question[], root, answer => model.send(answer));
  return () => quiz.dispose();
}

/** Asks the questions about a report; `tell` hears of each answer. */
export class Quiz {
  constructor(
    private readonly report: Report,
    private readonly asked: readonly Question[],
    root: HTMLElement,
    private readonly tell: (answer: Answer) => void = () => undefined
  ) {
    this._store = new Store();
    root.append(head(report), this._code(), arrays(report, this._store, ['inputs']), this._score, this._stage);
    this._ask();
  }

  dispose(): void {
    this._store.dispose();
    this._answer?.dispose();
  }

  /** The text alone: what it sends is the question. */
  private _code(): HTMLElement {
    const source = this.report.sources[0];
    const lines = (source?.text ?? '').replace(/\s+$/, '').split('\n');
    const items = lines.map((text, i) => {
      const number = (source?.first_line ?? 1) + i;
      const item = codeLine(number, clean(text) || ' ');
      this._lines.set(number, item);
      return item;
    });
    return h('div', { class: 'code' }, h('ol', { class: 'lines', 'aria-label': REPORT.sourceLines }, ...items));
  }

  private _ask(): void {
    const question = this.asked[this._now];
    this._lines.forEach((item, line) => item.toggleAttribute('data-marked', line === question.line));
    const axes = new Set<string>();
    const boxes = this.report.mesh.axes.map(({ name }) => {
      const box = h('input', { type: 'checkbox' });
      box.addEventListener('change', () => (box.checked ? axes.add(name) : axes.delete(name)));
      return h('label', { class: 'dim' }, box, ` ${clean(name)}`);
    });
    let kind: string = NOTHING;
    const list = select(ANSWERS, NOTHING, 'kind', WIDGETS.whichCollective, chosen => (kind = ANSWERS[chosen]));
    const show = (): void => {
      reveal.disabled = list.disabled = true;
      boxes.forEach(label => ((label.firstChild as HTMLInputElement).disabled = true));
      const sent = question.sent.map(id => this.report.byId.get(id)!);
      const judgement = judged(sent.filter(one => !this._named.has(one)), kind, axes);
      const { one } = judgement;
      const right = judgement.kind && judgement.axes;
      this.tell({ kind: 'answer', at: this._now, guess: kind, axes: [...axes], right, sent: one?.id ?? null });
      this._reveal(question, judgement);
    };
    const reveal = button(WIDGETS.reveal, show, { class: 'play' });
    this._truth = h('div', { class: 'truth', 'aria-live': 'polite' });
    this._stage.replaceChildren(
      heading(fill(WIDGETS.question, { number: this._now + 1, all: this.asked.length })),
      h('p', null, ...this._text(question)),
      h('div', { class: 'axis' }, h('label', { class: 'dim' }, WIDGETS.itSends, list), h('span', null, WIDGETS.over), ...boxes, reveal),
      this._truth
    );
    this._count();
  }

  private _text({ place, text, sent, before }: Question): (string | HTMLElement)[] {
    if (!place) {
      return [this.report.collectives.length ? WIDGETS.noLine : WIDGETS.wholeProgram];
    }
    const all = sent.length;
    const which = before ? fill(WIDGETS.oneMore, { all }) : all > 1 ? fill(WIDGETS.oneOf, { all }) : WIDGETS.whatSent;
    return [`${clean(place)}: `, mono(clean(text)), which];
  }

  private _reveal({ why }: Question, { one, ...right }: Judgement): void {
    const whole = right.kind && right.axes;
    if (one) {
      this._named.add(one);
    }
    this._right += whole ? 1 : 0;
    const verdict = whole ? WIDGETS.right : right.kind ? WIDGETS.rightKind : WIDGETS.wrong;
    const said = one
      ? fill(WIDGETS.truth, { name: one.say('name'), grouping: one.say('grouping') })
      : fill(WIDGETS.truthNothing, { why: clean(why) });
    this._truth.append(h('p', null, h('b', null, verdict), said));
    if (one) {
      this._answer?.dispose();
      this._answer = new Store();
      const detail = new Detail(this.report, this._answer);
      detail.show(one);
      this._truth.append(detail.element);
      this._answer.set({ chosen: one });
      this._answer.flush();
    }
    const last = this._now + 1 >= this.asked.length;
    const next = button(last ? WIDGETS.again : WIDGETS.next, () => {
      this._now = last ? 0 : this._now + 1;
      this._done = this._now;
      if (last) {
        this._right = 0;
        this._named.clear();
      }
      this._ask();
    });
    this._truth.append(next);
    this._done = this._now + 1;
    this._count();
    next.focus({ preventScroll: true });
  }

  private _count(): void {
    this._score.hidden = !this._done;
    this._score.textContent = fill(WIDGETS.score, { right: this._right, all: this._done });
  }

  private readonly _store: Store;
  private readonly _score = h('div', { class: 'summary' });
  private readonly _stage = h('div', { class: 'quiz' });
  private readonly _lines = new Map<number, HTMLElement>();
  /** Those that were shown already. */
  private readonly _named = new Set<Collective>();
  private _truth = h('div');
  private _answer: Store | null = null;
  private _now = 0;
  private _right = 0;
  private _done = 0;
}
