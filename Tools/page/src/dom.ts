// Elements, made without HTML in strings: the page's policy allows no other.

type Child = Node | string | null | false | undefined;
type Attribute = string | number | boolean | null | undefined |
  ((event: Event) => void);

/** An element. *attributes*: `on…` is a listener, `style.…` a property of its
 * style; null and false leave one out. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K, attributes: Record<string, Attribute> = {},
  ...children: Child[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') {
      element.addEventListener(name.slice(2), value);
    } else if (name.startsWith('style.')) {
      element.style.setProperty(name.slice(6), String(value));
    } else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? '' : String(value));
    }
  }
  append(element, children);
  return element;
}

export function append(element: Element, children: readonly Child[]): void {
  for (const child of children) {
    if (child) {
      element.append(child);
    }
  }
}

export function byId(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (found === null) {
    throw new Error(`the page has no #${id}`);
  }
  return found;
}

/** A button that looks like a link. */
export function link(text: string, onclick: () => void,
  attributes: Record<string, Attribute> = {}): HTMLButtonElement {
  return h('button', {type: 'button', class: 'link', onclick, ...attributes},
    text);
}

export interface Choice {
  readonly text: string;
  readonly isChosen: boolean;
  readonly tip?: string;
  readonly choose: () => void;
}

/** One of some. */
export function choices(label: string, all: readonly Choice[]): HTMLElement {
  return h('span', {class: 'seg', role: 'group', 'aria-label': label},
    ...all.map(({text, isChosen, tip, choose}) => h('button', {
      type: 'button', 'aria-pressed': String(isChosen), 'data-tip': tip,
      'data-key': `${label} ${text}`, onclick: choose}, text)));
}

/** The head of a column; what it counts is said when the mouse rests on it. */
export function head(text: string, tip = '', kind = ''): HTMLElement {
  if (!text) {
    return h('th', {class: kind});
  }
  return h('th', {scope: 'col', class: kind, 'data-tip': tip || null,
    tabindex: tip ? 0 : null}, h('span', {}, text));
}

/** On narrow screens each cell of a row stands alone: it says what it is. */
export function stacked(table: HTMLTableElement): HTMLTableElement {
  const heads = [...table.tHead?.rows[0]?.cells ?? []].map(
    (cell) => cell.textContent ?? '');
  for (const row of table.tBodies[0]?.rows ?? []) {
    [...row.cells].forEach((cell, number) => {
      if (heads[number] && cell.textContent && cell.colSpan === 1) {
        cell.dataset.l = heads[number];
      }
    });
  }
  return table;
}

/** A text in which what is between backticks is code. */
export function withCode(text: string): (Node | string)[] {
  return text.split('`').map((part, number) => (
    number % 2 ? h('code', {}, part) : part));
}
