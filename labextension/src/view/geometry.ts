/** Where the places of a grid of any rank are drawn in a box. */

import { indexOf, plane, product } from './layout';

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
  folded: boolean;
}

/** Above a sheet, while there are so few that a caption of each can be read. */
const CAPTION = 16;
const CAPTIONED = 32;
/** The largest and the smallest tile, and the smallest that is not too small to fold for. */
const WIDEST = 110;
const HIGHEST = 18;
const LEAST = 3;
const READABLE = 10;
/** What a folded tile must be larger by, to be worth that its rows do not run on. */
const FOLDED = 0.6;

interface Shape {
  rows: number;
  columns: number;
  deep: number;
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
  const [rows, columns] = [down, across].map(dim => (dim === null ? 1 : grid[dim]));
  const shape = { rows, columns, deep: product(depths) };
  const { folding, free } = best(shape, box);
  const folded = folding.strips * folding.bands > 1;
  const wide = Math.floor(Math.min(free.width, WIDEST));
  const side = Math.max(LEAST, Math.floor(Math.min(free.height, HIGHEST, wide)));
  const tile = { width: folded || side < READABLE ? side : wide, height: side };
  const gaps = gapsOf(shape);
  const high = Math.ceil(rows / folding.strips);
  const broad = Math.ceil(columns / folding.bands);
  const strip = broad * tile.width + gaps.strip;
  const band = high * tile.height + gaps.strip;
  const width = folding.strips * strip - gaps.strip;
  const height = folding.bands * band - gaps.strip;
  const sheets = Array.from({ length: shape.deep }, (_, depth) => ({
    x: (depth % folding.abreast) * (width + gaps.sheet),
    y: Math.floor(depth / folding.abreast) * (height + gaps.sheet + gaps.head) + gaps.head,
    at: indexOf(depths, depth).map((place, i) => [others[i], place] as const)
  }));
  const x = new Float32Array(product(grid));
  const y = new Float32Array(x.length);
  for (let number = 0; number < x.length; number++) {
    const index = indexOf(grid, number);
    const row = down === null ? 0 : index[down];
    const column = across === null ? 0 : index[across];
    const sheet = sheets[others.reduce((depth, dim) => depth * grid[dim] + index[dim], 0)];
    x[number] = sheet.x + Math.floor(row / high) * strip + (column % broad) * tile.width;
    y[number] = sheet.y + Math.floor(column / broad) * band + (row % high) * tile.height;
  }
  const right = Math.max(...sheets.map(sheet => sheet.x)) + width;
  const bottom = Math.max(...sheets.map(sheet => sheet.y)) + height;
  return { width: right, height: bottom, tile, x, y, sheets, folded };
}

/** Give the number of the place at a point, or null. */
export function placeAt({ x, y, tile }: Arrangement, right: number, below: number): number | null {
  const found = x.findIndex(
    (left, i) =>
      right >= left && right - left < tile.width && below >= y[i] && below - y[i] < tile.height
  );
  return found < 0 ? null : found;
}

/** What stands between strips and between sheets, and the room for a caption above a sheet. */
function gapsOf({ rows, columns, deep }: Shape): { strip: number; sheet: number; head: number } {
  const head = deep > 1 && deep <= CAPTIONED ? CAPTION : 0;
  return { strip: Math.min(rows, columns) > 2 ? 8 : 2, sheet: deep > CAPTIONED ? 4 : 8, head };
}

/** Choose the folding with the largest tiles, and give the room of one. */
function best(shape: Shape, box: Box): { folding: Folding; free: Box } {
  let found: Folding = { strips: 1, bands: 1, abreast: 1 };
  let most = 0;
  const tall = shape.rows >= shape.columns;
  const folds = Math.min(64, Math.max(shape.rows, shape.columns));
  for (let fold = 1; fold <= folds; fold++) {
    for (let abreast = 1; abreast <= shape.deep; abreast += abreast < 64 ? 1 : abreast) {
      const folding = { strips: tall ? fold : 1, bands: tall ? 1 : fold, abreast };
      const { width, height } = room(shape, folding, box);
      const worth = Math.min(width, height) * (fold > 1 ? FOLDED : 1);
      if (worth > most && (fold === 1 || most < READABLE)) {
        [found, most] = [folding, worth];
      }
    }
  }
  return { folding: found, free: room(shape, found, box) };
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
