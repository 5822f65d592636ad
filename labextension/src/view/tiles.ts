/** A grid of tiles on a canvas: drawn once, then marked; led by the pointer or by the keys. */

import { INK, REPORT } from '../generated/vocabulary';
import { Tint } from './colours';
import { OWN_KEYS, h } from './dom';
import { Arrangement, Box, arrange, placeAt } from './geometry';
import { fill } from './slots';

/** A line between two places; with `arrow`, its direction counts. */
export interface Link {
  from: number;
  to: number;
  arrow: boolean;
}

/** What is drawn: a tile for each place of a grid, by its row-major number. */
export interface Picture {
  grid: readonly number[];
  /** Along the edges: what runs down and across. */
  down: string;
  across: string;
  /** What a reader who cannot see it hears first. */
  title: string;
  tint: (place: number) => Tint;
  /** Labels to try, longest first; the first that fits is drawn. */
  labels: (place: number) => readonly string[];
  caption: (dim: number, place: number) => string;
  striped?: boolean;
  links?: readonly Link[];
}

const LABELLED = 12;
const SPACING = 1;

export class Tiles {
  readonly element: HTMLElement;

  /** `point` hears which place the pointer or the keys are at, or null. */
  constructor(
    private readonly box: Box,
    private readonly point: (place: number | null) => void
  ) {
    this._canvas = h('canvas', {
      class: 'canvas',
      role: 'img',
      tabindex: 0,
      ...OWN_KEYS,
      on: {
        pointermove: (event: PointerEvent) => this._move(event),
        pointerleave: () => this._go(null),
        blur: () => this._go(null),
        keydown: (event: KeyboardEvent) => this._key(event)
      }
    });
    this._edges = h('div', { class: 'edges' });
    this._readout = h('div', { class: 'readout', 'aria-live': 'polite' });
    this.element = h('div', { class: 'plot' }, this._edges, this._canvas, this._readout);
  }

  /** Draw a picture in place of the last one. */
  show(picture: Picture): void {
    this.layOut(picture);
    this.paint();
  }

  /** Take the room that a picture needs; it is painted later. */
  layOut(picture: Picture): void {
    this._picture = picture;
    this._drawn = arrange(picture.grid, this.box);
    this._marks = [];
    this._lit = null;
    const edges = [
      picture.down && `\u2193 ${picture.down}`,
      picture.across && `\u2192 ${picture.across}`
    ];
    this._edges.replaceChildren(...edges.filter(Boolean).map(edge => h('span', null, edge)));
    this._canvas.setAttribute('aria-label', fill(REPORT.arrowKeys, { title: picture.title }));
    const { width, height } = this._drawn;
    const scale = window.devicePixelRatio || 1;
    this._canvas.style.width = `${width}px`;
    this._canvas.style.height = `${height}px`;
    this._canvas.width = Math.ceil(width * scale);
    this._canvas.height = Math.ceil(height * scale);
  }

  /** Paint the picture that was laid out. */
  paint(): void {
    const scale = window.devicePixelRatio || 1;
    this._ground = document.createElement('canvas');
    this._ground.width = this._canvas.width;
    this._ground.height = this._canvas.height;
    const pen = this._ground.getContext('2d');
    if (pen && this._picture && this._drawn) {
      pen.scale(scale, scale);
      paint(pen, this._picture, this._drawn);
    }
    this._compose();
  }

  /** Mark places: `marks` by an outline, all but `lit` (if given) by shade. */
  mark(marks: readonly number[], lit: ReadonlySet<number> | null = null): void {
    this._marks = marks;
    this._lit = lit;
    this._compose();
  }

  /** Say what is at the pointer; "" for nothing. */
  say(text: string): void {
    this._readout.textContent = text;
  }

  private _compose(): void {
    const pen = this._canvas.getContext('2d');
    if (!pen || !this._ground || !this._drawn) {
      return;
    }
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, this._canvas.width, this._canvas.height);
    pen.drawImage(this._ground, 0, 0);
    const scale = window.devicePixelRatio || 1;
    pen.scale(scale, scale);
    shade(pen, this._drawn, this._lit);
    this._marks.forEach(place => outline(pen, this._drawn as Arrangement, place));
  }

  private _move(event: PointerEvent): void {
    if (this._drawn) {
      this._go(placeAt(this._drawn, event.offsetX, event.offsetY));
    }
  }

  private _go(place: number | null): void {
    if (place !== this._at) {
      this._at = place;
      this.point(place);
    }
  }

  private _key(event: KeyboardEvent): void {
    const next = this._drawn && step(this._drawn, this._at, event.key);
    if (next !== null && next !== undefined) {
      event.preventDefault();
      event.stopPropagation();
      this._go(next);
    }
  }

  private readonly _canvas: HTMLCanvasElement;
  private readonly _edges: HTMLElement;
  private readonly _readout: HTMLElement;
  private _picture: Picture | null = null;
  private _ground: HTMLCanvasElement | null = null;
  private _drawn: Arrangement | null = null;
  private _marks: readonly number[] = [];
  private _lit: ReadonlySet<number> | null = null;
  private _at: number | null = null;
}

