/** Plays a collective: blocks move between devices, the stripes of a partial sum turn solid. */

import { INK, REPORT } from '../generated/vocabulary';
import { tint } from './colours';
import { OWN_KEYS, h } from './dom';
import { Collective, Mesh } from './report';
import { Cell, Play, isInPairs } from './ring';
import { fill, numbered } from './slots';

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
    this._width = NAME + columns * (this._side + GAP);
    this._height = play.members.length * (this._side + GAP);
    this._canvas = h('canvas', { class: 'canvas still', role: 'img' });
    this._said = h('div', { class: 'caption', 'aria-live': 'polite' });
    this._toggle = button(REPORT.pause, () => (this._running ? this.pause() : this.start()));
    this._slider = h('input', {
      type: 'range',
      ...OWN_KEYS,
      class: 'slider',
      min: 0,
      max: this._steps,
      'aria-label': REPORT.exchangeStep,
      on: {
        input: () => {
          this.pause();
          this.go(Number(this._slider.value));
        }
      }
    });
    this.element = h(
      'div',
      { class: 'player' },
      h(
        'div',
        { class: 'stepper' },
        button('\u2190', () => this._by(-1), REPORT.back),
        this._toggle,
        button('\u2192', () => this._by(1), REPORT.on),
        this._slider,
        this._said
      ),
      this._canvas,
      h('p', { class: 'faint' }, this._about())
    );
    this._resize();
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
    this._running = false;
    this._toggle.textContent = REPORT.playOn;
    cancelAnimationFrame(this._frame);
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

  private get _steps(): number {
    return this.play.moves.length;
  }

  private _by(steps: number): void {
    this.pause();
    this.go(this._at + steps);
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
    const moving = this._running && !this._still && this._at < this._steps;
    const text = this._text(this._at + (moving ? 1 : 0));
    this._said.textContent = text;
    this._canvas.setAttribute('aria-label', text);
  }

  private _text(made: number): string {
    if (made === 0) {
      const partial = this.play.whole > 1 && this.play.frames[0][0].every(Boolean);
      return partial ? REPORT.beforeSums : REPORT.before;
    }
    const slots = { step: made, all: this._steps, said: this.play.said[made - 1] };
    return fill(this._at === this._steps ? REPORT.lastStep : REPORT.step, slots);
  }

  private _about(): string {
    const { play, one } = this;
    const permute = isInPairs(one);
    const drawn = play.members.length;
    const who = permute ? REPORT.sentA : REPORT.sentEach;
    return [
      play.all > drawn && fill(REPORT.standFor, { drawn, all: play.all }),
      numbered(who, play.sends, { size: one.say('size') }),
      !permute && one.groups.length > 1 && REPORT.allGroups,
      REPORT.assumes
    ]
      .filter(Boolean)
      .join('');
  }

  private _resize(): void {
    const scale = window.devicePixelRatio || 1;
    this._canvas.style.width = `${this._width}px`;
    this._canvas.style.height = `${this._height}px`;
    this._canvas.width = Math.ceil(this._width * scale);
    this._canvas.height = Math.ceil(this._height * scale);
  }

  /** Draw the present step, its blocks on their way by the given part. */
  private _draw(part: number): void {
    const pen = this._canvas.getContext('2d');
    if (!pen) {
      return;
    }
    const scale = window.devicePixelRatio || 1;
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, this._width, this._height);
    this._names(pen);
    const moves = (part > 0 && this.play.moves[this._at]) || [];
    const gone = new Set(moves.map(move => `${move.from}:${move.slot}`));
    const gives = this.play.frames[this._at + 1];
    this.play.frames[this._at].forEach((row, device) =>
      row.forEach((cell, slot) => {
        const leaves = gone.has(`${device}:${slot}`) && gives && !gives[device][slot];
        this._cell(pen, leaves ? null : cell, this._x(slot), this._y(device));
      })
    );
    const eased = part * part * (3 - 2 * part);
    for (const { from, to, slot, target, cell } of moves) {
      const x = this._x(slot) + (this._x(target) - this._x(slot)) * eased;
      const y = this._y(from) + (this._y(to) - this._y(from)) * eased;
      this._cell(pen, cell, x, y);
    }
  }

  private _names(pen: CanvasRenderingContext2D): void {
    pen.font = '12px system-ui, sans-serif';
    pen.textAlign = 'left';
    pen.textBaseline = 'middle';
    pen.fillStyle = getComputedStyle(this._canvas).color;
    this.play.members.forEach((position, i) => {
      const text = fill(REPORT.device, { id: this.mesh.device_ids[position] });
      pen.fillText(text, 0, this._y(i) + this._side / 2);
    });
  }

  private _cell(pen: CanvasRenderingContext2D, cell: Cell | null, x: number, y: number): void {
    const side = this._side;
    if (!cell) {
      pen.strokeStyle = 'rgba(128, 128, 128, 0.45)';
      pen.lineWidth = 1;
      pen.strokeRect(x + 0.5, y + 0.5, side - 1, side - 1);
      return;
    }
    const { ground } = tint(cell.block, this.play.blocks);
    pen.fillStyle = ground;
    pen.fillRect(x, y, side, side);
    if (cell.parts < this.play.whole) {
      stripes(pen, x, y, side);
    }
    this._label(pen, cell, x + side / 2, y + side / 2, ground);
  }

  /** Say of how many devices a block is the sum, or which block it is. */
  private _label(
    pen: CanvasRenderingContext2D,
    cell: Cell,
    x: number,
    y: number,
    ground: string
  ): void {
    const sums = this.play.whole > 1;
    const text = sums ? `${cell.parts}/${this.play.whole}` : String(cell.block);
    pen.font = `${this._side < 24 ? 9 : 11}px system-ui, sans-serif`;
    pen.textAlign = 'center';
    pen.textBaseline = 'middle';
    const width = pen.measureText(text).width;
    if (width > this._side) {
      return;
    }
    if (sums && cell.parts < this.play.whole) {
      pen.fillStyle = ground;
      pen.fillRect(x - width / 2 - 1, y - 6, width + 2, 12);
    }
    pen.fillStyle = INK;
    pen.fillText(text, x, y);
  }

  private _x(slot: number): number {
    return NAME + slot * (this._side + GAP);
  }

  private _y(device: number): number {
    return device * (this._side + GAP);
  }

  private readonly _still: boolean;
  private readonly _canvas: HTMLCanvasElement;
  private readonly _said: HTMLElement;
  private readonly _toggle: HTMLButtonElement;
  private readonly _slider: HTMLInputElement;
  private readonly _side: number;
  private readonly _width: number;
  private readonly _height: number;
  private _at = 0;
  private _running = false;
  private _began = 0;
  private _frame = 0;
}

function button(text: string, click: () => void, name = text): HTMLButtonElement {
  return h('button', { type: 'button', 'aria-label': name === text ? null : name, on: { click } }, text);
}

function stripes(pen: CanvasRenderingContext2D, x: number, y: number, side: number): void {
  pen.save();
  pen.beginPath();
  pen.rect(x, y, side, side);
  pen.clip();
  pen.strokeStyle = 'rgba(0, 0, 0, 0.3)';
  pen.lineWidth = 2;
  pen.beginPath();
  for (let at = -side; at < side; at += 7) {
    pen.moveTo(x + at, y + side);
    pen.lineTo(x + at + side, y);
  }
  pen.stroke();
  pen.restore();
}
