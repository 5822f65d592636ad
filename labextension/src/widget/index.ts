/** The widgets' door, as anywidget loads it: `view` says what is drawn. */

import { WIDGETS } from '../generated/vocabulary';
import { OWN_KEYS, h } from '../view/dom';
import { mount } from '../view/index';
import { clean, fill } from '../view/slots';
import { check } from './check';
import { explorer } from './explorer';
import { Draw, Model } from './model';
import { predict } from './predict';

const KEPT = '.shardnb-kept';

const VIEWS: Record<string, Draw> = { check, explorer, predict };

function render({ model, el }: { model: Model; el: HTMLElement }): () => void {
  const root = h('div', { class: 'report widget', ...OWN_KEYS });
  el.replaceChildren(root);
  const draw = VIEWS[String(model.get('view'))];
  if (!draw) {
    root.append(h('div', { class: 'error', role: 'alert' }, fill(WIDGETS.noView, { name: clean(String(model.get('view'))) })));
    return () => root.remove();
  }
  const end = draw(telling(model, root), root);
  return () => {
    end();
    root.remove();
  };
}

/** Say with each message whether the view stays where its output is replaced (see lab/kept.ts). */
function telling(model: Model, root: HTMLElement): Model {
  return {
    get: name => model.get(name),
    send: content => model.send({ ...content, keeps: Boolean(root.closest(KEPT)) }),
    on: (event, call) => model.on(event, call),
    off: (event, call) => model.off(event, call)
  };
}

export { mount };
export default { render };
