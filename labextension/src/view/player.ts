/** Plays a collective: blocks move between devices, the stripes of a partial sum turn solid. */

import { INK, REPORT } from '../generated/vocabulary';
import { tint } from './colours';
import { button, h, sized, slider } from './dom';
import { Collective, Mesh } from './report';
import { Cell, Play, isInPairs } from './ring';
import { fill, numbered } from './slots';
import { stripes } from './tiles';

/** Milliseconds of a step; longer where the reader wants no motion, and steps jump. */
const STEP = 900;
const STILL = 1400;
const SIDE = 34;
const NAME = 74;
const GAP = 4;
const ROOM = 480;

export class Player {
  readonly element: HTMLElement;

  constructor(
    private readonly play: Play,
    private readonly one: Collective,
    private readonly mesh: Mesh
  ) {
    this._still = window.matchMedia?.('(prefers-reduced-motion: reduce)').matches ?? false;
    const columns = play.frames[0][0].length;
    this._side = Math.max(14, Math.min(SIDE, Math.floor((ROOM - NAME) / columns) - GAP));
    this._pitch = this._side + GAP;
    this._size = { width: NAME + columns * this._pitch, height: play.members.length * this._pitch };
    this._steps = play.moves.length;
    this._toggle = button(REPORT.pause, () => (this._running ? this.pause() : this.start()));
    this._slider = slider(this._steps, REPORT.exchangeStep, step => {
      this.pause();
      this.go(step);
    });
    const by = (text: string, name: string, steps: number): HTMLElement => {
      const click = (): void => {
        this.pause();
        this.go(this._at + steps);
      };
      return button(text, click, { 'aria-label': name });
    };
    this.element = h(
      'div',
      { class: 'player' },
      h(
        'div',
        { class: 'stepper' },
        by('\u2190', REPORT.back, -1),
        this._toggle,
        by('\u2192', REPORT.on, 1),
        this._slider,
        this._caption
      ),
      this._canvas,
      h('p', { class: 'faint' }, this._about())
    );
    sized(this._canvas, this._size);
    this.go(0);
  }

  /** Play from here; from the beginning once the end is reached. */
  start(): void {
    if (this._at >= this._steps) {
      this.go(0);
    }
    this._running = true;
    this._tell();
    this._toggle.textContent = REPORT.pause;
    this._began = performance.now();
    this._frame = requestAnimationFrame(now => this._tick(now));
  }

  pause(): void {
    this.dispose();
    this._toggle.textContent = REPORT.playOn;
    this._tell();
    this._draw(0);
  }

  /** Show what devices hold after so many steps. */
  go(step: number): void {
    this._at = Math.max(0, Math.min(this._steps, step));
    this._slider.value = String(this._at);
    this._tell();
    this._draw(0);
  }

  dispose(): void {
    cancelAnimationFrame(this._frame);
    this._running = false;
  }

  private _tick(now: number): void {
    if (!this._running || !this.element.isConnected) {
      return;
    }
    const part = (now - this._began) / (this._still ? STILL : STEP);
    if (part >= 1) {
      this._began = now;
      this.go(this._at + 1);
      if (this._at >= this._steps) {
        this.pause();
        return;
      }
    } else if (!this._still) {
      this._draw(part);
    }
    this._frame = requestAnimationFrame(later => this._tick(later));
  }

  /** Say the step that was made last, or the one that is being made. */
  private _tell(): void {
    const { play, _at: at, _steps: all } = this;
    const made = at + (this._running && !this._still && at < all ? 1 : 0);
    const partial = play.whole > 1 && play.frames[0][0].every(Boolean);
    const slots = { step: made, all, said: play.said[made - 1] };
    const step = fill(at === all ? REPORT.lastStep : REPORT.step, slots);
    const text = made ? step : partial ? REPORT.beforeSums : REPORT.before;
    this._caption.textContent = text;
    this._canvas.setAttribute('aria-label', text);
  }

