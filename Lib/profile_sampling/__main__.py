"""The command line: python -m profile_sampling.

This file owns arguments, messages and exit statuses: 0 done, 1 the file
could not be read or written, 2 wrong usage.  It must not compute anything.
"""

import argparse
import os
import sys

from profile_sampling import Profile, _files, _formats, _text
from profile_sampling._values import printable

PROG = 'python -m profile_sampling'


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message):
        self.exit(2, printable(
            f'{self.prog}: error: {message} (see --help)') + '\n')


class Failure(Exception):
    """A message for the user, and the exit status."""

    def __init__(self, message, status=1):
        super().__init__(message)
        self.status = status


def _positive(text):
    number = int(text)
    if number < 1:
        raise ValueError
    return number


_positive.__name__ = 'positive number'


def _add_report(commands):
    parser = commands.add_parser(
        'report', help='show a recorded profile',
        description='Show a recorded profile, or convert it.')
    parser.add_argument('file', metavar='FILE', help='a pprof file')
    parser.add_argument('--format', choices=list(_formats.FORMATS),
                        help='what to make of it (default: by the '
                             'extension of OUT, or text)')
    parser.add_argument('-o', '--output', metavar='OUT',
                        help='write to this file instead of stdout')
    parser.add_argument('--top', metavar='N', type=_positive,
                        default=_text.TOP,
                        help='functions per table of the text report '
                             '(default: %(default)s)')
    parser.add_argument('--annotate', action='store_true',
                        help="mark what is not Python in collapsed stacks, "
                             "as flamegraph.pl's --color=java understands")
    parser.set_defaults(run=_report)


def _report(options):
    format = options.format
    if format is None and options.output is None:
        format = 'text'
    try:
        format = _formats.choose(options.output, format)
        arguments = _formats.annotation(format, options.annotate)
    except ValueError as exc:
        raise Failure(str(exc), 2) from None
    if (format == 'pprof' and options.output is None
            and sys.stdout.isatty()):
        raise Failure('a pprof file is binary; name a file with -o', 2)
    try:
        profile = Profile.load(options.file)
    except OSError as exc:
        raise Failure(f'cannot read {options.file}: {exc.strerror}') from None
    except ValueError as exc:
        raise Failure(str(exc)) from None
    if format == 'text':
        arguments['top'] = options.top
    data = _formats.encode(profile, format, **arguments)
    if options.output is None:
        _to_stdout(data)
        return
    try:
        _files.replace(options.output, data)
    except OSError as exc:
        raise Failure(
            f'cannot write {options.output}: {exc.strerror}') from None


def _to_stdout(data):
    if sys.stdout is None:
        raise Failure('cannot write to stdout: it is closed')
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except OSError as exc:
        # Python flushes once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        # Who closes a pipe has seen enough.
        if not isinstance(exc, BrokenPipeError):
            raise Failure(
                f'cannot write to stdout: {exc.strerror}') from None


def main(arguments=None):
    parser = _Parser(prog=PROG, description='Profiles that the interpreter '
                                            'takes of itself.')
    commands = parser.add_subparsers(metavar='COMMAND', required=True)
    for add in (_add_report,):
        add(commands)
    options = parser.parse_args(arguments)
    try:
        options.run(options)
    except Failure as exc:
        print(printable(f'{PROG}: {exc}'), file=sys.stderr)
        return exc.status
    return 0


if __name__ == '__main__':
    sys.exit(main())
