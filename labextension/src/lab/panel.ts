/** A panel that shows the last report of the notebook at hand. */

import { Widget } from '@lumino/widgets';

import { EDITOR } from '../generated/vocabulary';
import { Report, View, mountReport } from '../view';
import { h, mono } from '../view/dom';

export class ReportPanel extends Widget {
  constructor() {
    super();
    this.id = 'shardnb-report-panel';
    this.title.label = EDITOR.panel;
    this.title.caption = EDITOR.panelCaption;
    this.title.closable = true;
    this.addClass('shardnb-panel');
    this.put(null);
  }

  /** Put a report on the panel, or what to do to get one. */
  put(report: Report | null): void {
    if (report === this._report) {
      return;
    }
    this._report = report;
    this._view?.dispose();
    this._view = report ? mountReport(this.node, { ...report, brief: false }, { editor: true }) : null;
    if (!report) {
      this.node.replaceChildren(nothingYet());
    }
  }

  /** Look at collectives of the report. */
  choose(ids: readonly number[]): void {
    this._view?.choose(...ids);
  }

  override dispose(): void {
    this._view?.dispose();
    super.dispose();
  }

  private _report: Report | null | undefined;
  private _view: View | null = null;
}

function nothingYet(): HTMLElement {
  return h(
    'div',
    { class: 'report' },
    h('p', null, EDITOR.noReport, mono('%%shard'), ':'),
    h('pre', { class: 'raw' }, EDITOR.example)
  );
}
