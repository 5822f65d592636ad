/** A badge: what a line sends, at its end; it leads to the collective. */

import type { Asker, Badge } from '../generated/report';
import { ASKER_COLOURS, OTHER_COLOURS } from '../generated/vocabulary';
import { button, h, mono } from './dom';
import { Collective } from './report';
import { Store } from './store';

/** Make a badge: `all-reduce[model] f32[64, 1024] sends 256 KiB [inferred, partial-sum]`. */
export function badge({ head, sends }: Badge, one: Collective, store: Store): HTMLElement {
  const choose = (): void => store.set({ chosen: one });
  // Without a head, it stands for those that are not told.
  const made = button(head ? '' : sends, choose, { class: 'badge' });
  if (head) {
    made.replaceChildren(mono(head), ` ${sends} `, chip(one));
  }
  made.addEventListener('pointerenter', () => store.set({ pointed: one }));
  made.addEventListener('pointerleave', () => store.set({ pointed: null }));
  return made;
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
