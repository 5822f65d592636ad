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
    set(element, name, value);
  }
  element.append(...children.filter(child => child !== null && child !== false));
  return element;
}

function set(element: HTMLElement, name: string, value: Props[string]): void {
  if (name === 'on') {
    for (const [type, handler] of Object.entries(value as Record<string, Handler>)) {
      element.addEventListener(type, handler);
    }
  } else if (name === 'class') {
    element.className = classes(String(value));
  } else if (value !== null && value !== undefined && value !== false) {
    element.setAttribute(name, value === true ? '' : String(value));
  }
}

/** Prefix class names, so that they meet nobody else's. */
export function classes(names: string): string {
  return names
    .split(' ')
    .filter(Boolean)
    .map(name => `shardnb-${name}`)
    .join(' ');
}

/** A heading and what stands under it. */
export function section(title: string, ...children: Child[]): HTMLElement {
  return h('section', { class: 'section', 'aria-label': title }, heading(title), ...children);
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
