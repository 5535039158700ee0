// Elements of the page.
//
// This file owns how they are made: texts are only ever texts, whatever a
// program calls its functions.  It must not know what is shown.
//
// What has a size that is not known before gets a class and a rule in a style
// sheet that is in no element: attributes would be saved with the page, and
// its policy forbids them.
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

/** @type {CSSStyleSheet | null} */
let sizes = null;
/** @type {Map<string, CSSStyleDeclaration>} */
const rules = new Map();

/**
 * The style of all elements of a class; it may be changed.
 * @param {string} name
 */
export function styleOf(name) {
  if (sizes === null) {
    sizes = new CSSStyleSheet();
    document.adoptedStyleSheets.push(sizes);
  }
  let style = rules.get(name);
  if (style === undefined) {
    const at = sizes.insertRule(`.${name} {}`, sizes.cssRules.length);
    ({style} = /** @type {CSSStyleRule} */ (sizes.cssRules[at]));
    rules.set(name, style);
  }
  return style;
}

/**
 * The class of what has a share, to the percent: --share is that.
 * @param {number} share from 0 to 1
 */
export function shareClass(share) {
  const text = Math.round(100 * Math.max(0, Math.min(1, share)));
  const name = `share-${text}`;
  styleOf(name).setProperty('--share', `${text}%`);
  return name;
}

/**
 * Put new children in a place; what has the focus keeps it.
 * @param {HTMLElement} place
 * @param {Node[]} children
 */
export function keepingFocus(place, children) {
  const controls = () => [...place.querySelectorAll('button, select, input')];
  const old = document.activeElement;
  const at = controls().indexOf(/** @type {Element} */ (old));
  place.replaceChildren(...children);
  const control = controls()[at];
  if (control instanceof HTMLElement) {
    control.focus();
  }
  if (control instanceof HTMLInputElement && old instanceof HTMLInputElement) {
    control.setSelectionRange(old.selectionStart, old.selectionEnd);
  }
}
