// A canvas whose x is time.
//
// This file owns its size, its axis, and how a range is chosen on it by mouse,
// finger or keys.  It must not know what is drawn.
// @ts-check

import {element, styleOf} from './dom.js';

/** @typedef {import('./ranges.js').Range} Range */

// Less is a click.
const DRAG_PIXELS = 4;
const TICK_PIXELS = 90;
export const AXIS = 16;

/**
 * What a plot is of.
 *
 * name    of its class
 * hint    what is said before a place is pointed at
 * label   for who cannot see it
 * height  in pixels, of a width
 * draw    draws it
 * at      the stretch of time of a place; null: there is none
 * step    the stretch of time where an arrow key leads to from one
 * click   what a click on a place does
 * said    what is said of a place
 * choose  what is done with a range that was chosen; null: none any more
 *
 * @typedef {object} Content
 * @property {string} name
 * @property {string} label
 * @property {string} hint
 * @property {(width: number) => number} height
 * @property {(context: CanvasRenderingContext2D, width: number) => void} draw
 * @property {(x: number, y: number, width: number) => Range} at
 * @property {(from: Range, key: string, width: number) => Range | null} step
 * @property {(x: number, y: number) => void} click
 * @property {(range: Range, y: number) => string[]} said
 * @property {(range: Range | null) => void} choose
 */

export class Plot {
  /** @param {Content} content */
  constructor(content) {
    this.content = content;
    this.canvas = element('canvas', {class: `plot-${content.name}`});
    this.box = element('div', {
      class: 'plot', tabindex: 0, role: 'application',
      'aria-label': `${content.label}; arrow keys move, with Shift they `
        + 'choose a range, Enter takes it, Escape takes all'}, this.canvas);
    this.said = element('p', {class: 'said', 'aria-live': 'polite'},
                        content.hint);
    /** @type {Range | null} where a range begins, and where it is now */
    this.anchor = null;
    /** @type {Range | null} */
    this.cursor = null;
    this.y = 0;
    this.listen();
  }

  parts() {
    return [this.box, this.said];
  }

  /** The range between where it began and where it is now. */
  get chosen() {
    const {anchor, cursor} = this;
    return anchor === null || cursor === null ? null : /** @type {Range} */ ([
      Math.min(anchor[0], cursor[0]), Math.max(anchor[1], cursor[1])]);
  }

  listen() {
    const {box} = this;
    new ResizeObserver(() => this.draw()).observe(box);
    matchMedia('(prefers-color-scheme: dark)').addEventListener(
      'change', () => this.draw());
    let startX = 0;
    let isDown = false;
    box.addEventListener('pointerdown', (event) => {
      box.setPointerCapture(event.pointerId);
      isDown = true;
      startX = event.clientX;
      this.anchor = this.under(event);
    });
    box.addEventListener('pointermove', (event) => {
      this.cursor = this.under(event);
      if (!isDown) {
        this.anchor = null;
      }
      this.tell();
    });
    box.addEventListener('pointerup', (event) => {
      const {chosen} = this;
      isDown = false;
      this.anchor = null;
      if (Math.abs(event.clientX - startX) >= DRAG_PIXELS
          && chosen !== null) {
        this.content.choose(chosen);
      } else {
        const edge = this.canvas.getBoundingClientRect();
        this.content.click(event.clientX - edge.left,
                           event.clientY - edge.top);
      }
    });
    box.addEventListener('pointercancel', () => {
      isDown = false;
      this.anchor = null;
      this.draw();
    });
    box.addEventListener('keydown', (event) => this.key(event));
  }

  /** @param {PointerEvent} event */
  under(event) {
    const edge = this.canvas.getBoundingClientRect();
    this.y = event.clientY - edge.top;
    return this.content.at(event.clientX - edge.left, this.y, edge.width);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const {content, chosen, box: {clientWidth: width}} = this;
    if (event.key === 'Enter' && chosen !== null) {
      content.choose(chosen);
    } else if (event.key === 'Escape') {
      content.choose(null);
    } else {
      const from = this.cursor ?? content.at(0, 0, width);
      const next = content.step(from, event.key, width);
      if (next === null) {
        return;
      }
      this.anchor = event.shiftKey ? this.anchor ?? from : null;
      this.cursor = next;
      this.tell();
    }
    event.preventDefault();
    event.stopPropagation();
  }

  tell() {
    const range = this.chosen ?? this.cursor;
    if (range !== null) {
      this.said.textContent = this.content.said(range, this.y).join(', ');
    }
    this.draw();
  }

  draw() {
    const {box, canvas, content} = this;
    const scale = globalThis.devicePixelRatio || 1;
    const width = box.clientWidth;
    const height = content.height(width);
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    const size = styleOf(`plot-${content.name}`);
    size.width = `${width}px`;
    size.height = `${height}px`;
    const context = canvas.getContext('2d');
    if (context === null) {
      throw new Error('this browser cannot draw');
    }
    if (width) {
      context.scale(scale, scale);
      context.font = '11px system-ui, sans-serif';
      context.textBaseline = 'middle';
      content.draw(context, width);
    }
  }
}

/** The colours of the page by their names. */
export function colorsOf() {
  const style = getComputedStyle(document.documentElement);
  const known = new Map();
  return (/** @type {string} */ name) => {
    if (!known.has(name)) {
      known.set(name, style.getPropertyValue(`--${name}`));
    }
    return known.get(name);
  };
}

/**
 * Draw an axis of time.
 * @param {CanvasRenderingContext2D} context
 * @param {Range} window
 * @param {number} width
 * @param {string} color
 */
export function drawAxis(context, [begin, end], width, color) {
  const step = niceStep((end - begin) * TICK_PIXELS / width);
  context.fillStyle = color;
  const digits = Math.max(0, Math.ceil(9 - Math.log10(step)));
  for (let at = Math.ceil(begin / step) * step; at <= end; at += step) {
    const x = (at - begin) / (end - begin) * width;
    context.fillRect(x, 0, 1, AXIS);
    context.fillText(`${(at / 1e9).toFixed(Math.min(9, digits))} s`, x + 3,
                     AXIS / 2);
  }
}

/**
 * The least of 1, 2, 5, 10, ... that is no less.
 * @param {number} least
 */
export function niceStep(least) {
  const ten = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return ten * /** @type {number} */ (
    [1, 2, 5, 10].find((factor) => factor * ten >= least));
}
