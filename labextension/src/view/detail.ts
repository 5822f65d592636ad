/** One collective at length: where, who asked, why, what would remove it, and the raw text. */

import { chip } from './badge';
import { h, mono } from './dom';
import { Player } from './player';
import { Collective, Fix, Report } from './report';
import { ring } from './ring';
import { Store } from './store';
import { clean, size } from './units';
import * as words from './words';

const HINT = 'Point at an array: the mesh shows which block of it each device holds.';

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
      this.element.append(h('p', { class: 'faint' }, HINT));
    }
  }

  private _parts(one: Collective): HTMLElement[] {
    const place = words.at(words.home(one, this.report), this.report);
    const phase = one.phase ? `, ${clean(one.phase)}` : '';
    return [
      h(
        'div',
        { class: 'title' },
        mono(one.kind + words.over(one)),
        ` ${place}${phase} `,
        chip(one)
      ),
      h('p', { class: 'because' }, sentence(words.because(one))),
      chain(one),
      ...playing(one, this.report.mesh),
      h('p', null, words.further(one).join(' ')),
      ...(one.fixes ?? []).map(fix => tried(fix)),
      this._calls(one),
      raw(one)
    ];
  }

  /** The lines that led to it, innermost first. */
  private _calls(one: Collective): HTMLElement {
    const lines = one.frames.map(frame => {
      const source = this.report.sources[frame.source];
      const text = source?.text.split('\n')[frame.line - source.first_line] ?? '';
      const name = frame.function ? ` in ${clean(frame.function)}` : '';
      return h(
        'li',
        null,
        `${words.at(frame, this.report).replace(/^at /, '')}${name} `,
        text && mono(clean(text.trim()))
      );
    });
    const within = one.within.map(part => h('li', null, `inside ${clean(part)}`));
    return h(
      'details',
      { hidden: !lines.length && !within.length },
      h('summary', null, 'How the program gets there'),
      h('ol', { class: 'calls' }, ...lines, ...within)
    );
  }
}

/** What it moves, the exchange, and who needs it so: as far as it is known. */
function chain(one: Collective): HTMLElement {
  const sends = `${words.array(one)} on each device, sends ${size(one.wire_bytes)}`;
  const exchange = `${words.grouping(one)}: ${sends}${words.trips(one)}`;
  const steps = [words.made(one), exchange, words.used(one)].filter(Boolean);
  return h('ol', { class: 'chain' }, ...steps.map(step => h('li', null, step)));
}

/** A button that plays the exchange, and the place where it is played. */
function playing(one: Collective, mesh: Report['mesh']): HTMLElement[] {
  const play = ring(one, mesh);
  if (!play) {
    return [];
  }
  const stage = h('div', { class: 'played' });
  const label = `Play ${clean(one.kind)}`;
  const button = h('button', { type: 'button', class: 'play', 'aria-expanded': 'false' }, label);
  let player: Player | null = null;
  button.addEventListener('click', () => {
    player?.dispose();
    player = player ? null : new Player(play, one, mesh);
    stage.replaceChildren(...(player ? [player.element] : []));
    button.textContent = player ? 'Close' : label;
    button.setAttribute('aria-expanded', String(player !== null));
    player?.start();
  });
  return [button, stage];
}

function tried(fix: Fix): HTMLElement {
  const edit = clean(fix.edit);
  return h('div', { class: 'fix' }, 'Try: ', mono(edit), ` (${words.effect(fix)}) `, copier(edit));
}

/** A button that copies a text. */
export function copier(text: string): HTMLElement {
  const button = h('button', { type: 'button', class: 'copy' }, 'copy');
  button.addEventListener('click', () => {
    void navigator.clipboard.writeText(text).then(
      () => (button.textContent = 'copied'),
      () => (button.textContent = 'not allowed')
    );
  });
  return button;
}

function raw(one: Collective): HTMLElement {
  const text = [one.op_name && `operation ${one.op_name}`, one.instruction].filter(Boolean);
  return h(
    'details',
    { hidden: !text.length },
    h('summary', null, 'As the compiler writes it'),
    h('pre', { class: 'raw' }, text.map(clean).join('\n'))
  );
}

function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
