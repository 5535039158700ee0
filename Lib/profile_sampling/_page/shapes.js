// What follows from a tree of stacks alone, whatever samples are looked at.
//
// This file owns that it is worked out once for each tree.  It must not know
// what it is.
// @ts-check

/** @typedef {import('./decode.js').Nodes} Nodes */

/** @type {WeakMap<Nodes, Map<string, any>>} */
const shapes = new WeakMap();

/**
 * @template T
 * @param {Nodes} nodes
 * @param {string} name
 * @param {() => T} make
 * @returns {T}
 */
export function ofShape(nodes, name, make) {
  const known = shapes.get(nodes) ?? new Map();
  shapes.set(nodes, known);
  if (!known.has(name)) {
    known.set(name, make());
  }
  return known.get(name);
}
