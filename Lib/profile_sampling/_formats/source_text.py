"""The source of functions, as far as it is there and the one that ran.

This file owns which lines of a file are a function's, and what is said where
they may be others.  It must not know how they are shown.
"""

import os
import sys
import token
import tokenize

from profile_sampling._formats.words import counted


class Files:
    """The lines of files, each read once."""

    def __init__(self):
        self._known = {}

    def lines(self, path):
        """Return its lines, when it was changed, and what is wrong with it.

        If something is, there are no lines.
        """
        if path not in self._known:
            self._known[path] = self._read(path)
        return self._known[path]

    def _read(self, path):
        try:
            with tokenize.open(path) as file:
                lines = file.read().splitlines()
            return lines, os.stat(path).st_mtime_ns, None
        except OSError as exc:
            lines = _typed(path)
            if lines is not None:
                return lines, 0, None
            return [], 0, f'There is no source: {exc.strerror}.'
        except (SyntaxError, UnicodeDecodeError, ValueError) as exc:
            return [], 0, f'The source cannot be read: {exc}.'


def _path(tables, function):
    """Return where the source of a function is.

    Modules that are frozen into the interpreter have their source in the
    library, which is the one that ran only if the version is the same.
    """
    name = function.filename
    module = name.removeprefix('<frozen ').removesuffix('>')
    library = getattr(sys, '_stdlib_dir', None)
    if (len(module) + len('<frozen >') != len(name) or library is None
            or tables.python_version != sys.version.partition(' ')[0]):
        return name
    place = os.path.join(library, *module.split('.'))
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


def read(tables, function, last, files):
    """Return {line: text} of a function's source, and notes about it."""
    lines, changed_ns, fault = files.lines(_path(tables, function))
    if fault is not None:
        return {}, [fault]
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
        end = max(first + _block_length(lines[first - 1:]) - 1, end)
    return {number: lines[number - 1]
            for number in range(first, end + 1)
            if number <= len(lines)}, notes


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
