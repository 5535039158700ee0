// How far the samples of running time may be off.
//
// This file owns the arithmetic; _data/confidence.py says where it is from.
// It must not know what was added up, nor how it is shown.
// @ts-check

import {RUNNING} from './labels.js';
import {ticksPerAnswer} from './losses.js';
import {countsOf} from './sums.js';

/** @typedef {import('./part.js').Part} Part */
/** @typedef {import('./stays.js').Stays} Stays */
/** @typedef {import('./sums.js').StateSums} StateSums */

// Of the normal distribution, for 95 %.
const Z = 1.96;
// As in _data/chance.py.
const NOISE = 0.7;
const NO_DECAY = 1 - 1e-6;

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
   * @param {Stays} stays
   */
  margin(records, stays) {
    return this.isKnown
      ? Math.round(Z * this.periodNs * this.error(records, stays)) : null;
  }

  /**
   * @param {number} records
   * @param {Stays} stays
   */
  error(records, stays) {
    const rest = this.records - records;
    return records > 0 && rest > 0 ? Math.sqrt(
      records * rest / this.records
      * varianceLeft(records, this.records, stays)) : 0;
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
        this.error(one.records, one.stays),
        this.error(other.records, other.stays))
      : apart !== 0;
  }
}

/**
 * How much of the variance of independent draws hits have; _data/chance.py
 * says why.
 * @param {number} hits
 * @param {number} records
 * @param {Stays} stays
 */
export function varianceLeft(hits, records, [after, second]) {
  const draws = hits * (1 - hits / records);
  if (draws <= 0) {
    return Number(hits === 0);
  }
  const visits = Math.max(hits - after, 1);
  const ends = Math.min(visits / draws, 1);
  const noise = NOISE * ends * Math.sqrt(visits * hits / records) / draws;
  const near = 1 - ends - noise;
  if (near <= 0) {
    return 1;
  }
  const far = (second - hits * hits / records) / draws - noise;
  const decay = Math.min(Math.max(far / near, 0), 1);
  if (decay > NO_DECAY) {
    return 1 - near;
  }
  const length = decay ? -1 / Math.log(decay) : 0;
  let mean = length * (1 - decay);
  if (mean * mean <= near) {
    mean = Math.sqrt(near);
    return (1 - mean) * (1 + mean * (-1.036 + mean * (1.634 + mean * (
      -1.403 + mean * 0.472))));
  }
  return Math.max(1 - near / (mean * mean) * 2 * length * (1 - mean),
                  ends / 3);
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
