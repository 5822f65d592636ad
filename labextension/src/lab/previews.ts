/** Previews of edited `%%shard` lines: what is asked of the kernel, and what it answered. */

import { ISignal, Signal } from '@lumino/signaling';

/** A question to the kernel; see `shardnb/magics/preview_channel.py`. */
export interface Question {
  number: number;
  cell: string;
  code: string;
}

/** The source and the line of a value in a report, its name and its type. */
export type Placed = readonly [number, number, string, string];

export interface Answer {
  number: number;
  kind: 'preview' | 'compiled' | 'refused' | 'none' | 'busy' | 'unknown';
  said?: string;
  types?: readonly Placed[];
}

/** The way to a kernel. */
export interface Channel {
  /** Whether there is a kernel that runs nothing, so that a question does not wait in it. */
  readonly free: boolean;
  /** Tells that it became free. */
  readonly freed: ISignal<unknown, void>;
  readonly answered: ISignal<unknown, Answer>;
  /** Tells that the kernel has gone, and what it was asked. */
  readonly lost: ISignal<unknown, void>;
  ask(question: Question): void;
  /** Prepare for questions to a kernel that knows them. */
  prepare(): void;
  /** Try again with a kernel that did not know such questions. */
  retry(): void;
}

/** What an edited line leads to, as far as it is known. */
export interface Preview {
  /** The types; `compiled` for those of the report, null where none are known. */
  types: readonly Placed[] | 'compiled' | null;
  /** Whether they belong to the line as it is now. */
  fresh: boolean;
  /** What is wrong with the line, or why there is no preview. */
  hint: string;
}

/** Milliseconds in which edits are one, such as a bracket and the one that closes it. */
const TOGETHER = 5;
/** Milliseconds without an edit after which a line that is wrong counts as written. */
const WRITTEN = 450;
/** Milliseconds for which an older preview stands while the kernel does not answer. */
const PATIENCE = 1000;
/** Milliseconds after which a kernel that traces a cell is asked again. */
const AGAIN = 200;

interface Entry {
  code: string;
  preview: Preview;
  edited: number;
}

/** The edited lines of one notebook. One question is under way at a time, the newest one next. */
export class Previews {
  constructor(private readonly channel: Channel) {
    channel.freed.connect(() => this._freed());
    channel.lost.connect(() => this._lose());
    channel.answered.connect((_, answer) => this._answered(answer));
  }

  /** Tells that another preview is known. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** Learn the text of a cell whose line was edited. */
  edited(cell: string, code: string): void {
    const before = this._entries.get(cell);
    if (before?.code === code) {
      return;
    }
    // Between two previews the first one stands, faded, so that nothing jumps.
    const types = this.channel.free || this._asked ? (before ? before.preview.types : 'compiled') : null;
    this._entries.set(cell, { code, preview: { types, fresh: false, hint: '' }, edited: Date.now() });
    this._wanted = cell;
    clearTimeout(this._timer);
    this._timer = setTimeout(() => this._ask(), TOGETHER);
  }

  /** What is known of a cell's text; null where nothing can be. */
  of(cell: string, code: string): Preview | null {
    const entry = this._entries.get(cell);
    return entry?.code === code ? entry.preview : null;
  }

  /** Forget a cell, which runs, or is what was compiled again. */
  forget(cell: string): void {
    this._entries.delete(cell);
  }

  /** Learn that a cell runs, which may bring the kernel to know such questions. */
  runs(cell: string): void {
    this.forget(cell);
    this.channel.retry();
  }

  /** Learn that a report came from the kernel. */
  reported(): void {
    this.channel.prepare();
  }

  private _ask(): void {
    const entry = this._wanted === null ? undefined : this._entries.get(this._wanted);
    if (this._wanted === null || !entry || this._asked || !this.channel.free) {
      return;
    }
    const question = { number: ++this._number, cell: this._wanted, code: entry.code };
    this._asked = question;
    this._overdue = false;
    this._wanted = null;
    this.channel.ask(question);
    setTimeout(() => this._late(question), PATIENCE);
  }

  private _answered(answer: Answer): void {
    const asked = this._asked;
    if (answer.number !== asked?.number) {
      return;
    }
    this._asked = null;
    const entry = this._entries.get(asked.cell);
    if (answer.kind === 'busy') {
      this._wanted ??= asked.cell;
      setTimeout(() => this._ask(), AGAIN);
      return;
    }
    if (entry?.code === asked.code) {
      this._settle(asked.cell, entry, answer);
    }
    this._ask();
  }

  /** The kernel is free: what it was asked long ago and has not answered, it never will. */
  private _freed(): void {
    this._asked = this._overdue ? null : this._asked;
    this._overdue = false;
    this._ask();
  }

  private _settle(cell: string, entry: Entry, { kind, said = '', types = [] }: Answer): void {
    if (kind === 'preview' || kind === 'compiled') {
      this._show(entry, kind === 'preview' ? types : 'compiled', '');
    } else if (kind === 'unknown') {
      this._show(entry, null, '');
    } else {
      // Half a spec is not a mistake yet: what is wrong is said once nobody types.
      const rest = Math.max(0, WRITTEN - (Date.now() - entry.edited));
      setTimeout(() => this._entries.get(cell) === entry && this._show(entry, null, said), rest);
    }
  }

  private _show(entry: Entry, types: Preview['types'], hint: string): void {
    entry.preview = { types, fresh: true, hint };
    this._changed.emit();
  }

  /** Take what stands since before from a line that the kernel does not answer. */
  private _late(question: Question): void {
    const entry = this._entries.get(question.cell);
    this._overdue = this._asked === question;
    if (this._overdue && entry) {
      entry.preview = { types: null, fresh: false, hint: '' };
      this._changed.emit();
    }
  }

  private _lose(): void {
    this._asked = null;
    this._wanted = null;
    this._entries.clear();
    this._changed.emit();
  }

  private readonly _changed = new Signal<this, void>(this);
  private readonly _entries = new Map<string, Entry>();
  private _asked: Question | null = null;
  private _overdue = false;
  private _wanted: string | null = null;
  private _timer: ReturnType<typeof setTimeout> | undefined;
  private _number = 0;
}
