// What patterns and keys mean, and where that is in a profile.
//
// This file owns what a user may name, as _data/match.py and _data/keys.py do.
// It must not know what is done with what it finds.
// @ts-check

import {STATES} from './labels.js';
import {compiled} from './pattern.js';

/** @typedef {import('./decode.js').Profile} Profile */

// What stands for the value of samples that have none.
export const WITHOUT = '[without]';
// Keys that are no labels; 'file' is one of the command line only.  A label of
// the same name is reached as 'label:task'.
const OWN_KEYS = ['thread', 'state', 'task', 'file'];
const OF_LABELS = 'label:';

/** The key that names a label; @param {string} label */
export function keyOf(label) {
  return OWN_KEYS.includes(label) || label.startsWith(OF_LABELS)
    ? OF_LABELS + label : label;
}

/** The label that a key names; @param {string} key */
export function labelOf(key) {
  return key.startsWith(OF_LABELS) ? key.slice(OF_LABELS.length) : key;
}

/**
 * The pattern that finds a name and no other.
 * @param {string} name
 */
export function exactly(name) {
  return `^${name.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')}$`;
}

/**
 * Which functions have a name or a file that matches.
 * @param {Profile} profile
 * @param {string} pattern
 */
export function functionsLike(profile, pattern) {
  const wanted = compiled(pattern);
  return Uint8Array.from(profile.functions, ({name, filename}) => Number(
    wanted.test(name) || wanted.test(filename)));
}

/**
 * What finds a pattern in states: 'GIL wait', as tables say, is gil_wait.
 * @param {string} pattern
 */
export function statesLike(pattern) {
  compiled(pattern);
  return compiled(`(?i)${
    pattern.replace(/^\(\?i\)/, '').replaceAll(' ', '_')}`);
}

/**
 * What samples can be told apart by.
 * @param {Profile} profile
 */
export function keysOf(profile) {
  const names = new Set();
  let hasTasks = false;
  for (const {labels, task} of profile.labels) {
    hasTasks ||= task !== null;
    for (const label of labels.keys()) {
      names.add(keyOf(label));
    }
  }
  if (profile.pid !== null) {
    names.add('pid');
  }
  for (const name of profile.moreKeys ?? []) {
    hasTasks ||= name === 'task';
    if (!OWN_KEYS.includes(name)) {
      names.add(name);
    }
  }
  return ['thread', 'state', ...hasTasks ? ['task'] : [],
          ...[...names].sort()];
}

/**
 * The value of a key in each sample: a number in *texts*.  Values that read
 * alike are apart if they are of threads that are.
 * @param {Profile} profile
 * @param {string} key
 * @returns {{of: ArrayLike<number>, texts: string[]}}
 */
export function valuesOf(profile, key) {
  const {samples, threads, labels} = profile;
  if (key === 'state') {
    return {of: samples.state, texts: STATES};
  }
  if (key === 'thread') {
    return {of: samples.thread, texts: threads.map(threadName)};
  }
  if (!keysOf(profile).includes(key)) {
    throw new Error(`no sample has the label ${key}`);
  }
  /** @type {Map<string | null, number>} */
  const numbers = new Map();
  const ofSet = labels.map((set) => {
    const value = key === 'task' ? set.task : set.labels.get(labelOf(key))
      ?? (key === 'pid' && !hasPids(profile) ? String(profile.pid) : null);
    if (!numbers.has(value)) {
      numbers.set(value, numbers.size);
    }
    return /** @type {number} */ (numbers.get(value));
  });
  return {of: samples.labels.map((set) => ofSet[set]),
          texts: [...numbers.keys()].map((value) => value ?? WITHOUT)};
}

/** @param {Profile} profile */
function hasPids(profile) {
  return profile.labels.some(({labels}) => labels.has('pid'));
}

/** @param {import('./labels.js').Thread} thread */
export function threadName({name, nativeId, interpreter}) {
  const text = name || `thread ${nativeId}`;
  return interpreter ? `${text} (interpreter ${interpreter})` : text;
}
