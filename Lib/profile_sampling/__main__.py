"""The command line: python -m profile_sampling.

This file owns arguments, messages and exit statuses: 0 done, 1 the file
could not be read or written, 2 wrong usage.  It must not compute anything.
"""

import argparse
import os
import sys

from profile_sampling import (
    Profile, _files, _formats, _label_rows, _merge, _text)
from profile_sampling._values import lost_counts, printable

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
    format = _format(options, 'text')
    try:
        arguments = _formats.annotation(format, options.annotate)
    except ValueError as exc:
        raise Failure(str(exc), 2) from None
    _refuse_terminal(format, options.output)
    profile = _load(options.file)
    if format == 'text':
        arguments['top'] = options.top
    _write(options.output, _formats.encode(profile, format, **arguments))


def _add_merge(commands):
    parser = commands.add_parser(
        'merge', help='add up the profiles of several processes',
        description='Add up profiles.  Each sample gets the number of its '
                    "process as the label 'pid'.")
    parser.add_argument('files', metavar='FILE', nargs='+',
                        help='a pprof file, or a pattern for the names of '
                             'several')
    parser.add_argument('--format', choices=list(_formats.FORMATS),
                        help='what to make of them (default: by the '
                             'extension of OUT, or pprof)')
    parser.add_argument('-o', '--output', metavar='OUT',
                        help='write to this file instead of stdout')
    parser.set_defaults(run=_run_merge)


def _run_merge(options):
    format = _format(options, 'pprof')
    _refuse_terminal(format, options.output)
    paths = _expanded(options.files)
    _refuse_twice(paths, options.output)
    merger = _merge.Merger()
    nameless = 0
    for path in paths:
        profile = _load(path)
        try:
            merger.add(profile)
        except ValueError as exc:
            raise Failure(f'{path}: {exc}') from None
        nameless += (profile.pid is None
                     and _merge.PID_LABEL not in _label_rows.keys(profile))
    profile = Profile._from_raw(merger.raw())
    _write(options.output, _formats.encode(profile, format))
    _say(_merged(profile, len(paths), nameless, options.output))


def _merged(profile, files, nameless, output):
    pids = len([row for row in profile.label_values(_merge.PID_LABEL)
                if row.value is not None])
    lost = sum(lost_counts(profile.stats).values())
    line = (f'merged {_count(files, "file")} of '
            f'{_count(pids, "process", "processes")}'
            f'{"" if output is None else f" into {output}"}: '
            f'{profile.total_wall_ns / 1e9:,.1f} s wall and '
            f'{profile.total_cpu_ns / 1e9:,.1f} s CPU in all threads '
            f'together, {_count(profile.total_count, "sample")}, '
            f'{lost:,} lost')
    if nameless:
        line += (f'; {_count(nameless, "file")} without the number of a '
                 'process')
    return line


def _count(number, one, more=None):
    return f'{number:,} {one if number == 1 else more or one + "s"}'


def _expanded(names):
    """Return the files; a name that is none may be a pattern."""
    import glob
    paths = []
    for name in names:
        if not os.path.lexists(name) and glob.has_magic(name):
            found = sorted(glob.glob(name))
            if not found:
                raise Failure(f'no file has a name like {name}')
            paths += found
        else:
            paths.append(name)
    return paths


def _refuse_twice(paths, output):
    """Add nothing up twice, also not the sum of the last time."""
    seen = set()
    for path in paths:
        real = os.path.realpath(path)
        if real in seen:
            raise Failure(f'{path} is named twice', 2)
        seen.add(real)
    if output is not None and os.path.realpath(output) in seen:
        raise Failure(f'{output} is to be read and to be written; name '
                      'another file with -o, or leave it out', 2)


def _format(options, default):
    """Return the format of the output; *default* is for stdout."""
    format = options.format
    if format is None and options.output is None:
        format = default
    try:
        return _formats.choose(options.output, format)
    except ValueError as exc:
        raise Failure(str(exc), 2) from None


def _refuse_terminal(format, output):
    if (format == 'pprof' and output is None
            and sys.stdout is not None and sys.stdout.isatty()):
        raise Failure('a pprof file is binary; name a file with -o', 2)


def _load(path):
    try:
        return Profile.load(path)
    except OSError as exc:
        raise Failure(f'cannot read {path}: {exc.strerror}') from None
    except ValueError as exc:
        raise Failure(str(exc)) from None


def _write(output, data):
    if output is None:
        _to_stdout(data)
        return
    try:
        _files.replace(output, data)
    except OSError as exc:
        raise Failure(f'cannot write {output}: {exc.strerror}') from None


def _say(line):
    # print() to a stream that is None would go to stdout.
    if sys.stderr is not None:
        print(printable(f'{PROG}: {line}'), file=sys.stderr)


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
    for add in (_add_report, _add_merge):
        add(commands)
    options = parser.parse_args(arguments)
    try:
        options.run(options)
    except Failure as exc:
        _say(exc)
        return exc.status
    return 0


if __name__ == '__main__':
    sys.exit(main())
