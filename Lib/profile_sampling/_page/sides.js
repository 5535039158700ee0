// The profiles of a page: one, or two that are compared.
//
// This file owns what there is once for each of them, and how values of one
// are put on the scale of the other.  It must not know what is asked of them.
// @ts-check

import {Against} from './against.js';
import {Models} from './model.js';
import {NO_QUERY} from './query.js';

/** @typedef {import('./decode.js').Profile} Profile */
/** @typedef {import('./query.js').Query} Query */

/** A profile, and what was worked out of it. */
export class Side {
  /**
   * @param {Profile} profile
   * @param {{runs: number, work: (number | null)[]}} [of] what it is the sum of
   */
  constructor(profile, of = {runs: 1, work: [null]}) {
    this.profile = profile;
    this.runs = of.runs;
    // Of a program that counted its work, how much of that there is.
    this.weight = of.work.reduce(
      (sum, one) => Number(sum) + (one ?? 1), 0) || 1;
    this.models = new Models(profile);
    this.names = namesOf(profile);
  }

  /** The sum of all samples; @param {Query} query */
  totalOf({value}) {
    return this.models.of({...NO_QUERY, value}).part.total;
  }
}

/**
 * What is asked of both profiles.
 * @param {Side} shown
 * @param {Side} other
 * @param {Query} query
 */
export function againstOf(shown, other, query) {
  const [total, otherTotal] = [shown, other].map((side) => (
    side.totalOf(query)));
  const ratio = query.scale !== 'share' ? shown.weight / other.weight
    : otherTotal ? total / otherTotal : 1;
  return new Against(shown.models.of(query), other.models.of(query), ratio,
                     query.side === 'base');
}

/**
 * How functions are spelt where they are selected: the place is told too of
 * those that have a name in common.
 * @param {Profile} profile
 */
function namesOf({functions}) {
  const counts = new Map();
  for (const {name} of functions) {
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  const of = functions.map(({name, filename, firstLine, kind}) => (
    counts.get(name) === 1 ? name
      : `${name} ${filename}:${firstLine}:${kind}`));
  return {of, numbers: new Map(of.map((name, number) => [name, number]))};
}
