// Where the frames of a flame graph are.
//
// This file owns the geometry: what is as wide as its share, what is too
// narrow to be seen and is counted instead.  It must not draw.
// @ts-check

import {ROOT} from './tree.js';

// The least width of a frame that is drawn, in pixels.
const MIN_WIDTH = 0.5;

/** @typedef {import('./tree.js').FromRoots
 *          | import('./tree.js').FromLeaves} Tree */

/**
 * Columns of frames, row by row; firstOf has where each row begins, and one
 * more.  x and width are in pixels.
 *
 * @typedef {object} Layout
 * @property {number[]} node
 * @property {number[]} x
 * @property {number[]} width
 * @property {number[]} firstOf
 * @property {number} smaller how many are too narrow, without those on them
 */

/**
 * Lay out the callers of *zoom*, as wide as all, and what is on it.
 * @param {Tree} tree
 * @param {number} zoom
 * @param {number} width in pixels
 * @returns {Layout}
 */
export function layOut(tree, zoom, width) {
  /** @type {Layout} */
  const layout = {node: [], x: [], width: [], firstOf: [], smaller: 0};
  for (const node of zoom === ROOT ? [ROOT] : [ROOT, ...tree.path(zoom)]) {
    layout.firstOf.push(layout.node.length);
    layout.node.push(node);
    layout.x.push(0);
    layout.width.push(width);
  }
  const scale = width / tree.cum[zoom];
  if (!(scale > 0 && Number.isFinite(scale))) {
    layout.firstOf.push(layout.node.length);
    return layout;
  }
  let begin = layout.node.length - 1;
  while (begin < layout.node.length) {
    const end = layout.node.length;
    layout.firstOf.push(end);
    for (let at = begin; at < end; at++) {
      putChildren(layout, tree, at, scale);
    }
    begin = end;
  }
  return layout;
}

/**
 * @param {Layout} layout
 * @param {Tree} tree
 * @param {number} at
 * @param {number} scale
 */
function putChildren(layout, tree, at, scale) {
  const children = tree.children(layout.node[at]);
  let x = layout.x[at];
  for (let number = 0; number < children.length; number++) {
    const width = tree.cum[children[number]] * scale;
    if (width < MIN_WIDTH) {
      // The widest come first.
      layout.smaller += children.length - number;
      return;
    }
    layout.node.push(children[number]);
    layout.x.push(x);
    layout.width.push(width);
    x += width;
  }
}

/**
 * The place in a layout of what is at *x* in a row; -1: nothing.
 * @param {Layout} layout
 * @param {number} row
 * @param {number} x
 */
export function hit(layout, row, x) {
  const end = layout.firstOf[row + 1] ?? layout.node.length;
  for (let at = layout.firstOf[row] ?? end; at < end; at++) {
    if (x >= layout.x[at] && x < layout.x[at] + layout.width[at]) {
      return at;
    }
  }
  return -1;
}
