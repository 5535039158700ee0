// The part of a profile that a query asks for: which samples, which frames of
// their stacks, and which of their values.
//
// This file owns how samples are chosen and frames left out.  It must not add
// anything up, nor know where a query comes from.
//
// Frames are left out, never samples because of that: their values go to their
// callers, so that sums stay the same.
// @ts-check

import {C, OPERATOR, PSEUDO, PYTHON} from './functions.js';
import {AWAITING, CUSTOM, LOOP_WAIT} from './labels.js';
import {functionsLike, statesLike, valuesOf} from './match.js';
import {originsOf} from './origins.js';
import {compiled} from './pattern.js';
import {inRange, rangeOf} from './ranges.js';
import {isOfTasks} from './types.js';

/** @typedef {import('./decode.js').Profile} Profile */
/** @typedef {import('./decode.js').Nodes} Nodes */
/** @typedef {import('./types.js').ValueType} ValueType */
/** @typedef {import('./query.js').Query} Query */

/**
 * rows    numbers of the samples in it
 * nodes   the tree of stacks without the frames that are left out
 * nodeOf  per sample of the profile its node there
 * value   per sample of the profile what is looked at
 * total   the sum of the values; what sample() counted is not in it
 * isDifference  whether value is one, of which margins say nothing
 * isWhole  whether all samples of the session are in it, so that its counters
 *          are of them
 *
 * @typedef {object} Part
 * @property {Profile} profile
 * @property {Int32Array} rows
 * @property {Nodes} nodes
 * @property {Int32Array} nodeOf
 * @property {Float64Array} value
 * @property {ValueType} type
 * @property {number} total
 * @property {boolean} isDifference
 * @property {boolean} isWhole
 */

/** @type {ValueType} */
const WALL_MINUS_CPU = {
  name: 'wall_minus_cpu_ns', kind: 'wall \u2212 CPU', unit: 'nanoseconds'};

/**
 * What can be looked at, and what the profile is about first.
 * @param {Profile} profile
 */
export function valueChoices({valueTypes, own}) {
  const names = valueTypes.map(({name}) => name);
  return [valueTypes[own], ...valueTypes.filter((_, at) => at !== own),
          ...names.includes('wall_ns') && names.includes('cpu_ns')
            ? [WALL_MINUS_CPU] : []];
}

/**
 * @param {Profile} whole
 * @param {Query} query
 * @returns {Part}
 */
export function partOf(whole, query) {
  const range = rangeOf(query.time);
  const profile = range === null ? whole : inRange(whole, range);
  const type = valueChoices(profile).find(({name}) => name === query.value)
    ?? profile.valueTypes[profile.own];
  const value = valuesOfType(profile, type);
  const rows = weighed(profile, chosen(profile, query), type, value);
  const {nodes, nodeOf} = shaped(profile, query);
  return {profile, rows, nodes, nodeOf, value, type,
          total: sumOfRows(profile, rows, type, value),
          isDifference: type === WALL_MINUS_CPU,
          isWhole: !whole.isPart && range === null
            && ![query.focus, query.ignore, query.where].some(
              ({length}) => length)};
}

/**
 * @param {Part} part
 * @param {Uint8Array} isOut per sample whether it is left out
 * @returns {Part}
 */
export function withoutRows(part, isOut) {
  if (!isOut.includes(1)) {
    return part;
  }
  const rows = part.rows.filter((row) => !isOut[row]);
  return {...part, rows,
          total: sumOfRows(part.profile, rows, part.type, part.value)};
}

/**
 * @param {Profile} profile
 * @param {Int32Array} rows
 * @param {ValueType} type
 * @param {Float64Array} value
 */
function sumOfRows({samples}, rows, type, value) {
  let total = 0;
  const isCount = type.name === 'count' && type.unit === 'count';
  for (const row of rows) {
    if (!isCount || samples.state[row] !== CUSTOM) {
      total += value[row];
    }
  }
  return total;
}

/**
 * The samples that are of what is looked at: on the clock of a thread tasks
 * that wait weigh nothing, and not all threads run tasks.
 * @param {Profile} profile
 * @param {Int32Array} rows
 * @param {ValueType} type
 * @param {Float64Array} value
 */
function weighed({samples}, rows, type, value) {
  if (isOfTasks(type)) {
    return rows.filter((row) => value[row]);
  }
  const {state} = samples;
  return rows.filter((row) => value[row]
    || (state[row] !== AWAITING && state[row] !== LOOP_WAIT));
}

/**
 * @param {Profile} profile
 * @param {ValueType} type
 */
function valuesOfType(profile, type) {
  const {valueTypes, samples} = profile;
  /** @param {string} wanted */
  const column = (wanted) => samples.values[
    valueTypes.findIndex(({name}) => name === wanted)];
  if (type !== WALL_MINUS_CPU) {
    return column(type.name);
  }
  const cpu = column('cpu_ns');
  return column('wall_ns').map((wall, row) => wall - cpu[row]);
}

