// What the views of one query share: the part, and sums over it.
//
// This file owns that each is worked out once, when it is first asked for.  It
// must not know how anything is shown.
// @ts-check

import {idleSamples} from './idle.js';
import {functionsLike} from './match.js';
import {partOf, withoutRows} from './part.js';
import {partKey} from './query.js';
import {functionRows, sitesOf} from './sites.js';
import {selfOfNodes} from './sums.js';
import {FromLeaves, FromRoots} from './tree.js';

/** @typedef {import('./decode.js').Profile} Profile */
/** @typedef {import('./query.js').Query} Query */

// Parts that are kept, so that what is undone is there at once.
const KEPT = 6;

export class Model {
  /**
   * @param {import('./part.js').Part} whole
   * @param {boolean} hasIdle whether idle samples are like all others
   */
  constructor(whole, hasIdle) {
    this.profile = whole.profile;
    this.whole = whole;
    this.isIdle = hasIdle ? new Uint8Array(whole.profile.samples.length)
      : idleSamples(whole);
    // What is shown.
    this.part = withoutRows(whole, this.isIdle);
    this.known = new Map();
  }

  /**
   * @template T
   * @param {string} name
   * @param {() => T} make
   * @returns {T}
   */
  once(name, make) {
    if (!this.known.has(name)) {
      this.known.set(name, make());
    }
    return this.known.get(name);
  }

  /**
   * The same for what there is one of for each key: the last one is kept.
   * @template T
   * @param {string} name
   * @param {string | number} key
   * @param {() => T} make
   * @returns {T}
   */
  last(name, key, make) {
    if (this.known.get(name)?.key !== key) {
      this.known.set(name, {key, value: make()});
    }
    return this.known.get(name).value;
  }

  get sites() {
    return this.once('sites', () => sitesOf(this.whole, this.isIdle));
  }

  /** Who called whom, from the roots. */
  get calls() {
    return this.once('calls', () => new FromRoots(this.part));
  }

  /** @param {boolean} isUp whether it begins at the leaves */
  tree(isUp) {
    return isUp ? this.once('callers', () => new FromLeaves(this.part))
      : this.calls;
  }

  /** Who called a function; @param {number} func */
  callersOf(func) {
    return this.last('callers of', func, () => new FromLeaves(this.part, func));
  }

  /** Whom a function called; @param {number} func */
  calleesOf(func) {
    return this.last('callees of', func, () => new FromRoots(this.part, func));
  }

  /** @param {string} sort */
  functionRows(sort) {
    return this.once(`functions ${sort}`,
                     () => functionRows(this.part, sort));
  }

  /** Of each function its rows in the table, by their numbers. */
  get functionSums() {
    return this.once('sums', () => new Map(
      this.functionRows('self').map((row) => [row.func, row])));
  }

  /**
   * Which functions a search finds, and the value of all stacks with any.
   * @param {string} search
   */
  matches(search) {
    return this.last('search', search, () => {
      const found = functionsFound(this.profile, search);
      const {nodes, profile: {frames}} = this.part;
      const self = selfOfNodes(this.part, this.part.value);
      const isIn = new Uint8Array(nodes.length);
      let total = 0;
      for (let node = 1; node < nodes.length; node++) {
        isIn[node] = isIn[nodes.parent[node]]
          | found[frames.func[nodes.frame[node]]];
        total += isIn[node] ? self[node] : 0;
      }
      return {found, total, isIn};
    });
  }
}

/** Keeps the last models. */
export class Models {
  /** @param {Profile} profile */
  constructor(profile) {
    this.profile = profile;
    /** @type {Map<string, Model>} */
    this.kept = new Map();
  }

  /** @param {Query} query */
  of(query) {
    const key = partKey(query);
    const model = this.kept.get(key)
      ?? new Model(partOf(this.profile, query), query.idle);
    this.kept.delete(key);
    this.kept.set(key, model);
    if (this.kept.size > KEPT) {
      this.kept.delete(this.kept.keys().next().value ?? '');
    }
    return model;
  }
}

/**
 * A search is a text that names or files have in them, in whatever case, or
 * a pattern between slashes.
 * @param {Profile} profile
 * @param {string} search
 */
function functionsFound(profile, search) {
  const pattern = /^\/(.+)\/$/.exec(search);
  if (pattern !== null) {
    return functionsLike(profile, pattern[1]);
  }
  const wanted = search.toLowerCase();
  return Uint8Array.from(profile.functions, ({name, filename}) => Number(
    name.toLowerCase().includes(wanted)
    || filename.toLowerCase().includes(wanted)));
}
