"""The page of a profile: where it is written, and a browser that shows it."""

import os
import sys

from profile_sampling import _formats
from profile_sampling._cli.common import (
    STDOUT, Failure, encoded, say, write)

_DISPLAYS = 'DISPLAY', 'WAYLAND_DISPLAY'
_REMOTE = 'SSH_CONNECTION', 'SSH_TTY'


def place(options, profile, kind=''):
    """Return the name of the file of a page: the output, or beside *profile*.

    *kind* tells pages of one profile apart.
    """
    if options.is_stdout and options.open:
        raise Failure('a page that is to be opened needs a file: name one '
                      'with -o', 2)
    if options.is_stdout or options.output is not None:
        return options.output or STDOUT
    if profile == '-':
        raise Failure('name a file for the page with -o', 2)
    if profile.lower().endswith(_formats.extension('html')):
        raise Failure(f'{profile} is a page; name another file with -o', 2)
    name = profile
    for extension in sorted(_formats.PPROF, key=len, reverse=True):
        if name.lower().endswith(extension):
            name = name[:-len(extension)]
            break
    return name + kind + _formats.extension('html')


def save(tables, path, is_opened, **options):
    """Write the page of a profile, and open it if that is asked for.

    *options* are those of the encoder.
    """
    write(path, encoded(tables, 'html', **options))
    show(path, is_opened)


def show(path, is_opened):
    """Say where a page is, and open it if that is asked for."""
    if path == STDOUT:
        return
    write(None, os.fsencode(path) + b'\n')
    if not is_opened:
        return
    reason = _hindrance()
    if reason:
        say(f'no browser is opened: {reason}')
        return
    import webbrowser
    from urllib.parse import quote
    if not webbrowser.open('file://' + quote(os.fsencode(os.path.abspath(path)))):
        say('no browser could be opened')


def _hindrance():
    """Why there is no browser to be opened, or None."""
    if sys.stdout is None or not sys.stdout.isatty():
        return 'stdout is no terminal'
    if any(map(os.environ.get, _REMOTE)):
        return 'this is an SSH session'
    if sys.platform.startswith(('linux', 'freebsd')) and not any(
            map(os.environ.get, _DISPLAYS)):
        return 'there is no display'
    return None
