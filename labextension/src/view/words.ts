/** What is said of a collective: the same words as `shardnb.views.words`. */

import { Collective, Cost, Fix, Place, Report } from './report';
import { specText } from './spec';
import { change, clean, count, grouped, seconds, size } from './units';

export const MADE = 'made by the partitioner';
export const UNASKED = 'asker unknown';

const REASONS: Record<string, string> = {
  'partial-sum': 'each device holds a partial sum, and these are added up',
  conflict: 'two placements disagree, so one side is moved',
  'output-spec': 'a stated placement wants the data elsewhere',
  'whole-axis': 'the operation needs the whole dimension on one device',
  reshape: 'the reshape joins or cuts a dimension that is split',
  uneven: 'the sizes do not divide by the devices',
  halo: 'devices exchange elements with others along a split dimension',
  unknown: 'why it is there is not known'
};

const DERIVED = 'JAX calls it in the derivative of what the program calls.';

const ASKED: Record<string, string> = {
  called: 'The program calls it.',
  requested: 'A sharding that you wrote asks for it.',
  inferred: 'Asked by nobody.',
  [MADE]: 'The partitioner made it; who asked for it is not known.',
  [UNASKED]: 'Who asked for it is not known.'
};

/** Say in a word who asked; where that is not known, whether the partitioner made it. */
export function asked(collective: Collective): string {
  if (collective.generated === null && !collective.asked_by) {
    return UNASKED;
  }
  return collective.asked_by ?? (collective.generated ? MADE : 'called');
}

/** Say who asked, in a sentence. */
export function askedSentence(collective: Collective): string {
  if (asked(collective) === 'called' && collective.phase === 'backward') {
    return DERIVED;
  }
  return ASKED[asked(collective)] ?? '';
}

/** Say who asked and why, in a few words: `inferred, partial-sum`. */
export function cause(collective: Collective): string {
  const flag = collective.full_remat ? 'full rematerialisation' : null;
  return clean([asked(collective), collective.reason, flag].filter(Boolean).join(', '));
}

/** Say along which mesh axes the devices exchange, or in what groups where no axes say it. */
export function over(collective: Collective): string {
  if (collective.axes?.length) {
    return clean(`[${collective.axes.join(', ')}]`);
  }
  return collective.axes ? '' : `[${grouping(collective)}]`;
}

/** Say how many groups exchange: `4 groups of 2`, `8 pairs`. */
export function grouping(collective: Collective): string {
  const { groups } = collective;
  if (collective.kind === 'collective-permute') {
    return count(groups.length, 'pair');
  }
  const sizes = groups.map(group => group.length).sort((a, b) => a - b);
  if (!sizes.length) {
    return 'no groups';
  }
  const [least, most] = [sizes[0], sizes[sizes.length - 1]];
  return `${count(groups.length, 'group')} of ${least === most ? least : `${least} to ${most}`}`;
}

/** Write the result on one device: `f32[64, 1024]`. */
export function array(collective: Collective): string {
  return clean(`${collective.dtype}[${collective.shape.join(', ')}]`);
}

/** Say how often a run executes it: "" for once, ` x4`, ` x unknown`, ` x1 or more`. */
export function trips(collective: Collective): string {
  if (collective.trips === null) {
    const least = collective.least_trips;
    return least ? ` x${grouped(least)} or more` : ' x unknown';
  }
  return collective.trips === 1 ? '' : ` x${grouped(collective.trips)}`;
}

/** Give the bytes that one device sends for it in a run, or null where nobody knows. */
export function total(collective: Collective): number | null {
  return collective.trips === null ? null : collective.wire_bytes * collective.trips;
}

/** Give the bytes to sort by: those of a run, or of one execution where that is all one knows. */
export function weight(collective: Collective): number {
  return total(collective) || collective.wire_bytes;
}

/** Say what one device sends for these, in a run. */
export function sends(collectives: readonly Collective[]): string {
  if (collectives.length === 1) {
    return `sends ${size(collectives[0].wire_bytes)}${trips(collectives[0])}`;
  }
  const least = unknown(collectives) ? 'at least ' : '';
  return `sends ${least}${size(sent(collectives))} in all`;
}

/** Add up what one device sends in a run; the least, where trips are not known. */
export function sent(collectives: readonly Collective[]): number {
  const least = (one: Collective) => one.wire_bytes * one.least_trips;
  return collectives.reduce((sum, one) => sum + (total(one) ?? least(one)), 0);
}

/** Count those of which nobody knows how often they run. */
export function unknown(collectives: readonly Collective[]): number {
  return collectives.filter(collective => collective.trips === null).length;
}

/** Give the line that a collective is told at: the explained text's, else another source's. */
export function home(collective: Collective, report: Report): Place | null {
  const frames = collective.frames.filter(frame => isShown(frame, report));
  return frames.find(frame => frame.source === 0) ?? frames[0] ?? null;
}

/** Whether a place lies in a text that the report holds, not in a library. */
export function isShown(place: Place, report: Report): boolean {
  return place.source === 0 || Boolean(report.sources[place.source]?.text);
}

/** Say where: `at line 3`, `at line 7 of layers.py`, or that no line is known. */
export function at(place: Place | null, report: Report): string {
  if (place === null) {
    return 'at no known line';
  }
  const source = place.source > 0 ? report.sources[place.source] : undefined;
  return `at line ${place.line}${source ? ` of ${clean(source.name)}` : ''}`;
}

