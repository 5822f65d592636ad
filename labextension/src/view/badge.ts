/** A badge: what a line sends, at its end; it leads to the collective. */

import { h } from './dom';
import { Entry, restText } from './entries';
import { Collective } from './report';
import { Store } from './store';
import * as words from './words';

/** Make a badge: `all-reduce[model] f32[64, 1024] sends 256 KiB [inferred, partial-sum]`. */
export function badge(entry: Entry, store: Store): HTMLElement {
  const first = entry.members[0];
  return h(
    'button',
    { class: 'badge', type: 'button', on: leads(first, store) },
    h('code', { class: 'mono' }, `${entry.name} ${entry.array}`),
    ` ${entry.sends} `,
    chip(first)
  );
}

/** Make the badge of those that are not told one by one. */
export function restBadge(left: readonly Collective[], store: Store): HTMLElement {
  return h('button', { class: 'badge', type: 'button', on: leads(left[0], store) }, restText(left));
}

/** Make the mark that says who asked, in words and in a colour. */
export function chip(collective: Collective): HTMLElement {
  const asker = collective.asked_by ?? 'other';
  const cause = words.cause(collective);
  return h('span', { class: 'chip', 'data-asked': asker, title: cause }, cause);
}

function leads(collective: Collective, store: Store): Record<string, () => void> {
  return {
    click: () => store.set({ chosen: collective }),
    pointerenter: () => store.set({ pointed: collective }),
    pointerleave: () => store.set({ pointed: null })
  };
}
