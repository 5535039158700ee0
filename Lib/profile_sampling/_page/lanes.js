// Lanes: what each thread, task or other value did when, as colours.
//
// This file owns how lanes are drawn.  It must not know what is in them.
// @ts-check

import {STATES} from './labels.js';
import {AXIS, Plot, colorsOf, drawAxis} from './plot.js';
import {lanesOf} from './lanesums.js';
import {printable, seconds, share, stateName} from './words.js';

/** @typedef {import('./lanesums.js').Lane} Lane */
/** @typedef {import('./ranges.js').Range} Range */

const LANE = 24;
const GAP = 3;
const LABEL = 13;
/** @type {Record<string, string>} */
const COLORS = {running: 'running', native: 'native', waiting: 'waiting',
                gil_wait: 'gil', cpu_wait: 'cpu', gc: 'gc',
                asleep_with_gil: 'asleep'};
// The lowest first; what nobody knows is on top.
const ORDER = ['running', 'native', 'gc', 'gil_wait', 'cpu_wait',
               'asleep_with_gil', 'waiting', 'lost', 'unsampled', 'custom'].map(
  (state) => STATES.indexOf(state));

export class LanesView {
  /**
   * @param {import('./time.js').TimeView} view
   * @param {number} most how many lanes are drawn
   */
  constructor(view, most) {
    this.view = view;
    this.most = most;
    /** @type {{width: number, lanes: Lane[]}} */
    this.known = {width: -1, lanes: []};
    this.plot = new Plot({
      name: 'lanes', label: 'What each lane did over time',
      hint: 'Point at a lane for what it did; click for its stacks below',
      height: (width) => AXIS + LANE * this.lanes(width).length,
      draw: (context, width) => this.draw(context, width),
      at: (x, _, width) => view.column(x, width),
      step: (from, key, width) => view.step(from, key, width),
      click: (_, y) => {
        const lane = this.laneAt(y);
        if (lane !== undefined) {
          view.app.change({lane: lane.name});
        }
      },
      said: (range, y) => this.said(range, y),
      choose: (range) => view.choose(range)});
  }

  /** @param {number} width */
  lanes(width) {
    if (this.known.width !== width && width) {
      const {model, line, key, window, empty} = this.view;
      const lanes = lanesOf(model, line, key, window, Math.floor(width));
      const shown = lanes.filter(({value}) => !empty.has(value));
      this.known = {width, lanes: shown.slice(0, this.most)};
    }
    return this.known.lanes;
  }

  showAll() {
    this.most = Infinity;
    this.known.width = -1;
    this.plot.draw();
  }

  /** @param {number} y */
  laneAt(y) {
    return this.known.lanes[Math.floor((y - AXIS) / LANE)];
  }

  /**
   * What a lane did in a range.
   * @param {Range} range
   * @param {number} y
   */
  said([begin, end], y) {
    const lane = this.laneAt(Math.max(y, AXIS)) ?? this.known.lanes[0];
    const where = `${seconds(begin)} to ${seconds(end)}`;
    if (lane === undefined) {
      return [where];
    }
    const {window} = this.view;
    const columns = lane.cells.length / STATES.length;
    const width = (window[1] - window[0]) / columns;
    const first = Math.max(0, Math.round((begin - window[0]) / width));
    const last = Math.min(columns, Math.round((end - window[0]) / width));
    const sums = STATES.map(() => 0);
    for (let cell = first * STATES.length; cell < last * STATES.length;
      cell++) {
      sums[cell % STATES.length] += lane.cells[cell];
    }
    return [where, printable(lane.name), ...STATES.flatMap((state, number) => (
      sums[number]
        ? [`${stateName(state)} ${share(sums[number], end - begin)}`] : []))];
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} width
   */
  draw(context, width) {
    const color = colorsOf();
    const {window, app: {query}} = this.view;
    drawAxis(context, window, width, color('soft'));
    const columns = Math.floor(width);
    this.lanes(width).forEach((lane, number) => {
      const y = AXIS + number * LANE;
      context.fillStyle = color('box');
      context.fillRect(0, y, width, LANE - GAP);
      drawCells(context, lane.cells, y, columns, color,
                (window[1] - window[0]) / columns);
    });
    this.view.shade(context, width, AXIS, LANE * this.known.lanes.length,
                    this.plot, color);
    this.known.lanes.forEach(({name}, number) => {
      drawName(context, printable(name), AXIS + number * LANE, color,
               name === query.lane);
    });
  }
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {string} name
 * @param {number} y
 * @param {(name: string) => string} color
 * @param {boolean} isOn
 */
function drawName(context, name, y, color, isOn) {
  context.globalAlpha = 0.8;
  context.fillStyle = color('back');
  context.fillRect(0, y, context.measureText(name).width + 8, LABEL);
  context.globalAlpha = 1;
  context.fillStyle = color(isOn ? 'accent' : 'text');
  context.fillText(name, 4, y + LABEL / 2);
}

/**
 * Draw columns as bars on each other; those that are alike are one.  Where
 * stretches of time overlap, of several tasks or since a tick's time is spread
 * over its neighbours, a column is full.
 * @param {CanvasRenderingContext2D} context
 * @param {Float64Array} cells
 * @param {number} y
 * @param {number} columns
 * @param {(name: string) => string} color
 * @param {number} columnNs
 */
function drawCells(context, cells, y, columns, color, columnNs) {
  const height = LANE - GAP;
  const scales = new Float64Array(columns);
  for (let column = 0; column < columns; column++) {
    let sum = 0;
    for (let state = 0; state < STATES.length; state++) {
      sum += cells[column * STATES.length + state];
    }
    scales[column] = height / Math.max(sum, columnNs);
  }
  const bottoms = new Float64Array(columns).fill(y + height);
  for (const state of ORDER) {
    context.fillStyle = color(COLORS[STATES[state]] ?? 'other');
    /** @param {number} column */
    const sizeOf = (column) => (
      cells[column * STATES.length + state] * scales[column]);
    let first = 0;
    for (let column = 1; column <= columns; column++) {
      const size = sizeOf(first);
      if (column < columns && bottoms[column] === bottoms[first]
          && sizeOf(column) === size) {
        continue;
      }
      if (size) {
        context.fillRect(first, bottoms[first] - size, column - first, size);
        bottoms.fill(bottoms[first] - size, first, column);
      }
      first = column;
    }
  }
}
