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
export function joinedSites({model, against}) {
  return joined(
    model.sites.rows, against?.rival.sites.rows ?? [],
    ({func, line}) => `${func},${line}`,
    /** @returns {SiteRow} */
    ({func, line}) => ({
      func, callees: [], sums: noSums(),
      line: against === null ? line : lineIn(
        against.rival.profile, model.profile, func, line)}));
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

function noSums() {
  return {total: 0, byState: new Array(STATES.length).fill(0), records: 0};
}
