/** What the grids draw: an array's blocks, the mesh by its groups, the mesh by an array's blocks. */

import { REPORT } from '../generated/vocabulary';
import { NOBODY, Tint, letter, tint } from './colours';
import { Layout, indexOf, neighbours, plane, sliceText } from './layout';
import { Collective, Mesh, Value } from './report';
import { isInPairs } from './ring';
import { clean, fill, numbered } from './slots';
import { Link, Picture } from './tiles';

/** Devices up to which lines join those that communicate: more lines cannot be told apart. */
const LINKED = 64;
const LISTED = 8;

/** List numbers briefly: as they are, as a range, or the first and the last with how many. */
export function listed(values: readonly number[], limit = LISTED, many: string = REPORT.some): string {
  const last = values[values.length - 1];
  if (values.length > 2 && values.every((value, i) => value === values[0] + i)) {
    return `${values[0]}-${last}`;
  }
  const first = values.slice(0, 3).join(' ');
  const brief = values.length <= limit;
  return brief ? values.join(' ') : fill(many, { first, last, number: values.length });
}

/** Draw an array as blocks, each with the devices that hold it. */
export function valuePicture(value: Value, mesh: Mesh, layout: Layout): Picture {
  const [down, across] = plane(layout.grid).map(dim => edge(value, mesh, layout, dim));
  const array = `${clean(value.name)} ${value.say('type')}`;
  return {
    grid: layout.grid,
    down,
    across,
    title: fill(REPORT.blocks, { array, number: layout.holders.size }),
    tint: blockTint(layout),
    labels: block => blockLabels(block, value, mesh, layout),
    caption: (dim, place) => fill(REPORT.dim, { dim, place }),
    striped: differs(value)
  };
}

/** Whether devices may hold other values of one block: partial sums, or what varies in a shard_map. */
function differs({ unreduced, manual, varying }: Value): boolean {
  return unreduced.length > 0 || (manual.length > 0 && varying?.length !== 0);
}

/** Say what stands along an edge: `dim 0 over data=4`. */
function edge({ spec }: Value, mesh: Mesh, layout: Layout, dim: number | null): string {
  if (dim === null) {
    return '';
  }
  if (!spec?.[dim].length) {
    const parts = layout.grid[dim];
    return fill(parts > 1 ? REPORT.dimIn : REPORT.dimWhole, { dim, parts });
  }
  const axes = spec[dim].map(name => {
    const axis = mesh.axes.find(each => each.name === name);
    return axis ? `${name}=${axis.size}` : name;
  });
  return clean(fill(REPORT.dimOver, { dim, axes: axes.join(' x ') }));
}

function blockTint({ grid, holders }: Layout): (block: number) => Tint {
  const ranks = new Map([...holders.keys()].sort((a, b) => a - b).map((block, i) => [block, i]));
  const [down, across] = plane(grid);
  return block => {
    const rank = ranks.get(block);
    if (rank === undefined) {
      return NOBODY;
    }
    const index = indexOf(grid, block);
    const along = (dim: number | null): number =>
      dim === null ? 0 : index[dim] / Math.max(1, grid[dim] - 1);
    const flat = down === null || grid[down] === 1;
    const [y, x] = flat ? [along(across), 0.5] : [along(down), along(across)];
    return tint(rank, ranks.size, y, x);
  };
}

function blockLabels(block: number, value: Value, mesh: Mesh, layout: Layout): string[] {
  const holders = (layout.holders.get(block) ?? []).map(position => mesh.device_ids[position]);
  if (!holders.length) {
    return [REPORT.nobody];
  }
  const brief = listed(holders, 4, REPORT.someOf);
  const slots = { listed: brief, number: holders.length };
  const times = holders.length > 1 ? [fill(REPORT.times, slots)] : [];
  const both = times.length && !differs(value) ? [fill(REPORT.listedTimes, slots)] : [];
  return [...both, brief, ...times];
}

/** Draw the mesh with a letter and a tint for each group of devices that communicate. */
export function groupsPicture(collective: Collective, mesh: Mesh): Picture {
  const inPairs = isInPairs(collective);
  const group = groupOf(collective, mesh);
  const { groups } = collective;
  return {
    ...meshPicture(mesh),
    title: groupsText(collective),
    tint: place => {
      const rank = group[place];
      if (rank < 0) {
        return NOBODY;
      }
      const turn = rank / Math.max(1, groups.length - 1);
      return inPairs ? tint(0, 1) : tint(rank, groups.length, turn, 0.8 * (rank % 2));
    },
    labels: place => {
      const device = String(mesh.device_ids[place]);
      const named = group[place] >= 0 && !inPairs;
      return named ? [`${letter(group[place])} ${device}`, device] : [device];
    },
    links: links(collective, mesh)
  };
}

/** Give for each position the number of the group that it is in, or -1. */
export function groupOf(collective: Collective, mesh: Mesh): Int32Array {
  const group = new Int32Array(mesh.device_ids.length).fill(-1);
  collective.groups.forEach((members, i) => members.forEach(place => (group[place] = i)));
  return group;
}

/** Say which devices communicate: `4 groups of 2 along model`. */
export function groupsText(collective: Collective): string {
  const axes = clean(collective.axes?.join(', ') ?? '');
  const slots = { name: collective.say('name'), grouping: collective.say('grouping'), axes };
  return fill(axes ? REPORT.groupsAlong : REPORT.groups, slots);
}

