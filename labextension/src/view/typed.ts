/** The placement in the type of each line: what it binds, beside the user's own line. */

import { REPORT } from '../generated/vocabulary';
import { folded, h } from './dom';
import { Report, TypedLine, lineAt } from './report';
import { clean, fill } from './slots';

/** A table that is drawn when it is opened: a line of the user's, and its equations. */
export function typed(report: Report): HTMLElement {
  const body = h('div', { class: 'typed' });
  return folded(REPORT.types, body, () => body.append(...rows(report)));
}

function rows({ typed: lines, sources }: Report): HTMLElement[] {
  return lines.flatMap((line, i) => {
    const { location: place, inserted } = line;
    const before = lines[i - 1]?.location;
    const same = place?.source === before?.source && place?.line === before?.line;
    const mark = inserted ? h('span', { class: 'chip' }, REPORT.inserted) : null;
    const equation = h('pre', { class: 'raw' }, `    ${clean(lineText(line))}  `, mark);
    if (!place || (i > 0 && same)) {
      return [equation];
    }
    const source = sources[place.source];
    const name = place.source && source ? `   (${clean(source.name)})` : '';
    const text = `${place.line}  ${clean(lineAt(place, sources))}${name}`;
    return [h('pre', { class: 'raw' }, h('b', null, text)), equation];
  });
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
