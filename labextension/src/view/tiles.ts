/** A grid of tiles on a canvas: drawn once, then marked; led by the pointer or by the keys. */

import { INK, REPORT } from '../generated/vocabulary';
import { Tint } from './colours';
import { OWN_KEYS, h, sized } from './dom';
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
  /** How far two places are apart: 0 on one host, 1 on two, 2 in two slices. */
  apart?: (one: number, other: number) => number;
  /** What the lines between them separate. */
  notes?: readonly string[];
}

type Pen = CanvasRenderingContext2D;

/** From so many pixels on, a tile has a label, and patterns and gaps can be seen. */
const LABELLED = 12;
const PATTERNED = 8;
/** Seen on the tiles and on a dark page alike. */
const FENCE = '#d33333';

const ARROWS: Record<string, readonly [right: number, below: number] | undefined> = {
  ArrowRight: [1, 0],
  ArrowLeft: [-1, 0],
  ArrowDown: [0, 1],
  ArrowUp: [0, -1]
};

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
        pointermove: ({ offsetX, offsetY }: PointerEvent) =>
          this._drawn && this._go(placeAt(this._drawn, offsetX, offsetY)),
        pointerleave: () => this._go(null),
        blur: () => this._go(null),
        keydown: (event: KeyboardEvent) => this._key(event)
      }
    });
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
      picture.across && `\u2192 ${picture.across}`,
      ...(picture.notes ?? [])
    ];
    this._edges.replaceChildren(...edges.filter(Boolean).map(edge => h('span', null, edge)));
    this._canvas.setAttribute('aria-label', fill(REPORT.arrowKeys, { title: picture.title }));
    sized(this._canvas, this._drawn);
  }

  /** Paint the picture that was laid out. */
  paint(): void {
    this._ground = document.createElement('canvas');
    this._ground.width = this._canvas.width;
    this._ground.height = this._canvas.height;
    const pen = this._ground.getContext('2d');
    if (pen && this._picture && this._drawn) {
      const scale = window.devicePixelRatio || 1;
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
    const [ground, drawn, lit] = [this._ground, this._drawn, this._lit];
    if (!pen || !ground || !drawn) {
      return;
    }
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, this._canvas.width, this._canvas.height);
    pen.drawImage(ground, 0, 0);
    const scale = window.devicePixelRatio || 1;
    pen.scale(scale, scale);
    if (lit) {
      pen.fillStyle = 'rgba(128, 128, 128, 0.6)';
      drawn.x.forEach((x, place) => {
        if (!lit.has(place)) {
          pen.fillRect(x, drawn.y[place], drawn.tile.width, drawn.tile.height);
        }
      });
    }
    this._marks.forEach(place => outline(pen, drawn, place));
  }

  private _go(place: number | null): void {
    if (place !== this._at) {
      this._at = place;
      this.point(place);
    }
  }

  private _key(event: KeyboardEvent): void {
    const next = this._drawn && step(this._drawn, this._at, event.key);
    if (next !== null) {
      event.preventDefault();
      event.stopPropagation();
      this._go(next);
    }
  }

  private readonly _canvas: HTMLCanvasElement;
  private readonly _edges = h('div', { class: 'edges' });
  private readonly _readout = h('div', { class: 'readout', 'aria-live': 'polite' });
  private _picture: Picture | null = null;
  private _ground: HTMLCanvasElement | null = null;
  private _drawn: Arrangement | null = null;
  private _marks: readonly number[] = [];
  private _lit: ReadonlySet<number> | null = null;
  private _at: number | null = null;
}

/** Give the place that a key leads to: the nearest tile in its direction, by what is seen. */
export function step({ x, y }: Arrangement, at: number | null, key: string): number | null {
  if (key === 'Home' || (at === null && key.startsWith('Arrow'))) {
    return 0;
  }
  if (key === 'End') {
    return x.length - 1;
  }
  const arrow = ARROWS[key];
  if (at === null || !arrow) {
    return null;
  }
  const [right, below] = arrow;
  let nearest = at;
  let least = Infinity;
  for (let place = 0; place < x.length; place++) {
    const aside = right ? y[place] - y[at] : x[place] - x[at];
    const along = right ? (x[place] - x[at]) * right : (y[place] - y[at]) * below;
    // A tile straight ahead comes before a nearer one that is aside.
    const distance = along + 3 * Math.abs(aside);
    if (along > 0.5 && distance < least) {
      [nearest, least] = [place, distance];
    }
  }
  return nearest;
}