function links(collective: Collective, mesh: Mesh): Link[] {
  if (mesh.device_ids.length > LINKED) {
    return [];
  }
  const arrow = isInPairs(collective);
  const grid = mesh.axes.map(axis => axis.size);
  // A line between devices that are not next to each other would cross others.
  const adjoin = (from: number, to: number): boolean =>
    neighbours(grid, from).some(([, before, after]) => to === before || to === after);
  return collective.groups
    .flatMap(group => group.slice(1).map((to, i) => ({ from: group[i], to, arrow })))
    .filter(({ from, to }) => from !== to && (arrow || adjoin(from, to)));
}

/** Draw the mesh, each device in the tint of the block that it holds of an array. */
export function holdersPicture(value: Value, mesh: Mesh, layout: Layout): Picture {
  const shade = blockTint(layout);
  return {
    ...meshPicture(mesh),
    title: fill(REPORT.holdersTitle, { name: clean(value.name) }),
    tint: place => shade(layout.blocks[place]),
    striped: differs(value)
  };
}

/** Draw the mesh with its devices alone. */
export function meshPicture(mesh: Mesh): Picture {
  const grid = mesh.axes.map(axis => axis.size);
  const [down, across] = plane(grid).map(dim =>
    dim === null ? '' : clean(`${mesh.axes[dim].name}=${mesh.axes[dim].size}`)
  );
  return {
    grid,
    down,
    across,
    title: REPORT.meshTitle,
    tint: () => NOBODY,
    labels: place => [String(mesh.device_ids[place])],
    caption: (dim, place) => clean(`${mesh.axes[dim].name} ${place}`),
    ...(mesh.hosts || mesh.slices ? { apart: (one, other) => apart(one, other, mesh) } : {}),
    notes: notes(mesh)
  };
}

function apart(one: number, other: number, { hosts, slices }: Mesh): number {
  const differ = (of: readonly number[] | null): boolean => of !== null && of[one] !== of[other];
  return differ(slices) ? 2 : Number(differ(hosts));
}

function notes({ hosts, slices }: Mesh): string[] {
  const said = (text: string, of: readonly number[] | null): string[] =>
    of ? [fill(text, { number: new Set(of).size })] : [];
  return [...said(REPORT.hostLines, hosts), ...said(REPORT.sliceLines, slices)];
}

/** Say which device it is: `device 5 (data 2, model 1)`, with its coordinates where it has any. */
export function deviceText(position: number, mesh: Mesh): string {
  const index = indexOf(mesh.axes.map(axis => axis.size), position);
  const along = index.map((at, dim) => `${mesh.axes[dim].name} ${at}`);
  const physical = mesh.coords?.[position];
  const chip = physical ? [fill(REPORT.chip, { coords: physical.join(', ') })] : [];
  const on = [
    ...(mesh.hosts ? [fill(REPORT.host, { number: mesh.hosts[position] })] : []),
    ...(mesh.slices ? [fill(REPORT.slice, { number: mesh.slices[position] })] : [])
  ];
  const slots = { id: mesh.device_ids[position], place: [...along, ...chip, ...on].join(', ') };
  return clean(fill(along.length ? REPORT.deviceAt : REPORT.device, slots));
}

/** Say who is next to a device along each axis: `next to it: 3 and 7 along data`. */
export function besideText(position: number, mesh: Mesh): string {
  const grid = mesh.axes.map(axis => axis.size);
  const parts = neighbours(grid, position).map(([dim, ...places]) => {
    const found = places.flatMap(place => (place === null ? [] : [mesh.device_ids[place]]));
    const [one, other] = found;
    const devices = found.length > 1 ? fill(REPORT.both, { one, other }) : one;
    return fill(REPORT.alongAxis, { devices, axis: mesh.axes[dim].name });
  });
  return together(parts);
}

/** Say which devices a device communicates with. */
export function exchangeText(position: number, collective: Collective, mesh: Mesh): string {
  const ids = (places: readonly number[]): string =>
    listed(places.map(place => mesh.device_ids[place]));
  if (isInPairs(collective)) {
    const to = collective.groups.filter(([from]) => from === position).map(pair => pair[1]);
    const from = collective.groups.filter(pair => pair[1] === position).map(pair => pair[0]);
    const parts = [
      to.length && fill(REPORT.sendsTo, { devices: ids(to) }),
      from.length && fill(REPORT.receives, { devices: ids(from) })
    ];
    return parts.filter(Boolean).join(', ') || REPORT.noPart;
  }
  const number = groupOf(collective, mesh)[position];
  return number < 0
    ? REPORT.noPart
    : fill(REPORT.group, { name: letter(number), devices: ids(collective.groups[number]) });
}

/** Say what a block is and who holds it: `x[64:128, 0:256], 64 KiB, on devices 2 3`. */
export function blockText(block: number, value: Value, mesh: Mesh, layout: Layout): string {
  const holders = (layout.holders.get(block) ?? []).map(position => mesh.device_ids[position]);
  const part = value.name + sliceText(value, layout, block);
  const own = differs(value) ? fill(REPORT.ownValue, { block: part }) : part;
  const what = value.unreduced.length ? fill(REPORT.partial, { block: part }) : own;
  const slots = { block: what, devices: listed(holders) };
  const held = numbered(REPORT.block, holders.length, slots);
  return clean(holders.length ? held : fill(REPORT.nowhere, slots));
}

/** Say which devices hold the blocks next to one. */
export function blocksBesideText(block: number, mesh: Mesh, layout: Layout): string {
  const parts = neighbours(layout.grid, block).map(([dim, ...places]) => {
    const found = places.flatMap(place => layout.holders.get(place ?? -1) ?? []);
    const devices = listed(found.map(position => mesh.device_ids[position]));
    return fill(REPORT.alongDim, { devices, dim });
  });
  return together(parts);
}

function together(parts: readonly string[]): string {
  return parts.length ? clean(fill(REPORT.beside, { parts: parts.join(', ') })) : '';
}