/** Give the place that a key leads to: the nearest tile in its direction, by what is seen. */
export function step(drawn: Arrangement, at: number | null, key: string): number | null {
  const last = drawn.x.length - 1;
  if (key === 'Home' || (at === null && key.startsWith('Arrow'))) {
    return 0;
  }
  if (key === 'End') {
    return last;
  }
  const ways: Record<string, [number, number]> = {
    ArrowRight: [1, 0],
    ArrowLeft: [-1, 0],
    ArrowDown: [0, 1],
    ArrowUp: [0, -1]
  };
  const way = ways[key];
  return way && at !== null ? nearest(drawn, at, way) : null;
}

function nearest(drawn: Arrangement, at: number, [right, below]: [number, number]): number {
  let found = at;
  let least = Infinity;
  for (let place = 0; place < drawn.x.length; place++) {
    const x = (drawn.x[place] - drawn.x[at]) * (right || 1);
    const y = (drawn.y[place] - drawn.y[at]) * (below || 1);
    const [along, aside] = right ? [x, Math.abs(y)] : [y, Math.abs(x)];
    const distance = along + 3 * aside;
    if (along > 0.5 && distance < least) {
      [found, least] = [place, distance];
    }
  }
  return found;
}

function paint(pen: CanvasRenderingContext2D, picture: Picture, drawn: Arrangement): void {
  const { width, height } = drawn.tile;
  const inset = width >= 8 ? SPACING : 0;
  for (let place = 0; place < drawn.x.length; place++) {
    const tint = picture.tint(place);
    pen.fillStyle = tint.ground;
    pen.fillRect(drawn.x[place], drawn.y[place], width - inset, height - inset);
    if (tint.pattern && width >= 8) {
      pattern(pen, tint, drawn, place);
    }
  }
  if (picture.striped) {
    stripe(pen, drawn, inset);
  }
  if (height >= LABELLED) {
    label(pen, picture, drawn);
    (picture.links ?? []).forEach(link => line(pen, drawn, link));
  }
  captions(pen, picture, drawn);
}

function pattern(
  pen: CanvasRenderingContext2D,
  tint: Tint,
  drawn: Arrangement,
  place: number
): void {
  const { width, height } = drawn.tile;
  pen.fillStyle = pen.strokeStyle = 'rgba(0, 0, 0, 0.32)';
  pen.lineWidth = 1;
  const pitch = Math.min(9, width / 2, height / 2);
  for (let x = pitch / 2; x < width - 2; x += pitch) {
    for (let y = pitch / 2; y < height - 2; y += pitch) {
      dot(pen, tint.pattern, drawn.x[place] + x, drawn.y[place] + y);
    }
  }
}

function dot(pen: CanvasRenderingContext2D, shape: Tint['pattern'], x: number, y: number): void {
  if (shape === 'dots') {
    pen.fillRect(x - 0.75, y - 0.75, 1.5, 1.5);
  } else if (shape === 'plus') {
    pen.fillRect(x - 2, y - 0.5, 4, 1);
    pen.fillRect(x - 0.5, y - 2, 1, 4);
  } else {
    pen.beginPath();
    pen.arc(x, y, 2, 0, 2 * Math.PI);
    pen.stroke();
  }
}

/** Draw the stripes of a pending partial sum over all tiles. */
function stripe(pen: CanvasRenderingContext2D, drawn: Arrangement, inset: number): void {
  pen.save();
  pen.beginPath();
  for (let place = 0; place < drawn.x.length; place++) {
    const { width, height } = drawn.tile;
    pen.rect(drawn.x[place], drawn.y[place], width - inset, height - inset);
  }
  pen.clip();
  pen.strokeStyle = 'rgba(0, 0, 0, 0.26)';
  pen.lineWidth = 2;
  pen.beginPath();
  for (let x = -drawn.height; x < drawn.width; x += 7) {
    pen.moveTo(x, drawn.height);
    pen.lineTo(x + drawn.height, 0);
  }
  pen.stroke();
  pen.restore();
}

function label(pen: CanvasRenderingContext2D, picture: Picture, drawn: Arrangement): void {
  const { width, height } = drawn.tile;
  pen.font = `${height < 16 ? 10 : 12}px system-ui, sans-serif`;
  pen.textAlign = 'center';
  pen.textBaseline = 'middle';
  for (let place = 0; place < drawn.x.length; place++) {
    const room = width - 6;
    const text = picture.labels(place).find(words => pen.measureText(words).width <= room);
    if (text) {
      const x = drawn.x[place] + width / 2;
      const y = drawn.y[place] + height / 2;
      if (picture.striped || picture.tint(place).pattern) {
        const half = pen.measureText(text).width / 2 + 3;
        pen.fillStyle = picture.tint(place).ground;
        pen.fillRect(x - half, y - Math.min(8, height / 2 - 1), 2 * half, Math.min(16, height - 2));
      }
      pen.fillStyle = INK;
      pen.fillText(text, x, y);
    }
  }
}

