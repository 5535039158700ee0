// The rows of a table beside those of the profile that it is compared with.
//
// This file owns which rows of two tables belong together, and the rows that
// only the other has.  It must not know how a table is shown.
// @ts-check

import {lineIn} from './pairing.js';
import {STATES} from './labels.js';

/** @typedef {import('./app.js').App} App */
/** @typedef {import('./sites.js').FunctionRow} FunctionRow */
/** @typedef {import('./sites.js').SiteRow} SiteRow */
/** @typedef {import('./gilsums.js').Wait} Wait */
/** @typedef {import('./gilsums.js').Waiter} Waiter */
/** @typedef {import('./tasksums.js').HolderRow} HolderRow */

// No name is a number.
const NAMELESS = 0;

/**
 * Rows with those of the other profile that have no counterpart, and what the
 * counterpart of each is.
 * @template Row
 * @template Other
 * @param {Row[]} rows
 * @param {Other[]} others
 * @param {(row: Row) => string | number} keyOf
 * @param {(row: Other) => Row} moved what another row is here, of no value
 */
function joined(rows, others, keyOf, moved) {
  /** @type {Map<string | number, Other>} */
  const known = new Map();
  const gone = new Map();
  for (const other of others) {
    const row = moved(other);
    known.set(keyOf(row), other);
    gone.set(keyOf(row), row);
  }
  rows.forEach((row) => gone.delete(keyOf(row)));
  return {rows: [...rows, ...gone.values()],
          otherOf: (/** @type {Row} */ row) => known.get(keyOf(row))};
}

/**
 * @param {App} app
 * @param {string} sort
 */
export function joinedFunctions({model, against}, sort) {
  return joined(
    model.functionRows(sort), against?.rival.functionRows(sort) ?? [],
    ({func}) => func,
    /** @returns {FunctionRow} */
    ({func}) => ({func, self: 0, cum: 0, selfRecords: 0, cumRecords: 0}));
}

/** @param {App} app */
export function joinedSites(app) {
  const {model, against} = app;
  const here = lineHere(app);
  return joined(
    model.sites.rows, against?.rival.sites.rows ?? [],
    ({func, line}) => `${func},${line}`,
    /** @returns {SiteRow} */
    ({func, line}) => ({
      func, callees: [], sums: noSums(), line: here(func, line)}));
}

/**
 * Rows of the values of a label.
 * @template {{text: string}} Row
 * @param {Row[]} rows
 * @param {Row[]} others
 */
export function joinedValues(rows, others) {
  return joined(rows, others, ({text}) => text,
                (row) => ({...row, sums: noSums(), idle: 0}));
}

/**
 * Waits for the GIL: by who waited, if that is told, and who held it.
 * @param {App} app
 * @param {Wait[]} rows
 * @param {Wait[]} others
 */
export function joinedWaits(app, rows, others) {
  const here = lineHere(app);
  return joined(
    rows, others, ({func, line, holder}) => (
      [func, line, holder.func, holder.line, holder.callee].join()),
    /** @returns {Wait} */
    ({func, line, holder}) => ({
      func, line: here(func, line), ns: 0,
      holder: {...holder, line: here(holder.func, holder.line)}}));
}

/**
 * Threads that waited for the GIL.
 * @param {Waiter[]} rows
 * @param {Waiter[]} others
 */
export function joinedWaiters(rows, others) {
  return joined(rows, others, ({name}) => name,
                /** @returns {Waiter} */
                ({name}) => ({name, held: new Map(), ns: 0}));
}

/**
 * Tasks by a name: their class, or the value of a label.
 * @template {{name: string | null}} Row
 * @param {Row[]} rows
 * @param {Row[]} others
 * @param {Partial<Row>} nothing what a row has of which there is none here
 */
export function joinedLives(rows, others, nothing) {
  return joined(rows, others, ({name}) => name ?? NAMELESS,
                (row) => ({...row, ...nothing}));
}

/**
 * Places that held a loop.
 * @param {App} app
 * @param {HolderRow[]} rows
 * @param {HolderRow[]} others
 */
export function joinedHolders(app, rows, others) {
  const here = lineHere(app);
  return joined(
    rows, others,
    ({func, line, task, isGilWait}) => [func, line, task, isGilWait].join(),
    /** @returns {HolderRow} */
    ({func, line, task, isGilWait}) => ({
      func, line: here(func, line), task, ns: 0, callee: -1, longest: null,
      isGilWait}));
}

/**
 * What makes a line of the other profile one of this.
 * @param {App} app
 */
function lineHere({model, against}) {
  return (/** @type {number} */ func, /** @type {number} */ line) => (
    against === null ? line : lineIn(
      against.rival.profile, model.profile, func, line));
}

function noSums() {
  return {total: 0, byState: new Array(STATES.length).fill(0), records: 0};
}
