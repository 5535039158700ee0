"""The source of functions, as far as it is there and the one that ran.

A profile that was read from a file may name any file.  Of such a profile,
source is shown only of a file that is Python and defines the function in the
line that the profile names.
"""

import os
import sys
import token
import tokenize
import warnings

from profile_sampling._formats import source_files
from profile_sampling._formats.source_files import Unreadable
from profile_sampling._formats.words import counted

# Lines of a function that are all shown; of a longer one those so near to one
# that has samples.  A module is a long function.
LONG, _NEAR = 120, 8
_SUFFIXES = '.py', '.pyw'
# What is compiled at most, to learn which functions there are: that takes
# some seconds.
_MOST_COMPILED_BYTES = 12 << 20


class Files:
    """The files that a profile names, each read once."""

    def __init__(self, tables):
        self._is_trusted = tables.is_recorded_here
        self._left = _MOST_COMPILED_BYTES
        self._known = {}

    def lines(self, path, function):
        """Return the lines of a function's file, and when it was changed.

        Raise Unreadable if it cannot be read or may not be shown.
        """
        lines, changed_ns, defined = self._file(path)
        if defined is not None and _key(function) not in defined:
            raise Unreadable('The source is not shown: the file has no such '
                             f'function in line {function.first_line}.')
        return lines, changed_ns

    def has_all(self, path, functions):
        """Return whether a file defines all of these functions."""
        try:
            _, _, defined = self._file(path)
        except Unreadable:
            return False
        return defined is None or defined.issuperset(map(_key, functions))

    def _file(self, path):
        if path not in self._known:
            try:
                self._known[path] = self._read(path)
            except Unreadable as exc:
                self._known[path] = exc
        found = self._known[path]
        if isinstance(found, Unreadable):
            raise found
        return found

    def _read(self, path):
        try:
            data, changed_ns = source_files.read(
                path, is_trusted=self._is_trusted)
        except Unreadable:
            lines = _typed(path) if self._is_trusted else None
            if lines is None:
                raise
            return lines, 0, None
        defined = None if self._is_trusted else self._defined(path, data)
        return source_files.lines(data), changed_ns, defined

    def _defined(self, path, data):
        if not (path.endswith(_SUFFIXES)
                or b'python' in data.partition(b'\n')[0]
                and data.startswith(b'#!')):
            raise Unreadable('The source is not shown: the file is not '
                             'Python.')
        self._left -= len(data)
        if self._left < 0:
            raise Unreadable('The source is not shown: there is too much of '
                             'it to be checked.')
        return _definitions(data)


def _key(function):
    return function.qualname, function.first_line


def _definitions(data):
    """Return the set of (qualified name, first line) of the functions that
    source defines; raise Unreadable."""
    try:
        with warnings.catch_warnings(action='ignore'):
            pending = [compile(data, '<source>', 'exec', dont_inherit=True)]
    except (SyntaxError, ValueError, OverflowError, RecursionError,
            MemoryError):
        raise Unreadable('The source is not shown: this Python cannot compile '
                         'it.') from None
    found = set()
    while pending:
        code = pending.pop()
        found.add((code.co_qualname, code.co_firstlineno))
        pending += [constant for constant in code.co_consts
                    if isinstance(constant, type(code))]
    return found


def path_of(tables, function):
    """Return where the source of a function is.

    Modules that are frozen into the interpreter have their source in the
    library, which is the one that ran only if the version is the same.
    """
    name = function.filename
    module = name.removeprefix('<frozen ').removesuffix('>')
    library = getattr(sys, '_stdlib_dir', None)
    parts = module.split('.')
    if (len(module) + len('<frozen >') != len(name) or library is None
            or not all(map(str.isidentifier, parts))
            or tables.python_version != sys.version.partition(' ')[0]):
        return name
    place = os.path.join(library, *parts)
    return next((path for path in (f'{place}.py', os.path.join(
        place, '__init__.py')) if os.path.isfile(path)), name)


def _typed(name):
    """Return the lines of what was typed and is in no file, or None.

    Interactive interpreters and notebooks tell linecache.
    """
    linecache = sys.modules.get('linecache')
    entry = None if linecache is None else linecache.cache.get(name)
    # Others say where lines could be had.
    if entry is None or len(entry) != 4:
        return None
    return [line.rstrip('\n') for line in entry[2]]


def read(tables, function, numbers, files):
    """Return {line: text} of a function's source, and notes about it.

    *numbers* are its lines that have samples.
    """
    try:
        lines, changed_ns = files.lines(path_of(tables, function), function)
    except Unreadable as exc:
        return {}, [str(exc)]
    notes = []
    if tables.start_time_ns and changed_ns > tables.start_time_ns:
        notes.append('The file has changed after the profile was begun: '
                     'lines may not be those that ran.')
    first = max(1, function.first_line)
    last = max(numbers)
    if last > len(lines) or first > len(lines):
        notes.append(f'The file has {counted(len(lines), "line")}: it is not '
                     'the one that ran.')
    if function.qualname == '<module>':
        first, end = 1, len(lines)
    else:
        end = min(last, len(lines))
        # Generator expressions and lambdas are parts of lines.
        if not function.qualname.endswith('>'):
            end = max(first + _block_length(lines[first - 1:]) - 1, end)
    shown = range(first, min(end, len(lines)) + 1)
    if len(shown) > LONG:
        near = {line for number in numbers
                for line in range(number - _NEAR, number + _NEAR + 1)}
        shown = sorted(near.intersection(shown))
        notes.append(f'Only lines within {_NEAR} of one with samples are '
                     'shown.')
    return {number: lines[number - 1] for number in shown}, notes


def _block_length(lines):
    """Return how many of *lines* belong to the definition they begin with.

    As inspect.getblock() does, which imports much.
    """
    last = 1
    depth = 0
    is_begun = is_headed = False
    try:
        for kind, text, _, (row, _), _ in tokenize.generate_tokens(
                iter([f'{line}\n' for line in lines]).__next__):
            if kind in (token.COMMENT, token.NL):
                continue
            if not is_begun:
                is_begun = kind == token.NAME and text in ('def', 'class')
            elif kind == token.INDENT:
                depth += 1
            elif kind == token.DEDENT:
                depth -= 1
            elif is_headed and depth <= 0:
                return last
            if kind == token.NEWLINE:
                last = row
                is_headed |= is_begun
            elif kind == token.DEDENT and is_begun and depth <= 0:
                return last
    except (tokenize.TokenError, SyntaxError):
        # The file is another one by now.
        pass
    return last
