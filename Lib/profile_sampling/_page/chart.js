// The stack chart: the stacks of one lane in the order of time.
//
// This file owns how it is drawn: each column of pixels has the stack that took
// most of it.  It must not know which lane it is of.
// @ts-check

import {element} from './dom.js';
import {colorOf} from './flame.js';
import {columnsOfLane} from './lanesums.js';
import {STATES} from './labels.js';
import {AXIS, Plot, colorsOf, drawAxis} from './plot.js';
import {counted, printable, seconds, stateName} from './words.js';

/** @typedef {import('./ranges.js').Range} Range */

const STEP = 16;
const MOST_ROWS = 40;
const LEAST_LABEL = 24;

export class ChartView {
  /**
   * @param {import('./time.js').TimeView} view
   * @param {number} lane number of the value that it is of
   */
  constructor(view, lane) {
    this.view = view;
    this.lane = lane;
    this.window = view.range ?? view.window;
    /** @type {{width: number, samples: Int32Array, rows: number}} */
    this.known = {width: -1, samples: new Int32Array(0), rows: 0};
    this.note = element('p', {class: 'note'});
    this.plot = new Plot({
      name: 'chart', label: 'Stacks of one lane over time',
      hint: 'Click on a frame to select its function',
      height: (width) => AXIS + STEP * Math.min(this.rows(width), MOST_ROWS),
      draw: (context, width) => this.draw(context, width),
      at: (x, _, width) => view.column(x, width, this.window),
      step: (from, key, width) => view.step(from, key, width, this.window),
      click: (x, y) => {
        view.app.select(this.funcAt(Math.floor(x),
                                    Math.floor((y - AXIS) / STEP)));
        this.plot.draw();
      },
      said: (range, y) => this.said(range, y),
      choose: (range) => view.choose(range)});
  }

  /** @param {number} width */
  rows(width) {
    if (this.known.width !== width && width) {
      const {model, line, key} = this.view;
      const samples = columnsOfLane(model, line, key, this.lane, this.window,
                                    Math.floor(width));
      let rows = 1;
      for (const sample of new Set(samples)) {
        rows = Math.max(rows, this.pathOf(sample).length);
      }
      this.known = {width, samples, rows};
      const more = rows - MOST_ROWS;
      this.note.textContent = 'A column shows the stack that took most of it: '
        + 'choose a shorter range to see more.' + (more > 0
        ? ` ${counted(more, 'row')} of frames are not drawn.` : '');
    }
    return this.known.rows;
  }

  /**
   * The calls of a sample as nodes, the root first; of no sample none.
   * @param {number} sample -1: none
   */
  pathOf(sample) {
    const {calls, part} = this.view.model;
    return sample < 0 ? [] : calls.path(calls.merged[part.nodeOf[sample]]);
  }

  /**
   * @param {number} column
   * @param {number} row
   */
  funcAt(column, row) {
    const node = this.pathOf(this.known.samples[column] ?? -1)[row];
    return node === undefined ? -1 : this.view.model.calls.func[node];
  }

  /**
   * @param {Range} range
   * @param {number} y
   */
  said([begin, end], y) {
    const {width, samples} = this.known;
    const [first, last] = this.window;
    const column = Math.floor(((begin + end) / 2 - first) / (last - first)
                              * Math.floor(width));
    const sample = samples[column] ?? -1;
    const where = [`${seconds(begin)} to ${seconds(end)}`];
    if (sample < 0) {
      return [...where, 'nothing'];
    }
    const {functions, samples: {state}} = this.view.app.profile;
    const row = Math.floor((y - AXIS) / STEP);
    const depth = Math.min(this.pathOf(sample).length, MOST_ROWS);
    const func = this.funcAt(column, row >= 0 && row < depth ? row
      : depth - 1);
    return [...where, stateName(STATES[state[sample]]), func < 0 ? 'no frames'
      : printable(functions[func].name) || '[no name]'];
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} width
   */
  draw(context, width) {
    const color = colorsOf();
    drawAxis(context, this.window, width, color('soft'));
    this.rows(width);
    const {samples} = this.known;
    const paths = new Map();
    for (const sample of new Set(samples)) {
      paths.set(sample, this.pathOf(sample));
    }
    const deepest = Math.min(this.known.rows, MOST_ROWS);
    for (let row = 0; row < deepest; row++) {
      let first = 0;
      for (let column = 1; column <= samples.length; column++) {
        const node = paths.get(samples[first])[row];
        if (column < samples.length
            && paths.get(samples[column])[row] === node) {
          continue;
        }
        if (node !== undefined) {
          this.frame(context, color, node, first, column - first,
                     AXIS + row * STEP);
        }
        first = column;
      }
    }
    const height = deepest * STEP;
    this.view.shade(context, width, AXIS, height, this.plot, color,
                    this.window);
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {(name: string) => string} color
   * @param {number} node
   * @param {number} x
   * @param {number} width
   * @param {number} y
   */
  frame(context, color, node, x, width, y) {
    const {app} = this.view;
    const {functions} = app.profile;
    const func = this.view.model.calls.func[node];
    context.fillStyle = color(colorOf(functions[func]));
    context.fillRect(x, y, Math.max(width - 0.5, 0.5), STEP - 1);
    if (func === app.selected) {
      context.strokeStyle = color('text');
      context.strokeRect(x + 0.5, y + 0.5, Math.max(width - 1.5, 0.5),
                         STEP - 2);
    }
    if (width < LEAST_LABEL) {
      return;
    }
    const {name, qualname} = functions[func];
    context.save();
    context.beginPath();
    context.rect(x, y, width - 3, STEP);
    context.clip();
    context.fillStyle = color('frame-text');
    const text = printable(name).slice(0, width);
    context.fillText(
      context.measureText(text).width < width - 6 ? text
        : printable(qualname).slice(0, width), x + 3, y + STEP / 2);
    context.restore();
  }
}
