"""What the commands have in common that ask a process that runs."""

import argparse
import contextlib
import json
import signal
import sys

from profile_sampling._cli import screen
from profile_sampling._cli.common import Failure, write_text
from profile_sampling._data.values import printable
from profile_sampling._formats import style
from profile_sampling._formats.terminal import Screen
from profile_sampling._reach import processes
from profile_sampling._reach.processes import Process, Refusal
from profile_sampling._top import loop


def add_process(parser, *, required=True):
    """Add the options that say which process is asked."""
    wanted = parser.add_mutually_exclusive_group(required=required)
    wanted.add_argument('-p', '--pid', metavar='PID', type=pid,
                        help='the number of the process')
    if required:
        wanted.add_argument('name', metavar='NAME', nargs='?',
                            help='in its place a part of the command line, '
                                 'if that fits one process')


def pid(text):
    if not text.isascii() or not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f'{text} is no number of a process')
    return int(text)


def process_of(options):
    """Return the Process that is asked for, or raise Refusal."""
    if options.pid is not None:
        return Process(options.pid)
    return processes.named(options.name)


def or_refusal(run, options):
    """Return what *run* returns; say a Refusal and return 1."""
    try:
        return run(options)
    except NotImplementedError as exc:
        raise Failure(str(exc)) from None       # a build without profiler
    except Refusal as exc:
        if getattr(options, 'json', False):
            write_text(json.dumps(exc.as_json()) + '\n')
        elif sys.stderr is not None:
            print(printable(exc.text), file=sys.stderr)
            if exc.remedy:
                print(f'  {printable(exc.remedy)}', file=sys.stderr)
        return 1


@contextlib.contextmanager
def until_signal():
    """Have SIGTERM and SIGHUP end the block as Ctrl-C does, so that the process
    that is watched is left alone at once; then die by the signal."""
    seen = []

    def interrupt(number, frame):
        seen.append(number)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt)
              for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    except KeyboardInterrupt:
        if not seen:
            raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if seen:
        loop.die_by(seen[0])


def style_of(options, stream):
    """Return the Style for what goes to a stream."""
    return style.Style(style.depth() if Screen(stream).color else 0,
                       style.is_dark(options.theme))


def add_theme(parser):
    parser.add_argument('--theme', choices=('light', 'dark'),
                        help='the ground of the terminal, where it is not '
                             'known by the environment')


def width(stream):
    return screen.width_of(None, stream) if stream is not None else 80


def write(path, text):
    """Write text to a file."""
    from profile_sampling import _files
    try:
        _files.replace(path, text.encode('utf-8', 'backslashreplace'))
    except OSError as exc:
        raise Failure(f'cannot write {path}: {exc.strerror}') from None
