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
        || event.defaultPrevented || /^(INPUT|SELECT)$/.test(place.tagName)) {
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

/**
 * Show files that are dropped on the page instead of its own profile.
 * @param {(bytes: Uint8Array) => Promise<void>} show
 */
export function listenToFiles(show) {
  /** @param {File | undefined} file */
  const read = async (file) => {
    if (file !== undefined) {
      await show(new Uint8Array(await file.arrayBuffer()));
    }
  };
  document.addEventListener('dragover', (event) => event.preventDefault());
  document.addEventListener('drop', (event) => {
    event.preventDefault();
    read(event.dataTransfer?.files[0]);
  });
  const input = element('input', {type: 'file', 'aria-label': 'pprof file'});
  input.addEventListener('change', () => read(input.files?.[0]));
  byId('file').replaceChildren(element(
    'label', {}, 'Look at another pprof file: ', input));
}
