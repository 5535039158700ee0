// How much more or less something is than in the profile that it is compared
// with.
//
// This file owns the arithmetic of changes.  It must not say which of them
// count: that takes several runs, and is Python's business.
//
// What is shown is one of the two profiles; the other is put on its scale.
// Changes are always those from the base to what is new.
// @ts-check

import {RUNNING} from './labels.js';
import {Model} from './model.js';
import {PairTable} from './pairs.js';
import {countsOf, cumulative} from './sums.js';
import {FromRoots, ROOT} from './tree.js';

/** @typedef {import('./layout.js').Tree} Tree */

// Changes of a frame, as shares of it, from which on its colour is stronger.
const LEVELS = [0.05, 0.2, 0.5];

/** Two models of one query, of the profile that is shown and of the other. */
export class Against {
  /**
   * @param {Model} model
   * @param {Model} rival
   * @param {number} ratio by which values of the other are multiplied
   * @param {boolean} isBase whether it is the base that is shown
   */
  constructor(model, rival, ratio, isBase) {
    this.model = model;
    this.rival = rival;
    this.ratio = ratio;
    this.isBase = isBase;
    this.trees = new Map();
  }

  /**
   * @param {number} own value of what is shown
   * @param {number} other value of the other profile
   */
  change(own, other) {
    const change = own - other * this.ratio;
    return this.isBase ? 0 - change : change;
  }

  /**
   * How far chance may put the two apart, as far as samples are concerned;
   * null: it is not known.
   * @param {number} records
   * @param {number} otherRecords
   */
  margin(records, otherRecords) {
    const own = this.model.sites.precision.margin(records);
    const other = this.rival.sites.precision.margin(otherRecords);
    return own === null || other === null ? null
      : Math.hypot(own, other * this.ratio);
  }

  /**
   * A tree and the one that it is compared with, made once.
   * @param {string} name
   * @param {(model: Model) => Tree} treeOf
   */
  tree(name, treeOf) {
    const known = this.trees.get(name);
    const tree = treeOf(this.model);
    if (known?.tree === tree) {
      return known;
    }
    const made = new TreeAgainst(this, tree, treeOf(this.rival), treeOf);
    this.trees.set(name, made);
    return made;
  }
}

/**
 * What tells how many records of running code a node of a tree has.
 * @param {Model} model
 * @param {Tree} tree
 * @param {(model: Model) => Tree} treeOf
 * @returns {(node: number) => number}
 */
function recordsOf({part}, tree, treeOf) {
  const counts = countsOf(part);
  const value = part.value.map((_, row) => (
    counts !== null && part.profile.samples.state[row] === RUNNING
      ? counts[row] : 0));
  const records = {...part, value};
  if (tree instanceof FromRoots) {
    const sums = cumulative(tree.parent, tree.selfSums(records));
    return (node) => sums[node];
  }
  const same = new Same(tree, treeOf(new Model(records)));
  return (node) => {
    const found = same.of(node);
    return found < 0 ? 0 : same.other.cum[found];
  };
}

/** A tree of calls and another one. */
export class TreeAgainst {
  /**
   * @param {Against} against
   * @param {Tree} tree
   * @param {Tree} other
   * @param {(model: Model) => Tree} treeOf
   */
  constructor(against, tree, other, treeOf) {
    this.against = against;
    this.tree = tree;
    this.other = other;
    this.treeOf = treeOf;
    this.same = new Same(tree, other);
    /** @type {((node: number) => number)[] | null} */
    this.counters = null;
    this.union = tree instanceof FromRoots && other instanceof FromRoots
      ? new Union(against, tree, other) : null;
  }

  /** @param {number} node */
  otherCum(node) {
    const found = this.same.of(node);
    return found < 0 ? 0 : this.other.cum[found];
  }

  /** @param {number} node */
  otherSelf(node) {
    const found = this.same.of(node);
    return found < 0 ? 0 : this.other.self[found];
  }

  /** @param {number} node */
  change(node) {
    return this.against.change(this.tree.cum[node], this.otherCum(node));
  }