/** Say why it is there, in one sentence, or that it is not known. */
export function because(collective: Collective): string {
  const { why, reason } = collective;
  if (why) {
    const sentence = clean(why.trim());
    return /[.!?)]$/.test(sentence) ? sentence : `${sentence}.`;
  }
  if (reason !== null) {
    const detail = collective.detail ? ` (${clean(collective.detail)})` : '';
    return `${REASONS[reason] ?? clean(reason)}${detail}${moved(collective)}.`;
  }
  if (asked(collective) === 'called') {
    return ASKED.called.toLowerCase();
  }
  return `why it is there is not known${moved(collective)}.`;
}

/** Say what is moved for whom, as far as that is known. */
function moved(collective: Collective): string {
  const parts = [made(collective), used(collective)].filter(Boolean);
  return parts.length ? `: ${parts.join(', ')}` : '';
}

/** Say what is moved and how it lies: `h lies as P('data')`. */
export function made(collective: Collective): string {
  const { producer, producer_spec: spec } = collective;
  return producer ? clean(producer) + (spec ? ` lies as ${clean(specText(spec))}` : '') : '';
}

/** Say who uses it and how it must lie there: `y needs it as P(None)`. */
export function used(collective: Collective): string {
  const { consumer, needed_spec: spec, producer } = collective;
  // What is moved may be the operation's own result, a partial sum: nobody has used it yet.
  if (!consumer || (!spec && producer?.startsWith(`result of ${consumer}`))) {
    return '';
  }
  return clean(consumer) + (spec ? ` needs it as ${clean(specText(spec))}` : ' uses it');
}

function atLeast(collective: Collective): string {
  const least = collective.least_trips;
  return least ? `at least ${least === 1 ? 'once' : `${grouped(least)} times`} ` : '';
}

/** Say what else is known: who asked, the loop, the company, the estimated time. */
export function further(collective: Collective): string[] {
  const asker = askedSentence(collective);
  const said = because(collective).endsWith(asker.toLowerCase()) ? [] : [asker];
  if (collective.full_remat) {
    said.push('Full rematerialisation: the whole array is gathered, then cut again.');
  }
  if (collective.trips === null) {
    said.push(`It runs ${atLeast(collective)}in a loop whose trip count is not known.`);
  }
  if (collective.within.includes('conditional')) {
    said.push('It stands in a branch: it runs only where that is taken.');
  }
  if (collective.combined_with.length) {
    const others = count(collective.combined_with.length, 'other collective');
    said.push(`Sent together with ${others}, as one exchange.`);
  }
  said.push(...sending(collective));
  if (collective.seconds !== null) {
    said.push(`About ${seconds(collective.seconds)} for one execution, by a formula.`);
  }
  if (collective.fixes && !collective.fixes.length) {
    said.push('No edit that was tried removes it.');
  }
  return said.filter(Boolean);
}

/** Say how the compiler sends it, and what a device does meanwhile. */
function sending(collective: Collective): string[] {
  const said: string[] = [];
  if (collective.made_as) {
    const made = `the compiler changed the partitioner's ${collective.made_as}`;
    said.push(clean(`Sent as ${collective.kind}: ${made}.`));
  }
  if (collective.algorithm) {
    said.push(clean(`The compiler's way of sending it: ${collective.algorithm}.`));
  }
  if (collective.overlap) {
    const { ops, names } = collective.overlap;
    const listed = names.length ? ` (${names.join(', ')})` : '';
    said.push(
      clean(`Asynchronous: ${count(ops, 'operation')} scheduled while it runs${listed}.`)
    );
  }
  return said;
}

/** Write what a compiled edit changes: `no collective, +128 KiB a device; compiled`. */
export function effect(fix: Fix): string {
  const [before, after] = fix.collectives;
  const sending = `sends ${size(fix.wire_bytes[1])}, not ${size(fix.wire_bytes[0])}`;
  const fewer = after === before ? '' : `, not ${grouped(before)}`;
  const left = after ? `${count(after, 'collective')}${fewer}, ${sending}` : 'no collective';
  return `${left}, ${change(fix.memory_bytes[1] - fix.memory_bytes[0])} a device; compiled`;
}

/** Write a compiled edit with what it changes. */
export function fixText(fix: Fix): string {
  return `${clean(fix.edit)}  (${effect(fix)})`;
}

/** Say what a step takes on its hardware and what bounds it, in one line. */
export function bound(cost: Cost): string {
  const known: [string, number | null][] = [
    ['compute', cost.compute_seconds],
    ['memory', cost.memory_seconds],
    ['communication', cost.communication_seconds]
  ];
  const parts = known.filter(([, took]) => took).map(([name, took]) => `${seconds(took ?? 0)} ${PARTS[name]}`);
  const left = [
    cost.unpriced ? `; ${count(cost.unpriced, 'collective')} without seconds` : '',
    cost.uncounted ? `; ${count(cost.uncounted, 'custom call')} not counted` : ''
  ].join('');
  const by = Object.entries(cost.by_axis);
  const axes = by.length > 1 ? ` (${by.map(([axis, took]) => `${axis} ${seconds(took)}`).join(', ')})` : '';
  const on = cost.assumed ? 'as if on' : 'on';
  const said = `${on} ${cost.hardware}: ${limit(cost, known)}: ${parts.join(', ')}${axes}`;
  return clean(`${said}, by formulas${left}`);
}

function limit(cost: Cost, parts: [string, number | null][]): string {
  if (cost.unpriced || cost.uncounted || parts.some(([, took]) => took === null)) {
    return 'what bounds it is not known';
  }
  const most = parts.reduce((one, other) => ((other[1] ?? 0) > (one[1] ?? 0) ? other : one));
  return `${most[0]}-bound`;
}

const PARTS: Record<string, string> = {
  compute: 'to compute at least',
  memory: 'for memory at most',
  communication: 'to communicate'
};
