"""Speedscope's own importer and schema, from the npm package speedscope.

They come from the package that the program `speedscope` in PATH belongs to
(npm install -g speedscope); node runs the importer.  Without them the tests are
skipped.
"""

import glob
import json
import os
import shutil
import subprocess
import unittest


def _release():
    program = shutil.which('speedscope')
    if program is None:
        return None
    package = os.path.dirname(os.path.dirname(os.path.realpath(program)))
    return os.path.join(package, 'dist', 'release')


RELEASE = _release()
needs_speedscope = unittest.skipIf(
    RELEASE is None or not os.path.exists(
        os.path.join(RELEASE, 'file-format-schema.json')),
    'no speedscope in PATH, of the npm package of that name')
needs_node = unittest.skipIf(shutil.which('node') is None, 'no node in PATH')

# The page is one script.  All but its last statement, which draws, is run with
# a browser that does nothing; the importer is the function that is called
# after it has said what it imports.
_IMPORT = r"""
const fs = require('fs');
const vm = require('vm');
const [bundle, file] = process.argv.slice(1);
let code = fs.readFileSync(bundle, 'utf8');
const found = /"Importing as speedscope json file"\),([\w$]+)\(/.exec(code);
const end = code.lastIndexOf('console.log(`speedscope v');
if (!found || end < 0) {
    throw new Error('this release of speedscope is not understood');
}
code = `${code.slice(0, end)}globalThis.importer = ${found[1]};})();`;
const nothing = new Proxy(function () {}, {
    get: (_, key) => key === Symbol.toPrimitive ? () => '' :
        key === 'length' ? 0 : nothing,
    apply: () => nothing, construct: () => nothing, set: () => true});
const browser = {console, URL, TextDecoder, TextEncoder, setTimeout,
    performance, document: nothing, window: nothing, navigator: nothing,
    localStorage: nothing, matchMedia: nothing, self: nothing,
    requestAnimationFrame: () => 0, location: {hash: '', protocol: 'file:'},
    HTMLElement: class {}, Element: class {}, Node: class {},
    Worker: class {}};
browser.globalThis = browser;
vm.runInNewContext(code, browser);
const group = browser.importer(JSON.parse(fs.readFileSync(file, 'utf8')));
console.log(JSON.stringify({
    name: group.name, shown: group.indexToView,
    profiles: group.profiles.map((profile) => {
        const frames = [];
        profile.forEachFrame((frame) => frames.push([
            frame.name, frame.file, frame.line, frame.getSelfWeight(),
            frame.getTotalWeight()]));
        return {name: profile.getName(), total: profile.getTotalWeight(),
                unit: profile.getWeightUnit(), frames};
    })}));
"""


def imported(path):
    """Return what speedscope makes of a file."""
    bundle, = glob.glob(os.path.join(RELEASE, 'speedscope-*.js'))
    result = subprocess.run(['node', '-e', _IMPORT, bundle, path],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True)
    if result.returncode:
        # Node shows the source before the reason, and that is one long line.
        raise AssertionError(result.stderr[-2000:])
    return json.loads(result.stdout)


def check_schema(value):
    """Raise AssertionError unless a value is as the format's schema says."""
    with open(os.path.join(RELEASE, 'file-format-schema.json')) as file:
        schema = json.load(file)
    wrong = _mismatch(value, schema, schema['definitions'])
    if wrong:
        raise AssertionError(wrong)


_TYPES = {'object': dict, 'array': list, 'string': str, 'number': (int, float)}
_KNOWN = {'$schema', '$ref', 'definitions', 'title', 'type', 'anyOf', 'const',
          'enum', 'properties', 'required', 'items'}


def _mismatch(value, schema, definitions):
    """Return what is wrong, or None; for as much of JSON Schema as is used."""
    assert schema.keys() <= _KNOWN, schema.keys()
    if '$ref' in schema:
        name = schema['$ref'].removeprefix('#/definitions/')
        return _mismatch(value, definitions[name], definitions)
    if 'anyOf' in schema:
        wrong = [_mismatch(value, part, definitions)
                 for part in schema['anyOf']]
        return None if None in wrong else '; '.join(wrong)
    if 'type' in schema and (not isinstance(value, _TYPES[schema['type']])
                             or isinstance(value, bool)):
        return f'{value!r:.80} is no {schema["type"]}'
    if schema.get('const', value) != value:
        return f'{value!r:.80} is not {schema["const"]!r}'
    if value not in schema.get('enum', [value]):
        return f'{value!r:.80} is none of {schema["enum"]}'
    for name in schema.get('required', ()):
        if name not in value:
            return f'{name} is missing'
    parts = [(value[name], part) for name, part
             in schema.get('properties', {}).items() if name in value]
    if 'items' in schema:
        parts += [(item, schema['items']) for item in value]
    for item, part in parts:
        wrong = _mismatch(item, part, definitions)
        if wrong:
            return wrong
    return None
