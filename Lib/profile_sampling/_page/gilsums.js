// Who waited for the GIL while who held it, and for how long.
//
// This file owns the sums per waiter and holder, as _data/by_gil_holder.py has
// them.  It must not know how they are shown.
// @ts-check

import {NOT_KNOWN} from './labels.js';
import {innermostPython} from './sums.js';

/** @typedef {import('./part.js').Part} Part */

/** @typedef {{func: number, line: number, callee: number}} Holder */

/**
 * A place that waited, the place that held the GIL, and for how long.
 *
 * @typedef {object} Wait
 * @property {number} func -1: none
 * @property {number} line
 * @property {Holder} holder
 * @property {number} ns
 */

/**
 * Threads of one kind that waited, and for how long by those that held it.
 *
 * @typedef {object} Waiter
 * @property {string} name
 * @property {Map<string, number>} held
 * @property {number} ns
 */

/**
 * @param {Part} part
 * @returns {{pairs: Wait[], caused: Wait[], total: number,
 *            waiters: Waiter[]}}
 */
export function gilWaits(part) {
  const {profile, rows, nodeOf} = part;
  const {samples, frames, valueTypes, holders} = profile;
  const wall = valueTypes.findIndex(({name}) => name === 'wall_ns');
  const values = wall < 0 ? part.value : samples.values[wall];
  const {innermost} = innermostPython(part);
  /** @type {Map<string, Wait>} */
  const pairs = new Map();
  /** @type {Map<string, Wait>} */
  const caused = new Map();
  /** @type {Map<string, Waiter>} */
  const waiters = new Map();
  let total = 0;
  for (const row of rows) {
    const number = samples.holder[row];
    if (number === NOT_KNOWN) {
      continue;
    }
    const ns = values[row];
    total += ns;
    const holder = holders[number];
    const frame = innermost[nodeOf[row]];
    const [func, line] = frame < 0 ? [-1, 0]
      : [frames.func[frame], frames.line[frame]];
    addWait(pairs, `${func},${line},${number}`, {func, line, holder, ns});
    addWait(caused, String(number), {func: -1, line: 0, holder, ns});
    const name = kindOf(profile, samples.thread[row]);
    const other = kindOf(profile, samples.holderThread[row]);
    const waiter = waiters.get(name) ?? {name, held: new Map(), ns: 0};
    waiter.held.set(other, (waiter.held.get(other) ?? 0) + ns);
    waiter.ns += ns;
    waiters.set(name, waiter);
  }
  /** @param {Map<string, Wait>} waits */
  const ranked = (waits) => [...waits.values()].sort(
    (one, other) => other.ns - one.ns);
  return {
    pairs: ranked(pairs), caused: ranked(caused), total,
    waiters: [...waiters.values()].sort((one, other) => (
      other.ns - one.ns || (one.name < other.name ? -1 : 1)))};
}

/**
 * @param {Map<string, Wait>} waits
 * @param {string} key
 * @param {Wait} wait
 */
function addWait(waits, key, wait) {
  const known = waits.get(key);
  waits.set(key, known === undefined ? wait
    : {...known, ns: known.ns + wait.ns});
}

/**
 * Threads that do the same have names that differ in numbers only.
 * @param {import('./decode.js').Profile} profile
 * @param {number} thread
 */
function kindOf({threads}, thread) {
  if (thread === NOT_KNOWN) {
    return '[unknown]';
  }
  return threads[thread].name.replace(/[0-9]+/g, '*') || '[no name]';
}
