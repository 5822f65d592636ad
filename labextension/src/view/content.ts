/** The sentences of a report's parts: the same as in `shardnb.views.content`. */

import { copies, layoutOf } from './layout';
import { Memory, Mesh, Report, Value } from './report';
import { specText, typeText } from './spec';
import { clean, count, dims, grouped, seconds, size } from './units';
import * as words from './words';

export const NOTHING = 'no communication';

const UNUSED = 'not used by the program';

/** Say what the program ran or would run on. */
export function header(report: Report): string[] {
  const { run, versions } = report;
  const parts = [meshText(report.mesh), devicesText(report.mesh)];
  if (versions.jax) {
    parts.push(`jax ${clean(versions.jax)}`);
  }
  if (run.compile_seconds !== null) {
    parts.push(`compiled ${seconds(run.compile_seconds)}`);
  }
  if (run.run_seconds !== null) {
    parts.push(`ran ${seconds(run.run_seconds)}`);
  }
  return parts;
}

/** Write a mesh: `mesh data=4 x model=2 (auto, auto)`. */
export function meshText(mesh: Mesh): string {
  if (!mesh.axes.length) {
    return 'no mesh';
  }
  const sizes = mesh.axes.map(axis => `${axis.name}=${axis.size}`).join(' x ');
  return clean(`mesh ${sizes} (${mesh.axes.map(axis => axis.type).join(', ')})`);
}

/** Write the devices: `8 emulated cpu devices`. */
export function devicesText(mesh: Mesh): string {
  const kind = `${mesh.emulated ? 'emulated ' : ''}${mesh.kind}`;
  const plain = ['cpu', 'attached', mesh.kind].includes(mesh.target);
  const target = plain ? '' : ` (${mesh.target})`;
  return clean(`${count(mesh.device_ids.length, `${kind} device`)}${target}`);
}

/** Say what is sent and who asked, in one line. */
export function summary(report: Report): string {
  const { collectives } = report;
  if (!collectives.length) {
    return NOTHING;
  }
  const unknown = words.unknown(collectives);
  const who = new Map<string, number>();
  collectives.forEach(one => who.set(words.asked(one), (who.get(words.asked(one)) ?? 0) + 1));
  const made = [words.MADE, words.UNASKED].filter(word => who.has(word));
  const askers = ['called', 'requested', 'inferred', ...made];
  const parts = askers.map(asker => `${grouped(who.get(asker) ?? 0)} ${asker}`);
  const branched = collectives.filter(one => one.within.includes('conditional')).length;
  const least = unknown ? 'at least ' : branched ? 'at most ' : '';
  const sent = `${least}${size(words.sent(collectives))}`;
  const loops = [
    unknown ? `; ${grouped(unknown)} in loops whose trip count is not known` : '',
    branched ? `; ${grouped(branched)} in branches of which one runs, each counted` : ''
  ].join('');
  const number = count(collectives.length, 'collective');
  return `${number}: ${sent} sent by each device a run; ${parts.join(', ')}${loops}`;
}

/** Write the type of an array, safe to read. */
export function valueType(value: Value): string {
  return clean(typeText(value));
}

/** Write what one device holds of an array: `64 x 256 a device`. */
export function shard(value: Value): string {
  return `${dims(value.shard_shape)} a device`;
}

/** Say what else holds of an array: copies, partial sums, what was asked for. */
export function remarks(value: Value, mesh: Mesh): string[] {
  const said = [copies(value, mesh)];
  if (value.unreduced.length) {
    said.push(`partial sums over ${value.unreduced.join(', ')}`);
  }
  if (value.spec === null) {
    const known = layoutOf(value, mesh) !== null;
    said.push(known ? 'no mesh axes say where it lies' : 'where it lies is not known');
  }
  if (value.requested && JSON.stringify(value.requested) !== JSON.stringify(value.spec)) {
    said.push(`you asked for ${specText(value.requested)}`);
  }
  if (value.closed_over) {
    said.push('closed over');
  }
  if (value.details === UNUSED) {
    said.push(UNUSED);
  }
  return said.filter(Boolean).map(clean);
}

/** Say what one device holds at once. */
export function memoryText(memory: Memory | null, outputs: number): string {
  if (memory === null) {
    return 'not known: the compiler gave no analysis';
  }
  const parts = [
    `${size(memory.arguments)} arguments`,
    `${size(memory.outputs)} ${outputs === 1 ? 'output' : 'outputs'}`,
    `${size(memory.temporaries)} temporaries a device`
  ];
  const reused = memory.aliased ? `; ${size(memory.aliased)} of it reused from donated inputs` : '';
  return parts.join(', ') + reused;
}

/** Say what holds of all its numbers. */
export function about(report: Report): string[] {
  const said = [];
  if (report.collectives.length) {
    said.push('Bytes sent are by the ring formula; what the hardware does may differ.');
  }
  if (report.mesh.emulated) {
    said.push('Emulated on CPU: the compiler for another device may choose otherwise.');
  }
  if (report.mesh.device_ids.some((id, position) => id !== position)) {
    said.push('Pictures show device ids; HLO counts the positions of the mesh.');
  }
  return said;
}
