// Sums over the samples of a part: by state, by function, by line.
//
// This file owns the arithmetic of values over the tree of stacks.  It must
// not know how sums are ranked or shown.
// @ts-check

import {PYTHON} from './functions.js';
import {RUNNING, STATES} from './labels.js';
import {ofShape} from './shapes.js';

/** @typedef {import('./part.js').Part} Part */
/** @typedef {import('./decode.js').Nodes} Nodes */

/**
 * What one key has of the value that is looked at.
 *
 * @typedef {object} StateSums
 * @property {number} total
 * @property {number[]} byState
 * @property {number} records how many samples were taken while it ran
 */

/**
 * @param {Part} part
 * @param {(row: number) => number} keyOf the key of a sample; -1: left out
 * @param {number} length how many keys there are
 * @returns {StateSums[]}
 */
export function stateSums(part, keyOf, length) {
  const {profile: {samples}, rows, value} = part;
  const counts = countsOf(part);
  const sums = Array.from({length}, () => (
    {total: 0, byState: new Array(STATES.length).fill(0), records: 0}));
  for (const row of rows) {
    const key = keyOf(row);
    if (key < 0) {
      continue;
    }
    const state = samples.state[row];
    sums[key].total += value[row];
    sums[key].byState[state] += value[row];
    if (state === RUNNING && counts !== null) {
      sums[key].records += counts[row];
    }
  }
  return sums;
}

/**
 * How many records each sample stands for; null if it is not known.
 * @param {Part} part
 */
export function countsOf({profile: {valueTypes, samples}}) {
  const at = valueTypes.findIndex(
    ({name, unit}) => name === 'count' && unit === 'count');
  return at < 0 ? null : samples.values[at];
}

/**
 * The sums of the samples of each stack, without those that it called.
 * @param {Pick<Part, 'rows' | 'nodes' | 'nodeOf'>} part
 * @param {Float64Array} column
 * @param {(row: number) => boolean} [wanted]
 */
export function selfOfNodes({rows, nodes, nodeOf}, column, wanted) {
  const sums = new Float64Array(nodes.length);
  for (const row of rows) {
    if (wanted === undefined || wanted(row)) {
      sums[nodeOf[row]] += column[row];
    }
  }
  return sums;
}

/**
 * Self sums with those of all that was called.
 * @param {ArrayLike<number>} parent
 * @param {Float64Array} self
 */
export function cumulative(parent, self) {
  const sums = self.slice();
  for (let node = sums.length - 1; node > 0; node--) {
    sums[parent[node]] += sums[node];
  }
  return sums;
}

/** Which nodes are on the stack of a sample; @param {Part} part */
export function usedNodes({rows, nodes, nodeOf}) {
  const used = new Uint8Array(nodes.length);
  for (const row of rows) {
    used[nodeOf[row]] = 1;
  }
  for (let node = nodes.length - 1; node > 0; node--) {
    used[nodes.parent[node]] |= used[node];
  }
  return used;
}

/**
 * Whether each node is the outermost of its key on its stack: what is there
 * more than once, by recursion, counts once.
 *
 * Stacks may be thousands of frames deep: the way down and up again is a list.
 * @param {Nodes} nodes
 * @param {Int32Array} keyOf the key of each frame
 * @param {number} length how many keys there are
 */
export function outermost({length: size, parent, frame}, keyOf, length) {
  const firstChild = new Int32Array(size);
  const nextSibling = new Int32Array(size);
  for (let node = size - 1; node > 0; node--) {
    nextSibling[node] = firstChild[parent[node]];
    firstChild[parent[node]] = node;
  }
  const open = new Int32Array(length);
  const found = new Uint8Array(size);
  let node = firstChild[0];
  while (node) {
    const key = keyOf[frame[node]];
    found[node] = Number(open[key]++ === 0);
    if (firstChild[node]) {
      node = firstChild[node];
      continue;
    }
    open[key]--;
    while (node && !nextSibling[node]) {
      node = parent[node];
      if (node) {
        open[keyOf[frame[node]]]--;
      }
    }
    node = nextSibling[node];
  }
  return found;
}

/**
 * Self and cumulative sums of each key of frames.
 * @param {Pick<Part, 'profile' | 'rows' | 'nodes' | 'nodeOf'>} part
 * @param {Float64Array} column
 * @param {Int32Array} keyOf
 * @param {number} length
 * @param {(row: number) => boolean} [wanted]
 */
export function sumsOfFrames(part, column, keyOf, length, wanted) {
  const {nodes} = part;
  const ofNodes = selfOfNodes(part, column, wanted);
  const below = cumulative(nodes.parent, ofNodes);
  const find = () => outermost(nodes, keyOf, length);
  const isOutermost = keyOf === part.profile.frames.func
    ? ofShape(nodes, 'outermost functions', find) : find();
  const self = new Float64Array(length);
  const cum = new Float64Array(length);
  for (let node = 1; node < nodes.length; node++) {
    const key = keyOf[nodes.frame[node]];
    self[key] += ofNodes[node];
    if (isOutermost[node]) {
      cum[key] += below[node];
    }
  }
  return {self, cum};
}

/**
 * Per node the frame that is the innermost of Python, and the frame that this
 * one calls; -1 where there is none.
 * @param {Pick<Part, 'profile' | 'nodes'>} stacks
 */
export function innermostPython({profile, nodes}) {
  return ofShape(nodes, 'innermost', () => findPython(profile, nodes));
}

/**
 * @param {import('./decode.js').Profile} profile
 * @param {Nodes} nodes
 */
function findPython({frames, functions}, nodes) {
  const {length, parent, frame} = nodes;
  const innermost = new Int32Array(length).fill(-1);
  const called = new Int32Array(length).fill(-1);
  for (let node = 1; node < length; node++) {
    const above = parent[node];
    if (functions[frames.func[frame[node]]].kind === PYTHON) {
      innermost[node] = frame[node];
    } else {
      innermost[node] = innermost[above];
      called[node] = called[above] < 0 && innermost[above] >= 0
        ? frame[node] : called[above];
    }
  }
  return {innermost, called};
}
