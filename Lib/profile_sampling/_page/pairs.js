// Trees whose nodes are found again: by the number of a parent and of an item.
//
// This file owns how such a table grows and is searched.  It must not know
// what parents and items are.
// @ts-check

const LEAST_SIZE = 1024;
const MOST_SIZE = 1 << 20;

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
    this.slots = new Int32Array(2 * size);
  }

  /**
   * The node of an item below a parent, made if it is new.
   * @param {number} parent
   * @param {number} item
   * @returns {number}
   */
  add(parent, item) {
    const mask = this.slots.length - 1;
    let slot = hashOf(parent, item) & mask;
    for (;;) {
      const node = this.slots[slot];
      if (node === 0) {
        break;
      }
      if (this.parents[node] === parent && this.items[node] === item) {
        return node;
      }
      slot = (slot + 1) & mask;
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
    const mask = 2 * size - 1;
    for (let node = 1; node < this.length; node++) {
      let slot = hashOf(parents[node], items[node]) & mask;
      while (this.slots[slot]) {
        slot = (slot + 1) & mask;
      }
      this.slots[slot] = node;
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
