/** One collective at length: where, who asked, why, what would remove it, and the raw text. */

import { REPORT } from '../generated/vocabulary';
import { chip } from './badge';
import { button, h, mono } from './dom';
import { MeshPanel } from './mesh';
import { Player } from './player';
import { Collective, Report, lineAt, placeText } from './report';
import { ring } from './ring';
import { clean, fill } from './slots';
import { Store } from './store';

export class Detail {
  readonly element = h('div', { class: 'main' });

  constructor(
    private readonly report: Report,
    private readonly store: Store
  ) {
    this.element.append(this._text, new MeshPanel(report, store, 'collective').element);
  }

  /** Tell a collective, one of some that are equal. */
  show(one: Collective | null, among: readonly number[] = []): void {
    if (one !== this._shown) {
      this._shown = one;
      this._text.replaceChildren(...(one ? this._parts(one, among) : []));
    }
  }

  private _parts(one: Collective, among: readonly number[]): HTMLElement[] {
    const exchange = fill(REPORT.exchange, {
      grouping: one.say('grouping'),
      array: one.say('array'),
      size: one.say('size'),
      trips: one.say('trips')
    });
    const chain = [one.say('made'), exchange, one.say('used')].filter(Boolean);
    const operation = one.op_name && fill(REPORT.operation, { name: one.op_name });
    const raw = [operation, one.instruction].filter(Boolean).map(clean).join('\n');
    const tone = this.report.tones.get(one.id) ?? 'neutral';
    return [
      h('div', { class: 'title' }, mono(one.say('name')), ` ${one.say('at')} `, chip(one.say('cause'), tone)),
      ...this._among(one, among),
      h('p', { class: 'because' }, one.say('because')),
      h('ol', { class: 'chain' }, ...chain.map(step => h('li', null, step))),
      ...playing(one, this.report.mesh),
      h('p', null, one.say('further')),
      h('p', { hidden: !one.say('measured') }, one.say('measured')),
      this._calls(one),
      h(
        'details',
        { hidden: !raw },
        h('summary', null, REPORT.raw),
        h('pre', { class: 'raw' }, raw)
      )
    ];
  }

  /** The way to the others that are equal. */
  private _among(one: Collective, among: readonly number[]): HTMLElement[] {
    if (among.length < 2) {
      return [];
    }
    const at = among.indexOf(one.id);
    const step = (by: number): HTMLElement => {
      const next = this.report.byId.get(among[(at + by + among.length) % among.length]);
      const go = (): void => this.store.set({ chosen: next ?? one });
      return button(by < 0 ? '\u2190' : '\u2192', go, { 'aria-label': by < 0 ? REPORT.previous : REPORT.next });
    };
    const text = fill(REPORT.member, { number: at + 1, all: among.length });
    return [h('div', { class: 'stepper' }, step(-1), step(1), h('span', { class: 'faint' }, text))];
  }

  /** The lines that led to it, innermost first. */
  private _calls(one: Collective): HTMLElement {
    const lines = one.frames.map(frame => {
      const text = lineAt(frame, this.report.sources);
      const line = placeText(frame, this.report.sources);
      const call = { line, function: clean(frame.function) };
      const caption = frame.function ? fill(REPORT.call, call) : line;
      return h('li', null, `${caption} `, text && mono(clean(text.trim())));
    });
    const within = one.within.map(part => h('li', null, fill(REPORT.inside, { part: clean(part) })));
    return h(
      'details',
      { hidden: !lines.length && !within.length },
      h('summary', null, REPORT.calls),
      h('ol', { class: 'calls' }, ...lines, ...within)
    );
  }

  private readonly _text = h('div', { class: 'detail', 'aria-live': 'polite' });
  private _shown: Collective | null = null;
}

/** A button that plays the animation of the collective, and its place. */
function playing(one: Collective, mesh: Report['mesh']): HTMLElement[] {
  const play = ring(one, mesh);
  if (!play) {
    return [];
  }
  const stage = h('div', { class: 'played' });
  const label = fill(REPORT.play, { kind: clean(one.kind) });
  let player: Player | null = null;
  const toggle = (): void => {
    player?.dispose();
    player = player ? null : new Player(play, one, mesh);
    stage.replaceChildren(...(player ? [player.element] : []));
    control.textContent = player ? REPORT.close : label;
    control.setAttribute('aria-expanded', String(player !== null));
    player?.start();
  };
  const control = button(label, toggle, { class: 'play', 'aria-expanded': 'false' });
  return [control, stage];
}
