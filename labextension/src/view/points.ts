/** What to look at: each with its cost, its cause, and the edits that fix it. */

import type { SaidEdit, SaidPoint } from '../generated/report';
import { REPORT } from '../generated/vocabulary';
import { Card } from './arrays';
import { chip } from './badge';
import { button, folded, h, mono } from './dom';
import { Report, numbers } from './report';
import { cleanLines, numbered } from './slots';
import { Store } from './store';

/** Points that are shown at once. */
const MOST = 5;

/** Draw the points; the others stand under a summary. */
export function points(report: Report, store: Store): HTMLElement[] {
  const all = report.said.points;
  const shown = all.slice(0, MOST).map(one => point(one, report, store));
  const left = all.slice(MOST);
  const others = h('ol', { class: 'points', start: MOST + 1 });
  const draw = (): void => others.append(...left.map(one => point(one, report, store)));
  return [
    ...(shown.length ? [h('ol', { class: 'points' }, ...shown)] : []),
    ...(left.length ? [folded(numbered(REPORT.morePoints, left.length), others, draw)] : [])
  ];
}

function point(one: SaidPoint, report: Report, store: Store): HTMLElement {
  const ids = numbers(one.ids);
  const pick = (): void => store.pick('points', ids, report.byId.get(ids[0]) ?? null);
  const title = ids.length ? button(one.head, pick, { class: 'pointed' }) : h('b', null, one.head);
  const line = h('div', { class: 'point' }, title, one.cost ? chip(one.cost, one.tone) : null);
  const cause = h('div', null, one.cause);
  const item = h('li', null, line, cause, ...one.edits.map(edit), more(one, report, store));
  store.subscribe(({ picked }, changed) => {
    if (changed.has('picked')) {
      const out = picked && picked.from !== 'points' && !ids.some(id => picked.ids.has(id));
      item.toggleAttribute('data-out', Boolean(out));
    }
  });
  return item;
}

function edit({ code, effect, compiled }: SaidEdit): HTMLElement {
  const known = compiled ? `\u2192 ${effect} ` : `${REPORT.notCompiled} `;
  const mark = compiled ? h('span', { class: 'faint' }, REPORT.compiled, ' ') : null;
  return h(
    'div',
    { class: 'fix' },
    compiled ? REPORT.fix : REPORT.try,
    ' ',
    mono(code),
    ' ',
    h('span', { class: 'faint' }, known),
    mark,
    copier(code)
  );
}

/** The arrays that a finding is about, and what the compiler says of it. */
function more({ finding }: SaidPoint, report: Report, store: Store): HTMLElement | null {
  const found = report.findings[finding];
  if (!found?.values.length && !found?.details) {
    return null;
  }
  const body = h('div');
  return folded(REPORT.details, body, () => {
    const cards = found.values.map(value => new Card(value, report, store).element);
    body.append(h('div', { class: 'cards' }, ...cards));
    if (found.details) {
      body.append(h('pre', { class: 'raw' }, cleanLines(found.details)));
    }
  });
}

/** A button that copies a text. */
export function copier(text: string): HTMLElement {
  const copy = (): void =>
    void navigator.clipboard.writeText(text).then(
      () => (control.textContent = REPORT.copied),
      () => (control.textContent = REPORT.notAllowed)
    );
  const control = button(REPORT.copy, copy, { class: 'copy' });
  return control;
}
