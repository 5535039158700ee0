// Who waited for the GIL while who held it.
//
// This file owns the sums per waiter and holder, as _data/by_gil_holder.py and
// _formats/tables_of_gil.py have them, and their tables.  It must not know how
// a table is laid out.
// @ts-check

import {element} from './dom.js';
import {NOT_KNOWN} from './labels.js';
import {tableOf} from './table.js';
import {placeCell} from './tables.js';
import {innermostPython} from './sums.js';
import {brief, printable, seconds, share} from './words.js';

/** @typedef {import('./app.js').App} App */
/** @typedef {import('./part.js').Part} Part */
/** @typedef {import('./table.js').Cell} Cell */

/**
 * A place that waited, the place that held the GIL, and for how long.
 *
 * @typedef {object} Wait
 * @property {number} func -1: none
 * @property {number} line
 * @property {number} holder
 * @property {number} ns
 */

/**
 * @param {Part} part
 * @returns {{pairs: Wait[], caused: Wait[], total: number,
 *            threads: Map<string, Map<string, number>>}}
 */
export function gilWaits(part) {
  const {profile, rows, nodeOf} = part;
  const {samples, frames, valueTypes} = profile;
  const wall = valueTypes.findIndex(({name}) => name === 'wall_ns');
  const values = wall < 0 ? part.value : samples.values[wall];
  const {innermost} = innermostPython(part);
  /** @type {Map<string, Wait>} */
  const pairs = new Map();
  /** @type {Map<string, Wait>} */
  const caused = new Map();
  /** @type {Map<string, Map<string, number>>} */
  const threads = new Map();
  let total = 0;
  for (const row of rows) {
    const holder = samples.holder[row];
    if (holder === NOT_KNOWN) {
      continue;
    }
    const ns = values[row];
    total += ns;
    const frame = innermost[nodeOf[row]];
    const [func, line] = frame < 0 ? [-1, 0]
      : [frames.func[frame], frames.line[frame]];
    addWait(pairs, `${func},${line},${holder}`, {func, line, holder, ns});
    addWait(caused, String(holder), {func: -1, line: 0, holder, ns});
    const waiter = kindOf(profile, samples.thread[row]);
    const other = kindOf(profile, samples.holderThread[row]);
    const held = threads.get(waiter) ?? new Map();
    threads.set(waiter, held.set(other, (held.get(other) ?? 0) + ns));
  }
  /** @param {Map<string, Wait>} waits */
  const ranked = (waits) => [...waits.values()].sort(
    (one, other) => other.ns - one.ns);
  return {pairs: ranked(pairs), caused: ranked(caused), total, threads};
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

/** @param {App} app */
export function gilView(app) {
  const {pairs, caused, total, threads} = gilWaits(app.model.part);
  if (!pairs.length) {
    return [element('p', {class: 'note'}, 'No thread waited for the GIL.')];
  }
  /** @type {import('./table.js').Column<Wait>[]} */
  const values = [
    {key: 'share', heading: 'share', kind: 'number', cell: ({ns}) => ({
      text: share(ns, total), share: total ? ns / total : 0})},
    {key: 'wait', heading: 'waited', kind: 'number',
     cell: ({ns}) => nsCell(ns)}];
  /** @type {import('./table.js').Column<Wait>} */
  const holder = {key: 'holder', heading: 'holder', kind: 'text',
                  cell: (row) => holderCell(app, row.holder)};
  const {holders} = app.profile;
  return [
    element('h2', {}, 'Threads that waited, by threads that held the GIL'),
    matrix(threads, total),
    element('h2', {}, 'Waits that a place caused'),
    tableOf('gil_caused', [...values, holder], caused,
            app.choosing((row) => holders[row.holder].func)),
    element('h2', {}, 'Waits for the GIL, and who held it'),
    tableOf('gil', [
      ...values,
      {key: 'waiter', heading: 'waiter', kind: 'text',
       cell: ({func, line}) => placeCell(app, func, line)}, holder],
    pairs, app.choosing(({func}) => func))];
}

/**
 * @param {number} ns
 * @returns {Cell}
 */
export function nsCell(ns) {
  return {text: ns ? brief(ns) : '-', value: ns, title: seconds(ns)};
}

/**
 * @param {App} app
 * @param {number} number
 * @returns {Cell}
 */
function holderCell(app, number) {
  const {func, line, callee} = app.profile.holders[number];
  const {text, title} = placeCell(app, func, line);
  return {title, text: callee < 0 ? text
    : `${text} (${app.profile.functions[callee].name})`};
}

/**
 * @param {Map<string, Map<string, number>>} threads
 * @param {number} total
 */
function matrix(threads, total) {
  const holders = new Map();
  for (const held of threads.values()) {
    for (const [name, ns] of held) {
      holders.set(name, (holders.get(name) ?? 0) + ns);
    }
  }
  const names = [...holders.keys()].sort(
    (one, other) => holders.get(other) - holders.get(one)
      || (one < other ? -1 : 1));
  const rows = [...threads].map(([waiter, held]) => ({
    waiter, held, ns: [...held.values()].reduce((sum, ns) => sum + ns, 0)}))
    .sort((one, other) => other.ns - one.ns
      || (one.waiter < other.waiter ? -1 : 1));
  return tableOf('gil_threads', [
    {key: 'share', heading: 'share', kind: 'number', cell: ({ns}) => ({
      text: share(ns, total), share: total ? ns / total : 0})},
    {key: 'waiter', heading: 'waiter \\ holder', kind: 'text',
     cell: ({waiter}) => ({text: waiter})},
    ...names.map((name) => (
      /** @type {import('./table.js').Column<(typeof rows)[0]>} */ ({
        key: `held by ${name}`, heading: printable(name), kind: 'number',
        cell: ({held}) => nsCell(held.get(name) ?? 0)})))], rows);
}
