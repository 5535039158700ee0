"""The sources of a profile's functions, for a page that shows them.

This file owns which sources a page has and how they are put down there, as
JSON.  It must not know the page.

Only of functions on the stacks of samples, of long ones what is near to lines
of them, and the most expensive first, until there are _MOST_BYTES: a page is
to be mailed.  With them go the names of generic instructions for specialized
ones, which browsers do not know.
"""

from profile_sampling._data import by_function, opcodes
from profile_sampling._data.values import OPCODES
from profile_sampling._formats import json_text, source_text
from profile_sampling._formats.json_text import known_text

_MOST_BYTES = 1 << 20
# Lines of a function that are all there; of others those so near to one that
# has samples.  A module is a long function.
_LONG, _NEAR = 120, 8


def encode(tables):
    """Return the bytes of a JSON text: an object.

    functions  list of objects: name, filename, first_line (which function it
               is), lines (texts by their numbers), notes
    generic    {name of a specialized instruction: that of the generic one}
    left_out   how many functions had no room
    """
    rows = [row for row in by_function.functions(tables)
            if row.function.kind == 'python']
    rows.sort(key=lambda row: -row.cum_values[tables.own])
    functions = tables.functions
    wanted = bytearray([function.kind == 'python' for function in functions])
    lines = by_function.lines_of(tables, wanted)
    found = []
    room = _MOST_BYTES
    files = source_text.Files()
    n_left_out = 0
    for row in rows:
        function = row.function
        text, notes = source_text.read(tables, function,
                                       max(lines[function]), files)
        text = _near(text, lines[function])
        size = sum(map(len, text.values()))
        if size > room:
            n_left_out += 1
            continue
        room -= size
        found.append(_function(function, text, notes))
    data = {'functions': found, 'left_out': n_left_out,
            'generic': _generic(tables)}
    return json_text.data(data)


def _near(text, numbers):
    """Return {line: text} without what is far from all of *numbers*."""
    if len(text) <= _LONG:
        return text
    near = {line for number in numbers
            for line in range(number - _NEAR, number + _NEAR + 1)}
    return {line: its for line, its in text.items() if line in near}


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
