// Which ticks found a thread where the ticks before did.
//
// This file owns how they are told from samples, and their sums, as
// _data/stays.py has them.  It must not know what they say of margins.
// @ts-check

import {STAYS} from './types.js';

/** @typedef {import('./decode.js').Samples} Samples */
/** @typedef {import('./types.js').ValueType} ValueType */

/**
 * Of a row, how many of its ticks came after one of the row, and how many had
 * one two ticks before.
 *
 * @typedef {[number, number]} Stays
 */

/** @type {Stays} */
export const NO_STAYS = [0, 0];
// What rows are told apart by.
export const LEAF = 0;
export const LINE = 1;
export const CALL = 2;
const KINDS_OF_STAYS = STAYS.length / 2;

/**
 * Samples without these values and the rows that have nothing else, and rows
 * that have some.
 * @param {ValueType[]} valueTypes
 * @param {Samples} all
 */
export function partedFromStays(valueTypes, all) {
  const places = STAYS.map(
    (wanted) => valueTypes.findIndex(({name}) => name === wanted));
  if (places.includes(-1)) {
    return {valueTypes, samples: all, stays: someOf(all, [], [])};
  }
  const others = [...valueTypes.keys()].filter((at) => !places.includes(at));
  /**
   * @param {number[]} columns
   * @param {number} row
   */
  const has = (columns, row) => columns.some((at) => all.values[at][row]);
  const rows = Array.from({length: all.length}, (_, row) => row);
  return {
    valueTypes: others.map((at) => valueTypes[at]),
    samples: someOf(all, rows.filter(
      (row) => has(others, row) || !has(places, row)), others),
    stays: someOf(all, rows.filter((row) => has(places, row)), places)};
}

/**
 * @param {Samples} all
 * @param {number[]} rows
 * @param {number[]} columns
 * @returns {Samples}
 */
function someOf(all, rows, columns) {
  /** @param {Int32Array} column */
  const some = (column) => Int32Array.from(rows, (row) => column[row]);
  return {
    length: rows.length, node: some(all.node), thread: some(all.thread),
    labels: some(all.labels), holder: some(all.holder),
    holderThread: some(all.holderThread), offset: some(all.offset),
    state: Uint8Array.from(rows, (row) => all.state[row]),
    opcode: rows.map((row) => all.opcode[row]),
    values: columns.map((at) => Float64Array.from(
      rows, (row) => all.values[at][row]))};
}

/**
 * The two columns of one kind; none if they are not known.
 * @param {Samples} stays
 * @param {number} kind
 */
export function staysOfKind({values}, kind) {
  return values.length ? [values[kind], values[kind + KINDS_OF_STAYS]] : [];
}

/**
 * What stayed of each key.
 * @param {import('./part.js').Part} part
 * @param {number} kind
 * @param {(row: number) => number} keyOf
 */
export function staysBy({profile, stays: {rows}}, kind, keyOf) {
  const [last, second] = staysOfKind(profile.stays, kind);
  /** @type {Map<number, Stays>} */
  const sums = new Map();
  for (const row of rows) {
    const key = keyOf(row);
    const [one, other] = sums.get(key) ?? NO_STAYS;
    sums.set(key, [one + last[row], other + second[row]]);
  }
  return sums;
}
