// A pprof message, taken apart.
//
// This file owns which field of it is what, as _formats/pprof does in Python.
// It must not know what labels, names and comments mean: most refer to strings
// or places that may come later.
// @ts-check

import {Wire} from './bytes.js';
import {PairTable} from './pairs.js';

// Of a message, a guess.
const BYTES_PER_STACK = 20;

/**
 * The parts of a message.  Rows of numbers, in this order:
 *
 * types      kind, unit
 * functions  number, name, file, first line
 * locations  number, address, first of its lines, how many
 * lines      function, line, column; the innermost call of a location first
 * labels     key, text, number; there are gaps between them
 * stacks     a tree: parent, number of a location; 0 is the empty stack
 * sets       a tree: parent set, label; 0 is the empty set
 * samples    stack, set; their values are in `values`
 *
 * @typedef {object} Parts
 * @property {number[][]} types
 * @property {number[][]} functions
 * @property {number[][]} locations
 * @property {number[][]} lines
 * @property {number[][]} labels
 * @property {PairTable} stacks
 * @property {PairTable} sets
 * @property {number[]} samples
 * @property {number[]} values
 * @property {string[]} strings
 * @property {number[]} comments
 * @property {number} timeNs
 * @property {number} durationNs
 * @property {number} period
 * @property {number} defaultType
 */

/**
 * @param {Uint8Array} bytes
 * @returns {Parts}
 */
export function takeApart(bytes) {
  const parts = {
    types: [], functions: [], locations: [], lines: [], labels: [],
    stacks: new PairTable(bytes.length / BYTES_PER_STACK),
    sets: new PairTable(), samples: [], values: [],
    strings: [], comments: [], timeNs: 0, durationNs: 0, period: 0,
    defaultType: 0};
  const parser = new Parser(parts);
  parser.read(new Wire(bytes, 0, bytes.length));
  if (parts.strings[0] !== '' || !parts.types.length
      || (parser.numValues >= 0 && parser.numValues !== parts.types.length)) {
    throw new Error('this is no pprof file');
  }
  return parts;
}

class Parser {
  /** @param {Parts} parts */
  constructor(parts) {
    this.parts = parts;
    this.text = new TextDecoder('utf-8', {ignoreBOM: true});
    this.known = new PairTable();
    // Reads the messages in a sample.
    this.inner = new Wire(new Uint8Array(0), 0, 0);
    this.numValues = -1;
    // Of this sample and of the last one, the leaf first: stacks have most of
    // their roots in common.
    /** @type {number[]} */
    this.locations = [];
    /** @type {number[]} */
    this.lastLocations = [];
    /** @type {number[]} */
    this.lastNodes = [];
  }

  /** @param {Wire} wire */
  read(wire) {
    const parts = this.parts;
    this.inner = new Wire(wire.bytes, 0, 0);
    while (wire.next()) {
      switch (wire.field) {
        case 1: parts.types.push(wire.tuple([1, 2])); break;
        case 2: this.sample(wire.inner()); break;
        case 4: this.location(wire.inner()); break;
        case 5: parts.functions.push(wire.tuple([1, 2, 4, 5])); break;
        case 6: this.string(wire); break;
        case 9: parts.timeNs = wire.value; break;
        case 10: parts.durationNs = wire.value; break;
        case 12: parts.period = wire.value; break;
        case 13: wire.numbers(parts.comments); break;
        case 14: parts.defaultType = wire.value; break;
      }
    }
  }

  /** @param {Wire} wire */
  string(wire) {
    const {bytes, at, end} = wire.inner();
    this.parts.strings.push(this.text.decode(bytes.subarray(at, end)));
  }

  /** @param {Wire} wire */
  location(wire) {
    const {lines, locations} = this.parts;
    const row = [0, 0, lines.length, 0];
    while (wire.next()) {
      if (wire.field === 1) {
        row[0] = wire.value;
      } else if (wire.field === 3) {
        row[1] = wire.value;
      } else if (wire.field === 4) {
        lines.push(wire.tuple([1, 2, 3]));
        row[3]++;
      }
    }
    locations.push(row);
  }

  /** @param {Wire} wire */
  sample(wire) {
    const {samples, values} = this.parts;
    const {locations} = this;
    locations.length = 0;
    const first = values.length;
    let set = 0;
    while (wire.next()) {
      if (wire.field === 1) {
        wire.numbers(locations);
      } else if (wire.field === 2) {
        wire.numbers(values);
      } else if (wire.field === 3) {
        set = this.parts.sets.add(set, this.label(wire));
      }
    }
    if (this.numValues < 0) {
      this.numValues = values.length;
    }
    if (values.length - first !== this.numValues) {
      throw new Error('the profile is damaged: samples have different '
                      + 'numbers of values');
    }
    samples.push(this.stack(), set);
  }

  /**
   * The number of a label: that of its parts, one below the other.
   * @param {Wire} wire
   */
  label(wire) {
    const {inner, known, parts: {labels}} = this;
    let key = 0;
    let text = 0;
    let number = 0;
    inner.enter(wire);
    while (inner.next()) {
      switch (inner.field) {
        case 1: key = inner.value; break;
        case 2: text = inner.value; break;
        case 3: number = inner.value; break;
      }
    }
    const place = known.add(known.add(known.add(0, key), text), number);
    labels[place] ??= [key, text, number];
    return place;
  }

  /** The stack of this sample's locations. */
  stack() {
    const {locations, lastLocations, lastNodes} = this;
    const {length} = locations;
    let at = length - 1;
    let lastAt = lastLocations.length - 1;
    while (at >= 0 && lastAt >= 0 && lastLocations[lastAt] === locations[at]) {
      at--;
      lastAt--;
    }
    lastNodes.length = length - 1 - at;
    let node = at < length - 1 ? lastNodes[length - 2 - at] : 0;
    for (; at >= 0; at--) {
      node = this.parts.stacks.add(node, locations[at]);
      lastNodes.push(node);
    }
    this.locations = lastLocations;
    this.lastLocations = locations;
    return node;
  }
}
