import { Signal } from '@lumino/signaling';
import { describe, expect, it, vi } from 'vitest';

import { NotebookReports } from '../src/lab/reports';
import { MIME_TYPE } from '../src/view';
import { sketch, spoken } from './samples';

// JupyterLab's cells need a browser; these have what the reports ask of them.
vi.mock('@jupyterlab/cells', () => ({ isCodeCellModel: () => true }));

const CELL = "%%shard x=P('data')\nh = f(x)";
const DEFINES = 'def f(x):\n    return x @ W';

class Kernel {
  free = true;
  readonly freed = new Signal<this, void>(this);
  readonly answered = new Signal<this, any>(this);
  readonly lost = new Signal<this, void>(this);
  readonly asked: any[] = [];
  prepared = 0;
  ask(question: any): void {
    this.asked.push(question);
  }
  prepare(): void {
    this.prepared++;
  }

  retry(): void {}
}

class Cell {
  constructor(
    readonly id: string,
    private _code: string,
    private _outputs: object[] = []
  ) {
    const all = (): object[] => this._outputs;
    this.outputs = {
      get: (i: number) => all()[i],
      changed: new Signal<object, void>(this),
      get length() {
        return all().length;
      }
    };
  }

  readonly outputs: { get(i: number): object; changed: Signal<object, void>; length: number };
  readonly contentChanged = new Signal<this, void>(this);
  readonly sharedModel = { getSource: () => this._code };

  write(code: string): void {
    this._code = code;
    this.contentChanged.emit();
  }

  put(...outputs: object[]): void {
    this._outputs = outputs;
    this.outputs.changed.emit();
  }
}

function output(): object {
  const sources = [
    { name: 'Cell In[2]', text: CELL, cell_id: 'calls' },
    { name: 'Cell In[1]', text: DEFINES, cell_id: 'defines' }
  ];
  const badges = [{ ids: '0', head: 'h', sends: 's', mark: 'm' }];
  const data = spoken({ ...sketch(), sources, values: [], outputs: [] });
  data.said.lines = [[{ line: 2, badges }], [{ line: 2, badges }]];
  return { data: { [MIME_TYPE]: data } };
}

function notebook(): { reports: NotebookReports; calls: Cell; defines: Cell; shown: () => string[] } {
  const defines = new Cell('defines', DEFINES);
  const calls = new Cell('calls', CELL, [output()]);
  const cells: any = [defines, calls, new Cell('other', 'z = 1')];
  cells.changed = new Signal<object, void>(cells);
  const reports = new NotebookReports();
  reports.watch({ cells } as any);
  const shown = () => ['calls', 'defines', 'other'].filter(id => reports.about(id).length);
  return { reports, calls, defines, shown };
}

describe('the reports of a notebook', () => {
  it('speak of the cell that was explained and of the one that defines its function', () => {
    expect(notebook().shown()).toEqual(['calls', 'defines']);
  });

  it('say nothing while the explained cell is another, and speak again when it is undone', () => {
    const { calls, shown } = notebook();
    calls.write(`${CELL}\ng = 1`);
    expect(shown()).toEqual([]);
    calls.write(CELL);
    expect(shown()).toEqual(['calls', 'defines']);
  });

  it('say nothing of the cell with the function while that is another', () => {
    const { defines, shown } = notebook();
    defines.write(DEFINES.replace('W', 'V'));
    expect(shown()).toEqual(['calls']);
    defines.write(DEFINES);
    expect(shown()).toEqual(['calls', 'defines']);
  });

  it('say nothing once the cell with the function runs, until a new report comes', () => {
    const { reports, calls, shown } = notebook();
    reports.runs('defines');
    expect(shown()).toEqual([]);
    calls.put(output());
    expect(shown()).toEqual(['calls', 'defines']);
  });

  it('stay when a cell runs that they do not name', () => {
    const { reports, shown } = notebook();
    reports.runs('other');
    expect(shown()).toEqual(['calls', 'defines']);
  });

  it('stay away when a cell that ran is undone to what was compiled', () => {
    const { reports, defines, shown } = notebook();
    defines.write('f = None');
    reports.runs('defines');
    defines.write(DEFINES);
    expect(shown()).toEqual([]);
  });

  it('tell of edits that matter alone', () => {
    const { reports, calls, defines } = notebook();
    let told = 0;
    reports.changed.connect(() => told++);
    calls.write(`${CELL} `);
    told = 0;
    calls.write(`${CELL}  `);
    expect(told).toBe(0);
    calls.write(`${CELL}0`);
    expect(told).toBe(1);
    calls.write(`${CELL}01`);
    expect(told).toBe(1);
    defines.write(`\n${DEFINES}`);
    expect(told).toBe(2);
  });

  it('show a preview while the line alone is another, and the badges once it is undone', async () => {
    const { reports, calls, shown } = notebook();
    const kernel = new Kernel();
    reports.preview(() => kernel);
    const edited = CELL.replace('data', 'model');
    calls.write(edited);
    await new Promise(done => setTimeout(done, 30));
    expect(kernel.asked).toEqual([{ number: 1, cell: 'calls', code: edited }]);
    kernel.answered.emit({ number: 1, kind: 'preview', types: [[0, 2, 'h', 'f32[8@model]']] });
    const [sign, h] = reports.about('calls');
    expect([sign.sign?.kind, h.types[0].text, h.marks]).toEqual(['preview', 'f32[8@model]', []]);
    calls.write(`${edited}\ng = 1`);
    expect(shown()).toEqual([]);
    calls.write(CELL);
    expect(reports.about('calls')[0].marks).toHaveLength(1);
    expect(shown()).toEqual(['calls', 'defines']);
  });

  it('prepare the kernel for questions once it made a report, not for a saved one', () => {
    const { reports, calls } = notebook();
    const kernel = new Kernel();
    reports.preview(() => kernel);
    calls.put(output());
    expect(kernel.prepared).toBe(0);
    reports.runs('calls');
    calls.put();
    calls.put(output());
    expect(kernel.prepared).toBe(1);
  });

  it('ask for no preview once the cell with the function ran', async () => {
    const { reports, calls, shown } = notebook();
    const kernel = new Kernel();
    reports.preview(() => kernel);
    reports.runs('defines');
    calls.write(CELL.replace('data', 'model'));
    await new Promise(done => setTimeout(done, 30));
    expect([kernel.asked, shown()]).toEqual([[], []]);
  });
});
