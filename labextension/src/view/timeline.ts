/** One run: when the selected devices computed, and when which collective was under way. */

import type { DeviceTimeline } from '../generated/report';
import { REPORT, TONES } from '../generated/vocabulary';
import { button, h } from './dom';
import { Collective, Report } from './report';
import { clean } from './slots';
import { Focus, Store } from './store';

/** Devices that are shown at first. */
const FEW = 4;
/** The drawing's own units: it is stretched to its place. */
const WIDTH = 1000;
const HEIGHT = 16;
/** What is shorter can still be seen and clicked. */
const LEAST = 1.5;

const SVG = 'http://www.w3.org/2000/svg';

export class Timeline {
  readonly element = h('div', { class: 'timeline' });

  constructor(
    private readonly report: Report,
    private readonly store: Store
  ) {
    this._lines = report.profile?.timeline ?? [];
    const times = this._lines.flatMap(({ computing, communicating }) => [computing.at(-1), ...communicating]);
    this._end = times.reduce<number>((most, time) => Math.max(most, time ?? 0), 0) || 1;
    this._shown = new Set(this._lines.slice(0, FEW));
    const computing = h('span', { class: 'held' }, h('span', { class: 'swatch computing' }), REPORT.computing);
    const caption = h('div', { class: 'faint' }, report.said.timeline, ' ', computing);
    this.element.append(caption, this._picks, this._rows);
    store.subscribe((focus, changed) => {
      if (changed.has('chosen')) {
        this._follow(focus.chosen);
        this._draw(focus);
      }
      this._mark(focus);
    });
    this._draw(store.focus);
  }

  /** Show the devices of a group of the collective that is looked at. */
  private _follow(chosen: Collective | null): void {
    const at = [...this._shown].map(line => line.position);
    const group = chosen?.groups.find(members => members.some(one => at.includes(one))) ?? chosen?.groups[0];
    const members = this._lines.filter(line => line.position !== null && group?.includes(line.position));
    if (members.length) {
      this._shown = new Set(members);
    }
  }

  private _draw(focus: Focus): void {
    this._picks.replaceChildren(...(this._lines.length > 1 ? this._lines.map(line => this._pick(line)) : []));
    const shown = this._lines.filter(line => this._shown.has(line));
    this._drawn = shown.map(line => [line, this._row(line)]);
    this._rows.replaceChildren(...this._drawn.map(([, row]) => row));
    this._mark(focus);
  }

  /** A button that shows or hides a device. */
  private _pick(line: DeviceTimeline): HTMLElement {
    const toggle = (): void => {
      if (!this._shown.delete(line)) {
        this._shown.add(line);
      }
      this._draw(this.store.focus);
    };
    return button(clean(line.name), toggle, { class: 'toggle', 'aria-pressed': String(this._shown.has(line)) });
  }

  private _row(line: DeviceTimeline): HTMLElement {
    const name = clean(line.name);
    const drawing = svg('svg', {
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      preserveAspectRatio: 'none',
      role: 'img',
      'aria-label': name
    });
    const path = pairs(line.computing).map(([start, end]) => bar(this._x(start), this._x(end), 4, 8)).join('');
    drawing.append(svg('path', { d: path, class: 'shardnb-computing' }));
    pairs(line.communicating).forEach((span, i) => drawing.append(this._span(span, line.ids[i])));
    const row = h('div', { class: 'device' }, h('span', null, name));
    row.append(drawing);
    row.addEventListener('pointerenter', () => this.store.set({ device: line.position }));
    row.addEventListener('pointerleave', () => this.store.set({ device: null }));
    return row;
  }

  private _span([start, end]: readonly [number, number], id: number): SVGElement {
    const one = this.report.byId.get(id) ?? null;
    const [ground, text] = TONES[this.report.tones.get(id) ?? 'neutral'];
    const span = svg('path', {
      d: bar(this._x(start), this._x(end), 0, HEIGHT),
      fill: ground,
      stroke: text,
      'data-id': String(id),
      class: 'shardnb-span'
    });
    const title = svg('title');
    title.textContent = one ? [one.say('name'), one.say('measured')].filter(Boolean).join('\n') : '';
    span.append(title);
    span.addEventListener('click', () => this.store.pick('sent', [id], one));
    return span;
  }

  /** Let stand out what is looked at. */
  private _mark({ chosen, device }: Focus): void {
    for (const [line, row] of this._drawn) {
      row.classList.toggle('shardnb-here', device !== null && device === line.position);
      row.querySelectorAll('[data-id]').forEach(span => {
        const other = chosen !== null && span.getAttribute('data-id') !== String(chosen.id);
        span.classList.toggle('shardnb-other', other);
      });
    }
  }

  private _x(time: number): number {
    return (WIDTH * time) / this._end;
  }

  private readonly _lines: readonly DeviceTimeline[];
  private readonly _end: number;
  private readonly _picks = h('div', { class: 'picks', role: 'group', 'aria-label': REPORT.timelineDevices });
  private readonly _rows = h('div');
  private _shown: Set<DeviceTimeline>;
  private _drawn: [DeviceTimeline, HTMLElement][] = [];
}

/** Read starts and ends that alternate. */
function pairs(times: readonly number[]): (readonly [number, number])[] {
  return Array.from({ length: Math.floor(times.length / 2) }, (_, i) => [times[2 * i], times[2 * i + 1]] as const);
}

/** Draw a rectangle as a part of a path. */
function bar(start: number, end: number, top: number, height: number): string {
  const width = Math.max(end - start, LEAST);
  return `M${start.toFixed(1)} ${top}h${width.toFixed(1)}v${height}h${(-width).toFixed(1)}z`;
}

function svg(tag: string, attributes: Record<string, string> = {}): SVGElement {
  const element = document.createElementNS(SVG, tag) as SVGElement;
  Object.entries(attributes).forEach(([name, value]) => element.setAttribute(name, value));
  return element;
}
