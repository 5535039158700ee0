// The page's beginning: it reads the profile that is in the page and shows it.
// @ts-check

import {App} from './app.js';
import {decompressed, fromBase64} from './bytes.js';
import {decodeProfile} from './decode.js';
import {byId, element} from './dom.js';
import {printable} from './words.js';

async function main() {
  try {
    const bytes = fromBase64(byId('profile').textContent ?? '');
    new App(decodeProfile(await decompressed(bytes))).start();
  } catch (error) {
    byId('view').replaceChildren(element(
      'p', {class: 'fault', role: 'alert'},
      printable(`This page cannot show its profile: ${
        /** @type {Error} */ (error).message}`)));
    throw error;
  }
}

await main();
