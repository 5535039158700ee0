// What the lives of tasks were spent in, and who held their loop.
//
// This file owns the sums over samples of tasks, per class, per value of a
// label and per place that others waited for, beside their counters, as
// _data/by_task.py has them.  It must not know how they are shown.
// @ts-check

import {PSEUDO, compareFunctions} from './functions.js';
import {countOf, quantileOf, toEven} from './histogram.js';
import {AWAITING, LOOP_WAIT, NOT_KNOWN} from './labels.js';
import {labelOf} from './match.js';
import {innermostPython} from './sums.js';
import {DELAY, TASK} from './types.js';

/** @typedef {import('./part.js').Part} Part */
/** @typedef {import('./histogram.js').Histogram} Histogram */

/**
 * awaited  by the number of a function, -1: none
 *
 * @typedef {object} Life
 * @property {number} running
 * @property {number} loopWait
 * @property {number} awaiting
 * @property {Map<number, number>} awaited
 */

/**
 * What is known of durations; null: nothing, or not of this part.
 *
 * @typedef {object} Times
 * @property {number} count
 * @property {number} mean
 * @property {number} p50
 * @property {number} p99
 * @property {number} longest
 * @property {Histogram} histogram
 */

/**
 * A class of tasks.
 *
 * @typedef {object} ClassRow
 * @property {string | null} name
 * @property {number} func that has this name; -1: none
 * @property {Life} life
 * @property {import('./lives.js').TaskClass | null} counters
 * @property {Times | null} times
 */

/**
 * A value of a label.
 *
 * @typedef {object} ValueRow
 * @property {string | null} name
 * @property {Life} life
 * @property {number} spawned the lives of what it started, beside it
 * @property {Times | null} times
 */

export const NO_LIFE = Object.freeze({
  running: 0, loopWait: 0, awaiting: 0, awaited: new Map()});

/** @param {import('./decode.js').Profile} profile */
export function hasTasks({valueTypes}) {
  return valueTypes.some(({kind}) => kind === TASK);
}

/** @param {import('./decode.js').Profile} profile */
export function hasDelay({valueTypes}) {
  return valueTypes.some(({kind}) => kind === DELAY);
}

/** @param {Life} life */
export function lifeNs({running, loopWait, awaiting}) {
  return running + loopWait + awaiting;
}

/**
 * The lives of a part, which is of the value task, by the keys of rows of
 * labels; undefined: left out.
 * @template Key
 * @param {Part} part
 * @param {(Key | undefined)[]} keyOf
 * @returns {Map<Key, Life>}
 */
export function livesBy({profile, rows, value}, keyOf) {
  const {samples, frames, nodes} = profile;
  const lives = new Map();
  for (const row of rows) {
    const key = keyOf[samples.labels[row]];
    if (key === undefined) {
      continue;
    }
    const life = lives.get(key) ?? {...NO_LIFE, awaited: new Map()};
    lives.set(key, life);
    const ns = value[row];
    if (samples.state[row] === AWAITING) {
      // The leaf says that it is awaited, whatever frames are left out.
      const node = nodes.parent[samples.node[row]];
      const func = node ? frames.func[nodes.frame[node]] : -1;
      life.awaiting += ns;
      life.awaited.set(func, (life.awaited.get(func) ?? 0) + ns);
    } else if (samples.state[row] === LOOP_WAIT) {
      life.loopWait += ns;
    } else {
      life.running += ns;
    }
  }
  return lives;
}

/**
 * What is awaited in a life, the longest first.
 * @param {import('./decode.js').Profile} profile
 * @param {Life} life
 */
export function awaitedOf({functions}, {awaited}) {
  return [...awaited].sort((one, other) => (
    other[1] - one[1] || compareFunctions(functions[one[0]] ?? null,
                                          functions[other[0]] ?? null)));
}

/**
 * The value of a label in each row of labels.
 * @param {Part} part
 * @param {string} key
 */
function textsOf({profile: {labels}}, key) {
  return labels.map((row) => (
    key === 'task' ? row.task : row.labels.get(labelOf(key)) ?? null));
}

/**
 * The lives of all tasks, in one sum.
 * @param {Part} part
 */
export function wholeLife(part) {
  const all = textsOf(part, '').map(() => true);
  return livesBy(part, all).get(true) ?? NO_LIFE;
}

/** How many tasks have ended; null: it is not known. @param {Part} part */
export function endedOf({isWhole, profile: {lives}}) {
  return !isWhole || !lives.classes.size ? null
    : [...lives.classes.values()].reduce((sum, row) => sum + row.finished, 0);
}

/**
 * @param {Part} part
 * @returns {ClassRow[]}
 */
export function classRows(part) {
  const {isWhole, profile: {functions, lives}} = part;
  const sums = livesBy(part, textsOf(part, 'task_class'));
  const counters = isWhole ? lives.classes : new Map();
  const numbers = new Map();
  functions.forEach(({name}, number) => {
    if (!numbers.has(name)) {
      numbers.set(name, number);
    }
  });
  return ranked([...new Set([...sums.keys(), ...counters.keys()])].map(
    (name) => {
      const its = counters.get(name) ?? null;
      return {name, func: numbers.get(name) ?? -1,
              life: sums.get(name) ?? NO_LIFE, counters: its,
              times: its && timesOf(countOf(its.lives), its.livesNs,
                                    its.longestLifeNs, its.lives)};
    }));
}