  /** @param {number} node */
  isChance(node) {
    const {against, tree, other, same, treeOf} = this;
    this.counters ??= [recordsOf(against.model, tree, treeOf),
                       recordsOf(against.rival, other, treeOf)];
    const [own, its] = this.counters;
    const found = same.of(node);
    const margin = against.margin(own(node), found < 0 ? 0 : its(found));
    return margin !== null && Math.abs(this.change(node)) <= margin;
  }

  /**
   * How strong a change is: from -3, much less, to 3, much more.
   * @param {number} node
   */
  level(node) {
    const change = this.change(node);
    const size = Math.max(this.tree.cum[node],
                          this.otherCum(node) * this.against.ratio);
    if (!(size > 0) || this.isChance(node)) {
      return 0;
    }
    const share = Math.abs(change) / size;
    return Math.sign(change) * LEVELS.filter((least) => share >= least).length;
  }
}

/** The nodes of one tree in another one, looked for when asked for. */
class Same {
  /**
   * @param {Tree} tree
   * @param {Tree} other
   */
  constructor(tree, other) {
    this.tree = tree;
    this.other = other;
    /** @type {Map<number, number>} */
    this.known = new Map([[ROOT, ROOT]]);
    /** @type {Map<number, Map<number, number>>} */
    this.children = new Map();
  }

  /** The node in the other tree, or -1. @param {number} node */
  of(node) {
    const path = [];
    let at = node;
    for (; !this.known.has(at); at = this.tree.parent[at]) {
      path.push(at);
    }
    let found = /** @type {number} */ (this.known.get(at));
    for (const below of path.reverse()) {
      found = found < 0 ? -1
        : this.childrenOf(found).get(this.tree.func[below]) ?? -1;
      this.known.set(below, found);
    }
    return found;
  }

  /** @param {number} node */
  childrenOf(node) {
    let children = this.children.get(node);
    if (children === undefined) {
      children = new Map(this.other.children(node).map(
        (child) => [this.other.func[child], child]));
      this.children.set(node, children);
    }
    return children;
  }
}

/**
 * Both trees as one: what is more and what is less below each node of it, and
 * what the shown one does not have.
 */
class Union {
  /**
   * @param {Against} against
   * @param {FromRoots} tree
   * @param {FromRoots} other
   */
  constructor(against, tree, other) {
    const table = new PairTable(tree.length + other.length);
    this.numbers = numbersIn(table, tree);
    const numbers = numbersIn(table, other);
    const own = new Float64Array(table.length);
    const its = new Float64Array(table.length);
    tree.self.forEach((value, node) => {
      own[this.numbers[node]] = value;
    });
    other.self.forEach((value, node) => {
      its[numbers[node]] = value;
    });
    this.more = new Float64Array(table.length);
    this.less = new Float64Array(table.length);
    for (let node = table.length - 1; node >= 0; node--) {
      const change = against.change(own[node], its[node]);
      this.more[node] += Math.max(0, change);
      this.less[node] += Math.min(0, change);
      if (node) {
        const parent = table.parents[node];
        this.more[parent] += this.more[node];
        this.less[parent] += this.less[node];
      }
    }
    this.missing = missingOf(tree, other, this.numbers, numbers,
                             table.length);
  }
}

/**
 * @param {PairTable} table
 * @param {FromRoots} tree
 */
function numbersIn(table, {length, parent, func}) {
  const numbers = new Int32Array(length);
  for (let node = 1; node < length; node++) {
    numbers[node] = table.add(numbers[parent[node]], func[node]);
  }
  return numbers;
}

/**
 * The calls that only the other tree has, the outermost of each: how many, and
 * their value there.
 * @param {FromRoots} tree
 * @param {FromRoots} other
 * @param {Int32Array} numbers of the nodes of both
 * @param {Int32Array} otherNumbers
 * @param {number} length
 */
function missingOf(tree, other, numbers, otherNumbers, length) {
  const isHere = new Uint8Array(length);
  tree.cum.forEach((value, node) => {
    isHere[numbers[node]] = Number(value !== 0);
  });
  isHere[ROOT] = 1;
  let count = 0;
  let value = 0;
  for (let node = 1; node < other.length; node++) {
    if (other.cum[node] && !isHere[otherNumbers[node]]
        && isHere[otherNumbers[other.parent[node]]]) {
      count++;
      value += other.cum[node];
    }
  }
  return {count, value};
}
