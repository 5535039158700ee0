"""Whose code a function is: mine, that of packages or of the standard library.

This file owns how that is told from names of files, which is all that a
profile has.  It must not know what is done with it.
"""

import re

_PACKAGES = re.compile('/(site|dist)-packages/')
_INSTALLED = re.compile(
    r'^<frozen |/lib/python3\.\d+t?/|/Python3\d+/Lib/', re.IGNORECASE)
# Modules whose place tells where the library is that a Python was built with.
_KNOWN = frozenset({
    'argparse', 'asyncio.base_events', 'asyncio.events', 'asyncio.runners',
    'concurrent.futures.thread', 'dataclasses', 'enum', 'json.decoder',
    'json.encoder', 'logging', 're', 'runpy', 'selectors', 'socketserver',
    'subprocess', 'threading', 'typing', 'unittest.case'})
PACKAGES, STDLIB, MINE = 'packages', 'stdlib', 'mine'


def of_functions(functions):
    """Return a list: of each function the origin, None if it is not Python."""
    paths = [function.filename.replace('\\', '/') for function in functions]
    folders = {
        _folder(function.module, path)
        for function, path in zip(functions, paths)
        if function.kind == 'python' and function.module in _KNOWN
        and not _PACKAGES.search(path)}
    folders = tuple(folders - {None})
    return [None if function.kind != 'python' else _origin(path, folders)
            for function, path in zip(functions, paths)]


def _origin(path, folders):
    if _PACKAGES.search(path):
        return PACKAGES
    if _INSTALLED.search(path) or path.startswith(folders):
        return STDLIB
    return MINE


def _folder(module, path):
    """Return what is before the path of a module; None if it is not there."""
    place = '/' + module.replace('.', '/')
    for end in f'{place}.py', f'{place}/__init__.py':
        if path.endswith(end):
            return path[:len(path) - len(end) + 1]
    return None
