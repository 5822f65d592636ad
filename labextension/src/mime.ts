/** The report's MIME renderer: a saved notebook shows the live report, without a kernel. */

import { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import { Widget } from '@lumino/widgets';

import { EDITOR } from './generated/vocabulary';
import { CHOOSE, OPEN, isBrief } from './lab/open';
import { MIME_TYPE, View, mountKept } from './view';

class RenderedReport extends Widget implements IRenderMime.IRenderer {
  constructor(private readonly mimeType: string) {
    super();
    this.addClass('shardnb-output');
    this.node.addEventListener(CHOOSE, event => {
      this._view?.choose(...(event as CustomEvent<readonly number[]>).detail);
    });
  }

  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    this._view?.dispose();
    const open = (): void => void this.node.dispatchEvent(new CustomEvent(OPEN, { bubbles: true }));
    const host = { editor: true, brief: isBrief(), open };
    this._view = await mountKept(this.node, model.data[this.mimeType], host);
  }

  override dispose(): void {
    this._view?.dispose();
    super.dispose();
  }

  private _view: View | undefined;
}

const extension: IRenderMime.IExtension = {
  id: 'shardnb:report',
  description: EDITOR.rendererPurpose,
  rendererFactory: {
    safe: true,
    mimeTypes: [MIME_TYPE],
    createRenderer: options => new RenderedReport(options.mimeType)
  },
  // Widgets register at -10: the report of a saved notebook must come before them.
  rank: -20,
  dataType: 'json'
};

export default extension;