/** Join two places at the sides that face each other; an arrow runs beside the labels. */
function line(pen: CanvasRenderingContext2D, drawn: Arrangement, link: Link): void {
  const [from, to] = [centre(drawn, link.from), centre(drawn, link.to)];
  const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
  const along = { x: (to.x - from.x) / length, y: (to.y - from.y) / length };
  const aside = link.arrow ? 10 + 8 * Math.abs(along.y) : 0;
  const cut = edgeAt(drawn.tile, along);
  const start = shifted(from, along, cut, aside);
  const end = shifted(to, along, -cut, aside);
  const middle = shifted(from, along, length / 2, aside * (length > 120 ? 1.8 : 1));
  pen.strokeStyle = pen.fillStyle = INK;
  pen.lineWidth = 1.5;
  pen.beginPath();
  pen.moveTo(start.x, start.y);
  pen.quadraticCurveTo(middle.x, middle.y, end.x, end.y);
  pen.stroke();
  if (link.arrow) {
    head(pen, end, Math.atan2(end.y - middle.y, end.x - middle.x));
  }
}

/** Give how far from its centre a tile nearly ends in a direction. */
function edgeAt({ width, height }: Box, along: Point): number {
  const across = Math.abs(along.x) > 1e-6 ? (width / 2 - 7) / Math.abs(along.x) : Infinity;
  const down = Math.abs(along.y) > 1e-6 ? (height / 2 - 6) / Math.abs(along.y) : Infinity;
  return Math.min(across, down);
}

function shifted(from: Point, along: Point, far: number, aside: number): Point {
  return {
    x: from.x + along.x * far - along.y * aside,
    y: from.y + along.y * far + along.x * aside
  };
}

interface Point {
  x: number;
  y: number;
}

function head(pen: CanvasRenderingContext2D, tip: Point, angle: number): void {
  pen.beginPath();
  pen.moveTo(tip.x, tip.y);
  for (const turn of [2.6, -2.6]) {
    pen.lineTo(tip.x + 7 * Math.cos(angle + turn), tip.y + 7 * Math.sin(angle + turn));
  }
  pen.fill();
}

function centre(drawn: Arrangement, place: number): Point {
  const { width, height } = drawn.tile;
  return { x: drawn.x[place] + width / 2, y: drawn.y[place] + height / 2 };
}

function captions(pen: CanvasRenderingContext2D, picture: Picture, drawn: Arrangement): void {
  if (drawn.sheets.length < 2 || drawn.sheets[0].y === 0) {
    return;
  }
  pen.font = '11px system-ui, sans-serif';
  pen.textAlign = 'left';
  pen.textBaseline = 'alphabetic';
  pen.fillStyle = '#888';
  const room = drawn.sheets[1].x > 0 ? drawn.sheets[1].x - 4 : drawn.width;
  for (const sheet of drawn.sheets) {
    const full = sheet.at.map(([dim, place]) => picture.caption(dim, place)).join(', ');
    const short = sheet.at.map(([, place]) => place).join(', ');
    const text = [full, short].find(words => pen.measureText(words).width <= room);
    pen.fillText(text ?? '', sheet.x, sheet.y - 4);
  }
}

function shade(
  pen: CanvasRenderingContext2D,
  drawn: Arrangement,
  lit: ReadonlySet<number> | null
): void {
  if (!lit) {
    return;
  }
  pen.fillStyle = 'rgba(128, 128, 128, 0.6)';
  for (let place = 0; place < drawn.x.length; place++) {
    if (!lit.has(place)) {
      pen.fillRect(drawn.x[place], drawn.y[place], drawn.tile.width, drawn.tile.height);
    }
  }
}

/** Outline a tile in dark within light, which is seen on any ground. */
function outline(pen: CanvasRenderingContext2D, drawn: Arrangement, place: number): void {
  const { width, height } = drawn.tile;
  const thick = width >= 12 ? 2 : 1;
  pen.lineWidth = thick;
  pen.strokeStyle = '#fff';
  const inner = thick * 1.5;
  const [x, y] = [drawn.x[place], drawn.y[place]];
  pen.strokeRect(x + inner, y + inner, width - 2 * inner - 1, height - 2 * inner - 1);
  pen.strokeStyle = '#000';
  pen.strokeRect(x + thick / 2, y + thick / 2, width - thick - 1, height - thick - 1);
}

