"""Where a text is shown: how wide that is, whether it has colour, and which
characters it can show."""

import os
import sys

from profile_sampling._data import checks
from profile_sampling._formats import text
from profile_sampling._formats.table import MIN_WIDTH, WIDTH

COLORS = 'auto', 'always', 'never'
# As wide as what they stand for, where that cannot be shown.
PLAIN = {'\N{PLUS-MINUS SIGN}': '~', '\N{HORIZONTAL ELLIPSIS}': '~',
         '→': '->', '≥': '>=', '–': '-', '├': '|', '└': '|', '│': '|'}


class Screen:
    """What *stream*, which is open for text, can show; None is a file, which
    can show all but colour.

    width  in columns: those of the terminal or of COLUMNS, at least
           MIN_WIDTH; elsewhere WIDTH, so that what is kept does not depend on
           a window
    color  whether there is colour
    """

    def __init__(self, stream, *, width=None, color='auto'):
        checks.one_of('color', color, COLORS)
        self.is_terminal = _is_terminal(stream)
        self.width = (_columns(stream) if self.is_terminal else WIDTH
                      ) if width is None else width
        self.color = (color == 'always' or color == 'auto'
                      and stream is not None
                      and _wants_color(self.is_terminal))
        self.encoding = getattr(stream, 'encoding', None) or 'utf-8'

    def shown(self, text):
        """Return a text with what the screen has for its characters."""
        try:
            text.encode(self.encoding)
        except UnicodeEncodeError:
            for char, instead in PLAIN.items():
                text = text.replace(char, instead)
        return text.encode(self.encoding, 'backslashreplace').decode(
            self.encoding)


def write(tables, file, *, sort, top, width, color, mine, all, idle):
    """Write the report of *tables*; see Profile.report()."""
    if file is None:
        file = sys.stdout
        if file is None:
            raise ValueError('sys.stdout is closed; name a file')
    if not hasattr(file, 'write'):
        raise TypeError(f'file must be open for text, not {file!r}; save() '
                        'takes a path')
    screen = Screen(file, width=width, color=color)
    file.write(screen.shown(text.render(
        tables, top=top, sort=sort, width=screen.width, color=screen.color,
        mine=mine, all=all, idle=idle)))


def _is_terminal(stream):
    try:
        return os.isatty(stream.fileno())
    except (AttributeError, OSError, ValueError):
        return hasattr(stream, 'isatty') and stream.isatty()


def _columns(stream):
    columns = os.environ.get('COLUMNS', '')
    columns = int(columns) if columns.isdecimal() else 0
    try:
        columns = columns or os.get_terminal_size(stream.fileno()).columns
    except (AttributeError, OSError, ValueError):
        pass
    return max(MIN_WIDTH, columns or WIDTH)


def _wants_color(is_terminal):
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
    return (is_terminal and environ.get('TERM') != 'dumb'
            and sys.platform != 'win32')
