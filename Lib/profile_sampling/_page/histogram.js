// Histograms of durations, with buckets of about equal relative width.
//
// This file owns which durations a bucket has, as _data/histogram.py does.  It
// must not know what they are durations of.
// @ts-check

// Of the core's histograms, and of those that are kept in Python.
export const CORE_BITS = 3;
export const BITS = 5;
// A duration has 63 bits.
const MAX_BITS = 63;
// A table of more rows is no picture.
const MOST_BARS = 24;

/**
 * 2 ** bits buckets are an octave.
 *
 * @typedef {object} Histogram
 * @property {number} bits
 * @property {number[]} counts of buckets
 */

/** How many buckets durations can have; @param {number} bits */
export function mostBuckets(bits) {
  return (MAX_BITS - bits + 1) << bits;
}

/**
 * The first duration of a bucket, and the first behind it.
 * @param {number} number
 * @param {number} bits
 */
export function boundsOf(number, bits) {
  const exponent = Math.max((number >> bits) - 1, 0);
  const size = 2 ** exponent;
  const first = (number - (exponent << bits)) * size;
  return [first, first + size];
}

/** @param {Histogram} histogram */
export function countOf({counts}) {
  return counts.reduce((sum, count) => sum + count, 0);
}

/**
 * @param {Histogram} one
 * @param {Histogram} other
 * @returns {Histogram}
 */
export function addedUp({bits, counts}, other) {
  const length = Math.max(counts.length, other.counts.length);
  return {bits, counts: Array.from({length}, (_, number) => (
    (counts[number] ?? 0) + (other.counts[number] ?? 0)))};
}

/**
 * What that share of the durations is not longer than; in a bucket they are
 * taken to lie evenly.  Null of nothing.
 * @param {Histogram} histogram
 * @param {number} share
 */
export function quantileOf(histogram, share) {
  const {bits, counts} = histogram;
  const wanted = share * countOf(histogram);
  let before = 0;
  for (let number = 0; number < counts.length; number++) {
    const count = counts[number];
    if (count && before + count >= wanted) {
      const [first, behind] = boundsOf(number, bits);
      const part = Math.max(wanted - before, 0) / count;
      return first + toEven(part * (behind - first - 1));
    }
    before += count;
  }
  return null;
}

/**
 * The nearest whole number, of two the even one, as Python rounds.
 * @param {number} value
 */
export function toEven(value) {
  const rounded = Math.round(value);
  return rounded - value === 0.5 && rounded % 2 ? rounded - 1 : rounded;
}

/**
 * Rows for a picture: neighbours are one until they are few enough, and
 * between the first and the last none is left out.
 * @param {Histogram} histogram
 * @param {Histogram} [whole] of which it is a part, for rows of as many
 * @returns {{first: number, behind: number, count: number}[]}
 */
export function pictureOf({bits, counts}, whole = {bits, counts}) {
  const used = whole.counts.flatMap(
    (count, number) => (count ? [number] : []));
  if (!used.length) {
    return [];
  }
  const [low, high] = [used[0], used[used.length - 1]];
  let size = 1;
  while (Math.floor(high / size) - Math.floor(low / size) >= MOST_BARS) {
    size *= 2;
  }
  const rows = [];
  for (let at = Math.floor(low / size) * size; at <= high; at += size) {
    rows.push({first: boundsOf(at, bits)[0],
               behind: boundsOf(at + size - 1, bits)[1],
               count: counts.slice(at, at + size).reduce(
                 (sum, count) => sum + count, 0)});
  }
  return rows;
}
