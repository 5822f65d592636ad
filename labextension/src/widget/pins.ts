/** Pinned plans side by side: what each holds, sends, and how. */

import { h, heading, mono } from '../view/dom';
import { specText } from '../view/spec';
import { clean, grouped, plural, seconds, size } from '../view/units';
import { Plan } from './model';

/** A pinned plan with its numbers; null where they are not known. */
export interface Pin {
  plan: Plan | null;
  title: string;
  memory: number | null;
  arguments: number | null;
  temporaries: number | null;
  wire_bytes: number;
  untold: number;
  kinds: Record<string, number>;
  seconds: number | null;
}

interface Column {
  name: string;
  value: (pin: Pin) => number | null;
  text: (pin: Pin) => string;
}

const COLUMNS: Column[] = [
  {
    name: 'memory a device',
    value: pin => pin.memory,
    text: pin => (pin.memory === null ? 'not known' : size(pin.memory))
  },
  {
    name: 'sends a run',
    value: pin => (pin.untold ? null : pin.wire_bytes),
    text: pin => (pin.untold ? 'at least ' : '') + size(pin.wire_bytes)
  },
  {
    name: 'seconds sending',
    value: pin => pin.seconds,
    text: pin => (pin.seconds === null ? 'not known' : seconds(pin.seconds))
  },
  { name: 'collectives', value: pin => total(pin), text: pin => kinds(pin) }
];

/** Draw the table; `show` and `drop` hear the number of a pin. */
export function table(
  pins: readonly Pin[],
  show: (index: number) => void,
  drop: (index: number) => void
): HTMLElement {
  const columns = COLUMNS.filter(one => one.name !== 'seconds sending' || pins.some(pin => pin.seconds !== null));
  const least = columns.map(one => {
    const known = pins.map(one.value).filter((value): value is number => value !== null);
    return known.length > 1 && new Set(known).size > 1 ? Math.min(...known) : null;
  });
  const head = h(
    'tr',
    null,
    h('th', { scope: 'col' }, 'plan'),
    ...columns.map(one => h('th', { scope: 'col' }, one.name)),
    h('th', { scope: 'col' }, h('span', { class: 'unseen' }, 'what to do'))
  );
  const rows = pins.map((pin, index) =>
    h(
      'tr',
      null,
      h('td', null, mono(planText(pin))),
      ...columns.map((one, i) =>
        h(
          'td',
          null,
          one.text(pin),
          least[i] !== null && one.value(pin) === least[i] && h('span', { class: 'least' }, 'least')
        )
      ),
      h('td', { class: 'do' }, pin.plan && act('show', () => show(index)), act('unpin', () => drop(index)))
    )
  );
  return h(
    'div',
    { class: 'pins', hidden: !pins.length },
    heading('Pinned plans'),
    h('table', null, h('thead', null, head), h('tbody', null, ...rows))
  );
}

function act(text: string, click: () => void): HTMLElement {
  return h('button', { type: 'button', on: { click } }, text);
}

/** Write a plan in a line; whole inputs go without saying. */
export function planText(pin: Pin): string {
  if (!pin.plan) {
    return clean(pin.title);
  }
  const mesh = pin.plan.axes.map(
    ({ name, size, type }) => `${name}=${size}${type === 'auto' ? '' : `:${type}`}`
  );
  const specs = Object.entries(pin.plan.specs)
    .filter(([, spec]) => spec.some(axes => axes.length))
    .map(([name, spec]) => `${name}=${specText(spec)}`);
  return clean([mesh.join(','), ...(specs.length ? specs : ['all whole'])].join('  '));
}

function total(pin: Pin): number {
  return Object.values(pin.kinds).reduce((sum, number) => sum + number, 0);
}

function kinds(pin: Pin): string {
  const parts = Object.entries(pin.kinds).map(
    ([kind, number]) => `${grouped(number)} ${clean(number === 1 ? kind : plural(kind))}`
  );
  return parts.join(', ') || 'none';
}
