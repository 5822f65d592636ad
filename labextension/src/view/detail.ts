/** One collective at length: where, who asked, why, what would remove it, and the raw text. */

import { REPORT } from '../generated/vocabulary';
import { chip } from './badge';
import { h, mono } from './dom';
import { Player } from './player';
import { Collective, Fix, Report } from './report';
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
    return [
      h(
        'div',
        { class: 'title' },
        mono(one.say('name')),
        ` ${one.say('at')} `,
        chip(one)
      ),
      h('p', { class: 'because' }, one.say('because')),
      chain(one),
      ...playing(one, this.report.mesh),
      h('p', null, one.say('further')),
      ...(one.fixes ?? []).map((fix, i) => tried(fix, effects[i])),
      this._calls(one),
      raw(one)
    ];
  }

  /** The lines that led to it, innermost first. */
  private _calls(one: Collective): HTMLElement {
    const lines = one.frames.map(frame => {
      const source = this.report.sources[frame.source];
      const text = source?.text.split('\n')[frame.line - source.first_line] ?? '';
      const name = frame.source ? source?.name : undefined;
      const at = { line: frame.line, source: clean(name ?? '') };
      const line = fill(name === undefined ? REPORT.line : REPORT.lineIn, at);
      const call = { line, function: clean(frame.function) };
      const said = frame.function ? fill(REPORT.call, call) : line;
      return h('li', null, `${said} `, text && mono(clean(text.trim())));
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

/** What it moves, the exchange, and who needs it so: as far as it is known. */
function chain(one: Collective): HTMLElement {
  const exchange = fill(REPORT.exchange, {
    grouping: one.say('grouping'),
    array: one.say('array'),
    size: one.say('size'),
    trips: one.say('trips')
  });
  const steps = [one.say('made'), exchange, one.say('used')].filter(Boolean);
  return h('ol', { class: 'chain' }, ...steps.map(step => h('li', null, step)));
}

/** A button that plays the exchange, and the place where it is played. */
function playing(one: Collective, mesh: Report['mesh']): HTMLElement[] {
  const play = ring(one, mesh);
  if (!play) {
    return [];
  }
  const stage = h('div', { class: 'played' });
  const label = fill(REPORT.play, { kind: clean(one.kind) });
  const button = h('button', { type: 'button', class: 'play', 'aria-expanded': 'false' }, label);
  let player: Player | null = null;
  button.addEventListener('click', () => {
    player?.dispose();
    player = player ? null : new Player(play, one, mesh);
    stage.replaceChildren(...(player ? [player.element] : []));
    button.textContent = player ? REPORT.close : label;
    button.setAttribute('aria-expanded', String(player !== null));
    player?.start();
  });
  return [button, stage];
}

function tried(fix: Fix, effect: string): HTMLElement {
  const edit = clean(fix.edit);
  return h('div', { class: 'fix' }, REPORT.try, mono(edit), ` (${effect}) `, copier(edit));
}

/** A button that copies a text. */
export function copier(text: string): HTMLElement {
  const button = h('button', { type: 'button', class: 'copy' }, REPORT.copy);
  button.addEventListener('click', () => {
    void navigator.clipboard.writeText(text).then(
      () => (button.textContent = REPORT.copied),
      () => (button.textContent = REPORT.notAllowed)
    );
  });
  return button;
}

function raw(one: Collective): HTMLElement {
  const text = [
    one.op_name && fill(REPORT.operation, { name: one.op_name }),
    one.instruction
  ].filter(Boolean);
  return h(
    'details',
    { hidden: !text.length },
    h('summary', null, REPORT.raw),
    h('pre', { class: 'raw' }, text.map(clean).join('\n'))
  );
}
