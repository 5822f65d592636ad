/** Elements without markup: every text becomes a text node, so that it is shown, never run. */

export type Child = Node | string | null | false;

type Handler = (event: any) => void;

/** Attributes by name; `on` holds event handlers. A null or false attribute is left out. */
export interface Props {
  on?: Record<string, Handler>;
  [attribute: string]: string | number | boolean | null | undefined | Record<string, Handler>;
}

/** For what hears the keys itself: JupyterLab's shortcuts leave it alone. */
export const OWN_KEYS = { 'data-lm-suppress-shortcuts': true };

/** Make an element. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  props: Props | null = null,
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (name === 'on') {
      for (const [type, handler] of Object.entries(value as Record<string, Handler>)) {
        element.addEventListener(type, handler);
      }
    } else if (name === 'class') {
      // Prefixed, so that they meet nobody else's.
      element.className = String(value).replace(/\S+/g, 'shardnb-$&');
    } else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? '' : String(value));
    }
  }
  element.append(...children.filter(child => child !== null && child !== false));
  return element;
}

/** A button; `more` are attributes besides. */
export function button(text: string, click: () => void, more: Props = {}): HTMLButtonElement {
  return h('button', { type: 'button', ...more, on: { click } }, text);
}

/** What stands under a summary, and is drawn when that is opened first. */
export function folded(title: string, body: HTMLElement, draw: () => void, summary = ''): HTMLElement {
  const toggle = (): void => {
    if (!body.hasChildNodes()) {
      draw();
    }
  };
  const line = summary ? [h('b', null, title), ' ', h('span', { class: 'faint' }, summary)] : [title];
  return h('details', { on: { toggle } }, h('summary', null, ...line), body);
}

/** A slider over so many steps. */
export function slider(max: number, name: string, go: (step: number) => void): HTMLInputElement {
  const input = (): void => go(Number(range.value));
  const range = h('input', {
    type: 'range',
    ...OWN_KEYS,
    class: 'slider',
    min: 0,
    max,
    'aria-label': name,
    on: { input }
  });
  return range;
}

/** Give a canvas its size on the page, and as many pixels as the screen shows there. */
export function sized(canvas: HTMLCanvasElement, size: { width: number; height: number }): void {
  for (const side of ['width', 'height'] as const) {
    canvas.style[side] = `${size[side]}px`;
    canvas[side] = Math.ceil(size[side] * (window.devicePixelRatio || 1));
  }
}

export function heading(title: string): HTMLElement {
  return h('div', { class: 'heading', role: 'heading', 'aria-level': 4 }, title);
}

/** Text in the code's font. */
export function mono(text: string): HTMLElement {
  return h('code', { class: 'mono' }, text);
}

/** Call back once, when an element comes into sight. */
export function whenSeen(element: HTMLElement, call: () => void): void {
  if (typeof IntersectionObserver === 'undefined') {
    call();
    return;
  }
  const observer = new IntersectionObserver(seen => {
    if (seen.some(entry => entry.isIntersecting)) {
      observer.disconnect();
      call();
    }
  });
  observer.observe(element);
}
