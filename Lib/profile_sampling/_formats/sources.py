"""The sources of a profile's functions, for a page that shows them.

This file owns which sources a page has and how they are put down there, as
JSON.  It must not know the page.

Only of functions on the stacks of samples, of long ones what is near to lines
of them, and the most expensive first, until there are _MOST_BYTES: a page is
to be mailed.  With them go the names of generic instructions for specialized
ones, which browsers do not know.

So a page of a profile that was read from a file must not carry away what the
author of that profile wants to see.  It has source only of files below some
directories.  If nobody named any, they are those that modules are imported
from, and the profile must know the file: all functions that it names of it are
where it says, and it names one that has a name of its own.
"""

import os
import sys

from profile_sampling._data import by_function, opcodes
from profile_sampling._data.values import OPCODES
from profile_sampling._formats import json_text, source_files, source_text
from profile_sampling._formats.json_text import known_text

_MOST_BYTES = 1 << 20


def encode(tables, roots=None):
    """Return what found() returns as the bytes of a JSON text."""
    return json_text.data(found(tables, roots))


def found(tables, roots=None):
    """Return a dict.

    functions  list of objects: name, filename, first_line (which function it
               is), lines (texts by their numbers), notes
    generic    {name of a specialized instruction: that of the generic one}
    left_out   how many functions did not fit

    *roots* are the directories of files that may be shown of a profile that
    was read from a file.
    """
    rows = [row for row in by_function.functions(tables)
            if row.function.kind == 'python']
    rows.sort(key=lambda row: -row.cum_values[tables.own])
    functions = tables.functions
    wanted = bytearray([function.kind == 'python' for function in functions])
    lines = by_function.lines_of(tables, wanted)
    shown = []
    space = _MOST_BYTES
    files = source_text.Files(tables)
    fault_of = _fault_of(tables, [row.function for row in rows], files, roots)
    n_left_out = 0
    for row in rows:
        function = row.function
        fault = fault_of(function)
        text, notes = (({}, [fault]) if fault else source_text.read(
            tables, function, lines[function], files))
        size = sum(map(len, text.values()))
        if size > space:
            n_left_out += 1
            continue
        space -= size
        shown.append(_function(function, text, notes))
    return {'functions': shown, 'left_out': n_left_out,
            'generic': _generic(tables)}


def _fault_of(tables, functions, files, roots):
    """Return what says why a page may not have the source of a function, or
    None if it may."""
    if tables.is_recorded_here:
        return lambda function: None
    directories = [os.path.realpath(root) for root
                   in (sys.path if roots is None else roots)]
    paths = {function: source_files.real(source_text.path_of(tables, function))
             for function in functions}
    named = {}
    for function, path in paths.items():
        # What each file has, or what has no name, is no knowledge of it.
        if not function.qualname.endswith('>'):
            named.setdefault(path, []).append(function)

    def fault(function):
        path = paths[function]
        if path is None or not any([
                path.startswith(os.path.join(directory, ''))
                for directory in directories]):
            # Whether there is such a file is nobody's business.
            return ('The source is not shown: no such file is in a directory '
                    'that this Python imports from; --source-root names '
                    'others.' if roots is None else 'The source is not shown: '
                    'no such file is in a directory of --source-root.')
        if roots is None and not (path in named
                                  and files.has_all(path, named[path])):
            return ('The source is not shown: the profile does not know its '
                    'file well enough; --source-root trusts a directory.')
        return None
    return fault


def _function(function, text, notes):
    return {'name': known_text(function.name),
            'filename': known_text(function.filename),
            'first_line': function.first_line,
            'lines': {str(number): known_text(its)
                      for number, its in sorted(text.items())},
            'notes': [known_text(note) for note in notes]}


def _generic(tables):
    if not tables.names & OPCODES:
        return {}
    numbers = {frame[-1] for frame in tables.frame_tuples()}
    return {opcodes.name(number): opcodes.name(opcodes.base(number))
            for number in sorted(numbers) if opcodes.is_specialized(number)
            or opcodes.can_specialize(number)}
