// Names and shares that rules go by.
//
// This file owns nothing: _formats/html.py puts in what the modules of _data
// have, so that both go by the same.
// @ts-check

/**
 * waiting, loops, workers, fetches, waiting_in_c, accept, run: functions and
 * modules, and present, waited, computed: shares; see _data/idle.py
 * known: modules; see _data/origins.py
 * lost_labels, served, overhead, causes: counters, and unheard, missed:
 * shares, and gauges: counters; see _data/losses.py
 *
 * @typedef {object} Rules
 * @property {string[]} waiting
 * @property {string[]} loops
 * @property {string[]} workers
 * @property {string} fetches
 * @property {string[]} waiting_in_c
 * @property {string[]} accept
 * @property {string} run
 * @property {number} present
 * @property {number} waited
 * @property {number} computed
 * @property {string[]} known
 * @property {Record<string, string>} lost_labels
 * @property {string[]} served
 * @property {string[]} overhead
 * @property {Record<string, string>} causes
 * @property {number} unheard
 * @property {number} missed
 * @property {string[]} gauges
 */

/** @type {Rules} */
export const RULES = JSON.parse('{rules}');
