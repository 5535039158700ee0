// How far the samples of running time may be off.
//
// This file owns the arithmetic; _data/confidence.py says where it is from.
// It must not know what was added up, nor how it is shown.
// @ts-check

import {RUNNING} from './labels.js';
import {ticksPerAnswer} from './losses.js';
import {countsOf} from './sums.js';

/** @typedef {import('./part.js').Part} Part */
/** @typedef {import('./sums.js').StateSums} StateSums */

// Of the normal distribution, for 95 %.
const Z = 1.96;

/** What margins of a part's running time are worked out from. */
export class Precision {
  /**
   * @param {Part} part
   * @param {StateSums} whole of all its samples
   */
  constructor(part, whole) {
    const {profile: {rateHz, stats}, type} = part;
    this.isKnown = Boolean(rateHz && countsOf(part) !== null
      && type.unit === 'nanoseconds' && !part.isDifference);
    this.records = whole.records;
    const askedNs = 1e9 / (rateHz || 1);
    const eachNs = whole.byState[RUNNING] / whole.records;
    this.periodNs = whole.records
      ? Math.max(askedNs, Math.min(eachNs, askedNs * ticksPerAnswer(stats)))
      : askedNs;
  }

  /**
   * The margin of a sum of that many running records, or null.
   * @param {number} records
   */
  margin(records) {
    return this.isKnown
      ? Math.round(Z * this.periodNs * this.error(records)) : null;
  }

  /** @param {number} records */
  error(records) {
    const rest = this.records - records;
    return records > 0 && rest > 0
      ? Math.sqrt(records * rest / this.records) : 0;
  }

  /**
   * Whether two sums differ by more than chance.
   * @param {StateSums} one
   * @param {StateSums} other
   */
  areApart(one, other) {
    const apart = Math.abs(one.total - other.total);
    return this.isKnown
      ? apart > Z * this.periodNs * Math.hypot(
        this.error(one.records), this.error(other.records))
      : apart !== 0;
  }
}

/**
 * The rank of each row, the largest first, and whether it shares it: rows
 * that are not apart from the first of a rank do.
 * @param {StateSums[]} rows
 * @param {Precision} precision
 */
export function ranksOf(rows, precision) {
  let first = 0;
  const found = rows.map((row, number) => {
    if (number && precision.areApart(rows[first], row)) {
      first = number;
    }
    return first;
  });
  const sizes = new Map();
  found.forEach((one) => sizes.set(one, (sizes.get(one) ?? 0) + 1));
  return found.map((one) => ({rank: one + 1, isTied: sizes.get(one) > 1}));
}
