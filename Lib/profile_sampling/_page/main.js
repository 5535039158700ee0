// The page's beginning: it reads the profile that is in the page and shows it.
// @ts-check

import {App} from './app.js';
import {decompressed, fromBase64} from './bytes.js';
import {decodeProfile} from './decode.js';
import {byId, element} from './dom.js';
import {listenToFiles, listenToKeys} from './keys.js';
import {livesIn} from './lives.js';
import {timelineOf} from './timeline.js';
import {printable} from './words.js';

const LESS_THAN = 0x3c;

/** @param {HTMLElement} block */
function bytesIn(block) {
  return decompressed(fromBase64(block.textContent ?? ''));
}

/**
 * The profile in an unpacked pprof file.
 * @param {Uint8Array} bytes
 */
async function profileOf(bytes) {
  const profile = decodeProfile(bytes);
  profile.timeline = await timelineOf(profile);
  profile.lives = await livesIn(profile);
  return profile;
}

/**
 * The profile in a file: a pprof file, or a page.
 * @param {Uint8Array} bytes
 */
async function profileIn(bytes) {
  if (bytes[0] !== LESS_THAN) {
    return profileOf(await decompressed(bytes));
  }
  // What is in a page is neither run nor loaded so.
  const page = new DOMParser().parseFromString(
    new TextDecoder().decode(bytes), 'text/html');
  const block = page.getElementById('profile');
  if (block === null) {
    throw new Error('the file is a page without a profile in it');
  }
  return profileOf(await bytesIn(block));
}

/**
 * What is in a block of that name; null: there is none.
 * @param {string} id
 */
async function jsonIn(id) {
  const block = document.getElementById(id);
  return block === null ? null
    : JSON.parse(new TextDecoder().decode(await bytesIn(block)));
}

/**
 * Show a message; what is wrong with it is said where it would be.
 * @param {() => Promise<void>} show
 */
async function orSay(show) {
  try {
    await show();
  } catch (error) {
    byId('view').replaceChildren(element(
      'p', {class: 'fault', role: 'alert'},
      printable(`This page cannot show its profile: ${
        /** @type {Error} */ (error).message}`)));
    throw error;
  }
}

async function main() {
  const app = new App(await profileOf(await bytesIn(byId('profile'))),
                      await jsonIn('sources'), await jsonIn('findings'));
  const base = document.getElementById('base');
  if (base !== null) {
    app.compare(await profileOf(await bytesIn(base)), await jsonIn('changes'));
    app.beginWith(app.changes);
  }
  app.show();
  listenToKeys(app);
  listenToFiles(
    (bytes) => orSay(async () => app.add(await profileIn(bytes))),
    (bytes) => orSay(async () => app.take(await profileIn(bytes))));
}

await orSay(main);
