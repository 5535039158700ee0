// The stacks of a part as one tree, from their roots or from their leaves.
//
// This file owns which nodes of stacks become one and what they sum up to.  It
// must not know how a tree is drawn.
//
// Stacks may be thousands of frames deep, and trees may have a million nodes:
// nothing here calls itself, and from the leaves, nodes are made when the one
// above them is opened.
// @ts-check

import {compareFunctions} from './functions.js';
import {PairTable} from './pairs.js';
import {ofShape} from './shapes.js';
import {cumulative, selfOfNodes} from './sums.js';

/** @typedef {import('./part.js').Part} Part */

export const ROOT = 0;

/** What both trees have in common; keys of nodes are functions. */
class CallTree {
  /** @param {Part} part */
  constructor(part) {
    this.functions = part.profile.functions;
    this.frames = part.profile.frames;
    this.nodes = part.nodes;
    /** @type {Map<number, number[]>} */
    this.opened = new Map();
    /** @type {ArrayLike<number>} */
    this.parent = [];
    /** @type {ArrayLike<number>} */
    this.self = [];
    /** @type {ArrayLike<number>} */
    this.cum = [];
    /** @type {ArrayLike<number>} */
    this.func = [];
  }

  /**
   * What a node called, or was called by, the most expensive first.
   * @param {number} node
   */
  children(node) {
    let children = this.opened.get(node);
    if (children === undefined) {
      children = this.open(node).sort((one, other) => (
        this.cum[other] - this.cum[one]
        || compareFunctions(this.functions[this.func[one]],
                            this.functions[this.func[other]])));
      this.opened.set(node, children);
    }
    return children;
  }

  /**
   * @param {number} _node
   * @returns {number[]}
   */
  open(_node) {
    return [];
  }

  /** @param {number} node */
  path(node) {
    const path = [];
    for (; node !== ROOT; node = this.parent[node]) {
      path.push(node);
    }
    return path.reverse();
  }
}

/**
 * Callers above what they called.  With a function, stacks begin at its
 * innermost call, and the root stands for that.
 */
export class FromRoots extends CallTree {
  /**
   * @param {Part} part
   * @param {number} [begin] a function
   */
  constructor(part, begin = -1) {
    super(part);
    const merge = () => mergedNodes(part, begin, new PairTable(
      begin < 0 ? this.nodes.length : 0));
    const {tree, merged} = begin < 0
      ? ofShape(this.nodes, 'from roots', merge) : merge();
    this.begin = begin;
    this.merged = merged;
    // Shared by all trees of this shape.
    this.table = tree;
    this.length = tree.length;
    this.parent = tree.parents.subarray(0, tree.length);
    this.func = tree.items.subarray(0, tree.length);
    this.self = selfIn(part, merged, tree.length);
    this.cum = cumulative(this.parent, this.self);
    this.firstChild = new Int32Array(tree.length);
    this.nextSibling = new Int32Array(tree.length);
    this.link(part, merged);
  }

  /**
   * Link the nodes that are on the stack of a sample.
   * @param {Part} part
   * @param {Int32Array} merged
   */
  link({rows, nodeOf}, merged) {
    const used = new Uint8Array(this.length);
    for (const row of rows) {
      if (merged[nodeOf[row]] >= 0) {
        used[merged[nodeOf[row]]] = 1;
      }
    }
    for (let node = this.length - 1; node > 0; node--) {
      if (used[node]) {
        const parent = this.parent[node];
        used[parent] = 1;
        this.nextSibling[node] = this.firstChild[parent];
        this.firstChild[parent] = node;
      }
    }
  }

  /** @param {number} node */
  open(node) {
    const children = [];
    for (let child = this.firstChild[node]; child;
      child = this.nextSibling[child]) {
      children.push(child);
    }
    return children;
  }
}

/**
 * The self values of nodes that those of a part were merged into.
 * @param {Part} part
 * @param {Int32Array} merged
 * @param {number} length
 */
export function selfIn(part, merged, length) {
  const self = new Float64Array(length);
  selfOfNodes(part, part.value).forEach((value, node) => {
    if (merged[node] >= 0) {
      self[merged[node]] += value;
    }
  });
  return self;
}

/**
 * Nodes of frames as nodes of functions; -1: not below the function *begin*.
 * @param {Part} part
 * @param {number} begin
 * @param {PairTable} tree where they are put
 */
export function mergedNodes({nodes, profile: {frames}}, begin, tree) {
  const {length, parent, frame} = nodes;
  const functions = frames.func;
  const merged = new Int32Array(length).fill(begin < 0 ? ROOT : -1);
  for (let node = 1; node < length; node++) {
    const func = functions[frame[node]];
    const above = merged[parent[node]];
    if (func === begin) {
      merged[node] = ROOT;
    } else if (above >= 0) {
      merged[node] = tree.add(above, func);
    }
  }
  return {tree, merged};
}

/**
 * What was called above its callers.  With a function, stacks end at its
 * outermost call, and the root stands for that.
 */
export class FromLeaves extends CallTree {
  /**
   * @param {Part} part
   * @param {number} [end] a function
   */
  constructor(part, end = -1) {
    super(part);
    // What is known of more and more nodes.
    this.grown = {
      parent: /** @type {number[]} */ ([]), self: /** @type {number[]} */ ([]),
      cum: /** @type {number[]} */ ([]), func: /** @type {number[]} */ ([])};
    Object.assign(this, this.grown);
    /** @type {([number, number][] | null)[]} */
    this.members = [];
    this.add(-1, ROOT, endsOf(part, end));
  }

  /**
   * @param {number} func
   * @param {number} parent
   * @param {[number, number][]} members
   */
  add(func, parent, members) {
    let self = 0;
    let cum = 0;
    for (const [node, value] of members) {
      cum += value;
      self += node ? 0 : value;
    }
    this.grown.func.push(func);
    this.grown.parent.push(parent);
    this.grown.self.push(self);
    this.grown.cum.push(cum);
    return this.members.push(members) - 1;
  }

  /** @param {number} node */
  open(node) {
    /** @type {Map<number, [number, number][]>} */
    const groups = new Map();
    const {parent, frame} = this.nodes;
    for (const [at, value] of this.members[node] ?? []) {
      if (at) {
        const func = this.frames.func[frame[at]];
        const group = groups.get(func) ?? [];
        group.push([parent[at], value]);
        groups.set(func, group);
      }
    }
    this.members[node] = null;
    return [...groups].map(([func, group]) => this.add(func, node, group));
  }
}

/**
 * The stacks of a part and their values; with a function, what is above its
 * outermost call.
 * @param {Part} part
 * @param {number} end
 * @returns {[number, number][]}
 */
function endsOf(part, end) {
  const {nodes, rows, nodeOf, profile: {frames}} = part;
  const own = selfOfNodes(part, part.value);
  const ends = Int32Array.from({length: nodes.length}, (_, node) => node);
  if (end >= 0) {
    // The node above the outermost call; -1: there is none.
    ends.fill(-1);
    for (let node = 1; node < nodes.length; node++) {
      const parent = nodes.parent[node];
      const isEnd = frames.func[nodes.frame[node]] === end;
      ends[node] = isEnd && ends[parent] < 0 ? parent : ends[parent];
    }
  }
  const used = new Set(Array.from(rows, (row) => nodeOf[row]));
  return [...used].filter((node) => ends[node] >= 0)
    .map((node) => [ends[node], own[node]]);
}
