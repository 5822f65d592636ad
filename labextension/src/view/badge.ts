/** A badge: what a line sends, at its end; it leads to the collective. */

import type { Asker, Badge } from '../generated/report';
import { ASKER_COLOURS, OTHER_COLOURS, REPORT } from '../generated/vocabulary';
import { h } from './dom';
import { Collective } from './report';
import { fill } from './slots';
import { Store } from './store';

/** Make a badge: `all-reduce[model] f32[64, 1024] sends 256 KiB [inferred, partial-sum]`. */
export function badge({ head, sends }: Badge, one: Collective, store: Store): HTMLElement {
  const props = { class: 'badge', type: 'button', on: leads(one, store) };
  // Without a head, it stands for those that are not told.
  return head
    ? h('button', props, h('code', { class: 'mono' }, head), ` ${sends} `, chip(one))
    : h('button', props, sends);
}

/** Make the mark that says who asked, in words and in a colour. */
export function chip(collective: Collective): HTMLElement {
  const cause = collective.say('cause');
  const label = h('span', { class: 'chip', title: cause }, cause);
  paint(label, collective.say('asked') as Asker);
  return label;
}

/** Colour a label by who asked; without an asker, as one that says nothing of it. */
export function paint(label: HTMLElement, asker: Asker | null): void {
  const [ground, text] = asker ? ASKER_COLOURS[asker] : OTHER_COLOURS;
  label.style.background = ground;
  label.style.color = text;
}

/** Write what one sends: `sends 256 KiB x4`. */
export function sends(one: Collective): string {
  return fill(REPORT.sends, { size: one.say('size'), trips: one.say('trips') });
}

function leads(collective: Collective, store: Store): Record<string, () => void> {
  return {
    click: () => store.set({ chosen: collective }),
    pointerenter: () => store.set({ pointed: collective }),
    pointerleave: () => store.set({ pointed: null })
  };
}
