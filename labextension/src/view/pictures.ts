/** What the grids draw: an array's blocks, the mesh by its groups, the mesh by an array's blocks. */

import { NOBODY, Tint, letter, tint } from './colours';
import { Layout, indexOf, neighbours, plane, sliceText } from './layout';
import { Collective, Mesh, Value } from './report';
import { coordinates } from './spec';
import { Link, Picture } from './tiles';
import { clean, numbers } from './units';
import { valueType } from './content';
import * as words from './words';

const LINKED = 64;

/** Draw an array cut into blocks, each with the devices that hold it. */
export function valuePicture(value: Value, mesh: Mesh, layout: Layout): Picture {
  const [down, across] = plane(layout.grid);
  const title = clean(`${value.name} ${valueType(value)}`);
  return {
    grid: layout.grid,
    down: edge(value, mesh, layout, down),
    across: edge(value, mesh, layout, across),
    title: `${title}: ${layout.holders.size} blocks`,
    tint: blockTint(layout),
    labels: block => blockLabels(block, value, mesh, layout),
    caption: (dim, place) => `dim ${dim}: ${place}`,
    striped: value.unreduced.length > 0
  };
}

/** Say what stands along an edge: `dim 0 over data=4`. */
function edge(value: Value, mesh: Mesh, layout: Layout, dim: number | null): string {
  if (dim === null) {
    return '';
  }
  if (value.spec === null || !value.spec[dim].length) {
    return layout.grid[dim] > 1 ? `dim ${dim} in ${layout.grid[dim]}` : `dim ${dim} whole`;
  }
  const axes = value.spec[dim].map(axis => {
    const whole = mesh.axes.find(one => one.name === axis);
    return whole ? `${axis}=${whole.size}` : axis;
  });
  return clean(`dim ${dim} over ${axes.join(' x ')}`);
}

function blockTint(layout: Layout): (block: number) => Tint {
  const { grid, holders } = layout;
  const ranks = new Map([...holders.keys()].sort((a, b) => a - b).map((block, i) => [block, i]));
  const [down, across] = plane(grid);
  const high = down === null ? 1 : grid[down];
  const wide = across === null ? 1 : grid[across];
  return block => {
    const rank = ranks.get(block);
    if (rank === undefined) {
      return NOBODY;
    }
    const index = indexOf(grid, block);
    const y = down === null ? 0 : index[down] / Math.max(1, high - 1);
    const x = across === null ? 0 : index[across] / Math.max(1, wide - 1);
    return high > 1 ? tint(rank, ranks.size, y, x) : tint(rank, ranks.size, x, 0.5);
  };
}

function blockLabels(block: number, value: Value, mesh: Mesh, layout: Layout): string[] {
  const holders = (layout.holders.get(block) ?? []).map(position => mesh.device_ids[position]);
  if (!holders.length) {
    return ['none'];
  }
  const listed = numbers(holders, 4).replace(/ \(\d+\)$/, '');
  if (holders.length === 1) {
    return [listed];
  }
  const times = `x${holders.length}`;
  return value.unreduced.length ? [listed, times] : [`${listed} (${times})`, listed, times];
}

/** Draw the mesh with a letter and a tint for each group of devices that exchange. */
export function groupsPicture(collective: Collective, mesh: Mesh): Picture {
  const permute = collective.kind === 'collective-permute';
  const group = groupOf(collective, mesh);
  const { groups } = collective;
  const shade = (place: number): Tint => {
    const rank = group[place];
    const turn = rank / Math.max(1, groups.length - 1);
    return rank < 0 ? NOBODY : tint(rank, groups.length, turn, 0.8 * (rank % 2));
  };
  const marked = (place: number): string[] => {
    const device = String(mesh.device_ids[place]);
    return group[place] < 0 ? [device] : [`${letter(group[place])} ${device}`, device];
  };
  return {
    ...meshEdges(mesh),
    title: `${groupsText(collective)}`,
    tint: permute ? place => (group[place] < 0 ? NOBODY : tint(0, 1)) : shade,
    labels: permute ? place => [String(mesh.device_ids[place])] : marked,
    links: links(collective, mesh)
  };
}

/** Give for each position the number of the group that it is in, or -1. */
export function groupOf(collective: Collective, mesh: Mesh): Int32Array {
  const group = new Int32Array(mesh.device_ids.length).fill(-1);
  collective.groups.forEach((members, i) => members.forEach(place => (group[place] = i)));
  return group;
}

/** Say which devices exchange: `4 groups of 2 along model`. */
export function groupsText(collective: Collective): string {
  const along = collective.axes?.length ? ` along ${collective.axes.join(', ')}` : '';
  return clean(`${collective.kind}${words.over(collective)}: ${words.grouping(collective)}${along}`);
}

