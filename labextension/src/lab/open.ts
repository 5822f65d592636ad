/** The way from a badge to its collective in a report on the page. */

/** The event that asks a rendered report to show a collective; its detail is the id. */
export const CHOOSE = 'shardnb:choose';

/** Show a collective in a cell's rendered reports; false where the cell shows no such report. */
export function chooseIn(cell: HTMLElement, number: number, id: number): boolean {
  const node = cell.querySelectorAll('.shardnb-output')[number];
  if (!node) {
    return false;
  }
  node.dispatchEvent(new CustomEvent(CHOOSE, { detail: id }));
  const target = node.querySelector('.shardnb-main') ?? node;
  const quiet = window.matchMedia('(prefers-reduced-motion: reduce)').matches;
  target.scrollIntoView({ block: 'nearest', behavior: quiet ? 'auto' : 'smooth' });
  return true;
}
