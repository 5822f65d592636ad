/** Widgets in outputs: the live one while a kernel has it, else what it showed last, as HTML. */

import { IRenderMime, IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { Panel } from '@lumino/widgets';

export const WIDGET_TYPE = 'application/vnd.shardnb.widget.v1+json';
const VIEW = 'application/vnd.jupyter.widget-view+json';
const HTML = 'text/html';
// Widgets register at -10: this must come before them.
const RANK = -20;

/** Have a notebook show our widgets so. */
export function keepWidgets(rendermime: IRenderMimeRegistry): void {
  rendermime.addFactory(
    { safe: true, mimeTypes: [WIDGET_TYPE], createRenderer: () => new KeptWidget(rendermime) },
    RANK
  );
}

/**
 * An output with a widget. The kernel replaces its HTML as the widget goes on; the widget's own view
 * stays then, with its focus and all.
 */
class KeptWidget extends Panel implements IRenderMime.IRenderer {
  constructor(private readonly rendermime: IRenderMimeRegistry) {
    super();
    this.addClass('shardnb-kept');
  }

  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    const id = (model.data[VIEW] as { model_id?: string } | undefined)?.model_id ?? '';
    // What is not trusted runs nothing: there the HTML is shown, sanitized.
    if (model.trusted && id && id !== this._id && this.rendermime.mimeTypes.includes(VIEW)) {
      this._id = id;
      this._replace(0, VIEW, 'shardnb-alive', model);
    }
    this._replace(1, HTML, 'shardnb-still', model);
  }

  private _replace(at: 0 | 1, type: string, name: string, model: IRenderMime.IMimeModel): void {
    const renderer = this.rendermime.createRenderer(type);
    renderer.addClass(name);
    this._parts[at]?.dispose();
    this._parts[at] = renderer;
    // The live one comes first, and what was kept stands below until that one is there.
    this.insertWidget(at, renderer);
    void renderer.renderModel(model).catch(() => undefined);
  }

  private readonly _parts: (IRenderMime.IRenderer | undefined)[] = [];
  private _id = '';
}
