"""The sources of a profile's functions, for a page that shows them.

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
from profile_sampling._data.rows import function_rank
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
    lines = _lines(tables)
    files = source_text.Files(tables)
    fault_of = _fault_of(tables, lines, files, roots)
    texts = {}
    for function in sorted(lines, key=function_rank):
        fault = fault_of(function)
        texts[function] = (({}, [fault]) if fault else source_text.read(
            tables, function, lines[function], files))
    kept = _kept(tables, {
        function: sum(map(len, text.values()))
        for function, (text, _) in texts.items()})
    return {'functions': [_function(function, *texts[function])
                          for function in kept],
            'left_out': len(texts) - len(kept), 'generic': _generic(tables)}


def _lines(tables):
    """Return {function: its lines that are on stacks} of those in Python."""
    found = {}
    for number, line, *_ in tables.frame_tuples():
        function = tables.functions[number]
        if function.kind == 'python':
            found.setdefault(function, set()).add(line)
    return found


def _kept(tables, sizes):
    """Return the functions whose source fits, the most expensive ones."""
    if sum(sizes.values()) <= _MOST_BYTES:
        return list(sizes)
    costs = by_function.lines_of(tables, bytearray([
        function in sizes for function in tables.functions]))
    kept, space = [], _MOST_BYTES
    for function in sorted(sizes, key=lambda function: (
            -sum(costs.get(function, {}).values()), *function_rank(function))):
        if sizes[function] <= space:
            space -= sizes[function]
            kept.append(function)
    return kept


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
