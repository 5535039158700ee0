"""The screen of a command: its standard output, or a file."""

import sys

from profile_sampling._formats.terminal import Screen


def screen_of(output, stream=None):
    """Return the Screen of a command that writes to the file *output*, or if
    that is None to *stream*, by default sys.stdout."""
    return Screen(None if output is not None else stream or sys.stdout)


def width_of(output, stream=None):
    return screen_of(output, stream).width


def is_colored(output):
    return screen_of(output).color


def showable(text, output):
    """Return a text as bytes; a terminal need not have all characters, and
    what is kept has them all."""
    screen = screen_of(output)
    if not screen.is_terminal:
        return text.encode('utf-8', 'backslashreplace')
    return screen.shown(text).encode(screen.encoding)
