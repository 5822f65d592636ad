/** One collective at length: where, who asked, why, what would remove it, and the raw text. */

import { REPORT } from '../generated/vocabulary';
import { chip } from './badge';
import { button, h, mono } from './dom';
import { Player } from './player';
import { Collective, Report, lineAt, placeText } from './report';
import { ring } from './ring';
import { clean, fill } from './slots';
import { Store } from './store';

export class Detail {
  readonly element = h('div', { class: 'detail', 'aria-live': 'polite' });

  constructor(
    private readonly report: Report,
    store: Store
  ) {
    store.subscribe(({ chosen }, changed) => {
      if (changed.has('chosen')) {
        this.element.replaceChildren(...(chosen ? this._parts(chosen) : []));
      }
    });
    if (!report.collectives.length) {
      this.element.append(h('p', { class: 'faint' }, REPORT.hint));
    }
  }

  private _parts(one: Collective): HTMLElement[] {
    const effects = one.say('effects').split('\n');
    const exchange = fill(REPORT.exchange, {
      grouping: one.say('grouping'),
      array: one.say('array'),
      size: one.say('size'),
      trips: one.say('trips')
    });
    const chain = [one.say('made'), exchange, one.say('used')].filter(Boolean);
    const fixes = (one.fixes ?? []).map(({ edit }, i) => {
      const effect = ` (${effects[i]}) `;
      return h('div', { class: 'fix' }, REPORT.try, mono(clean(edit)), effect, copier(clean(edit)));
    });
    const operation = one.op_name && fill(REPORT.operation, { name: one.op_name });
    const raw = [operation, one.instruction].filter(Boolean).map(clean).join('\n');
    return [
      h('div', { class: 'title' }, mono(one.say('name')), ` ${one.say('at')} `, chip(one)),
      h('p', { class: 'because' }, one.say('because')),
      h('ol', { class: 'chain' }, ...chain.map(step => h('li', null, step))),
      ...playing(one, this.report.mesh),
      h('p', null, one.say('further')),
      ...fixes,
      this._calls(one),
      h(
        'details',
        { hidden: !raw },
        h('summary', null, REPORT.raw),
        h('pre', { class: 'raw' }, raw)
      )
    ];
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
}

/** A button that plays the exchange, and the place where it is played. */
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

/** A button that copies a text. */
export function copier(text: string): HTMLElement {
  const copy = (): void =>
    void navigator.clipboard.writeText(text).then(
      () => (control.textContent = REPORT.copied),
      () => (control.textContent = REPORT.notAllowed)
    );
  const control = button(REPORT.copy, copy, { class: 'copy' });
  return control;
}
