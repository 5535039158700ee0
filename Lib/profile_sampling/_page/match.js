// What patterns and keys mean, and where that is in a profile.
//
// This file owns what a user may name, as _data/match.py and _data/keys.py do.
// It must not know what is done with what it finds.
//
// Patterns are regular expressions, of JavaScript here; '(?i)' may begin one,
// as in Python.
// @ts-check

import {STATES} from './labels.js';

/** @typedef {import('./decode.js').Profile} Profile */

// What stands for the value of samples that have none.
export const WITHOUT = '[without]';
const OWN_KEYS = ['thread', 'state', 'task'];

/**
 * Raise an Error with a sentence for a text that is no pattern.
 * @param {string} text
 */
export function compiled(text) {
  const flags = text.startsWith('(?i)') ? 'iu' : 'u';
  const pattern = flags === 'iu' ? text.slice(4) : text;
  try {
    return new RegExp(pattern, flags);
  } catch (first) {
    try {
      // What needs no escape is often escaped nevertheless.
      return new RegExp(pattern, flags.replace('u', ''));
    } catch (error) {
      throw new Error(`${text} is no regular expression`, {cause: error});
    }
  }
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
 * What samples can be told apart by.
 * @param {Profile} profile
 */
export function keysOf(profile) {
  const names = new Set();
  let hasTasks = false;
  for (const {labels, task} of profile.labels) {
    hasTasks ||= task !== null;
    for (const key of labels.keys()) {
      names.add(key);
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
    const value = key === 'task' ? set.task : set.labels.get(key)
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
