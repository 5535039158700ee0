"""The terminal: how wide it is, whether it shows colour and which characters.

This file owns these questions for output on stdout.  It must not know what is
written.
"""

import os
import sys

from profile_sampling._formats.table import MIN_WIDTH, WIDTH
from profile_sampling._formats.terminal import as_shown, can_color


def width_of(output, stream=None):
    """Return how many columns a report has; *stream* is where it goes without
    an output, sys.stdout if it is None.

    Those of the terminal or of COLUMNS, at least MIN_WIDTH; in a file and in
    a pipe WIDTH, so that what is kept does not depend on a window.
    """
    stream = stream or sys.stdout
    if output is not None or stream is None or not stream.isatty():
        return WIDTH
    columns = os.environ.get('COLUMNS', '')
    columns = int(columns) if columns.isdecimal() else 0
    return max(MIN_WIDTH, columns
               or os.get_terminal_size(stream.fileno()).columns or WIDTH)


def is_colored(output):
    return output is None and can_color(sys.stdout)


def showable(text, output):
    """Return a text as bytes; a terminal need not have all characters."""
    encoding = 'utf-8'
    if _is_terminal(output):
        encoding = sys.stdout.encoding
    return as_shown(text, encoding).encode(encoding)


def _is_terminal(output):
    return output is None and sys.stdout is not None and sys.stdout.isatty()
