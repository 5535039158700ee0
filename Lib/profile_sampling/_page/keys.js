// Keys and files: what a person does to the page as a whole.
//
// This file owns which key does what, and files that are dropped on the page
// or chosen.  It must not know what a view does with its own keys.
// @ts-check

import {button, byId, element} from './dom.js';

/** @typedef {import('./app.js').App} App */

/** @type {[string, string][]} */
const HELP = [
  ['1 to 9', 'the views, in their order'], ['t', 'the view of time'],
  ['/', 'search'],
  ['v', 'the next type of values'], ['l', 'from the leaves, or the roots'],
  ['i', 'icicles, or flames that grow upwards'],
  ['f', 'focus: only stacks with what is selected'],
  ['r', 'root: stacks begin at it'], ['d', 'drop: only stacks without it'],
  ['m', 'merge: leave it out, its time goes to its callers'],
  ['c', 'collapse: what it calls becomes its own'],
  ['b', 'of two profiles the other one'],
  ['s', 'compare shares, or values'],
  ['u', 'undo'], ['0', 'all again'], ['?', 'this help'],
  ['arrows, Home, End', 'move among rows or frames'],
  ['right, left, *', 'in the call tree open, close, open all below'],
  ['Shift and arrows, Enter', 'over time: choose a range'],
  ['Enter', 'select a row, zoom in on a frame'],
  ['Escape', 'zoom out, close, select nothing']];

/**
 * Listen to the keys of the page.
 * @param {App} app
 */
export function listenToKeys(app) {
  const help = helpOf();
  document.addEventListener('keydown', (event) => {
    const place = /** @type {HTMLElement} */ (event.target);
    if (event.ctrlKey || event.metaKey || event.altKey
        || event.defaultPrevented || help.open
        || /^(INPUT|SELECT)$/.test(place.tagName)) {
      return;
    }
    if (event.key === '?') {
      help.showModal();
    } else if (event.key === '/') {
      document.querySelector('input')?.focus();
    } else if (!app.key(event.key)) {
      return;
    }
    event.preventDefault();
  });
}

function helpOf() {
  const help = /** @type {HTMLDialogElement} */ (byId('help'));
  help.replaceChildren(
    element('h2', {}, 'Keys'),
    element('dl', {}, ...HELP.flatMap(([key, text]) => [
      element('dt', {}, key), element('dd', {}, text)])),
    button('Close', () => help.close()));
  return help;
}

/** @typedef {(bytes: Uint8Array) => Promise<void>} Taker */

/**
 * Compare with a file that is dropped on the page or chosen; or show one
 * instead of the page's own profile.
 * @param {Taker} compare
 * @param {Taker} show
 */
export function listenToFiles(compare, show) {
  document.addEventListener('dragover', (event) => event.preventDefault());
  document.addEventListener('drop', (event) => {
    event.preventDefault();
    give(event.dataTransfer?.files[0], compare);
  });
  byId('file').replaceChildren(
    chooser('Compare with a base (or drop it here): ', 'base', compare),
    chooser('Look at another profile: ', 'pprof file', show));
}

/**
 * @param {File | undefined} file
 * @param {Taker} take
 */
async function give(file, take) {
  if (file !== undefined) {
    await take(new Uint8Array(await file.arrayBuffer()));
  }
}

/**
 * @param {string} text
 * @param {string} name
 * @param {Taker} take
 */
function chooser(text, name, take) {
  const input = element('input', {type: 'file', 'aria-label': name});
  input.addEventListener('change', () => give(input.files?.[0], take));
  return element('label', {}, text, input);
}
