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
import {ofShape} from './shapes.js';
import {countsOf, cumulative} from './sums.js';
import {FromRoots, ROOT, mergedNodes, selfIn} from './tree.js';

/** @typedef {import('./pairs.js').PairTable} PairTable */
/** @typedef {import('./part.js').Part} Part */
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
   * @param {number} records of running code
   * @param {number} otherRecords
   */
  margin(records, otherRecords) {
    // One more on each side, as _data/diff.py has it; none is measured.
    const more = records || otherRecords ? 1 : 0;
    const own = this.model.sites.precision.margin(records + more);
    const other = this.rival.sites.precision.margin(otherRecords + more);
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
    const made = new TreeAgainst(this, tree, treeOf);
    this.trees.set(name, made);
    return made;
  }
}

/**
 * A part, of which values are the records of running code.
 * @param {Part} part
 * @returns {Part}
 */
function ofRecords(part) {
  const counts = countsOf(part);
  const {state} = part.profile.samples;
  return {...part, value: part.value.map((_, row) => (
    counts !== null && state[row] === RUNNING ? counts[row] : 0))};
}

/** A tree of calls and another one. */
export class TreeAgainst {
  /**
   * @param {Against} against
   * @param {Tree} tree
   * @param {(model: Model) => Tree} treeOf
   */
  constructor(against, tree, treeOf) {
    this.against = against;
    this.tree = tree;
    this.treeOf = treeOf;
    this.union = tree instanceof FromRoots ? new Union(against, tree) : null;
    /** @type {Tree | null} */
    this.made = null;
    /** @type {Same | null} */
    this.same = null;
    /** @type {((node: number) => number)[] | null} */
    this.counters = null;
  }

  /** The other tree; where both are one it is hardly ever needed. */
  get other() {
    this.made ??= this.treeOf(this.against.rival);
    return this.made;
  }

  /** @param {number} node */
  otherCum(node) {
    if (this.union !== null) {
      return this.union.cum[node];
    }
    this.same ??= new Same(this.tree, this.other);
    const found = this.same.of(node);
    return found < 0 ? 0 : this.other.cum[found];
  }

  /** @param {number} node */
  change(node) {
    return this.against.change(this.tree.cum[node], this.otherCum(node));
  }

  /** What tells how many records a node has, here and there. */
  records() {
    const {union, tree, treeOf, against: {model, rival}} = this;
    if (union !== null) {
      return union.records(model.part, rival.part).map(
        (sums) => (/** @type {number} */ node) => sums[node]);
    }
    return [model, rival].map(({part}) => {
      const same = new Same(tree, treeOf(new Model(ofRecords(part), true)));
      return (/** @type {number} */ node) => {
        const found = same.of(node);
        return found < 0 ? 0 : same.other.cum[found];
      };
    });
  }

  /** @param {number} node */
  isChance(node) {
    this.counters ??= this.records();
    const [own, its] = this.counters;
    const margin = this.against.margin(own(node), its(node));
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
 * Both trees as one, in which nodes of the shown one keep their numbers: what
 * the other has there, what is more and what is less below each node, and what
 * the shown one does not have.
 */
class Union {
  /**
   * @param {Against} against
   * @param {FromRoots} tree
   */
  constructor(against, tree) {
    const {part} = against.rival;
    const {table, merged} = besides(part, tree);
    this.own = tree.merged;
    this.merged = merged;
    this.length = table.length;
    this.parents = table.parents.subarray(0, table.length);
    const self = selfIn(part, merged, table.length);
    this.cum = cumulative(this.parents, self);
    this.more = new Float64Array(table.length);
    this.less = new Float64Array(table.length);
    for (let node = table.length - 1; node >= 0; node--) {
      const change = against.change(tree.self[node] ?? 0, self[node]);
      this.more[node] += Math.max(0, change);
      this.less[node] += Math.min(0, change);
      if (node) {
        const parent = this.parents[node];
        this.more[parent] += this.more[node];
        this.less[parent] += this.less[node];
      }
    }
    this.missing = this.missingIn(tree);
  }

  /**
   * How many records of running code both have in each node.
   * @param {Part} part
   * @param {Part} other
   */
  records(part, other) {
    return /** @type {[Part, Int32Array][]} */ (
      [[part, this.own], [other, this.merged]]).map(([one, merged]) => (
      cumulative(this.parents,
                 selfIn(ofRecords(one), merged, this.length))));
  }

  /**
   * The calls that only the other has, the outermost of each: how many, and
   * their value there.
   * @param {FromRoots} tree
   */
  missingIn(tree) {
    /** @param {number} node */
    const isHere = (node) => node === ROOT || Boolean(tree.cum[node]);
    let count = 0;
    let value = 0;
    for (let node = 1; node < this.length; node++) {
      if (this.cum[node] && !isHere(node) && isHere(this.parents[node])) {
        count++;
        value += this.cum[node];
      }
    }
    return {count, value};
  }
}

/**
 * The stacks of a part in a copy of another tree; they are the same for all
 * samples that are looked at.
 * @param {Part} part
 * @param {FromRoots} tree
 * @returns {{table: PairTable, merged: Int32Array}}
 */
function besides(part, {begin, table}) {
  /** @type {WeakMap<PairTable, {table: PairTable, merged: Int32Array}>} */
  const known = ofShape(part.nodes, `besides ${begin}`, () => new WeakMap());
  let found = known.get(table);
  if (found === undefined) {
    const {tree, merged} = mergedNodes(part, begin, table.copy());
    found = {table: tree, merged};
    known.set(table, found);
  }
  return found;
}