function links({ kind, groups }: Collective, mesh: Mesh): Link[] {
  if (mesh.device_ids.length > LINKED) {
    return [];
  }
  const arrow = kind === 'collective-permute';
  const pairs = groups.flatMap(group => group.slice(1).map((to, i) => [group[i], to] as const));
  return pairs
    .filter(([from, to]) => from !== to && (arrow || besides(from, to, mesh)))
    .map(([from, to]) => ({ from, to, arrow }));
}

/** Whether two devices stand next to each other: a line between others would cross them. */
function besides(one: number, other: number, mesh: Mesh): boolean {
  const grid = mesh.axes.map(axis => axis.size);
  return neighbours(grid, one).some(([, before, after]) => other === before || other === after);
}

/** Draw the mesh, each device in the tint of the block that it holds of an array. */
export function holdersPicture(value: Value, mesh: Mesh, layout: Layout): Picture {
  const shade = blockTint(layout);
  return {
    ...meshEdges(mesh),
    title: `Each device by the block of ${clean(value.name)} that it holds`,
    tint: place => shade(layout.blocks[place]),
    labels: place => [String(mesh.device_ids[place])],
    striped: value.unreduced.length > 0
  };
}

/** Draw the mesh with its devices alone. */
export function meshPicture(mesh: Mesh): Picture {
  return {
    ...meshEdges(mesh),
    title: 'The devices of the mesh',
    tint: () => tint(6, 8),
    labels: place => [String(mesh.device_ids[place])]
  };
}

function meshEdges(mesh: Mesh): Pick<Picture, 'grid' | 'down' | 'across' | 'caption'> {
  const grid = mesh.axes.map(axis => axis.size);
  const name = (dim: number | null): string =>
    dim === null ? '' : clean(`${mesh.axes[dim].name}=${mesh.axes[dim].size}`);
  const [down, across] = plane(grid).map(name);
  const caption = (dim: number, place: number): string => clean(`${mesh.axes[dim].name} ${place}`);
  return { grid, down, across, caption };
}

/** Say which device it is: `device 5 (data 2, model 1)`, with its coordinates where it has any. */
export function deviceText(position: number, mesh: Mesh): string {
  const along = coordinates(position, mesh).map((at, dim) => `${mesh.axes[dim].name} ${at}`);
  const physical = mesh.coords?.[position];
  const chip = physical ? `, at (${physical.join(', ')})` : '';
  const place = along.length ? ` (${along.join(', ')}${chip})` : '';
  return clean(`device ${mesh.device_ids[position]}${place}`);
}

/** Say who is next to a device along each axis: `next to it: 3 and 7 along data`. */
export function besideText(position: number, mesh: Mesh): string {
  const grid = mesh.axes.map(axis => axis.size);
  const parts = neighbours(grid, position).map(([dim, before, after]) => {
    const found = [before, after].filter(place => place !== null);
    const ids = found.map(place => mesh.device_ids[place]).join(' and ');
    return `${ids} along ${mesh.axes[dim].name}`;
  });
  return parts.length ? clean(`next to it: ${parts.join(', ')}`) : '';
}

/** Say with whom a device exchanges. */
export function exchangeText(position: number, collective: Collective, mesh: Mesh): string {
  const ids = (places: readonly number[]): string =>
    numbers(places.map(place => mesh.device_ids[place]));
  if (collective.kind === 'collective-permute') {
    const to = collective.groups.filter(([from]) => from === position).map(pair => pair[1]);
    const from = collective.groups.filter(pair => pair[1] === position).map(pair => pair[0]);
    const said = [to.length && `sends to ${ids(to)}`, from.length && `receives from ${ids(from)}`];
    return said.filter(Boolean).join(', ') || 'takes no part';
  }
  const number = groupOf(collective, mesh)[position];
  const name = number >= 0 && `in group ${letter(number)}`;
  return name ? `${name}: ${ids(collective.groups[number])}` : 'takes no part';
}

/** Say what a block is and who holds it: `x[64:128, 0:256], 64 KiB, on devices 2 3`. */
export function blockText(block: number, value: Value, mesh: Mesh, layout: Layout): string {
  const holders = (layout.holders.get(block) ?? []).map(position => mesh.device_ids[position]);
  const noun = holders.length === 1 ? 'device' : 'devices';
  const where = holders.length ? `on ${noun} ${numbers(holders)}` : 'on no device';
  const what = value.unreduced.length ? 'partial sums of ' : '';
  return clean(`${what}${value.name}${sliceText(value, layout, block)} ${where}`);
}

/** Say which devices hold the blocks next to one. */
export function blocksBesideText(block: number, mesh: Mesh, layout: Layout): string {
  const parts = neighbours(layout.grid, block).map(([dim, before, after]) => {
    const found = [before, after].flatMap(place => layout.holders.get(place ?? -1) ?? []);
    return `${numbers(found.map(position => mesh.device_ids[position]))} along dim ${dim}`;
  });
  return parts.length ? `next to it: ${parts.join(', ')}` : '';
}

