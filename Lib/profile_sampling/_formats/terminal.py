"""The text report, for people at a terminal.

This file owns whether there is colour, and how text gets to a file that
cannot show all of it.  It must not know what the report says.
"""

import os
import sys

from profile_sampling._data import checks
from profile_sampling._formats import text
from profile_sampling._formats.table import WIDTH

COLORS = 'auto', 'always', 'never'
# As wide as what they stand for, where that cannot be shown.
_PLAIN = {'\N{PLUS-MINUS SIGN}': '~', '\N{HORIZONTAL ELLIPSIS}': '~'}


def write(tables, file, *, sort, top, width, color, mine, all, idle):
    """Write the report of *tables*; see Profile.report()."""
    if file is None:
        file = sys.stdout
        if file is None:
            raise ValueError('sys.stdout is closed; name a file')
    if not hasattr(file, 'write'):
        raise TypeError(f'file must be open for text, not {file!r}; save() '
                        'takes a path')
    checks.one_of('color', color, COLORS)
    file.write(_showable(text.render(
        tables, top=top, sort=sort, width=WIDTH if width is None else width,
        color=can_color(file) if color == 'auto' else color == 'always',
        mine=mine, all=all, idle=idle), file))


def can_color(file):
    """As CPython decides for itself, of which no version has a public
    function: by the environment, or whether it is a terminal."""
    environ = {} if sys.flags.ignore_environment else os.environ
    if environ.get('PYTHON_COLORS') in ('0', '1'):
        return environ['PYTHON_COLORS'] == '1'
    if environ.get('NO_COLOR'):
        return False
    if environ.get('FORCE_COLOR'):
        return True
    # Windows has terminals that show escape sequences as they are.
    if environ.get('TERM') == 'dumb' or sys.platform == 'win32':
        return False
    try:
        return os.isatty(file.fileno())
    except (AttributeError, OSError, ValueError):
        return hasattr(file, 'isatty') and file.isatty()


def as_shown(report, encoding):
    """Return a text with what the *encoding* has for its characters."""
    try:
        report.encode(encoding)
    except UnicodeEncodeError:
        for char, instead in _PLAIN.items():
            report = report.replace(char, instead)
    return report.encode(encoding, 'backslashreplace').decode(encoding)


def _showable(report, file):
    encoding = getattr(file, 'encoding', None)
    return report if encoding is None else as_shown(report, encoding)
