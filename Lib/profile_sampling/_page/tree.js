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
import {cumulative, selfOfNodes, usedNodes} from './sums.js';

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

/** Callers above what they called. */
export class FromRoots extends CallTree {
  /**
   * @param {Part} part
   * @param {Float64Array} [own] values of nodes, instead of the part's
   */
  constructor(part, own = selfOfNodes(part, part.value)) {
    super(part);
    const {nodes, frames} = this;
    const used = usedNodes(part);
    const tree = new PairTable();
    const merged = new Int32Array(nodes.length);
    for (let node = 1; node < nodes.length; node++) {
      if (used[node]) {
        merged[node] = tree.add(merged[nodes.parent[node]],
                                frames.func[nodes.frame[node]]);
      }
    }
    const self = new Float64Array(tree.length);
    own.forEach((value, node) => {
      self[merged[node]] += value;
    });
    this.length = tree.length;
    this.parent = tree.parents.subarray(0, tree.length);
    this.func = tree.items.subarray(0, tree.length);
    this.self = self;
    this.cum = cumulative(this.parent, self);
    this.firstChild = new Int32Array(tree.length);
    this.nextSibling = new Int32Array(tree.length);
    for (let node = tree.length - 1; node > 0; node--) {
      const parent = this.parent[node];
      this.nextSibling[node] = this.firstChild[parent];
      this.firstChild[parent] = node;
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

/** What was called above its callers. */
export class FromLeaves extends CallTree {
  /**
   * @param {Part} part
   * @param {[number, number][]} [members] nodes of stacks and their values
   */
  constructor(part, members) {
    super(part);
    if (members === undefined) {
      const used = new Set(Array.from(part.rows, (row) => part.nodeOf[row]));
      const own = selfOfNodes(part, part.value);
      members = [...used].map((node) => [node, own[node]]);
    }
    // What is known of more and more nodes.
    this.grown = {
      parent: /** @type {number[]} */ ([]), self: /** @type {number[]} */ ([]),
      cum: /** @type {number[]} */ ([]), func: /** @type {number[]} */ ([])};
    Object.assign(this, this.grown);
    /** @type {([number, number][] | null)[]} */
    this.members = [];
    this.add(-1, ROOT, members);
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