/**
 * @param {Profile} profile
 * @param {Query} query
 */
function chosen(profile, query) {
  const {samples} = profile;
  const isIn = profile.isIn?.slice()
    ?? new Uint8Array(samples.length).fill(1);
  for (const [patterns, wanted] of /** @type {[string[], number][]} */ (
    [[query.focus, 1], [query.ignore, 0]])) {
    for (const pattern of patterns) {
      const found = stacksWith(profile, functionsLike(profile, pattern));
      for (let row = 0; row < isIn.length; row++) {
        isIn[row] &= Number(found[samples.node[row]] === wanted);
      }
    }
  }
  for (const [key, pattern] of query.where) {
    const {of, texts} = valuesOf(profile, key);
    const test = key === 'state' ? statesLike(pattern) : compiled(pattern);
    const found = texts.map((text) => Number(test.test(text)));
    for (let row = 0; row < isIn.length; row++) {
      isIn[row] &= found[of[row]];
    }
  }
  const rows = new Int32Array(isIn.length);
  let length = 0;
  for (let row = 0; row < isIn.length; row++) {
    if (isIn[row]) {
      rows[length++] = row;
    }
  }
  return rows.subarray(0, length);
}

/**
 * Which nodes have one of these functions on their stack.
 * @param {Profile} profile
 * @param {Uint8Array} functions
 */
function stacksWith({nodes, frames}, functions) {
  const found = new Uint8Array(nodes.length);
  for (let node = 1; node < nodes.length; node++) {
    found[node] = found[nodes.parent[node]]
      | functions[frames.func[nodes.frame[node]]];
  }
  return found;
}

/**
 * The tree of stacks without what is hidden or folded.  Nodes below what is
 * left out may be alike there: who makes rows of them puts them together.
 * @param {Profile} profile
 * @param {Query} query
 */
function shaped(profile, query) {
  const {nodes, samples} = profile;
  const hidden = hiddenNodes(profile, query);
  if (hidden === null) {
    return {nodes, nodeOf: samples.node};
  }
  const parents = new Int32Array(nodes.length);
  const shown = new Int32Array(nodes.length);
  const moved = new Int32Array(nodes.length);
  let length = 1;
  for (let node = 1; node < nodes.length; node++) {
    const parent = moved[nodes.parent[node]];
    if (hidden[node]) {
      moved[node] = parent;
    } else {
      moved[node] = length;
      parents[length] = parent;
      shown[length++] = nodes.frame[node];
    }
  }
  return {
    nodes: {length, parent: parents.subarray(0, length),
            frame: shown.subarray(0, length)},
    nodeOf: samples.node.map((node) => moved[node])};
}

/**
 * @param {Profile} profile
 * @param {Query} query
 */
function hiddenNodes(profile, query) {
  const {nodes, frames, functions} = profile;
  const isHidden = new Uint8Array(functions.length);
  for (const pattern of query.hide) {
    functionsLike(profile, pattern).forEach((found, number) => {
      isHidden[number] |= found;
    });
  }
  const kinds = new Map([['C', C], ['operators', OPERATOR],
                         ['pseudo', PSEUDO]]);
  const folded = new Set(query.fold.map((name) => kinds.get(name)));
  functions.forEach(({kind}, number) => {
    isHidden[number] |= Number(folded.has(kind));
  });
  const collapsed = new Uint8Array(functions.length);
  for (const pattern of query.collapse) {
    functionsLike(profile, pattern).forEach((found, number) => {
      collapsed[number] |= found;
    });
  }
  const origins = originsOf(functions).map((origin) => (
    query.fold.includes(origin) ? 1 : 0));
  if (![isHidden, collapsed, origins].some((flags) => flags.includes(1))
      && !query.root) {
    return null;
  }
  const root = query.root ? functionsLike(profile, query.root) : null;
  const hidden = new Uint8Array(nodes.length);
  // Whether a stack is in folded code, in collapsed code, and below the root.
  const inFolded = new Uint8Array(nodes.length);
  const inCollapsed = new Uint8Array(nodes.length);
  const inRoot = new Uint8Array(nodes.length);
  for (let node = 1; node < nodes.length; node++) {
    const parent = nodes.parent[node];
    const func = frames.func[nodes.frame[node]];
    const {kind} = functions[func];
    inFolded[node] = kind === PYTHON ? origins[func] : inFolded[parent];
    inCollapsed[node] = inCollapsed[parent] | collapsed[func];
    inRoot[node] = root === null ? 1 : inRoot[parent] | root[func];
    // What code entered a library by is kept, and what states are told by.
    hidden[node] = isHidden[func]
      | (inFolded[node] & inFolded[parent] & Number(kind !== PSEUDO))
      | inCollapsed[parent] | Number(!inRoot[node]);
  }
  return hidden;
}
