/** A badge: what a line sends, at its end; it leads to the collectives. */

import type { Badge, Tone } from '../generated/report';
import { TONES } from '../generated/vocabulary';
import { button, h, mono } from './dom';
import { Report, numbers } from './report';
import { Store } from './store';

/** Make a badge: `all-reduce[model] f32[64, 1024] 256 KiB`, in the colour of its cost and cause. */
export function badge({ ids, head, sends, cause, tone }: Badge, report: Report, store: Store): HTMLElement {
  const members = numbers(ids);
  const first = report.byId.get(members[0]) ?? null;
  // Without a head, it stands for those that are not shown.
  const made = button(head ? '' : sends, () => store.pick('code', members, first), { class: 'badge', title: cause });
  if (head) {
    made.replaceChildren(mono(head), ' ', chip(sends, tone));
  }
  made.addEventListener('pointerenter', () => store.set({ pointed: first }));
  made.addEventListener('pointerleave', () => store.set({ pointed: null }));
  return made;
}

/** Make a label in the colour of a cost and a cause. */
export function chip(text: string, tone: Tone): HTMLElement {
  const label = h('span', { class: 'chip' }, text);
  paint(label, tone);
  return label;
}

/** Colour a label. */
export function paint(label: HTMLElement, tone: Tone): void {
  const [ground, text] = TONES[tone];
  label.style.background = ground;
  label.style.color = text;
}