/**
 * @param {number} count
 * @param {number} sum
 * @param {number} longest
 * @param {Histogram} histogram
 * @returns {Times | null}
 */
function timesOf(count, sum, longest, histogram) {
  const [p50, p99] = [0.5, 0.99].map((share) => (
    quantileOf(histogram, share)));
  // A file may say anything.
  if (!count || p50 === null || p99 === null) {
    return null;
  }
  // A bucket may end behind the longest.
  return {count, mean: toEven(sum / count), p50: Math.min(p50, longest),
          p99: Math.min(p99, longest), longest, histogram};
}

/**
 * What tasks with each value of a label did; if the program told of requests,
 * how long these took.
 * @param {Part} part
 * @param {string} key
 * @returns {ValueRow[]}
 */
export function valueRows(part, key) {
  const latencies = new Map(part.isWhole ? latenciesOf(part, key).map(
    (row) => [row.value, row]) : []);
  const values = textsOf(part, key);
  const classes = textsOf(part, 'task_class');
  const answered = textsOf(part, 'answered');
  // What requests started lives on its own.
  const isSpawned = values.map((value, row) => {
    const roots = latencies.get(value ?? '')?.roots ?? [];
    return answered[row] !== null || (value !== null && roots.length > 0
                                      && !roots.includes(classes[row] ?? ''));
  });
  /** @param {boolean} wanted */
  const livesIf = (wanted) => livesBy(part, values.map((value, row) => (
    isSpawned[row] === wanted ? value : undefined)));
  const own = livesIf(false);
  const spawned = livesIf(true);
  return ranked([...new Set([...own.keys(), ...spawned.keys(),
                             ...latencies.keys()])].map((name) => {
    const its = name === null ? undefined : latencies.get(name);
    return {name, life: own.get(name) ?? NO_LIFE,
            spawned: lifeNs(spawned.get(name) ?? NO_LIFE),
            times: its === undefined ? null : timesOf(
              its.count, its.sumNs, its.longestNs, its.times)};
  }));
}

/**
 * @param {Part} part
 * @param {string} key
 */
export function latenciesOf({profile: {lives}}, key) {
  const label = labelOf(key);
  return [...lives.latencies.values()].filter((row) => row.key === label);
}

/**
 * @template {{name: string | null, life: Life}} Row
 * @param {Row[]} rows
 * @returns {Row[]}
 */
function ranked(rows) {
  return rows.sort((one, other) => (
    lifeNs(other.life) - lifeNs(one.life)
    || Number(one.name !== null) - Number(other.name !== null)
    || ((one.name ?? '') < (other.name ?? '') ? -1 : 1)));
}

/**
 * What held a loop while others waited for it; the part is of the value
 * delay.  longest is the longest step of the class of the task.  isGilWait:
 * the loop waited for the GIL, which another thread held there.
 *
 * @typedef {object} HolderRow
 * @property {number} func
 * @property {number} line
 * @property {string | null} task
 * @property {number} ns
 * @property {number} callee
 * @property {number | null} longest
 * @property {boolean} isGilWait
 */

/**
 * @param {Part} part
 * @returns {HolderRow[]}
 */
export function loopHolders(part) {
  const {profile, rows, nodeOf, value, isWhole} = part;
  const {samples, frames, functions} = profile;
  const {innermost, called} = innermostPython(part);
  const tasks = textsOf(part, 'task_class');
  /** @param {number} node */
  const placeOf = (node) => {
    const frame = innermost[node];
    return {func: frame < 0 ? -1 : frames.func[frame],
            line: frame < 0 ? 0 : frames.line[frame],
            callee: called[node] < 0 ? -1 : frames.func[called[node]]};
  };
  /** @type {Map<string, {func: number, line: number, task: string | null,
   *                      ns: number, callees: Map<number, number>,
   *                      isGilWait: boolean}>} */
  const holders = new Map();
  for (const row of rows) {
    const holder = samples.holder[row];
    const isGilWait = holder !== NOT_KNOWN;
    const {func, line, callee} = isGilWait ? profile.holders[holder]
      : placeOf(nodeOf[row]);
    const task = isGilWait ? null : tasks[samples.labels[row]];
    const key = `${isGilWait},${func},${line},${
      task === null ? '' : `:${task}`}`;
    const known = holders.get(key)
      ?? {func, line, task, ns: 0, callees: new Map(), isGilWait};
    known.ns += value[row];
    known.callees.set(callee, (known.callees.get(callee) ?? 0) + value[row]);
    holders.set(key, known);
  }
  /** @param {string | null} task */
  const longestStep = (task) => (isWhole && task !== null
    ? profile.lives.classes.get(task)?.longestStepNs ?? null : null);
  return [...holders.values()].map(({callees, ...row}) => {
    const [[callee]] = [...callees].sort(
      (one, other) => other[1] - one[1]);
    return {
      ...row,
      callee: (functions[callee]?.kind ?? PSEUDO) === PSEUDO ? -1 : callee,
      longest: longestStep(row.task)};
  }).sort((one, other) => other.ns - one.ns);
}
