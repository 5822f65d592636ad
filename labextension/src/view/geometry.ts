/** Where the places of a grid of any rank are drawn in a box. */

import { indexOf, plane } from './layout';

export interface Box {
  width: number;
  height: number;
}

/** A sheet of two dimensions: where it begins, and its place along the other dimensions. */
export interface Sheet {
  x: number;
  y: number;
  at: readonly (readonly [dim: number, place: number])[];
}

/** The upper left corner of each place by its number, and the size of all. */
export interface Arrangement extends Box {
  tile: Box;
  x: Float32Array;
  y: Float32Array;
  sheets: readonly Sheet[];
  down: number | null;
  across: number | null;
  folded: boolean;
}

const CAPTION = 16;
const CAPTIONED = 32;
const WIDEST = 110;
const HIGHEST = 34;
const LEAST = 3;
const READABLE = 10;

interface Shape {
  rows: number;
  columns: number;
  deep: number;
}

/** What stands between strips and between sheets, and the room for a caption above a sheet. */
interface Gaps {
  strip: number;
  sheet: number;
  head: number;
}

function gapsOf({ rows, columns, deep }: Shape): Gaps {
  const head = deep > 1 && deep <= CAPTIONED ? CAPTION : 0;
  return { strip: Math.min(rows, columns) > 2 ? 8 : 2, sheet: deep > CAPTIONED ? 4 : 8, head };
}

/** Rows folded into strips side by side, columns into bands, so many sheets in a row. */
interface Folding {
  strips: number;
  bands: number;
  abreast: number;
}

/**
 * Arrange a grid in a box: the last two split dimensions make a sheet, the others a sheet each.
 * A sheet that is much longer than the box is folded, as a newspaper's column is.
 */
export function arrange(grid: readonly number[], box: Box): Arrangement {
  const [down, across] = plane(grid);
  const others = grid.map((_, dim) => dim).filter(dim => dim !== down && dim !== across);
  const depths = others.map(dim => grid[dim]);
  const shape = {
    rows: down === null ? 1 : grid[down],
    columns: across === null ? 1 : grid[across],
    deep: product(depths)
  };
  const folding = best(shape, box);
  const folded = folding.strips * folding.bands > 1;
  const tile = tileOf(shape, folding, box, folded);
  const size = sheetSize(shape, folding, tile);
  const gaps = gapsOf(shape);
  const sheets = Array.from({ length: shape.deep }, (_, depth) => ({
    x: (depth % folding.abreast) * (size.width + gaps.sheet),
    y: Math.floor(depth / folding.abreast) * (size.height + gaps.sheet + gaps.head) + gaps.head,
    at: indexOf(depths, depth).map((place, i) => [others[i], place] as const)
  }));
  const corners = place(grid, { shape, folding, tile, sheets, down, across });
  const width = Math.max(...sheets.map(sheet => sheet.x)) + size.width;
  const height = Math.max(...sheets.map(sheet => sheet.y)) + size.height;
  return { width, height, tile, ...corners, sheets, down, across, folded };
}

/** Give the number of the place at a point, or null. */
export function placeAt(drawn: Arrangement, x: number, y: number): number | null {
  const { width, height } = drawn.tile;
  for (let number = 0; number < drawn.x.length; number++) {
    const right = x - drawn.x[number];
    const below = y - drawn.y[number];
    if (right >= 0 && right < width && below >= 0 && below < height) {
      return number;
    }
  }
  return null;
}

function best(shape: Shape, box: Box): Folding {
  let found: Folding = { strips: 1, bands: 1, abreast: 1 };
  let most = 0;
  for (const folding of foldings(shape)) {
    const { width, height } = room(shape, folding, box);
    const side = Math.min(width, height);
    const folded = folding.strips * folding.bands > 1;
    if (folded ? 0.6 * side > most && most < READABLE : side > most) {
      [found, most] = [folding, folded ? 0.6 * side : side];
    }
  }
  return found;
}

function* foldings({ rows, columns, deep }: Shape): Generator<Folding> {
  const most = Math.min(64, Math.max(rows, columns));
  const tall = rows >= columns;
  for (let folds = 1; folds <= most; folds++) {
    for (let abreast = 1; abreast <= deep; abreast += abreast < 64 ? 1 : abreast) {
      yield { strips: tall ? folds : 1, bands: tall ? 1 : folds, abreast };
    }
  }
}

/** Give the room that one place has in the box. */
function room(shape: Shape, { strips, bands, abreast }: Folding, box: Box): Box {
  const below = Math.ceil(shape.deep / abreast);
  const columns = abreast * strips * Math.ceil(shape.columns / bands);
  const rows = below * bands * Math.ceil(shape.rows / strips);
  const { strip, sheet, head } = gapsOf(shape);
  const aside = abreast * (strips - 1) * strip + (abreast - 1) * sheet;
  const between = below * (bands - 1) * strip + (below - 1) * sheet + below * head;
  return { width: (box.width - aside) / columns, height: (box.height - between) / rows };
}

function tileOf(shape: Shape, folding: Folding, box: Box, folded: boolean): Box {
  const { width, height } = room(shape, folding, box);
  const wide = Math.floor(Math.min(width, WIDEST));
  const high = Math.floor(Math.min(height, HIGHEST, wide));
  const side = Math.max(LEAST, high);
  return folded || side < READABLE ? { width: side, height: side } : { width: wide, height: side };
}

function sheetSize(shape: Shape, { strips, bands }: Folding, tile: Box): Box {
  const { strip } = gapsOf(shape);
  return {
    width: strips * (Math.ceil(shape.columns / bands) * tile.width + strip) - strip,
    height: bands * (Math.ceil(shape.rows / strips) * tile.height + strip) - strip
  };
}

interface Plan {
  shape: Shape;
  folding: Folding;
  tile: Box;
  sheets: readonly Sheet[];
  down: number | null;
  across: number | null;
}

function place(grid: readonly number[], plan: Plan): { x: Float32Array; y: Float32Array } {
  const total = product(grid);
  const x = new Float32Array(total);
  const y = new Float32Array(total);
  const { tile, folding, shape } = plan;
  const gap = gapsOf(shape).strip;
  const high = Math.ceil(shape.rows / folding.strips);
  const wide = Math.ceil(shape.columns / folding.bands);
  const others = grid.map((_, dim) => dim).filter(dim => dim !== plan.down && dim !== plan.across);
  for (let number = 0; number < total; number++) {
    const index = indexOf(grid, number);
    const row = plan.down === null ? 0 : index[plan.down];
    const column = plan.across === null ? 0 : index[plan.across];
    const sheet = plan.sheets[others.reduce((depth, dim) => depth * grid[dim] + index[dim], 0)];
    const strip = Math.floor(row / high);
    const band = Math.floor(column / wide);
    x[number] = sheet.x + strip * (wide * tile.width + gap) + (column % wide) * tile.width;
    y[number] = sheet.y + band * (high * tile.height + gap) + (row % high) * tile.height;
  }
  return { x, y };
}

function product(sizes: readonly number[]): number {
  return sizes.reduce((result, size) => result * size, 1);
}
