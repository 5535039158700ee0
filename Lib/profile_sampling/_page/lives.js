// What is counted of tasks and of requests, exactly, beside the samples.
//
// This file owns the comment of a file that has these counters, as
// _formats/pprof/lives.py writes it, and how they are added up.  It must not
// know what samples say of tasks.
// @ts-check

import {fromBase64, inflated} from './bytes.js';
import {BITS, CORE_BITS, addedUp, mostBuckets} from './histogram.js';
import {CUSTOM} from './labels.js';
import {sumOf} from './timeline.js';

/** @typedef {import('./decode.js').Profile} Profile */
/** @typedef {import('./histogram.js').Histogram} Histogram */

/**
 * Counters of the tasks that run functions of one name.
 *
 * @typedef {object} TaskClass
 * @property {string} name
 * @property {number} finished
 * @property {number} cancelled
 * @property {number} longestStepNs
 * @property {number} longestLifeNs
 * @property {number} steps
 * @property {number} livesNs
 * @property {Histogram} lives
 */

/**
 * How long requests took: blocks of one value of a label.
 *
 * @typedef {object} Latency
 * @property {string} key
 * @property {string} value
 * @property {string[]} roots names of the classes of tasks they were in
 * @property {number} count
 * @property {number} sumNs
 * @property {number} longestNs
 * @property {Histogram} times
 */

/**
 * @typedef {object} Lives
 * @property {Map<string, TaskClass>} classes by their names
 * @property {Map<string, Latency>} latencies by key and value
 */

const VERSION_OF_LIVES = '1';
// A comment may come to so many bytes.
const MOST_BYTES = 1 << 26;
/** @type {Record<string, string>} */
const UNESCAPED = {'\\\\': '\\', '\\t': '\t', '\\n': '\n'};
// Of sums that are more than numbers can say.
const ROUNDING = 1e-9;

/**
 * The counters of what has been decoded; none if another tool has changed the
 * samples that they are of.
 * @param {Profile} profile
 * @returns {Promise<Lives>}
 */
export async function livesIn(profile) {
  const found = noLives();
  if (!profile.livesTexts.length) {
    return found;
  }
  let total = 0n;
  for (const text of profile.livesTexts) {
    const fields = text.split(' ');
    if (fields.length !== 5 || fields[0] !== VERSION_OF_LIVES) {
      return noLives();
    }
    if (!/^-?[0-9]{1,40}$/.test(fields[1])) {
      throw damagedLives();
    }
    total += BigInt(fields[1]);
    const bytes = await bytesOf(fields[3], fields[4], wholeNumber(fields[2]));
    for (const line of new TextDecoder().decode(bytes).split('\n')) {
      readLine(line.split('\t'), found);
    }
  }
  return isOfSamples(profile, total) ? found : noLives();
}

/** @returns {Lives} */
export function noLives() {
  return {classes: new Map(), latencies: new Map()};
}

/**
 * Whether counters that were written with a sum of all values are of these.
 * @param {Profile} profile
 * @param {bigint} total
 */
function isOfSamples({samples, valueTypes, isRounded}, total) {
  let sum = 0n;
  samples.values.forEach((column, number) => {
    // What the program counted itself is no number of samples.
    const counted = valueTypes[number].name !== 'count' ? column
      : column.filter((_, row) => samples.state[row] !== CUSTOM);
    sum += BigInt(sumOf(counted));
  });
  return isRounded
    ? Math.abs(Number(sum - total)) <= ROUNDING * Number(total)
    : sum === total;
}

/**
 * @param {string} kind
 * @param {string} text
 * @param {number} size
 */
async function bytesOf(kind, text, size) {
  let bytes = fromBase64(text);
  if (kind === 'zlib') {
    bytes = await inflated(bytes, 'deflate', Math.min(size, MOST_BYTES));
  }
  if (bytes.length !== size) {
    throw damagedLives();
  }
  return bytes;
}

/**
 * @param {string[]} fields
 * @param {Lives} found
 */
function readLine([kind, ...fields], found) {
  if (kind === 'class' && fields.length === 15) {
    const row = classOf(fields);
    const known = found.classes.get(row.name);
    found.classes.set(row.name, known === undefined ? row
      : bothClasses(known, row));
  } else if (kind === 'label' && fields.length >= 6) {
    const row = latencyOf(fields);
    const key = JSON.stringify([row.key, row.value]);
    const known = found.latencies.get(key);
    found.latencies.set(key, known === undefined ? row
      : bothLatencies(known, row));
  } else if (kind !== 'spent') {
    throw damagedLives();
  }
}

/**
 * @param {string[]} fields
 * @returns {TaskClass}
 */
function classOf([, , module, qualname, , ...fields]) {
  const [finished, cancelled, , , , longestStepNs, longestLifeNs, steps,
         livesNs] = fields.slice(0, -1).map(wholeNumber);
  return {
    name: (module ? `${unescaped(module)}.` : '') + unescaped(qualname),
    finished, cancelled, longestStepNs, longestLifeNs, steps, livesNs,
    lives: histogramOf(fields[fields.length - 1], CORE_BITS)};
}

/**
 * @param {TaskClass} one
 * @param {TaskClass} other
 * @returns {TaskClass}
 */
function bothClasses(one, other) {
  return {
    name: one.name, finished: one.finished + other.finished,
    cancelled: one.cancelled + other.cancelled,
    longestStepNs: Math.max(one.longestStepNs, other.longestStepNs),
    longestLifeNs: Math.max(one.longestLifeNs, other.longestLifeNs),
    steps: one.steps + other.steps, livesNs: one.livesNs + other.livesNs,
    lives: addedUp(one.lives, other.lives)};
}

/**
 * @param {string[]} fields
 * @returns {Latency}
 */
function latencyOf([key, value, count, sum, longest, times, ...roots]) {
  return {key: unescaped(key), value: unescaped(value),
          roots: roots.map(unescaped), count: wholeNumber(count),
          sumNs: wholeNumber(sum), longestNs: wholeNumber(longest),
          times: histogramOf(times, BITS)};
}

/**
 * @param {Latency} one
 * @param {Latency} other
 * @returns {Latency}
 */
function bothLatencies(one, other) {
  return {
    ...one, roots: [...new Set([...one.roots, ...other.roots])],
    count: one.count + other.count, sumNs: one.sumNs + other.sumNs,
    longestNs: Math.max(one.longestNs, other.longestNs),
    times: addedUp(one.times, other.times)};
}

/**
 * @param {string} text
 * @param {number} bits
 * @returns {Histogram}
 */
function histogramOf(text, bits) {
  const counts = [];
  for (const item of text.split(',').filter((one) => one)) {
    const [, place, count] = (/^([^:]*):(.*)$/.exec(item) ?? ['', '', '']).map(
      (part, at) => (at ? wholeNumber(part) : 0));
    if (!(counts.length <= place && place < mostBuckets(bits))) {
      throw damagedLives();
    }
    while (counts.length < place) {
      counts.push(0);
    }
    counts.push(count);
  }
  return {bits, counts};
}

/** @param {string} text */
function unescaped(text) {
  return text.replace(/\\[\\tn]/g, (found) => UNESCAPED[found]);
}

/** @param {string} text */
function wholeNumber(text) {
  if (!/^[0-9]{1,20}$/.test(text)) {
    throw damagedLives();
  }
  return Number(text);
}

function damagedLives() {
  return new Error('the profile is damaged: its table of tasks');
}
