"""The program that record, stat and exec run, and how it is asked to profile."""

import argparse
import filecmp
import importlib.util
import os
import re
import shlex
import shutil
import sys

from profile_sampling import _files, _formats
from profile_sampling._arguments import (
    DEFAULT_RATE_HZ, add_kind, add_rate, whole)
from profile_sampling._cli import elsewhere
from profile_sampling._cli.common import (
    DASHES, Failure, add_max_bytes, say)
from profile_sampling._data.counts import MODES as COUNT_MODES
from profile_sampling._data.values import MODES
from profile_sampling._options import MAX_DURATION_S

USAGE = '%(prog)s [OPTION]... PROGRAM [ARGUMENT]...'
# What the text of -X sampleprof gives a meaning.
_SEPARATOR = ','
# Flags of this interpreter, and maybe one that takes a value.
_OPTION = re.compile('-([^cmXW]*)(?:([cmXW])(.*))?', re.DOTALL)
# Of the first lines of a script: that of a long path, as pip writes it, is the
# second one, for sh.
_HEAD_BYTES = 4096
_ELF = b'\x7fELF'
_SH = "'''exec'"
# What they start is not known before: shims of pyenv are such.
_SHELLS = 'sh', 'bash', 'dash', 'zsh'
_OUTPUT = '-o', '--output'


class Program:
    """What is to be run.

    words       the command line: of this interpreter without its own name and
                options, or of any command
    is_foreign  whether it is any command
    """

    def __init__(self, words, is_foreign):
        self.words = words
        self.is_foreign = is_foreign

    @property
    def name(self):
        return ' '.join(self.words)

    def command(self, sampleprof=None):
        """Return the whole command line; for this interpreter with the text
        of -X sampleprof."""
        if self.is_foreign:
            return self.words
        options = [] if sampleprof is None else [
            '-X', f'sampleprof={sampleprof}']
        return [sys.executable, *_own_options(), *options, *self.words]


def _own_options():
    """Return the options that this interpreter was started with, but not its
    -X sampleprof; PYTHON* variables are inherited."""
    kept = []
    words = iter(sys.orig_argv[1:])
    for word in words:
        if word.startswith('--'):
            kept += word, next(words)       # --check-hash-based-pycs MODE
            continue
        option = _OPTION.fullmatch(word)
        if option is None:
            break
        flags, letter, value = option.groups()
        if flags:
            kept.append(f'-{flags}')
        if letter is None:
            continue
        if letter in 'XW':
            value = value or next(words)
            if letter == 'W' or not value.startswith('sampleprof'):
                kept += f'-{letter}', value
        else:
            break
    return kept


def _as_given(words):
    return ['--' if word == DASHES else word for word in words]


class _Rest(argparse.Action):
    """-m and -c: all that follows is the program's."""

    def __call__(self, parser, namespace, values, option=None):
        if not values:
            parser.error(f'argument {option}: expected a value')
        namespace.program = [option, *values]


def add(parser):
    """Add the program, and the options of its session, to a command."""
    add_words(parser)
    add_rate(parser)
    parser.add_argument(
        '-d', '--duration', metavar='SEC', type=whole(MAX_DURATION_S),
        help='profile each process for so many seconds at most, and write '
             'the profile then; the program goes on')
    add_kind(parser)
    add_max_bytes(parser)


def add_words(parser):
    """Add the program."""
    parser.add_argument(
        '-m', action=_Rest, nargs=argparse.REMAINDER, metavar='MODULE',
        dest='program', help='MODULE [ARGUMENT]..., run as a script')
    parser.add_argument(
        '-c', action=_Rest, nargs=argparse.REMAINDER, metavar='CODE',
        dest='program', help='CODE [ARGUMENT]..., run as a program')
    parser.add_argument(
        'words', metavar='PROGRAM', nargs=argparse.REMAINDER,
        help='a script, -m MODULE or -c CODE; or a command of Python, such '
             'as gunicorn, or -- COMMAND: all processes of it that run this '
             'Python are profiled, as one profile')


def add_kept(parser):
    """Add the options of what is kept beside the samples."""
    parser.add_argument(
        '--timeline', action='store_true',
        help='keep when each sample was taken: see report --from, and the '
             'time view of a page')
    parser.add_argument(
        '--calls', choices=COUNT_MODES,
        help='what to count exactly: queries, calls of functions that ask a '
             'service, a disk or the system; python, calls of functions in '
             'Python; or all, C functions, too (default: queries)')
    parser.add_argument(
        '--watch', metavar='NAME', action='append', default=[],
        help='count calls of this function, such as shop.db.query, as queries')


