/** Colours that tell blocks apart, each with a pattern. */

import { EMPTY, HUES } from '../generated/vocabulary';

const PATTERNS = ['', 'dots', 'plus', 'rings'] as const; // stripes mean a pending sum

export type Pattern = (typeof PATTERNS)[number];

export interface Tint {
  ground: string;
  pattern: Pattern;
}

export const NOBODY: Tint = { ground: EMPTY, pattern: '' };

/**
 * Give the tint of one of `total` things. Up to 32 have a hue and a pattern of their own; more
 * shade by their place in the drawing, from 0 to 1 down (the hue) and across (how light).
 */
export function tint(rank: number, total: number, down = 0, across = 0): Tint {
  if (total <= HUES.length * PATTERNS.length) {
    const pattern = PATTERNS[Math.floor(rank / HUES.length)];
    return { ground: HUES[rank % HUES.length], pattern };
  }
  const hue = (306 * down).toFixed(1);
  return { ground: `hsl(${hue}, 60%, ${(66 + 24 * across).toFixed(1)}%)`, pattern: '' };
}

/** Name a group: A to Z, then AA, AB and so on. */
export function letter(number: number): string {
  let name = '';
  for (let rest = number + 1; rest > 0; rest = Math.floor((rest - 1) / 26)) {
    name = String.fromCharCode(65 + ((rest - 1) % 26)) + name;
  }
  return name;
}
