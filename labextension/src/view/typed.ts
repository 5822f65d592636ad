/** The placement in the type of each line: what it binds, beside the user's own line. */

import { REPORT } from '../generated/vocabulary';
import { h } from './dom';
import { Report, TypedLine } from './report';
import { clean, fill } from './slots';

/** A table that is drawn when it is opened: a line of the user's, and its equations. */
export function typed(report: Report): HTMLElement {
  const body = h('div', { class: 'typed' });
  const open = (): void => {
    if (!body.childElementCount) {
      body.append(...rows(report));
    }
  };
  return h('details', { on: { toggle: open } }, h('summary', null, REPORT.types), body);
}

function rows(report: Report): HTMLElement[] {
  let last: string | null = null;
  return report.typed.flatMap(line => {
    const place = line.location;
    const key = place ? `${place.source}:${place.line}` : '';
    const known = key === last;
    last = key;
    const head = place && !known ? [own(report, place.source, place.line)] : [];
    return [...head, equation(line)];
  });
}

function own(report: Report, index: number, number: number): HTMLElement {
  const source = report.sources[index];
  const text = source?.text.split('\n')[number - source.first_line] ?? '';
  const name = index && source ? `   (${clean(source.name)})` : '';
  return h('pre', { class: 'raw' }, h('b', null, `${number}  ${clean(text)}${name}`));
}

function equation(line: TypedLine): HTMLElement {
  const mark = line.inserted ? h('span', { class: 'chip' }, REPORT.inserted) : null;
  return h('pre', { class: 'raw' }, `    ${clean(lineText(line))}  `, mark);
}

/** Write an equation as a jaxpr does. */
function lineText(line: TypedLine): string {
  const binds = line.binds.map(bind => `${bind.name}:${bind.type}`).join(' ');
  const indent = '    '.repeat(line.within.length);
  if (!line.primitive) {
    return indent + fill(REPORT.lambda, { binds });
  }
  const call = line.parameters ? `${line.primitive}[${line.parameters}]` : line.primitive;
  return `${indent}${binds} = ${[call, ...line.operands].join(' ')}`;
}
