// Who waited for the GIL while who held it, in tables.
//
// This file owns their columns, as _formats/tables_of_gil.py does.  It must
// not know how a table is laid out, nor how its rows are worked out.
// @ts-check

import {changeColumns} from './differences.js';
import {element} from './dom.js';
import {gilWaits} from './gilsums.js';
import {joinedWaiters, joinedWaits} from './joined.js';
import {tableOf} from './table.js';
import {placeCell} from './tables.js';
import {brief, printable, seconds, share} from './words.js';

/** @typedef {import('./app.js').App} App */
/** @typedef {import('./gilsums.js').Wait} Wait */
/** @typedef {import('./gilsums.js').Waiter} Waiter */
/** @typedef {import('./table.js').Cell} Cell */

const WALL_TIME = {name: 'wall_ns', kind: 'wall', unit: 'nanoseconds'};
/** @type {ReturnType<typeof gilWaits>} */
const NO_WAITS = {pairs: [], caused: [], total: 0, waiters: []};

/** @param {App} app */
export function gilView(app) {
  const own = gilWaits(app.model.part);
  const other = app.against === null ? NO_WAITS
    : gilWaits(app.against.rival.part);
  if (!own.pairs.length && !other.pairs.length) {
    return [element('p', {class: 'note'}, 'No thread waited for the GIL.')];
  }
  const pairs = joinedWaits(app, own.pairs, other.pairs);
  const caused = joinedWaits(app, own.caused, other.caused);
  /** @type {import('./table.js').Column<Wait>} */
  const holder = {key: 'holder', heading: 'holder', kind: 'text',
                  cell: (row) => holderCell(app, row.holder)};
  return [
    element('h2', {}, 'Threads that waited, by threads that held the GIL'),
    matrix(app, own, other),
    element('h2', {}, 'Waits that a place caused'),
    tableOf('gil_caused', [...waitColumns(app, own.total, caused.otherOf),
                           holder],
            caused.rows, app.choosing((row) => row.holder.func)),
    element('h2', {}, 'Waits for the GIL, and who held it'),
    tableOf('gil', [
      ...waitColumns(app, own.total, pairs.otherOf),
      {key: 'waiter', heading: 'waiter', kind: 'text',
       cell: ({func, line}) => placeCell(app, func, line)}, holder],
    pairs.rows, app.choosing(({func}) => func))];
}

/**
 * How long the waits were, and those of the other profile.
 * @template {{ns: number}} Row
 * @param {App} app
 * @param {number} total
 * @param {(row: Row) => {ns: number} | undefined} otherOf
 * @returns {import('./table.js').Column<Row>[]}
 */
function waitColumns(app, total, otherOf) {
  return [
    {key: 'share', heading: 'share', kind: 'number', cell: ({ns}) => ({
      text: share(ns, total), share: total ? ns / total : 0})},
    {key: 'wait', heading: 'waited', kind: 'number',
     cell: ({ns}) => nsCell(ns)},
    // They are measured: there is no chance in them.
    ...changeColumns(app, (/** @type {Row} */ row) => (
      {own: row.ns, other: otherOf(row)?.ns ?? 0}), '', '', WALL_TIME)];
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
 * @param {import('./gilsums.js').Holder} holder
 * @returns {Cell}
 */
function holderCell(app, {func, line, callee}) {
  const {text, title} = placeCell(app, func, line);
  return {title, text: callee < 0 ? text
    : `${text} (${app.profile.functions[callee].name})`};
}

/**
 * Threads that waited by those that they waited for; of the other profile, for
 * all of them.
 * @param {App} app
 * @param {{total: number, waiters: Waiter[]}} own
 * @param {{waiters: Waiter[]}} other
 */
function matrix(app, own, other) {
  /** @type {Map<string, number>} */
  const holders = new Map();
  for (const {held} of own.waiters) {
    for (const [name, ns] of held) {
      holders.set(name, (holders.get(name) ?? 0) + ns);
    }
  }
  const names = [...holders].sort((one, another) => (
    another[1] - one[1] || (one[0] < another[0] ? -1 : 1)));
  const {rows, otherOf} = joinedWaiters(own.waiters, other.waiters);
  return tableOf('gil_threads', [
    ...waitColumns(app, own.total, otherOf),
    {key: 'waiter', heading: 'waiter \\ holder', kind: 'text',
     cell: ({name}) => ({text: name})},
    ...names.map(([name]) => (
      /** @type {import('./table.js').Column<Waiter>} */ ({
        key: `held by ${name}`, heading: printable(name), kind: 'number',
        cell: ({held}) => nsCell(held.get(name) ?? 0)})))], rows);
}
