/** Collectives as they are told: one by one while they are few, like ones together when many. */

import { Collective, Report } from './report';
import { count, grouped, plural, size } from './units';
import * as words from './words';

/** Collectives that are told together; mostly one. */
export interface Entry {
  members: readonly Collective[];
  name: string;
  array: string;
  sends: string;
  cause: string;
}

/** The entries that are shown, and those collectives that are not. */
export interface Entries {
  shown: readonly Entry[];
  left: readonly Collective[];
}

/**
 * Tell collectives one by one up to `single`, else by kind, axes, place, asker and reason; of more
 * than `limit` such groups the ones that send most are shown, in program order.
 */
export function tell(
  collectives: readonly Collective[],
  report: Report,
  single = 4,
  limit = 2
): Entries {
  if (collectives.length <= single) {
    return { shown: collectives.map(one => entry([one])), left: [] };
  }
  const groups = gather(collectives, report);
  const order = groups.map((_, i) => i).sort((a, b) => weight(groups[b]) - weight(groups[a]));
  const kept = order.slice(0, limit).sort((a, b) => a - b);
  return {
    shown: kept.map(i => entry(groups[i])),
    left: order.slice(limit).flatMap(i => groups[i])
  };
}

/** Say what is not shown. */
export function restText(left: readonly Collective[]): string {
  return `and ${count(left.length, 'more collective')}, ${size(words.sent(left))}`;
}

function gather(collectives: readonly Collective[], report: Report): Collective[][] {
  const groups = new Map<string, Collective[]>();
  for (const one of collectives) {
    const place = words.home(one, report);
    const where = place && [place.source, place.line];
    const what = [one.kind, words.over(one), words.asked(one), one.reason, one.full_remat];
    const key = JSON.stringify([where, what]);
    const found = groups.get(key);
    found ? found.push(one) : groups.set(key, [one]);
  }
  return [...groups.values()];
}

function weight(group: readonly Collective[]): number {
  return group.reduce((sum, one) => sum + words.weight(one), 0);
}

function entry(members: readonly Collective[]): Entry {
  const [first] = members;
  const many = members.length > 1;
  const kind = many ? `${grouped(members.length)} ${plural(first.kind)}` : first.kind;
  const arrays = new Set(members.map(words.array));
  return {
    members,
    name: kind + words.over(first),
    array: arrays.size === 1 ? words.array(first) : `of ${grouped(arrays.size)} shapes`,
    sends: words.sends(members),
    cause: words.cause(first)
  };
}
