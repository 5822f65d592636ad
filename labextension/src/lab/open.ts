/** The ways between a rendered report, the editor's badges, and the side panel. */

/** The event that asks a rendered report to show collectives; its detail is their ids. */
export const CHOOSE = 'shardnb:choose';
/** The event by which a rendered report asks for the side panel. */
export const OPEN = 'shardnb:open';

/** Show collectives in a cell's rendered reports; false where the cell shows no such report. */
export function chooseIn(cell: HTMLElement, number: number, ids: readonly number[]): boolean {
  const node = outputs(cell)[number];
  if (!node) {
    return false;
  }
  node.dispatchEvent(new CustomEvent(CHOOSE, { detail: ids }));
  const target = node.querySelector('.shardnb-sends') ?? node;
  const quiet = window.matchMedia('(prefers-reduced-motion: reduce)').matches;
  target.scrollIntoView({ block: 'nearest', behavior: quiet ? 'auto' : 'smooth' });
  return true;
}

/** Give the number of the report that an element is in, among those of its cell. */
export function numberIn(cell: HTMLElement, element: Element): number {
  return outputs(cell).findIndex(node => node.contains(element));
}

function outputs(cell: HTMLElement): Element[] {
  return [...cell.querySelectorAll('.shardnb-output')];
}

// The renderer is a plugin without settings: what they say of it stands on the page.

/** Say how much reports show in line, for those that are rendered from now on. */
export function setBrief(brief: boolean): void {
  document.documentElement.toggleAttribute('data-shardnb-brief', brief);
}

export function isBrief(): boolean {
  return document.documentElement.hasAttribute('data-shardnb-brief');
}
