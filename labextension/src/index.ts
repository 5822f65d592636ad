/** The JupyterLab extension: badges and types in editors, the report's panel, its commands. */

import {
  ILabShell,
  ILayoutRestorer,
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette, WidgetTracker } from '@jupyterlab/apputils';
import { ICodeCellModel } from '@jupyterlab/cells';
import { EditorExtensionRegistry, IEditorExtensionRegistry } from '@jupyterlab/codemirror';
import { ILauncher } from '@jupyterlab/launcher';
import { INotebookTracker, NotebookActions, NotebookPanel } from '@jupyterlab/notebook';
import { ISettingRegistry } from '@jupyterlab/settingregistry';

import { EDITOR } from './generated/vocabulary';
import { cellBadges } from './lab/badges';
import { keepWidgets } from './lab/kept';
import { Mark } from './lab/notes';
import { OPEN, chooseIn, numberIn } from './lab/open';
import { ReportPanel } from './lab/panel';
import { Reports } from './lab/reports';
import { Settings, Wish } from './lab/settings';

const ID = 'shardnb:plugin';

/** The commands' names. */
export const COMMANDS = {
  open: 'shardnb:open-report',
  badges: 'shardnb:toggle-badges',
  types: 'shardnb:toggle-types',
  brief: 'shardnb:toggle-brief'
};

const plugin: JupyterFrontEndPlugin<void> = {
  id: ID,
  description: EDITOR.purpose,
  autoStart: true,
  requires: [INotebookTracker, IEditorExtensionRegistry],
  optional: [ISettingRegistry, ICommandPalette, ILauncher, ILabShell, ILayoutRestorer],
  activate
};

function activate(
  app: JupyterFrontEnd,
  tracker: INotebookTracker,
  editors: IEditorExtensionRegistry,
  registry: ISettingRegistry | null,
  palette: ICommandPalette | null,
  launcher: ILauncher | null,
  lab: ILabShell | null,
  restorer: ILayoutRestorer | null
): void {
  const reports = new Reports();
  const settings = new Settings();
  const panel = new PanelKeeper(app, tracker, reports, lab);
  const adopt = (found: NotebookPanel): void => {
    keepWidgets(found.content.rendermime);
    void reports.adopt(found);
  };
  tracker.forEach(adopt);
  tracker.widgetAdded.connect((_, found) => adopt(found));
  NotebookActions.executionScheduled.connect((_, { notebook, cell }) => {
    if (notebook.model) {
      reports.of(notebook.model.sharedModel).runs(cell.model.id);
    }
  });
  if (registry) {
    settings.follow(registry, ID).catch(error => console.error(EDITOR.noSettings, error));
  }
  const open = (mark: Mark): void => void openMark(mark, tracker, reports, panel);
  editors.addExtension({
    name: 'shardnb:badges',
    // For a cell's editor the model is the cell's own.
    factory: ({ model }) =>
      'outputs' in model && 'sharedModel' in model
        ? EditorExtensionRegistry.createImmutableExtension(
            cellBadges(model as unknown as ICodeCellModel, reports, settings, open)
          )
        : null
  });
  document.addEventListener(OPEN, event => openReport(event.target as Element, tracker, reports, panel));
  addCommands(app, settings, panel, palette, launcher);
  panel.restore(restorer);
}

function addCommands(
  app: JupyterFrontEnd,
  settings: Settings,
  panel: PanelKeeper,
  palette: ICommandPalette | null,
  launcher: ILauncher | null
): void {
  app.commands.addCommand(COMMANDS.open, {
    label: args => (args.isLauncher ? EDITOR.panel : EDITOR.openCommand),
    caption: EDITOR.openCaption,
    execute: () => void panel.open()
  });
  const toggles: [string, Wish, string][] = [
    [COMMANDS.badges, 'badges', EDITOR.badgesCommand],
    [COMMANDS.types, 'types', EDITOR.typesCommand],
    [COMMANDS.brief, 'brief', EDITOR.briefCommand]
  ];
  for (const [command, wish, label] of toggles) {
    app.commands.addCommand(command, {
      label,
      isToggled: () => settings[wish],
      execute: () => settings.toggle(wish)
    });
  }
  settings.changed.connect(() => app.commands.notifyCommandChanged());
  Object.values(COMMANDS).forEach(command => palette?.addItem({ command, category: EDITOR.category }));
  launcher?.add({ command: COMMANDS.open, args: { isLauncher: true }, category: 'Other' });
}

/** Show a badge's collective in the cell's output, or in the panel where there is none. */
async function openMark(
  mark: Mark,
  tracker: INotebookTracker,
  reports: Reports,
  panel: PanelKeeper
): Promise<void> {
  const notebook = tracker.currentWidget;
  const model = notebook?.content.model;
  if (!notebook || !model) {
    return;
  }
  const all = reports.of(model.sharedModel);
  const cell = notebook.content.widgets.find(widget => widget.model.id === mark.cell);
  if (cell) {
    await notebook.content.scrollToCell(cell, 'auto');
    await cell.ready;
    if (chooseIn(cell.node, all.place(mark.cell, mark.output), mark.ids)) {
      return;
    }
  }
  const found = all.find(mark.cell, mark.output);
  if (found) {
    const shown = panel.open();
    shown.put(found.report);
    shown.choose(mark.ids);
  }
}

/** Show a rendered report in the panel. */
function openReport(
  element: Element,
  tracker: INotebookTracker,
  reports: Reports,
  panel: PanelKeeper
): void {
  const shown = panel.open();
  const content = tracker.currentWidget?.content;
  const cell = content?.widgets.find(widget => widget.node.contains(element));
  if (content?.model && cell) {
    const all = reports.of(content.model.sharedModel).in(cell.model.id);
    shown.put(all[numberIn(cell.node, element)]?.report ?? null);
  }
}

/** Keeps one panel, with the last report of the notebook at hand. */
class PanelKeeper {
  constructor(
    private readonly app: JupyterFrontEnd,
    private readonly notebooks: INotebookTracker,
    private readonly reports: Reports,
    private readonly lab: ILabShell | null
  ) {
    notebooks.currentChanged.connect(() => this._follow());
  }

  /** Bring the panel to the front. */
  open(): ReportPanel {
    const { shell } = this.app;
    if (!this._panel || this._panel.isDisposed) {
      this._panel = new ReportPanel();
      void this._tracker.add(this._panel);
      this._follow();
    }
    if (!this._panel.isAttached) {
      // Notebook 7 has one main widget, the notebook: there the panel stands at its side.
      shell.add(this._panel, this.lab ? 'main' : 'right', this.lab ? { mode: 'split-right' } : {});
    }
    shell.activateById(this._panel.id);
    return this._panel;
  }

  /** Open it again where it was open when the page was left. */
  restore(restorer: ILayoutRestorer | null): void {
    void restorer?.restore(this._tracker, { command: COMMANDS.open, name: () => 'report' });
  }

  private _follow(): void {
    const model = this.notebooks.currentWidget?.content.model;
    this._followed?.changed.disconnect(this._show, this);
    this._followed = model ? this.reports.of(model.sharedModel) : this._followed;
    this._followed?.changed.connect(this._show, this);
    this._show();
  }

  private _show(): void {
    if (this._panel && !this._panel.isDisposed) {
      this._panel.put(this._followed?.last?.report ?? null);
    }
  }

  private readonly _tracker = new WidgetTracker<ReportPanel>({ namespace: 'shardnb' });
  private _panel: ReportPanel | null = null;
  private _followed: ReturnType<Reports['of']> | null = null;
}

export default plugin;
