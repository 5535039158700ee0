// Two profiles made comparable.
//
// This file owns which functions and lines of two profiles are the same, as
// _data/diff.py does, and which values both have.  It must not
// compare anything.
//
// Functions are known by name and kind: a new version moves them to other
// lines, and another checkout to other files.  Lines are known by their
// distance from the head of the function.
// @ts-check

import {compareFunctions} from './functions.js';
import {keysOf} from './match.js';

/** @typedef {import('./decode.js').Profile} Profile */
/** @typedef {import('./functions.js').Func} Func */

/**
 * Both profiles with functions of the same numbers; each has the places that
 * it knows.  What one does not have, it has from the other.
 * @param {Profile} base
 * @param {Profile} now
 * @returns {[Profile, Profile]}
 */
export function paired(base, now) {
  const both = withCommonValues(base, now);
  /** @type {Map<string, number>} */
  const numbers = new Map();
  /** @type {Func[][]} */
  const rows = [[], []];
  const moved = both.map(({functions}, side) => Int32Array.from(
    functions, (func) => {
      const key = `${func.kind} ${func.name}`;
      const number = numbers.get(key) ?? numbers.size;
      numbers.set(key, number);
      const known = rows[side][number];
      // Of several the first.
      if (known === undefined || compareFunctions(func, known) < 0) {
        rows[side][number] = func;
      }
      return number;
    }));
  const moreKeys = [...new Set([...keysOf(base), ...keysOf(now)])];
  /**
   * @param {Profile} profile
   * @param {number} side
   * @returns {Profile}
   */
  const put = (profile, side) => ({
    ...profile, moreKeys,
    functions: Array.from(
      {length: numbers.size},
      (_, number) => rows[side][number] ?? rows[1 - side][number]),
    frames: {...profile.frames,
             func: profile.frames.func.map((func) => moved[side][func])},
    holders: profile.holders.map(({func, line, callee}) => ({
      func: moved[side][func], line,
      callee: callee < 0 ? callee : moved[side][callee]}))});
  return [put(both[0], 0), put(both[1], 1)];
}

/**
 * Both profiles with the values that both have.
 * @param {Profile} base
 * @param {Profile} now
 */
function withCommonValues(base, now) {
  const [names, others] = [now, base].map(
    ({valueTypes}) => valueTypes.map(({name}) => name));
  const common = names.filter((name) => others.includes(name));
  for (const {valueTypes, own, mode} of [base, now]) {
    if (mode !== now.mode || !common.includes(valueTypes[own].name)) {
      throw new Error('profiles of different values cannot be compared: '
                      + [base, now].map((one) => [
                        one.mode, ...one.valueTypes.map(({name}) => name)]
                        .join(', ')).join(' and '));
    }
  }
  return [base, now].map((profile) => withValues(profile, common));
}

/**
 * @param {Profile} profile
 * @param {string[]} names
 * @returns {Profile}
 */
function withValues(profile, names) {
  const {valueTypes, samples, own, timeline} = profile;
  const places = names.map((name) => (
    valueTypes.findIndex((type) => type.name === name)));
  const timed = timeline?.places.map((place) => places.indexOf(place)) ?? [];
  return {
    ...profile, own: places.indexOf(own),
    valueTypes: places.map((place) => valueTypes[place]),
    samples: {...samples,
              values: places.map((place) => samples.values[place])},
    timeline: timeline === null || timed.includes(-1) ? null
      : {...timeline, places: timed}};
}

/**
 * The types of values that a profile has no more.
 * @param {Profile} profile
 * @param {Profile} whole
 */
export function missingIn({valueTypes}, whole) {
  return whole.valueTypes.filter((type) => !valueTypes.includes(type));
}

/**
 * The line of one profile that is another's.
 * @param {Profile} from
 * @param {Profile} to
 * @param {number} func
 * @param {number} line
 */
export function lineIn(from, to, func, line) {
  return !line || func < 0 ? line
    : line - from.functions[func].firstLine + to.functions[func].firstLine;
}