  private _about(): string {
    const { play, one } = this;
    const inPairs = isInPairs(one);
    const drawn = play.members.length;
    const who = inPairs ? REPORT.sentA : REPORT.sentEach;
    return [
      play.all > drawn ? fill(REPORT.standFor, { drawn, all: play.all }) : '',
      numbered(who, play.sends, { size: one.say('size') }),
      !inPairs && one.groups.length > 1 ? REPORT.allGroups : '',
      REPORT.assumes
    ].join('');
  }

  /** Draw the present step, its blocks on their way by the given part. */
  private _draw(part: number): void {
    const pen = this._canvas.getContext('2d');
    if (!pen) {
      return;
    }
    const { play, _at: at } = this;
    const scale = window.devicePixelRatio || 1;
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, this._size.width, this._size.height);
    pen.font = '12px system-ui, sans-serif';
    pen.textAlign = 'left';
    pen.textBaseline = 'middle';
    pen.fillStyle = getComputedStyle(this._canvas).color;
    play.members.forEach((position, i) => {
      const text = fill(REPORT.device, { id: this.mesh.device_ids[position] });
      pen.fillText(text, 0, i * this._pitch + this._side / 2);
    });
    const moves = (part > 0 && play.moves[at]) || [];
    const gone = new Set(moves.map(move => `${move.from}:${move.slot}`));
    const gives = play.frames[at + 1];
    play.frames[at].forEach((row, device) =>
      row.forEach((cell, slot) => {
        const leaves = gone.has(`${device}:${slot}`) && gives && !gives[device][slot];
        this._cell(pen, leaves ? null : cell, slot, device);
      })
    );
    const eased = part * part * (3 - 2 * part);
    for (const { from, to, slot, target, cell } of moves) {
      this._cell(pen, cell, slot + (target - slot) * eased, from + (to - from) * eased);
    }
  }

  /** Draw a block in a slot of a device, or between two of them. */
  private _cell(pen: CanvasRenderingContext2D, cell: Cell | null, slot: number, row: number): void {
    const { _side: side, play } = this;
    const [x, y] = [NAME + slot * this._pitch, row * this._pitch];
    if (!cell) {
      pen.strokeStyle = 'rgba(128, 128, 128, 0.45)';
      pen.lineWidth = 1;
      pen.strokeRect(x + 0.5, y + 0.5, side - 1, side - 1);
      return;
    }
    const { ground } = tint(cell.block, play.blocks);
    const box = { width: side, height: side };
    const isPartial = cell.parts < play.whole;
    pen.fillStyle = ground;
    pen.fillRect(x, y, side, side);
    if (isPartial) {
      stripes(pen, 'rgba(0, 0, 0, 0.3)', box, () => pen.rect(x, y, side, side), x, y);
    }
    // Of how many devices a block is the sum, or which block it is.
    const text = play.whole > 1 ? `${cell.parts}/${play.whole}` : String(cell.block);
    pen.font = `${side < 24 ? 9 : 11}px system-ui, sans-serif`;
    pen.textAlign = 'center';
    pen.textBaseline = 'middle';
    const width = pen.measureText(text).width;
    if (width > side) {
      return;
    }
    if (isPartial) {
      pen.fillStyle = ground;
      pen.fillRect(x + side / 2 - width / 2 - 1, y + side / 2 - 6, width + 2, 12);
    }
    pen.fillStyle = INK;
    pen.fillText(text, x + side / 2, y + side / 2);
  }

  private readonly _still: boolean;
  private readonly _canvas = h('canvas', { class: 'canvas still', role: 'img' });
  private readonly _caption = h('div', { class: 'caption', 'aria-live': 'polite' });
  private readonly _toggle: HTMLButtonElement;
  private readonly _slider: HTMLInputElement;
  private readonly _side: number;
  private readonly _pitch: number;
  private readonly _size: { width: number; height: number };
  private readonly _steps: number;
  private _at = 0;
  private _running = false;
  private _began = 0;
  private _frame = 0;
}
