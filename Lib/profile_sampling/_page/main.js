// The page's beginning: it reads the profile that is in the page and shows it.
// @ts-check

import {App} from './app.js';
import {decompressed, fromBase64} from './bytes.js';
import {decodeProfile} from './decode.js';
import {byId, element} from './dom.js';
import {listenToFiles, listenToKeys} from './keys.js';
import {timelineOf} from './timeline.js';
import {printable} from './words.js';

/** @param {HTMLElement} block */
function bytesIn(block) {
  return decompressed(fromBase64(block.textContent ?? ''));
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

/** @param {Uint8Array} bytes */
async function profileIn(bytes) {
  const profile = decodeProfile(bytes);
  profile.timeline = await timelineOf(profile);
  return profile;
}

async function main() {
  const block = document.getElementById('sources');
  const sources = block === null ? null
    : JSON.parse(new TextDecoder().decode(await bytesIn(block)));
  const app = new App(
    await profileIn(await bytesIn(byId('profile'))), sources);
  app.start();
  listenToKeys(app);
  listenToFiles((bytes) => orSay(async () => (
    app.take(await profileIn(await decompressed(bytes))))));
}

await orSay(main);