function paint(pen: Pen, picture: Picture, drawn: Arrangement): void {
  const { width, height } = drawn.tile;
  const inset = width >= PATTERNED ? 1 : 0;
  drawn.x.forEach((x, place) => {
    const tint = picture.tint(place);
    pen.fillStyle = tint.ground;
    pen.fillRect(x, drawn.y[place], width - inset, height - inset);
    if (tint.pattern && width >= PATTERNED) {
      pattern(pen, tint.pattern, drawn, place);
    }
  });
  if (picture.striped) {
    stripes(pen, 'rgba(0, 0, 0, 0.26)', drawn, () =>
      drawn.x.forEach((x, place) => pen.rect(x, drawn.y[place], width - inset, height - inset))
    );
  }
  if (height >= LABELLED) {
    pen.font = `${height < 16 ? 10 : 12}px system-ui, sans-serif`;
    pen.textAlign = 'center';
    pen.textBaseline = 'middle';
    drawn.x.forEach((_, place) => label(pen, picture, drawn, place));
    picture.links?.forEach(link => line(pen, drawn, link));
  }
  fences(pen, picture, drawn);
  captions(pen, picture, drawn);
}

/** Draw lines between tiles of different hosts, thick ones between slices. */
function fences(pen: Pen, { apart }: Picture, { x, y, tile }: Arrangement): void {
  if (!apart) {
    return;
  }
  const key = (right: number, below: number): string =>
    `${Math.round(right / tile.width)},${Math.round(below / tile.height)}`;
  const at = new Map([...x].map((right, place) => [key(right, y[place]), place]));
  const small = Math.min(tile.width, tile.height) < PATTERNED;
  const width = small ? 1 : 2;
  pen.save();
  pen.fillStyle = FENCE;
  x.forEach((right, place) => {
    const below = y[place];
    const left = at.get(key(right - tile.width, below));
    const above = at.get(key(right, below - tile.height));
    const far = {
      left: left === undefined ? 0 : apart(left, place),
      above: above === undefined ? 0 : apart(above, place)
    };
    // Of small tiles the lines between hosts would hide as much as they show.
    pen.globalAlpha = small && far.left < 2 ? 0.4 : 1;
    pen.fillRect(right - (width * far.left) / 2 - 0.5, below, width * far.left, tile.height);
    pen.globalAlpha = small && far.above < 2 ? 0.4 : 1;
    pen.fillRect(right, below - (width * far.above) / 2 - 0.5, tile.width, width * far.above);
  });
  pen.restore();
}

