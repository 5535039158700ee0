// What the counters of a session say was lost.
//
// This file owns the names of such counters, which are those of
// _data/losses.py.  It must not know where they are shown.
// @ts-check

import {grouped} from './words.js';

/** @typedef {Map<string, number>} Stats */

/** @type {Record<string, string>} */
const LOST_LABELS = {lost_labels: 'labels', lost_tasks: 'task',
                     lost_holders: 'holder of the GIL'};
const LOST_THREADS = 'lost_threads';
const SERVED = ['signals_sent', 'ticks_own', 'ticks_noted', 'ticks_busy'];
/** @type {Record<string, string>} */
const UNHEARD_CAUSES = {ticks_blocked: 'signals are blocked',
                        ticks_refused: 'no signal can be sent',
                        ticks_unprobed: '/proc cannot be read'};
const UNHEARD_SHARE = 0.1;
const MISSED_SHARE = 0.1;
// Counters that are no sums: of several, the largest counts.
export const GAUGES = new Set(['memory_bytes']);

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
        && name !== LOST_THREADS && !(name in LOST_LABELS)) {
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
  return counter(stats, 'overhead_capture_ns')
    + counter(stats, 'overhead_drain_ns')
    + counter(stats, 'overhead_hooks_ns');
}

/** @param {Stats} stats */
export function missedShare(stats) {
  const missed = counter(stats, 'ticks_missed');
  const served = SERVED.reduce((sum, name) => sum + counter(stats, name), 0);
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
  const texts = Object.entries(LOST_LABELS)
    .filter(([name]) => counter(stats, name))
    .map(([name, what]) => (
      `${grouped(counter(stats, name))} samples without their ${what}`));
  if (counter(stats, LOST_THREADS)) {
    texts.push(`${grouped(counter(stats, LOST_THREADS))} threads not `
               + 'profiled');
  }
  const unheard = counter(stats, 'ticks_unheard');
  if (unheard > UNHEARD_SHARE * counter(stats, 'ticks')) {
    const causes = Object.keys(UNHEARD_CAUSES)
      .filter((name) => counter(stats, name))
      .map((name) => UNHEARD_CAUSES[name]).join(' and ');
    texts.push(`${grouped(unheard)} ticks answered late`
               + (causes ? `, as ${causes}` : ''));
  }
  const missed = missedShare(stats);
  if (missed > MISSED_SHARE) {
    texts.push(`${(100 * missed).toFixed(0)}% of the ticks missed`);
  }
  return texts;
}
