/** Pinned plans side by side: what each holds, sends, and how. */

import { REPORT, WIDGETS } from '../generated/vocabulary';
import { button, h, heading, mono } from '../view/dom';
import { Plan } from './model';

/** A number of a plan with its text; null where it is not known. */
interface Figure {
  name: string;
  text: string;
  value: number | null;
}

/** A pinned plan with its numbers. */
export interface Pin {
  plan: Plan | null;
  text: string;
  figures: readonly Figure[];
}

/** Draw the table; `show` and `drop` hear the number of a pin. */
export function table(
  pins: readonly Pin[],
  show: (index: number) => void,
  drop: (index: number) => void
): HTMLElement {
  const figure = (pin: Pin, name: string): Figure =>
    pin.figures.find(one => one.name === name) ?? { name, text: REPORT.notKnown, value: null };
  const columns = [...new Set(pins.flatMap(pin => pin.figures.map(one => one.name)))];
  const least = columns.map(name => {
    const known = pins.map(pin => figure(pin, name).value).filter(value => value !== null);
    return known.length > 1 && new Set(known).size > 1 ? Math.min(...known) : null;
  });
  const cell = (pin: Pin, name: string, i: number): HTMLElement => {
    const { text, value } = figure(pin, name);
    const isLeast = least[i] !== null && value === least[i];
    return h('td', null, text, isLeast && h('span', { class: 'least' }, WIDGETS.least));
  };
  const rows = pins.map((pin, index) => {
    const again = pin.plan && button(WIDGETS.show, () => show(index));
    const away = button(WIDGETS.unpin, () => drop(index));
    const cells = columns.map((name, i) => cell(pin, name, i));
    const acts = h('td', { class: 'do' }, again, away);
    return h('tr', null, h('td', null, mono(pin.text)), ...cells, acts);
  });
  const names = [WIDGETS.plan, ...columns].map(name => h('th', { scope: 'col' }, name));
  const last = h('th', { scope: 'col' }, h('span', { class: 'unseen' }, WIDGETS.toDo));
  return h(
    'div',
    { class: 'pins', hidden: !pins.length },
    heading(WIDGETS.pins),
    h('table', null, h('thead', null, h('tr', null, ...names, last)), h('tbody', null, ...rows))
  );
}
