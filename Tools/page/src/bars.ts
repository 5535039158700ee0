// Bars of what threads did, and the card that says their figures.

import type {App} from './app';
import {h} from './dom';
import type {Sum} from './model';
import {percent, STATES} from './words';

/** A part of a bar: what it is called, how it is drawn, how much it is. */
export interface Part {
  readonly name: string;
  readonly css: string;
  readonly value: number;
}

const LEAST_SHARE = 0.006;
const GAP_PX = 6, EDGE_PX = 8, ABOVE_PX = 30;

/** The parts of a sum, in the order of all bars. */
export function parts(app: App, sum: Sum): Part[] {
  return partsBy(app, sum.states);
}

/** The same of values by the numbers of states. */
export function partsBy(app: App, values: ArrayLike<number>): Part[] {
  const {states} = app.model.doc;
  return Object.entries(STATES).map(([state, {name, css}]) => ({
    name, css, value: values[states.indexOf(state)] ?? 0,
  })).filter(({value}) => value > 0);
}

/** A part of a whole as a line. */
export function meter(value: number, whole: number, css: string):
  HTMLElement {
  return h('div', {class: 'meter'}, h('i', {class: `s-${css}`,
    'style.width': `${whole ? 100 * value / whole : 0}%`}));
}

export function inWords(all: readonly Part[]): string {
  const total = all.reduce((sum, {value}) => sum + value, 0);
  return [...all].sort((a, b) => b.value - a.value).map(
    ({name, value}) => `${name} ${percent(value, total)}`).join(', ');
}

const partsOf = new WeakMap<Element, [App, readonly Part[]]>();

/** A bar as long as *scale* has it. */
export function bar(app: App, all: readonly Part[], scale: number,
  cssClass = ''): HTMLElement {
  const total = all.reduce((sum, {value}) => sum + value, 0);
  const most = Math.max(...all.map(({value}) => value));
  const element = h('span', {
    class: `bar ${cssClass}`, role: 'img', 'aria-label': inWords(all),
    'style.width': `${Math.max(1, scale ? 100 * total / scale : 0)}%`},
  ...all.filter(({value}) => value > LEAST_SHARE * scale || value === most)
    .map(({css, value}) => h('i', {
      class: `s-${css}`, 'style.flex': value / total})));
  partsOf.set(element, [app, all]);
  return element;
}

/** The states of a sum as rows of a list. */
export function list(app: App, all: readonly Part[]): HTMLElement[] {
  const total = all.reduce((sum, {value}) => sum + value, 0);
  return [...all].sort((a, b) => b.value - a.value).flatMap(
    ({name, css, value}) => [
      h('dt', {}, h('span', {class: `sw s-${css}`}), ` ${name}`),
      h('dd', {}, app.amount(value, total)),
      h('dd', {class: 'm2'}, percent(value, total))]);
}

/** Put a card below a point, above it if there is no space, never off the
 * screen. */
export function putCard(card: HTMLElement, x: number, y: number): void {
  const {offsetWidth, offsetHeight} = card;
  const isSpaceBelow = y + offsetHeight + EDGE_PX <= innerHeight;
  card.style.left = `${Math.max(EDGE_PX, Math.min(
    innerWidth - offsetWidth - EDGE_PX, x))}px`;
  card.style.top = `${isSpaceBelow ? y
    : Math.max(EDGE_PX, y - offsetHeight - ABOVE_PX)}px`;
}

/** The card under the pointer, or at what has the focus. */
export class Tip {
  #shownFor: Element | null = null;

  constructor(readonly element: HTMLElement) {
    for (const type of ['mouseover', 'focusin']) {
      document.addEventListener(type, (event) => this.#follow(event));
    }
    document.addEventListener('focusout', () => this.hide());
    document.addEventListener('click', () => this.hide());
    addEventListener('scroll', () => this.hide(), {passive: true});
  }

  show(x: number, y: number, ...content: (Node | string)[]): void {
    this.element.replaceChildren(...content);
    this.element.classList.add('on');
    putCard(this.element, x, y);
  }

  hide(): void {
    this.element.classList.remove('on');
    this.#shownFor = null;
  }

  #follow({target}: Event): void {
    const wanted = target instanceof Element
      ? target.closest('[data-tip],.bar') : null;
    if (wanted === this.#shownFor) {
      return;
    }
    if (wanted === null) {
      if (this.#shownFor !== null) {
        this.hide();
      }
      return;
    }
    const known = partsOf.get(wanted);
    const text = wanted.getAttribute('data-tip');
    if (known === undefined && text === null) {
      return;
    }
    this.#shownFor = wanted;
    const {left, bottom} = wanted.getBoundingClientRect();
    this.show(left, bottom + GAP_PX, known === undefined ? text!
      : h('dl', {}, ...list(...known)));
  }
}
