/** The reports of the open notebooks, as their cells' outputs hold them. */

import { CellList, INotebookModel, NotebookPanel } from '@jupyterlab/notebook';
import { ICellModel, ICodeCellModel, isCodeCellModel } from '@jupyterlab/cells';
import { IOutputModel } from '@jupyterlab/rendermime';
import { ISignal, Signal } from '@lumino/signaling';

import { MIME_TYPE, Report, isPacked, readReport, unpacked } from '../view';
import { KernelChannel } from './channel';
import { edited, previewNotes } from './edited';
import { Note, Shown, cellOf, notesOf, shift } from './notes';
import { Channel, Previews } from './previews';

/** The reports of one notebook. */
export class NotebookReports {
  /** Tells that reports came or went. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** The report that came last, or the last one of the notebook. */
  get last(): Shown | null {
    const newest = this._newest === null ? undefined : this._shown.get(this._newest);
    const filled = [...this._shown.values()].filter(found => found.length);
    return (newest?.length ? newest : filled.at(-1))?.at(-1) ?? null;
  }

  /** What the reports say about a cell, as long as it is what they were made of. */
  about(cell: string): readonly Note[] {
    this._notes ??= this._gather();
    return this._notes.get(cell) ?? [];
  }

  /**
   * Learn that a cell is about to run. It may define its functions anew, so the reports that name
   * it so far are about an older program.
   */
  runs(cell: string): void {
    const past = this._current().filter(shown => shown.report.sources.some((_, i) => cellOf(shown, i) === cell));
    past.forEach(shown => this._outdated.add(shown.report));
    this._ran.add(cell);
    this._previews?.runs(cell);
    if (past.length) {
      this._tell();
    }
  }

  /** Ask a kernel for previews of the lines that are edited; a second view of it asks the same. */
  preview(channel: () => Channel): void {
    if (!this._previews) {
      this._previews = new Previews(channel());
      this._previews.changed.connect(() => this._tell());
    }
  }

  /** The reports of a cell. */
  in(cell: string): readonly Shown[] {
    return this._shown.get(cell) ?? [];
  }

  /** Find a report again. */
  find(cell: string, output: number): Shown | undefined {
    return this.in(cell).find(shown => shown.output === output);
  }

  /** Give the number of a report among those of its cell. */
  place(cell: string, output: number): number {
    return this.in(cell).findIndex(shown => shown.output === output);
  }

  /** Watch a notebook's cells. */
  watch(model: INotebookModel): void {
    model.cells.changed.connect(this._listen, this);
    this._listen(model.cells);
  }

  private _listen(cells: CellList): void {
    const present = new Map<string, Shown[]>();
    for (const cell of cells) {
      if (isCodeCellModel(cell)) {
        // Signals know a listener that is connected twice.
        cell.outputs.changed.connect(this._refresh, this);
        cell.contentChanged.connect(this._edited, this);
        this._models.set(cell.id, cell);
        present.set(cell.id, this._shown.get(cell.id) ?? reportsOf(cell, this._again));
      }
    }
    this._shown = present;
    this._tell();
  }

  /** Read again the cells whose reports are others than before. */
  private _refresh(): void {
    let changed = false;
    for (const [id, before] of this._shown) {
      const cell = this._models.get(id);
      const now = cell?.outputs ? reportsOf(cell, this._again) : before;
      if (now.length !== before.length || now.some((one, i) => one.report !== before[i].report)) {
        this._shown.set(id, now);
        this._newest = now.length ? id : this._newest;
        if (now.length && this._ran.delete(id)) {
          this._previews?.reported();
        }
        changed = true;
      }
    }
    if (changed) {
      this._tell();
    }
  }

  /** Tell that reports of a cell's earlier text no longer fit it, or fit it again. */
  private _edited({ id }: ICellModel): void {
    const edit = this._current().flatMap(shown => edited(shown, this._textOf) ?? []).find(({ cell }) => cell === id);
    if (edit && this._previews) {
      this._previews.edited(id, edit.code);
      this._tell();
      return;
    }
    this._previews?.forget(id);
    const now = this._fits(id);
    if (now !== (this._fit.get(id) ?? '')) {
      this._tell();
      this._fit.set(id, now);
    }
  }