def program_of(options):
    """Return the Program that the arguments name."""
    if options.program is not None:
        words = _as_given(options.program)
        _refuse_mode(*words[:2])
        return Program(words, False)
    words = _as_given(options.words)
    if words[:1] == ['--']:
        if not words[1:2] or not words[1]:
            raise Failure('there is no command after --', 2)
        return Program(words[1:], True)
    if not words:
        raise Failure('name a script, -m MODULE, -c CODE or -- COMMAND', 2)
    name, *rest = words
    if name.startswith('-') and name != '-':
        raise Failure(elsewhere.of_option(name)
                      or f'{name} is no option of this command (see --help)',
                      2)
    path = name if os.path.exists(name) else shutil.which(name)
    # What is in a pipe can be read once.
    if path is None or not os.path.isfile(path):
        return Program(words, False)
    interpreter = _interpreter(path)
    if path != name or _is_command(path, interpreter):
        _check_interpreter(words, path, interpreter)
        return Program(words, True)
    _check_rest(name, rest)
    return Program(words, False)


def _interpreter(path):
    """Return the path of what runs a command: itself, or what its first
    lines name; None if that is not known."""
    try:
        with open(path, 'rb') as file:
            head = file.read(_HEAD_BYTES)
    except OSError:
        return None
    first, *others = os.fsdecode(head).splitlines() or ['']
    if head.startswith(_ELF):
        found = path
    elif others and others[0].startswith(_SH):
        found = shlex.split(others[0].removeprefix(_SH))[0]
    elif first.startswith('#!'):
        words = first[2:].split() or ['']
        if os.path.basename(words[0]) == 'env':
            words = [word for word in words[1:]
                     if not word.startswith('-')] or ['']
        found = shutil.which(words[0]) or words[0]
    else:
        found = None
    return found


def _is_command(path, interpreter):
    """Return whether a file that is named by its path is no script of Python
    but runs by itself: a wrapper for a shell, say."""
    return interpreter == path or not (
        interpreter is None or path.endswith('.py')
        or 'python' in _kind(interpreter))


def _kind(interpreter):
    return os.path.basename(os.path.realpath(interpreter))


def _check_interpreter(words, path, interpreter):
    """Fail if a command is not run by this Python: its profile would be of
    nothing."""
    name, *rest = words
    kind = _kind(interpreter or '')
    if kind in _SHELLS and interpreter != path:
        return
    if 'python' not in kind:
        raise Failure(f'{name} is no program of Python. The processes of this '
                      'Python that it starts: record -- '
                      f'{shlex.join(words)}', 2)
    try:
        if os.path.samefile(interpreter, sys.executable) or filecmp.cmp(
                interpreter, sys.executable, shallow=False):
            return
    except OSError:
        pass        # it is not there, or nobody may read it
    if interpreter == path:
        raise Failure(f'{name} is {path}, and not this Python: leave it out, '
                      f'as in record {shlex.join(rest)}', 2)
    raise Failure(f'{name} is {path}, which {interpreter} runs, and not this '
                  'Python: install it for this one, or try record -m '
                  f'{shlex.join(words)}', 2)


def _check_rest(name, rest):
    """Say that what looks like the name of our file is the program's."""
    for option, value in zip(rest, rest[1:]):
        if option in _OUTPUT and value.lower().endswith(_formats.PPROF):
            say(f'{option} {value} is given to {name}, as is all that stands '
                'after a program. For the profile put it first: '
                f'{option} {value} {name}')


def _refuse_mode(option, name):
    """Fail if a mode is named as a module: others' -m is their mode."""
    if (option == '-m' and name in MODES
            and importlib.util.find_spec(name) is None):
        raise Failure(f'there is no module {name}; the mode is given by '
                      f'--mode {name}', 2)


def session_text(options, *, out, quiet, format=None, parent=None):
    """Return the text of -X sampleprof for the session that is asked for.

    *parent* is the key of a Ledger.
    """
    if _SEPARATOR in out:
        raise Failure(f'the name {out} has a comma in it; choose another '
                      'with -o', 2)
    rate_hz = options.rate or DEFAULT_RATE_HZ
    items = [options.mode, f'rate_hz={rate_hz}', f'out={out}']
    if format is not None:
        items.append(f'format={format}')
    if options.alloc_bytes is not None:
        items.append(f'alloc={options.alloc_bytes}')
    if options.depth is not None:
        items.append(f'depth_frames={options.depth}')
    if options.duration is not None:
        items.append(f'duration_s={options.duration}')
    if options.names is not None:
        items.append(f'names={options.names}')
    if options.timeline:
        items.append('timeline=1')
    if options.calls is not None:
        items.append(f'calls={options.calls}')
    items += [f'watch={name}' for name in options.watch]
    if quiet:
        items.append('quiet=1')
    if parent is not None:
        items.append(f'parent={parent}')
    return _SEPARATOR.join(items)


def check_script(wanted):
    """Fail if a script is not there: its profile would be of nothing."""
    name, *_ = wanted.words
    if wanted.is_foreign or name.startswith('-'):
        return
    try:
        os.stat(name)
    except OSError as exc:
        raise Failure(f'cannot run {name}: {exc.strerror}', 2) from None


def check_output(path):
    """Fail if a file cannot be written, before anything is run."""
    if _files.descriptor(path) is not None:
        return
    try:
        _files.check(_formats.with_pid(path))
    except OSError as exc:
        raise Failure(f'cannot write {path}: '
                      f'{exc.strerror or exc}') from None
