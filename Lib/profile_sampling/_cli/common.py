"""What the commands have in common."""

import argparse
import os
import sys

from profile_sampling import _files, _formats
from profile_sampling._data import match
from profile_sampling._data.merge import MAX_BYTES, Merger
from profile_sampling._data.tables import Tables
from profile_sampling._data.values import printable
from profile_sampling._formats.pprof import reader

PROG = 'python -m profile_sampling'
STDOUT = '/dev/stdout'
# argparse takes every '--' for the end of options.  Where it has another
# meaning main() puts this in its place, which no argument can be.
DASHES = '\0--'
_UNITS = {'K': 1 << 10, 'M': 1 << 20, 'G': 1 << 30}


class Failure(Exception):
    """A message for the user, and the exit status."""

    def __init__(self, message, status=1):
        super().__init__(message)
        self.status = status


def choose_format(options, default, known=_formats.FORMATS):
    """Return the format of the output; *default* is for stdout."""
    format = options.format
    if format is None and (options.output is None or
                           _files.descriptor(options.output) is not None):
        format = default
    return format_of(options.output, format, known)


def format_of(path, format=None, known=_formats.FORMATS):
    """Return the format for a path, or *format* itself if it is given."""
    try:
        return _formats.choose(path, format, known)
    except ValueError as exc:
        raise Failure(str(exc), 2) from None


def refuse_input(output, paths):
    """Fail if a file that is read would be written: what is in it would be
    lost."""
    if output is not None and os.path.realpath(output) in map(
            os.path.realpath, paths):
        raise Failure(f'{output} is to be read and to be written; name '
                      'another file with -o, or leave it out', 2)


def refuse_terminal(format, output):
    if (format in _formats.BINARY and output in (None, STDOUT)
            and sys.stdout is not None and sys.stdout.isatty()):
        raise Failure(f'a {format} file is binary; name a file with -o', 2)


def add_output(parser):
    parser.add_argument('-o', '--output', metavar='OUT', action=_Output,
                        help='write to this file instead of stdout (-)')
    parser.set_defaults(is_stdout=False)


def at_least(least, name):
    """Return the type of an argument that is a number from *least* on."""
    def number(text):
        value = int(text)
        if value < least:
            raise ValueError
        return value
    number.__name__ = name
    return number


def add_format(parser, default, known=_formats.FORMATS):
    """Add the option of the format; *default* says what is taken."""
    parser.add_argument(
        '--format', choices=list(known), metavar='FORMAT',
        help=f'{", ".join(known)} (default: by the extension of OUT, or '
             f'{default})')


def add_source(parser):
    """Add the options of the text of functions in a page."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument('--no-source', action='store_false', default=None,
                       dest='page_source',
                       help='leave the text of functions out of a page')
    group.add_argument('--source-root', action='append', default=None,
                       dest='page_source', metavar='DIR',
                       help='have the text of functions from files in this '
                            'directory in a page (default: where this Python '
                            'imports modules from, as far as FILE knows '
                            'them)')


def source_options(options):
    """Return what add_source() added as options of a page's encode()."""
    source = options.page_source
    return _formats.options_of('html',
                                source=True if source is None else source)


class _Output(argparse.Action):
    """Stores no name for stdout, and that it was asked for."""

    def __call__(self, parser, options, name, option=None):
        options.is_stdout = name == '-'
        options.output = None if options.is_stdout else name


def file_name(name):
    """Return the name of a file to write; '-' is stdout here, too."""
    return STDOUT if name == '-' else name


def _size(text):
    number, unit = text[:-1], text[-1:].upper()
    if unit not in _UNITS:
        number, unit = text, ''
    if not (number.isascii() and number.isdigit() and len(number) < 16):
        raise ValueError
    return int(number) * _UNITS.get(unit, 1)


_size.__name__ = 'size such as 800M or 4G'


def add_mine(parser):
    """Add the options that say whose code is charged."""
    parser.add_argument(
        '--mine', metavar='PATTERN', action='append', default=[],
        type=_pattern,
        help='this is my code, too, by names of functions or files; without '
             'it, all that is not installed')
    parser.add_argument(
        '--all', action='store_true',
        help='charge all code, and not the lines of mine for what they call')


def add_idle(parser):
    parser.add_argument(
        '--idle', action='store_true',
        help='show threads that had nothing to do, too')


def _pattern(text):
    try:
        match.compiled(text)
    except ValueError as exc:
        raise argparse.ArgumentTypeError(str(exc)) from None
    return text


def add_max_bytes(parser):
    parser.add_argument(
        '--max-bytes', metavar='SIZE', type=_size, default=MAX_BYTES,
        help='how much memory reading a profile may take, and adding up '
             'several, such as 800M or 4G (default: 512M)')


def load(path, max_bytes):
    """Return the tables of a file; '-' is stdin.

    It may take *max_bytes* of memory.
    """
    if path == '-' and sys.stdin is None:
        raise Failure('cannot read from stdin: it is closed')
    try:
        return reader.tables(sys.stdin.buffer if path == '-' else path,
                             max_bytes)
    except OSError as exc:
        raise Failure(f'cannot read {path}: {exc.strerror}') from None
    except ValueError as exc:
        raise Failure(fault(exc)) from None


def summed(found, max_bytes):
    """Return the tables of the sum of profiles, (path, tables) each.

    That may take *max_bytes* of memory.
    """
    merger = Merger(max_bytes)
    for path, tables in found:
        try:
            merger.add(tables)
        except ValueError as exc:
            raise Failure(f'{path}: {fault(exc)}') from None
    return Tables(merger.raw())


def fault(exc):
    """Return what is wrong, with an option for what is an argument in
    Python."""
    return str(exc).replace('a larger max_bytes', 'a larger --max-bytes')


def encoded(tables, format, **options):
    """Return the bytes of a file in *format*."""
    try:
        return _formats.encode(tables, format, **options)
    except ValueError as exc:
        raise Failure(str(exc)) from None


def write(output, data):
    if output in (None, STDOUT):
        _to_stdout(data)
        return
    try:
        _files.replace(output, data)
    except OSError as exc:
        raise Failure(f'cannot write {output}: {exc.strerror}') from None


def write_text(text):
    """Write text to standard output."""
    _to_stdout(text.encode('utf-8', 'backslashreplace'))


def show(text, path=None):
    """Write text to a file, or to standard error."""
    data = text.encode('utf-8', 'backslashreplace')
    if path is not None:
        write(path, data)
    elif sys.stderr is not None:
        sys.stderr.write(data.decode())
        sys.stderr.flush()


def flush():
    """Write what waits for our end: another program may take our place."""
    for stream in sys.stdout, sys.stderr:
        if stream is not None:
            stream.flush()


def say(line):
    # print() to a stream that is None would go to stdout.
    if sys.stderr is not None:
        print(printable(f'{PROG}: {line}'), file=sys.stderr)


def lose_stdout():
    """Let go of what cannot be written: Python flushes once more at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _to_stdout(data):
    if sys.stdout is None:
        raise Failure('cannot write to stdout: it is closed')
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except OSError as exc:
        lose_stdout()
        # Who closes a pipe has seen enough.
        if not isinstance(exc, BrokenPipeError):
            raise Failure(
                f'cannot write to stdout: {exc.strerror}') from None
