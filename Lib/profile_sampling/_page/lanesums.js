// Sums over the records of a time line: by lane, by moment, by state.
//
// This file owns what is in each pixel of the views of time.  It must not draw,
// nor know where a window of time comes from.
// @ts-check

import {WAITING, STATES} from './labels.js';
import {WITHOUT, valuesOf} from './match.js';

/** @typedef {import('./model.js').Model} Model */
/** @typedef {import('./timeline.js').Timeline} Timeline */
/** @typedef {import('./ranges.js').Range} Range */

/**
 * What one thread, task or other value of a key did.
 *
 * total  in the window of time, as is
 * busy   the same without what waited
 * cells  for each column and state how many nanoseconds; column by column
 *
 * @typedef {object} Lane
 * @property {number} value number of the value
 * @property {string} name
 * @property {number} total
 * @property {number} busy
 * @property {Float64Array} cells
 */

const WALL = 2;
// Half a pixel of a screen of 2,048.
const HARDLY_SEEN = 1 / 4096;

/**
 * The columns that a stretch of time is in, and what each has of it.
 * @param {number} from
 * @param {number} until
 * @param {Range} window
 * @param {number} columns
 * @param {(column: number, ns: number) => void} take
 */
function eachColumn(from, until, [begin, end], columns, take) {
  const width = (end - begin) / columns;
  const first = Math.max(from, begin);
  const last = Math.min(until, end);
  let column = Math.min(columns - 1, Math.floor((first - begin) / width));
  let at = first;
  while (at < last) {
    const next = column === columns - 1 ? last
      : Math.min(last, begin + (column + 1) * width);
    take(column, next - at);
    at = next;
    column++;
  }
}

/**
 * The names of lanes; those that read alike are told apart by their numbers.
 * @param {import('./decode.js').Profile} profile
 * @param {string} key
 */
export function laneNames(profile, key) {
  const {texts} = valuesOf(profile, key);
  const counts = new Map();
  for (const text of texts) {
    counts.set(text, (counts.get(text) ?? 0) + 1);
  }
  return texts.map((text, number) => (
    counts.get(text) === 1 ? text : `${text} #${number}`));
}

/** Which samples are in a part; @param {Model} model */
function isInPart({part}) {
  const found = new Uint8Array(part.profile.samples.length);
  for (const row of part.rows) {
    found[row] = 1;
  }
  return found;
}

/**
 * The lanes of a key that have anything in a window of time, the busiest
 * first, and last what has no task or label of that key.
 * @param {Model} model
 * @param {Timeline} line
 * @param {string} key
 * @param {Range} window
 * @param {number} columns
 * @returns {Lane[]}
 */
export function lanesOf(model, line, key, window, columns) {
  const {profile} = model;
  const {of} = valuesOf(profile, key);
  const names = laneNames(profile, key);
  const {state} = profile.samples;
  const isIn = isInPart(model);
  /** @type {Map<number, Lane>} */
  const lanes = new Map();
  const {time, row: rows, values} = line;
  for (let at = 0; at < line.length; at++) {
    const row = rows[at];
    if (!isIn[row]) {
      continue;
    }
    let lane = lanes.get(of[row]);
    if (lane === undefined) {
      lane = {value: of[row], name: names[of[row]], total: 0, busy: 0,
              cells: new Float64Array(columns * STATES.length)};
      lanes.set(of[row], lane);
    }
    const wall = values[WALL][at];
    const {cells} = lane;
    const kind = state[row];
    const its = lane;
    eachColumn(time[at] - wall, time[at], window, columns, (column, ns) => {
      cells[column * STATES.length + kind] += ns;
      its.total += ns;
      its.busy += kind === WAITING ? 0 : ns;
    });
  }
  /** @param {Lane} lane */
  const isWithout = ({name}) => key !== 'thread' && name === WITHOUT;
  return [...lanes.values()].filter(({total}) => total).sort(
    (one, other) => Number(isWithout(one)) - Number(isWithout(other))
      || other.busy - one.busy || other.total - one.total
      || one.value - other.value);
}

/**
 * Lanes of threads that did nothing that could be seen, as the profiler's own
 * does; none if there are no others.
 * @param {Lane[]} lanes
 * @param {string} key
 * @param {Range} window
 */
export function emptyLanes(lanes, key, [begin, end]) {
  const leastNs = (end - begin) * HARDLY_SEEN;
  const found = lanes.filter(({total}) => total < leastNs);
  return key === 'thread' && found.length < lanes.length ? found : [];
}

/**
 * The cells of a heat map: columns of time, each cut into rows.
 *
 * cellNs  how long a cell is
 * what    what is counted, in words
 *
 * @typedef {object} Heat
 * @property {Float64Array} cells column by column
 * @property {number} columns
 * @property {number} rows
 * @property {number} cellNs
 * @property {number} most
 * @property {string} what
 */

/**
 * Time in a part, in cells that follow each other down a column and then
 * begin the next.  What waited is not counted, unless all was.
 * @param {Model} model
 * @param {Timeline} line
 * @param {Range} window
 * @param {number} columns
 * @param {number} rows
 * @param {number} cellNs
 * @returns {Heat}
 */
export function heatOf(model, line, window, columns, rows, cellNs) {
  const {state} = model.profile.samples;
  const isIn = isInPart(model);
  const hasOthers = model.part.rows.some((row) => state[row] !== WAITING);
  const cells = new Float64Array(columns * rows);
  const whole = /** @type {Range} */ (
    [window[0], window[0] + cells.length * cellNs]);
  const {time, row, values} = line;
  for (let at = 0; at < line.length; at++) {
    const sample = row[at];
    if (isIn[sample] && !(hasOthers && state[sample] === WAITING)) {
      eachColumn(time[at] - values[WALL][at], Math.min(time[at], window[1]),
                 whole, cells.length, (cell, ns) => {
          cells[cell] += ns;
        });
    }
  }
  let most = 0;
  for (const ns of cells) {
    most = Math.max(most, ns);
  }
  return {cells, columns, rows, cellNs, most,
          what: hasOthers ? 'time but for waiting' : 'time of waiting'};
}

/**
 * The sample that took most of each column in a lane; -1: none.
 * @param {Model} model
 * @param {Timeline} line
 * @param {string} key
 * @param {number} value number of the value whose lane it is
 * @param {Range} window
 * @param {number} columns
 */
export function columnsOfLane(model, line, key, value, window, columns) {
  const {of} = valuesOf(model.profile, key);
  const isIn = isInPart(model);
  const best = new Float64Array(columns);
  const found = new Int32Array(columns).fill(-1);
  const {time, row, values} = line;
  // What the same sample had of this column before.
  const last = new Int32Array(columns).fill(-1);
  const sum = new Float64Array(columns);
  for (let at = 0; at < line.length; at++) {
    const sample = row[at];
    if (!isIn[sample] || of[sample] !== value) {
      continue;
    }
    eachColumn(time[at] - values[WALL][at], time[at], window, columns,
               (column, ns) => {
        sum[column] = last[column] === sample ? sum[column] + ns : ns;
        last[column] = sample;
        if (sum[column] > best[column]) {
          best[column] = sum[column];
          found[column] = sample;
        }
      });
  }
  return found;
}
