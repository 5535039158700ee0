// What the counters of a session say was lost.
//
// This file owns the names of such counters, which are those of
// _data/losses.py.  It must not know where they are shown.
// @ts-check

import {RULES} from './rules.js';
import {grouped} from './words.js';

/** @typedef {Map<string, number>} Stats */

const LOST_THREADS = 'lost_threads';
// Counters that are no sums: of several, the largest counts.
export const GAUGES = new Set(RULES.gauges);

/**
 * @param {Stats} stats
 * @param {string} name
 */
function counter(stats, name) {
  return stats.get(name) ?? 0;
}

/**
 * Counters of lost samples by their reasons; the total is left out if there
 * are reasons.
 * @param {Stats} stats
 */
export function lostCounts(stats) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const [name, value] of stats) {
    if (name.startsWith('lost') && !name.endsWith('_ns') && value
        && name !== LOST_THREADS && !(name in RULES.lost_labels)) {
      counts.set(name.replace(/^lost/, '').replace(/^_+|_+$/g, ''), value);
    }
  }
  if (counts.size > 1) {
    counts.delete('');
  }
  return counts;
}

/**
 * Lost times in nanoseconds by their clocks.
 * @param {Stats} stats
 */
export function lostTimes(stats) {
  return [...stats].filter(([name, value]) => (
    name.startsWith('lost_') && name.endsWith('_ns') && value))
    .map(([name, value]) => /** @type {[string, number]} */ (
      [name.slice(5, -3), value]));
}

/** @param {Stats} stats */
export function overheadNs(stats) {
  return RULES.overhead.reduce(
    (sum, name) => sum + counter(stats, name), 0);
}

/** @param {Stats} stats */
export function missedShare(stats) {
  const missed = counter(stats, 'ticks_missed');
  const served = RULES.served.reduce(
    (sum, name) => sum + counter(stats, name), 0);
  return missed ? missed / (missed + served) : 0;
}

/** @param {Stats} stats */
export function ticksPerAnswer(stats) {
  const asked = counter(stats, 'signals_sent') + counter(stats, 'ticks_own')
    + counter(stats, 'ticks_noted');
  const due = counter(stats, 'ticks') + counter(stats, 'ticks_late')
    - counter(stats, 'ticks_idle');
  return asked ? Math.max(1, due / asked) : 1;
}

/**
 * In words, the losses that are not lost samples.
 * @param {Stats} stats
 */
export function otherLosses(stats) {
  const texts = Object.entries(RULES.lost_labels)
    .filter(([name]) => counter(stats, name))
    .map(([name, what]) => (
      `${grouped(counter(stats, name))} samples without their ${what}`));
  if (counter(stats, LOST_THREADS)) {
    texts.push(`${grouped(counter(stats, LOST_THREADS))} threads not `
               + 'profiled');
  }
  const unheard = counter(stats, 'ticks_unheard');
  if (unheard > RULES.unheard * counter(stats, 'ticks')) {
    const causes = Object.entries(RULES.causes)
      .filter(([name]) => counter(stats, name))
      .map(([, cause]) => cause).join(' and ');
    texts.push(`${grouped(unheard)} ticks answered late`
               + (causes ? `, as ${causes}` : ''));
  }
  const missed = missedShare(stats);
  if (missed > RULES.missed) {
    texts.push(`${(100 * missed).toFixed(0)}% of the ticks missed`);
  }
  return texts;
}
