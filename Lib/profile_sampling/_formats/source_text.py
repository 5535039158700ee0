"""The source of functions, as far as it is there and the one that ran.

This file owns which lines of a file are a function's, and what is said where
they may be others.  It must not know how they are shown.
"""

import inspect
import os
import tokenize

from profile_sampling._formats.words import counted


def read(tables, function, last):
    """Return {line: text} of a function's source, and notes about it."""
    path = function.filename
    try:
        with tokenize.open(path) as file:
            lines = file.read().splitlines()
        changed_ns = os.stat(path).st_mtime_ns
    except OSError as exc:
        return {}, [f'There is no source: {exc.strerror}.']
    except (SyntaxError, UnicodeDecodeError, ValueError) as exc:
        return {}, [f'The source cannot be read: {exc}.']
    notes = []
    if tables.start_time_ns and changed_ns > tables.start_time_ns:
        notes.append('The file has changed after the profile was begun: '
                     'lines may not be those that ran.')
    first = max(1, function.first_line)
    if last > len(lines) or first > len(lines):
        notes.append(f'The file has {counted(len(lines), "line")}: it is not '
                     'the one that ran.')
    if function.qualname == '<module>':
        return dict(enumerate(lines, 1)), notes
    end = min(last, len(lines))
    # Generator expressions and lambdas are parts of lines.
    if not function.qualname.endswith('>'):
        block = inspect.getblock([f'{line}\n' for line in lines[first - 1:]])
        end = max(first + len(block) - 1, end)
    return {number: lines[number - 1]
            for number in range(first, end + 1)
            if number <= len(lines)}, notes
