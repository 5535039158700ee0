// What is different between two sums.
//
// This file owns the rows of such tables.  It must not know what the sums are
// of, nor draw.
// @ts-check

/**
 * key     of both
 * change  how much more there is now, than of *then* as it is scaled
 *
 * @template Key
 * @typedef {object} Change
 * @property {Key} key
 * @property {number} now
 * @property {number} then
 * @property {number} change
 */

/**
 * Rows of all keys of two sums, the largest changes first, up or down.
 * @template Key
 * @param {Map<Key, number>} sumsA what is now
 * @param {Map<Key, number>} sumsB what was then
 * @param {number} [scale] what *then* is multiplied by to be like *now*
 * @returns {Change<Key>[]}
 */
export function changes(sumsA, sumsB, scale = 1) {
  return [...new Set([...sumsA.keys(), ...sumsB.keys()])].map((key) => {
    const now = sumsA.get(key) ?? 0;
    const then = sumsB.get(key) ?? 0;
    return {key, now, then, change: now - Math.round(then * scale)};
  }).sort((one, other) => Math.abs(other.change) - Math.abs(one.change)
    || other.now - one.now);
}
