"""The terminal: how wide it is, whether it shows colour and which characters.

This file owns these questions for output on stdout.  It must not know what is
written.
"""

import sys

from profile_sampling._formats.table import MIN_WIDTH, WIDTH
from profile_sampling._formats.terminal import as_shown


def width_of(output):
    """Return how many columns a report has.

    Those of the terminal or of COLUMNS, at least MIN_WIDTH; in a file and in
    a pipe WIDTH, so that what is kept does not depend on a window.
    """
    if not _is_terminal(output):
        return WIDTH
    import shutil
    return max(MIN_WIDTH, shutil.get_terminal_size((WIDTH, 0)).columns)


def is_colored(output):
    """As CPython decides for itself: also by NO_COLOR and FORCE_COLOR."""
    if output is not None:
        return False
    import _colorize
    return _colorize.can_colorize(file=sys.stdout)


def showable(text, output):
    """Return a text as bytes; a terminal need not have all characters."""
    encoding = 'utf-8'
    if _is_terminal(output):
        encoding = sys.stdout.encoding
    return as_shown(text, encoding).encode(encoding)


def _is_terminal(output):
    return output is None and sys.stdout is not None and sys.stdout.isatty()
