/** The comm on which a notebook's kernel is asked for previews. */

import { ISessionContext } from '@jupyterlab/apputils';
import { ISignal, Signal } from '@lumino/signaling';

import { Answer, Channel, Question } from './previews';

const TARGET = 'shardnb.preview';

type Kernel = NonNullable<NonNullable<ISessionContext['session']>['kernel']>;
type Comm = ReturnType<Kernel['createComm']>;

export class KernelChannel implements Channel {
  constructor(private readonly session: ISessionContext) {
    session.kernelChanged.connect(() => this._lose());
    session.statusChanged.connect((_, status) => {
      if (status === 'idle') {
        this._freed.emit();
      } else if (status !== 'busy') {
        this._lose();
      }
    });
  }

  get freed(): ISignal<this, void> {
    return this._freed;
  }

  get answered(): ISignal<this, Answer> {
    return this._answered;
  }

  get lost(): ISignal<this, void> {
    return this._lost;
  }

  get free(): boolean {
    const kernel = this._kernel;
    return kernel !== null && kernel.status === 'idle' && kernel.id !== this._without;
  }

  ask(question: Question): void {
    const kernel = this._kernel;
    if (kernel) {
      void this._open(kernel).then(comm => {
        if (comm.isDisposed) {
          this._answered.emit({ number: question.number, kind: 'unknown' });
        } else {
          comm.send({ ...question });
        }
      });
    }
  }

  prepare(): void {
    const kernel = this._kernel;
    if (kernel) {
      void this._open(kernel);
    }
  }

  retry(): void {
    this._without = '';
  }

  /** Open the comm; a kernel in which shardnb is not loaded closes it at once. */
  private async _open(kernel: Kernel): Promise<Comm> {
    if (!this._comm || this._comm.isDisposed) {
      const comm = kernel.createComm(TARGET);
      this._comm = comm;
      comm.onMsg = ({ content }) => this._answered.emit(content.data as unknown as Answer);
      comm.onClose = () => {
        this._without = kernel.id;
      };
      this._opened = comm.open().done;
    }
    const comm = this._comm;
    await this._opened;
    return comm;
  }

  private _lose(): void {
    this._comm = null;
    this._without = '';
    this._lost.emit();
  }

  private get _kernel(): Kernel | null {
    return this.session.session?.kernel ?? null;
  }

  private readonly _freed = new Signal<this, void>(this);
  private readonly _answered = new Signal<this, Answer>(this);
  private readonly _lost = new Signal<this, void>(this);
  private _comm: Comm | null = null;
  private _opened: Promise<unknown> = Promise.resolve();
  private _without = '';
}
