/** The widgets' door, as anywidget loads it: `view` says what is drawn. */

import { WIDGETS } from '../generated/vocabulary';
import { OWN_KEYS, h } from '../view/dom';
import { mount } from '../view/index';
import { clean, fill } from '../view/slots';
import { check } from './check';
import { explorer } from './explorer';
import { Draw, Model } from './model';
import { predict } from './predict';

const VIEWS: Record<string, Draw> = { check, explorer, predict };

function render({ model, el }: { model: Model; el: HTMLElement }): () => void {
  const root = h('div', { class: 'report widget', ...OWN_KEYS });
  el.replaceChildren(root);
  const draw = VIEWS[String(model.get('view'))];
  if (!draw) {
    root.append(h('div', { class: 'error', role: 'alert' }, fill(WIDGETS.noView, { name: clean(String(model.get('view'))) })));
    return () => root.remove();
  }
  const end = draw(model, root);
  return () => {
    end();
    root.remove();
  };
}

export { mount };
export default { render };