  /** Return which reports fit a cell's text, and from which line on; "" where none names it. */
  private _fits(cell: string): string {
    const code = this._textOf(cell) ?? '';
    return this._all()
      .flatMap(shown => shown.report.sources.filter((_, i) => cellOf(shown, i) === cell))
      .map(source => `${shift(source, code)}`)
      .join(' ');
  }

  private _gather(): Map<string, Note[]> {
    const all = new Map<string, Note[]>();
    for (const shown of this._current()) {
      for (const [cell, notes] of this._notesOf(shown)) {
        all.set(cell, [...(all.get(cell) ?? []), ...notes]);
      }
    }
    return all;
  }

  private _notesOf(shown: Shown): Map<string, Note[]> {
    const edit = this._previews && edited(shown, this._textOf);
    const preview = edit && this._previews?.of(edit.cell, edit.code);
    return preview ? previewNotes(shown, edit, preview, this._textOf) : notesOf(shown, this._textOf);
  }

  /** The reports about the program as it is now. */
  private _current(): Shown[] {
    return this._all().filter(({ report }) => !this._outdated.has(report));
  }

  private _all(): Shown[] {
    return [...this._shown.values()].flat();
  }

  private _tell(): void {
    this._notes = null;
    this._fit.clear();
    this._changed.emit();
  }

  private readonly _textOf = (cell: string): string | undefined =>
    this._shown.has(cell) ? this._models.get(cell)?.sharedModel.getSource() : undefined;
  private readonly _again = (): void => this._refresh();
  private readonly _changed = new Signal<this, void>(this);
  private readonly _models = new Map<string, ICodeCellModel>();
  private readonly _fit = new Map<string, string>();
  private readonly _ran = new Set<string>();
  private readonly _outdated = new WeakSet<Report>();
  private _shown = new Map<string, Shown[]>();
  private _notes: Map<string, Note[]> | null = null;
  private _previews: Previews | null = null;
  private _newest: string | null = null;
}

/** The reports of all open notebooks, by the document that a cell belongs to. */
export class Reports {
  /** Give the reports of a notebook, whether it is watched already or not. */
  of(notebook: object): NotebookReports {
    let found = this._notebooks.get(notebook);
    if (!found) {
      found = new NotebookReports();
      this._notebooks.set(notebook, found);
    }
    return found;
  }

  /** Watch a notebook's panel, as soon as it has its document. */
  async adopt(panel: NotebookPanel): Promise<void> {
    await panel.context.ready;
    const model = panel.content.model;
    if (model && !panel.isDisposed) {
      const reports = this.of(model.sharedModel);
      reports.preview(() => new KernelChannel(panel.sessionContext));
      reports.watch(model);
    }
  }

  private readonly _notebooks = new WeakMap<object, NotebookReports>();
}

// By output, since to ask one for its data copies it all.
const parsed = new WeakMap<object, Report | null>();

function reportsOf(cell: ICodeCellModel, again: () => void): Shown[] {
  const shown: Shown[] = [];
  for (let output = 0; output < cell.outputs.length; output++) {
    const report = read(cell.outputs.get(output), again);
    if (report) {
      shown.push({ cell: cell.id, output, report });
    }
  }
  return shown;
}

/**
 * Read a report once; data that is not a report is left to its output. One that is packed is there
 * after a while: `again` is called then.
 */
function read(output: IOutputModel, again: () => void): Report | null {
  const known = parsed.get(output);
  if (known !== undefined) {
    return known;
  }
  parsed.set(output, null);
  const data = output.data[MIME_TYPE];
  if (data !== undefined) {
    const keep = (plain: unknown): void => void parsed.set(output, readReport(plain));
    try {
      isPacked(data) ? void unpacked(data).then(keep).then(again).catch(() => undefined) : keep(data);
    } catch {
      // The output shows what is wrong with it.
    }
  }
  return parsed.get(output) ?? null;
}
