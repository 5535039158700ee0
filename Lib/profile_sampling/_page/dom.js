// Elements of the page.
//
// This file owns how they are made: texts are only ever texts, whatever a
// program calls its functions.  It must not know what is shown.
// @ts-check

/**
 * Make an element.  Properties are attributes, but for `onclick` and others
 * that are functions, and `dataset`.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, any>} [properties]
 * @param {...(Node | string | null)} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (typeof value === 'function') {
      made.addEventListener(name.slice(2), value);
    } else if (name === 'dataset') {
      Object.assign(made.dataset, value);
    } else if (value !== undefined && value !== null && value !== false) {
      made.setAttribute(name, value === true ? '' : String(value));
    }
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

/**
 * The element of that id.
 * @param {string} id
 * @returns {HTMLElement}
 */
export function byId(id) {
  const found = document.getElementById(id);
  if (found === null) {
    throw new Error(`the page has no ${id}`);
  }
  return found;
}

/**
 * @param {string} text
 * @param {() => void} onclick
 * @param {Record<string, any>} [properties]
 */
export function button(text, onclick, properties = {}) {
  return element('button', {type: 'button', onclick, ...properties}, text);
}
