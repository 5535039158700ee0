// The time line of a profile: when samples were taken.
//
// This file owns the records of a file, as _formats/pprof/moments.py writes
// them.  It must not know what a range of time is, nor draw.
// @ts-check

import {fromBase64, inflated} from './bytes.js';

/** @typedef {import('./decode.js').Profile} Profile */

const COLUMNS = 5;
const ITEM_BYTES = 8;
const VERSION = '1';
const TIMED = ['count', 'cpu_ns', 'wall_ns'];

/**
 * Records in the order of their moments; each lies from its moment back over
 * its wall time.  Nanoseconds since the profile began.
 *
 * row       numbers of samples
 * places    which values of samples the columns of values are
 * isStale   whether another tool has changed the samples; then it is empty
 *
 * @typedef {object} Timeline
 * @property {number} length
 * @property {Float64Array} time
 * @property {Float64Array} row
 * @property {Float64Array[]} values count, CPU and wall time
 * @property {number[]} places
 * @property {number} resolutionNs
 * @property {boolean} isStale
 */

/**
 * The time line of what has been decoded; null: there is none.
 * @param {Profile} profile
 * @returns {Promise<Timeline | null>}
 */
export async function timelineOf(profile) {
  const texts = profile.timelineTexts;
  if (!texts.length) {
    return null;
  }
  const places = TIMED.map((name) => (
    profile.valueTypes.findIndex((type) => type.name === name)));
  const fields = texts[0].split(' ');
  const [samples, count, cpu, wall, resolutionNs, length] = fields.slice(1, 7)
    .map(Number);
  if (fields.length !== 9
      || ![samples, count, cpu, wall, resolutionNs, length].every(
        (number) => Number.isSafeInteger(number) && number >= 0)) {
    throw damagedTimeline();
  }
  const {values} = profile.samples;
  if (texts.length > 1 || fields[0] !== VERSION || places.includes(-1)
      || samples !== profile.samples.length
      || [count, cpu, wall].some((total, number) => (
        total !== sumOf(values[places[number]])))) {
    return nothing(places);
  }
  const columns = await columnsOf(fields[7], fields[8], length);
  const line = {length, time: columns[0], row: columns[1],
                values: columns.slice(2), places, resolutionNs,
                isStale: false};
  let moment = 0;
  for (let at = 0; at < length; at++) {
    moment += line.time[at];
    line.time[at] = moment;
  }
  if (!(moment <= Number.MAX_SAFE_INTEGER)
      || (length && line.time[0] < 1)
      || line.row.some((row) => row >= samples)) {
    throw damagedTimeline();
  }
  return isFitting(line, values) ? line : nothing(places);
}

/** @param {number[]} places */
function nothing(places) {
  return {length: 0, time: new Float64Array(0), row: new Float64Array(0),
          values: places.map(() => new Float64Array(0)), places,
          resolutionNs: 0, isStale: true};
}

function damagedTimeline() {
  return new Error('the profile is damaged: its time line');
}

/** @param {Float64Array} column */
export function sumOf(column) {
  let sum = 0;
  for (const value of column) {
    sum += value;
  }
  return sum;
}

/**
 * @param {string} kind
 * @param {string} text
 * @param {number} length
 */
async function columnsOf(kind, text, length) {
  const size = length * COLUMNS * ITEM_BYTES;
  let bytes = fromBase64(text);
  if (kind === 'zlib') {
    bytes = await inflated(bytes, 'deflate', size);
  }
  if (bytes.length !== size) {
    throw damagedTimeline();
  }
  return Array.from({length: COLUMNS}, (_, number) => columnOf(
    bytes.subarray(number * length * ITEM_BYTES,
                   (number + 1) * length * ITEM_BYTES), length));
}

/**
 * A column of which all first bytes come before all second.
 * @param {Uint8Array} planes
 * @param {number} length
 */
function columnOf(planes, length) {
  const column = new Float64Array(length);
  for (let place = 0, factor = 1; place < ITEM_BYTES; place++) {
    for (let at = 0; at < length; at++) {
      column[at] += factor * planes[place * length + at];
    }
    factor *= 256;
  }
  if (column.some((value) => value > Number.MAX_SAFE_INTEGER)) {
    throw damagedTimeline();
  }
  return column;
}

/**
 * Whether no sample weighs less than its records.
 * @param {Timeline} line
 * @param {Float64Array[]} columns
 */
function isFitting({row, values, places}, columns) {
  return values.every((column, number) => {
    const left = columns[places[number]].slice();
    column.forEach((value, at) => {
      left[row[at]] -= value;
    });
    return row.every((one) => left[one] >= 0);
  });
}
