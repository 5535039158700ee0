// Trees whose nodes are found again: by the number of a parent and of an item.
//
// This file owns how such a table grows and is searched.  It must not know
// what parents and items are.
// @ts-check

const LEAST_SIZE = 1024;
const MOST_SIZE = 1 << 20;
// So many places are tried near that of the parent, then it is any place.
const NEAR = 8;

/** Node 0 is the root; children come after their parents. */
export class PairTable {
  /** @param {number} [guess] how many there may be */
  constructor(guess = 0) {
    let size = LEAST_SIZE;
    while (size < Math.min(guess, MOST_SIZE)) {
      size *= 2;
    }
    this.length = 1;
    this.parents = new Int32Array(size);
    this.items = new Float64Array(size);
    // Open addressing; 0 is an empty place, since nobody looks for the root.
    // Stacks come one after the other, so their nodes have numbers in a row:
    // places near the parent's are in the processor's cache.
    this.slots = new Int32Array(2 * size);
  }

  /**
   * The node of an item below a parent, made if it is new.
   * @param {number} parent
   * @param {number} item
   * @returns {number}
   */
  add(parent, item) {
    const slot = this.find(parent, item);
    if (this.slots[slot]) {
      return this.slots[slot];
    }
    if (this.length === this.parents.length) {
      this.grow();
      return this.add(parent, item);
    }
    const node = this.length++;
    this.parents[node] = parent;
    this.items[node] = item;
    this.slots[slot] = node;
    return node;
  }

  /**
   * The place of a node, or the one that it is to have.
   * @param {number} parent
   * @param {number} item
   */
  find(parent, item) {
    const {slots, parents, items} = this;
    const mask = slots.length - 1;
    const hash = hashOf(parent, item);
    let slot = (2 * parent + (hash & (NEAR - 1))) & mask;
    for (let tried = 1; ; tried++) {
      const node = slots[slot];
      if (!node || (parents[node] === parent && items[node] === item)) {
        return slot;
      }
      slot = (tried === NEAR ? hash : slot + 1) & mask;
    }
  }

  /** Another table, with the same nodes so far. */
  copy() {
    const other = new PairTable();
    other.length = this.length;
    other.parents = this.parents.slice();
    other.items = this.items.slice();
    other.slots = this.slots.slice();
    return other;
  }

  grow() {
    const size = 2 * this.parents.length;
    const {parents, items} = this;
    this.parents = new Int32Array(size);
    this.parents.set(parents);
    this.items = new Float64Array(size);
    this.items.set(items);
    this.slots = new Int32Array(2 * size);
    for (let node = 1; node < this.length; node++) {
      this.slots[this.find(parents[node], items[node])] = node;
    }
  }
}

/**
 * @param {number} parent
 * @param {number} item
 */
function hashOf(parent, item) {
  let hash = Math.imul(parent, 0x9e3779b1) ^ Math.imul(item | 0, 0x85ebca6b);
  hash ^= hash >>> 15;
  hash = Math.imul(hash, 0x2c1b3c6d);
  return hash ^ (hash >>> 13);
}
