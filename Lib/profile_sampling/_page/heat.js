// A heat map: time in columns from top to bottom, so that rhythms are lines and
// what is out of the way is a spot.
//
// This file owns how it is drawn.  It must not know what is counted.
// @ts-check

import {element} from './dom.js';
import {heatOf} from './lanesums.js';
import {AXIS, Plot, colorsOf, drawAxis, niceStep} from './plot.js';
import {brief, seconds, share} from './words.js';

/** @typedef {import('./ranges.js').Range} Range */
/** @typedef {import('./lanesums.js').Heat} Heat */

const CELLS = 20;
const HEIGHT = 6;
const LEAST_COLUMN = 6;

export class HeatView {
  /** @param {import('./time.js').TimeView} view */
  constructor(view) {
    this.view = view;
    /** @type {Heat | null} */
    this.known = null;
    this.width = -1;
    this.heading = element('h2');
    this.plot = new Plot({
      name: 'heat', label: 'Heat map over time',
      hint: 'The darker, the more; point at a cell for when it was',
      height: () => AXIS + CELLS * HEIGHT,
      draw: (context, width) => this.draw(context, width),
      at: (x, y, width) => this.cell(
        Math.floor(x / this.columnWidth(width)),
        Math.floor((y - AXIS) / HEIGHT), width),
      step: (from, key, width) => this.step(from, key, width),
      click: () => {},
      said: (range) => this.said(range),
      choose: (range) => view.choose(range)});
  }

  /** @param {number} width */
  heat(width) {
    if (this.known === null || this.width !== width) {
      const {model, line, window, app: {profile: {rateHz}}} = this.view;
      const length = window[1] - window[0];
      // Cells that are shorter than a period would show the clock.
      const least = CELLS * 1e9 / (rateHz || 1000);
      const most = Math.max(1, Math.floor(width / LEAST_COLUMN));
      const columnNs = niceStep(Math.max(length / most, least));
      this.known = heatOf(model, line, window, Math.ceil(length / columnNs),
                          CELLS, columnNs / CELLS);
      this.width = width;
      this.heading.textContent = `Heat: ${this.known.what}; a column is ${
        brief(columnNs)}, from top to bottom`;
    }
    return this.known;
  }

  /** @param {number} width */
  columnWidth(width) {
    const {columns, cellNs} = this.heat(width);
    const [begin, end] = this.view.window;
    return Math.max(width / columns, cellNs * CELLS * width / (end - begin));
  }

  /**
   * The stretch of time of a cell.
   * @param {number} column
   * @param {number} row
   * @param {number} width
   * @returns {Range}
   */
  cell(column, row, width) {
    const {columns, cellNs} = this.heat(width);
    const at = Math.min(columns - 1, Math.max(0, column)) * CELLS
      + Math.min(CELLS - 1, Math.max(0, row));
    const begin = this.view.window[0] + at * cellNs;
    return [Math.round(begin), Math.round(begin + cellNs)];
  }

  /**
   * @param {Range} from
   * @param {string} key
   * @param {number} width
   */
  step(from, key, width) {
    const {cellNs, columns} = this.heat(width);
    const at = Math.round((from[0] - this.view.window[0]) / cellNs);
    /** @type {Record<string, number>} */
    const goals = {ArrowDown: at + 1, ArrowUp: at - 1, ArrowRight: at + CELLS,
                   ArrowLeft: at - CELLS, Home: 0, End: columns * CELLS - 1};
    const goal = goals[key];
    return goal === undefined || goal < 0 || goal >= columns * CELLS ? null
      : this.cell(Math.floor(goal / CELLS), goal % CELLS, width);
  }

  /** @param {Range} range */
  said([begin, end]) {
    const {cells, cellNs, what} = this.heat(this.width);
    const first = Math.round((begin - this.view.window[0]) / cellNs);
    const last = Math.round((end - this.view.window[0]) / cellNs);
    let sum = 0;
    for (let cell = first; cell < last; cell++) {
      sum += cells[cell] ?? 0;
    }
    return [`${seconds(begin)} to ${seconds(end)}`,
            `${what} ${share(sum, end - begin)}`];
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} width
   */
  draw(context, width) {
    const color = colorsOf();
    const {cells, most, columns, cellNs} = this.heat(width);
    const {window, range} = this.view;
    const chosen = this.plot.chosen ?? range;
    const {cursor} = this.plot;
    drawAxis(context, window, width, color('soft'));
    context.fillStyle = color('box');
    context.fillRect(0, AXIS, width, CELLS * HEIGHT);
    const size = this.columnWidth(width);
    for (let at = 0; at < columns * CELLS; at++) {
      const begin = window[0] + at * cellNs;
      const isOut = chosen !== null
        && (begin + cellNs <= chosen[0] || begin >= chosen[1]);
      const x = Math.floor(at / CELLS) * size;
      const y = AXIS + at % CELLS * HEIGHT;
      if (cells[at]) {
        context.globalAlpha = (isOut ? 0.25 : 1)
          * Math.sqrt(cells[at] / most);
        context.fillStyle = color('accent');
        context.fillRect(x, y, Math.max(size - 0.5, 0.5), HEIGHT - 0.5);
      }
      if (cursor !== null && Math.abs(begin - cursor[0]) < cellNs / 2) {
        context.globalAlpha = 1;
        context.strokeStyle = color('text');
        context.strokeRect(x + 0.5, y + 0.5, size - 1, HEIGHT - 1);
      }
    }
    context.globalAlpha = 1;
  }
}