function pattern(pen: Pen, shape: Tint['pattern'], drawn: Arrangement, place: number): void {
  const { width, height } = drawn.tile;
  pen.fillStyle = pen.strokeStyle = 'rgba(0, 0, 0, 0.32)';
  pen.lineWidth = 1;
  const pitch = Math.min(9, width / 2, height / 2);
  for (let right = pitch / 2; right < width - 2; right += pitch) {
    for (let below = pitch / 2; below < height - 2; below += pitch) {
      const [x, y] = [drawn.x[place] + right, drawn.y[place] + below];
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
  }
}

/** Draw the stripes of a pending partial sum over what `area` outlines. */
export function stripes(pen: Pen, colour: string, box: Box, area: () => void, x = 0, y = 0): void {
  pen.save();
  pen.beginPath();
  area();
  pen.clip();
  pen.strokeStyle = colour;
  pen.lineWidth = 2;
  pen.beginPath();
  for (let right = -box.height; right < box.width; right += 7) {
    pen.moveTo(x + right, y + box.height);
    pen.lineTo(x + right + box.height, y);
  }
  pen.stroke();
  pen.restore();
}

function label(pen: Pen, picture: Picture, drawn: Arrangement, place: number): void {
  const { width, height } = drawn.tile;
  const text = picture.labels(place).find(words => pen.measureText(words).width <= width - 6);
  if (!text) {
    return;
  }
  const { x, y } = centre(drawn, place);
  const tint = picture.tint(place);
  if (picture.striped || tint.pattern) {
    const half = pen.measureText(text).width / 2 + 3;
    pen.fillStyle = tint.ground;
    pen.fillRect(x - half, y - Math.min(8, height / 2 - 1), 2 * half, Math.min(16, height - 2));
  }
  pen.fillStyle = INK;
  pen.fillText(text, x, y);
}

/** Join two places at the sides that face each other; an arrow runs beside the labels. */
function line(pen: Pen, drawn: Arrangement, { from, to, arrow }: Link): void {
  const { width, height } = drawn.tile;
  const [begin, goal] = [centre(drawn, from), centre(drawn, to)];
  const length = Math.hypot(goal.x - begin.x, goal.y - begin.y) || 1;
  const along = { x: (goal.x - begin.x) / length, y: (goal.y - begin.y) / length };
  const aside = arrow ? 10 + 8 * Math.abs(along.y) : 0;
  const point = (far: number, off: number): [number, number] => [
    begin.x + along.x * far - along.y * off,
    begin.y + along.y * far + along.x * off
  ];
  // How far from its centre a tile nearly ends in this direction.
  const across = Math.abs(along.x) > 1e-6 ? (width / 2 - 7) / Math.abs(along.x) : Infinity;
  const down = Math.abs(along.y) > 1e-6 ? (height / 2 - 6) / Math.abs(along.y) : Infinity;
  const cut = Math.min(across, down);
  const middle = point(length / 2, aside * (length > 120 ? 1.8 : 1));
  const tip = point(length - cut, aside);
  pen.strokeStyle = pen.fillStyle = INK;
  pen.lineWidth = 1.5;
  pen.beginPath();
  pen.moveTo(...point(cut, aside));
  pen.quadraticCurveTo(...middle, ...tip);
  pen.stroke();
  if (arrow) {
    const angle = Math.atan2(tip[1] - middle[1], tip[0] - middle[0]);
    pen.beginPath();
    pen.moveTo(...tip);
    for (const turn of [2.6, -2.6]) {
      pen.lineTo(tip[0] + 7 * Math.cos(angle + turn), tip[1] + 7 * Math.sin(angle + turn));
    }
    pen.fill();
  }
}

function centre({ x, y, tile }: Arrangement, place: number): { x: number; y: number } {
  return { x: x[place] + tile.width / 2, y: y[place] + tile.height / 2 };
}

function captions(pen: Pen, picture: Picture, { sheets, width }: Arrangement): void {
  if (sheets.length < 2 || sheets[0].y === 0) {
    return;
  }
  pen.font = '11px system-ui, sans-serif';
  pen.textAlign = 'left';
  pen.textBaseline = 'alphabetic';
  pen.fillStyle = '#888';
  const room = sheets[1].x > 0 ? sheets[1].x - 4 : width;
  for (const sheet of sheets) {
    const full = sheet.at.map(([dim, place]) => picture.caption(dim, place)).join(', ');
    const short = sheet.at.map(([, place]) => place).join(', ');
    const text = [full, short].find(words => pen.measureText(words).width <= room);
    pen.fillText(text ?? '', sheet.x, sheet.y - 4);
  }
}

/** Outline a tile in dark within light, which is seen on any ground. */
function outline(pen: Pen, drawn: Arrangement, place: number): void {
  const { width, height } = drawn.tile;
  const thick = width >= 12 ? 2 : 1;
  const [x, y] = [drawn.x[place], drawn.y[place]];
  pen.lineWidth = thick;
  for (const [colour, inner] of [['#fff', thick * 1.5], ['#000', thick / 2]] as const) {
    pen.strokeStyle = colour;
    pen.strokeRect(x + inner, y + inner, width - 2 * inner - 1, height - 2 * inner - 1);
  }
}
