// The tree of a flame graph: its shapes, and where frames lie.
//
// Nodes are in preorder, siblings by what they took in the whole profile: an
// order that no filter changes.  So a row of frames is in the order of x, and
// one is found there by bisection.

import {UNFILTERED, type Model} from './model';

/** Parents, functions and depths of nodes; node 0 is the root. */
export interface Shape {
  readonly parents: ArrayLike<number>;
  readonly functions: ArrayLike<number>;
  readonly depths: Uint16Array;
  /** Nodes by depth, from left to right. */
  readonly rows: readonly Uint32Array[];
  /** Of each node of the profile, the one that stands for it here. */
  readonly places: ArrayLike<number> | null;
}

/** What nodes took, and where they begin. */
export interface Layout {
  readonly totals: Float64Array;
  readonly selfs: Float64Array;
  readonly begins: Float64Array;
}

const MINE = 0;

export function shapeOf(model: Model, fold: boolean, flip: boolean): Shape {
  const parents = model.doc.column('node_parent');
  const functions = model.doc.column('node_function');
  if (!fold && !flip) {
    return withRows(parents, functions, null);
  }
  const {origin, package: packages} = model.doc.functions;
  const grown = new Grown();
  const places = new Uint32Array(parents.length);
  const used = new Uint8Array(parents.length);
  for (let i = 0; i < model.length; i++) {
    used[model.nodes[i]!] = 1;
  }
  const stack: number[] = [];
  for (let node = 1; node < parents.length; node++) {
    if (!used[node]) {
      continue;
    }
    stack.length = 0;
    for (let at = node; at !== 0; at = parents[at]!) {
      stack.push(functions[at]!);
    }
    stack.reverse();
    const shown = fold ? stack.filter((its, number) => (
      origin[its] === MINE || number === stack.length - 1 ||
      // Of a library, what was called.
      number === 0 || packages[stack[number - 1]!] !== packages[its] ||
      origin[stack[number - 1]!] === MINE)) : stack;
    places[node] = grown.node(flip ? [...shown].reverse() : shown);
  }
  const {totals} = nodeSums(model, grown.parents, places, model.weights(
    {...UNFILTERED, idle: true, measure: ''}));
  return ordered(grown, totals, places);
}

/** A tree that is made stack by stack.  There may be millions of nodes: which
 * one a caller and a function are is found by a table of their numbers, with
 * the next free place for what collides. */
class Grown {
  readonly parents = [0];
  readonly functions = [0];
  #table = new Uint32Array(1 << 12);

  node(stack: readonly number[]): number {
    let node = 0;
    for (const its of stack) {
      const place = this.#placeOf(node, its);
      if (this.#table[place] === 0) {
        const child = this.parents.push(node) - 1;
        this.functions.push(its);
        this.#table[place] = child;
        node = child;
        if (2 * child > this.#table.length) {
          this.#enlarge();
        }
      } else {
        node = this.#table[place]!;
      }
    }
    return node;
  }

  #placeOf(parent: number, its: number): number {
    const mask = this.#table.length - 1;
    let place = Math.imul(Math.imul(parent, 0x9e3779b1) ^ its, 0x85ebca6b);
    for (place = (place ^ place >>> 15) & mask; ;
      place = place + 1 & mask) {
      const child = this.#table[place]!;
      if (child === 0 || this.parents[child] === parent &&
          this.functions[child] === its) {
        return place;
      }
    }
  }

  #enlarge(): void {
    this.#table = new Uint32Array(4 * this.#table.length);
    for (let child = 1; child < this.parents.length; child++) {
      this.#table[this.#placeOf(
        this.parents[child]!, this.functions[child]!)] = child;
    }
  }
}

function ordered(grown: Grown, values: Float64Array,
  places: Uint32Array): Shape {
  const size = grown.parents.length;
  const firsts = new Uint32Array(size), nexts = new Uint32Array(size);
  for (let node = size - 1; node > 0; node--) {
    const parent = grown.parents[node]!;
    nexts[node] = firsts[parent]!;
    firsts[parent] = node;
  }
  const moved = new Uint32Array(size);
  const parents = new Uint32Array(size), functions = new Uint32Array(size);
  const pending = [0];
  const children: number[] = [];
  for (let next = 0; pending.length; next++) {
    const node = pending.pop()!;
    moved[node] = next;
    parents[next] = moved[grown.parents[node]!]!;
    functions[next] = grown.functions[node]!;
    children.length = 0;
    for (let child = firsts[node]!; child !== 0; child = nexts[child]!) {
      children.push(child);
    }
    if (children.length > 1) {
      children.sort((a, b) => values[a]! - values[b]!);
    }
    for (const child of children) {
      pending.push(child);
    }
  }
  return withRows(parents, functions, places.map((place) => moved[place]!));
}

function withRows(parents: ArrayLike<number>, functions: ArrayLike<number>,
  places: ArrayLike<number> | null): Shape {
  const depths = new Uint16Array(parents.length);
  const sizes = [1];
  for (let node = 1; node < parents.length; node++) {
    const depth = depths[parents[node]!]! + 1;
    depths[node] = depth;
    sizes[depth] = (sizes[depth] ?? 0) + 1;
  }
  const rows = sizes.map((size) => new Uint32Array(size));
  const filled = sizes.map(() => 0);
  for (let node = 0; node < parents.length; node++) {
    const depth = depths[node]!;
    rows[depth]![filled[depth]!++] = node;
  }
  return {parents, functions, depths, rows, places};
}

/** What nodes took themselves, and with all below them; *places* are as in a
 * Shape. */
export function nodeSums(model: Model, parents: ArrayLike<number>,
  places: ArrayLike<number> | null, weights: Float64Array):
  Pick<Layout, 'selfs' | 'totals'> {
  const selfs = new Float64Array(parents.length);
  for (let i = 0; i < weights.length; i++) {
    const node = model.nodes[i]!;
    selfs[places === null ? node : places[node]!]! += weights[i]!;
  }
  const totals = selfs.slice();
  // Parents come before their children.
  for (let node = totals.length - 1; node > 0; node--) {
    totals[parents[node]!]! += totals[node]!;
  }
  return {selfs, totals};
}

export function layOut(model: Model, shape: Shape,
  weights: Float64Array): Layout {
  const {parents, places} = shape;
  const {selfs, totals} = nodeSums(model, parents, places, weights);
  const begins = new Float64Array(parents.length);
  const ends = new Float64Array(parents.length);
  for (let node = 1; node < totals.length; node++) {
    const parent = parents[node]!;
    begins[node] = ends[parent]!;
    ends[node] = begins[node]!;
    ends[parent]! += totals[node]!;
  }
  return {totals, selfs, begins};
}

/** What each node was doing: by its number times the number of states. */
export function statesOf(model: Model, shape: Shape,
  weights: Float64Array): Float64Array {
  const size = model.doc.states.length;
  const sums = new Float64Array(shape.parents.length * size);
  for (let i = 0; i < weights.length; i++) {
    const node = model.nodes[i]!;
    const its = shape.places === null ? node : shape.places[node]!;
    sums[its * size + model.states[i]!]! += weights[i]!;
  }
  for (let node = shape.parents.length - 1; node > 0; node--) {
    const parent = shape.parents[node]!;
    for (let state = 0; state < size; state++) {
      sums[parent * size + state]! += sums[node * size + state]!;
    }
  }
  return sums;
}

/** The number in a row of the last node that begins at or before x, from one
 * on. */
export function indexAt(row: Uint32Array, begins: Float64Array, x: number,
  first = 0): number {
  let low = first, high = row.length - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (begins[row[middle]!]! <= x) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}
