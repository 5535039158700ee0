// What each line of the program cost, waiting included; and each function.
//
// This file owns the rows of these two tables, as _data/by_site.py and
// _data/by_function.py have them.  It must not know how they are shown.
// @ts-check

import {Precision} from './confidence.js';
import {PSEUDO, compareFunctions} from './functions.js';
import {RUNNING, STATES} from './labels.js';
import {
  countsOf, innermostPython, stateSums, sumsOfFrames, usedNodes
} from './sums.js';

/** @typedef {import('./part.js').Part} Part */
/** @typedef {import('./sums.js').StateSums} StateSums */

const NOWHERE = ['lost', 'unsampled', 'custom'].map(
  (state) => STATES.indexOf(state));

/**
 * func     number of the function; -1: there is no frame
 * callees  what it called that is not Python, the most expensive first
 *
 * @typedef {object} SiteRow
 * @property {number} func
 * @property {number} line
 * @property {StateSums} sums
 * @property {[number, number][]} callees function and value
 */

/**
 * rows      the most expensive first
 * isIdle    per sample of the profile
 * idle      value of threads that had nothing to do
 * idleRows  the same by SiteRow
 * nowhere   state and value of what is on no line
 * busy      sum of all but the idle
 * whole     StateSums of the same
 *
 * @typedef {object} Sites
 * @property {SiteRow[]} rows
 * @property {Uint8Array} isIdle
 * @property {number} idle
 * @property {SiteRow[]} idleRows
 * @property {number} idleThreads
 * @property {[number, number][]} nowhere
 * @property {number} busy
 * @property {StateSums} whole
 * @property {Precision} precision
 */

/**
 * @param {Part} part
 * @param {Uint8Array} isIdle per sample of the profile
 * @returns {Sites}
 */
export function sitesOf(part, isIdle) {
  const {profile: {samples}, rows} = part;
  const places = new Places(part);
  const busyRows = places.rows((row) => (
    !isIdle[row] && !NOWHERE.includes(samples.state[row])));
  const idleRows = isIdle.includes(1)
    ? places.rows((row) => isIdle[row] === 1) : [];
  const [whole] = stateSums(part, (row) => (isIdle[row] ? -1 : 0), 1);
  const idleThreads = new Set(
    [...rows].filter((row) => isIdle[row]).map((row) => samples.thread[row]));
  return {
    rows: busyRows, isIdle, idleRows, whole, busy: whole.total,
    idle: idleRows.reduce((sum, row) => sum + row.sums.total, 0),
    idleThreads: idleThreads.size,
    nowhere: /** @type {[number, number][]} */ (
      NOWHERE.map((state) => [state, whole.byState[state]])
        .filter(([, value]) => value)),
    precision: new Precision(part, whole)};
}

/** The call sites of samples, as numbers. */
class Places {
  /** @param {Part} part */
  constructor(part) {
    const {profile: {samples, frames}, rows, nodes, nodeOf} = part;
    const {innermost, called} = innermostPython(part);
    this.part = part;
    this.called = called;
    this.innermost = innermost;
    this.ofSample = new Int32Array(samples.length);
    /** @type {[number, number][]} function and line */
    this.places = [];
    this.numbers = new Map();
    // Per frame, of Python and others, the number of its place, plus one.
    const python = new Int32Array(frames.func.length);
    const others = new Int32Array(frames.func.length);
    for (const row of rows) {
      const node = nodeOf[row];
      const frame = innermost[node];
      if (frame >= 0) {
        python[frame] ||= 1 + this.number(frames.func[frame],
                                          frames.line[frame]);
        this.ofSample[row] = python[frame] - 1;
      } else if (node) {
        const leaf = nodes.frame[node];
        others[leaf] ||= 1 + this.number(frames.func[leaf], 0);
        this.ofSample[row] = others[leaf] - 1;
      } else {
        this.ofSample[row] = this.number(-1, 0);
      }
    }
  }

  /**
   * @param {number} func
   * @param {number} line
   * @returns {number}
   */
  number(func, line) {
    const key = `${func},${line}`;
    if (!this.numbers.has(key)) {
      this.numbers.set(key, this.places.push([func, line]) - 1);
    }
    return this.numbers.get(key);
  }

  /**
   * @param {(row: number) => boolean} wanted
   * @returns {SiteRow[]}
   */
  rows(wanted) {
    const {part, places, ofSample} = this;
    const {functions} = part.profile;
    const used = new Uint8Array(places.length);
    for (const row of part.rows) {
      used[ofSample[row]] |= Number(wanted(row));
    }
    const callees = this.callees(wanted);
    return stateSums(part, (row) => (wanted(row) ? ofSample[row] : -1),
                     places.length)
      .map((sums, number) => ({
        func: places[number][0], line: places[number][1], number, sums,
        callees: callees.get(number) ?? []}))
      .filter(({number}) => used[number])
      .sort((one, other) => other.sums.total - one.sums.total
        || compareFunctions(functions[one.func] ?? null,
                            functions[other.func] ?? null)
        || one.line - other.line);
  }

  /** @param {(row: number) => boolean} wanted */
  callees(wanted) {
    const {part: {profile, rows, nodeOf, value}, called, ofSample} = this;
    const {functions, frames} = profile;
    /** @type {Map<number, Map<number, number>>} */
    const sums = new Map();
    for (const row of rows) {
      const frame = called[nodeOf[row]];
      if (frame < 0 || !wanted(row)) {
        continue;
      }
      const func = frames.func[frame];
      if (functions[func].kind === PSEUDO) {
        continue;
      }
      const ofSite = sums.get(ofSample[row]) ?? new Map();
      sums.set(ofSample[row], ofSite);
      ofSite.set(func, (ofSite.get(func) ?? 0) + value[row]);
    }
    return new Map([...sums].map(([number, ofSite]) => [
      number, [...ofSite].sort((one, other) => other[1] - one[1]
        || compareFunctions(functions[one[0]], functions[other[0]]))]));
  }
}

/**
 * @typedef {object} FunctionRow
 * @property {number} func
 * @property {number} self
 * @property {number} cum
 * @property {number} selfRecords of running code
 * @property {number} cumRecords
 */

/**
 * The functions on the stacks of a part, the most expensive first.
 * @param {Part} part
 * @param {string} sort 'self' or 'cum'
 * @returns {FunctionRow[]}
 */
export function functionRows(part, sort) {
  const {profile: {functions, frames, samples}, nodes} = part;
  const length = functions.length;
  const {self, cum} = sumsOfFrames(part, part.value, frames.func, length);
  const counts = countsOf(part) ?? new Float64Array(samples.length);
  const records = sumsOfFrames(
    part, counts, frames.func, length,
    (row) => samples.state[row] === RUNNING);
  const seen = new Uint8Array(length);
  const used = usedNodes(part);
  for (let node = 1; node < nodes.length; node++) {
    seen[frames.func[nodes.frame[node]]] |= used[node];
  }
  const [by, then] = sort === 'cum' ? [cum, self] : [self, cum];
  return [...functions.keys()].filter((func) => seen[func])
    .map((func) => ({
      func, self: self[func], cum: cum[func],
      selfRecords: records.self[func], cumRecords: records.cum[func]}))
    .sort((one, other) => by[other.func] - by[one.func]
      || then[other.func] - then[one.func]
      || compareFunctions(functions[one.func], functions[other.func]));
}
