/** The key to a thing that picks collectives when it is clicked anywhere. */

import { Props, button } from './dom';
import { Store } from './store';

/** A button in such a thing: what is clicked or pressed here, the thing hears. */
export function pickButton(text: string, ids: readonly number[], store: Store, more: Props = {}): HTMLElement {
  const key = button(text, () => undefined, { class: 'pick', 'aria-pressed': 'false', ...more });
  store.subscribe(({ picked }, changed) => {
    if (changed.has('picked')) {
      key.setAttribute('aria-pressed', String(picked?.given === ids));
    }
  });
  return key;
}
