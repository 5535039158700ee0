// Whose code a function is: mine, that of packages or of the standard library.
//
// This file owns how that is told from names of files, which is all that a
// profile has.  It must not know what is done with it.
// @ts-check

import {PYTHON} from './functions.js';

/** @typedef {import('./functions.js').Func} Func */

const PACKAGES = /\/(site|dist)-packages\//;
const INSTALLED = /^<frozen |\/lib\/python3\.\d+t?\/|\/Python3\d+\/Lib\//i;
// Modules whose place tells where the library is that a Python was built with.
const KNOWN = new Set([
  'argparse', 'asyncio.base_events', 'asyncio.events', 'asyncio.runners',
  'concurrent.futures.thread', 'dataclasses', 'enum', 'json.decoder',
  'json.encoder', 'logging', 're', 'runpy', 'selectors', 'socketserver',
  'subprocess', 'threading', 'typing', 'unittest.case']);

/**
 * Of each function 'mine', 'packages' or 'stdlib'; '' if it is not Python.
 * @param {Func[]} functions
 */
export function originsOf(functions) {
  const paths = functions.map(
    ({filename}) => filename.replaceAll('\\', '/'));
  const folders = new Set();
  functions.forEach(({module, kind}, number) => {
    if (kind === PYTHON && KNOWN.has(module)) {
      const found = folderOf(module, paths[number]);
      if (found !== null && !PACKAGES.test(paths[number])) {
        folders.add(found);
      }
    }
  });
  return functions.map(({kind}, number) => {
    const path = paths[number];
    if (kind !== PYTHON) {
      return '';
    }
    if (PACKAGES.test(path)) {
      return 'packages';
    }
    return INSTALLED.test(path)
      || [...folders].some((folder) => path.startsWith(folder))
      ? 'stdlib' : 'mine';
  });
}

/**
 * What is before the path of a module; null if it is not there.
 * @param {string} module
 * @param {string} path
 */
function folderOf(module, path) {
  const place = `/${module.replaceAll('.', '/')}`;
  for (const end of [`${place}.py`, `${place}/__init__.py`]) {
    if (path.endsWith(end)) {
      return path.slice(0, -end.length + 1);
    }
  }
  return null;
}
