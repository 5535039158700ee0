"""What -X sampleprof and PYTHONSAMPLEPROF ask for.

A program of which out= has no {pid} may start others with the same text.  The
outermost of them writes the file; the others find its number and the time of
its start in the environment, and the file.  What the first process says of
itself is in the text that the others inherit:

    parent=PID:FD:INODE:DIRECTORY

FD and INODE are those of its ledger (ledger.py), or -1 and 0.  Relative names
of files begin in DIRECTORY, unless that is empty: where each process was
started is not what its user meant.  It may have commas in it, so this is the
last item of the text.
"""

import errno
import os
import sys

from profile_sampling import _core, _files, _formats
from profile_sampling._data.allocations import (
    DEFAULT_BYTES, MODE as ALLOC)
from profile_sampling._data.counts import (
    MODES as COUNT_MODES, OFF, QUERIES)
from profile_sampling._data.values import MODES, NAMES, printable
from profile_sampling._options import (
    MAX_DEPTH_FRAMES, MAX_DURATION_S, MAX_RATE_HZ, MEMORY_MODES, NO_MEMORY,
    size_bytes)
from profile_sampling._recording import at_exit
from profile_sampling._recording.ledger import Ledger, start_of

_OPTION, _VARIABLE = '-X sampleprof', 'PYTHONSAMPLEPROF'
_OWNER = 'PYTHONSAMPLEPROF_OWNER'
_PARENT = ',parent='
_NUMBERS = {'rate_hz': (1, MAX_RATE_HZ), 'depth_frames': (1, MAX_DEPTH_FRAMES),
            'signal': (1, 64), 'defer': (0, 1),
            'duration_s': (1, MAX_DURATION_S), 'timeline': (0, 1),
            'children': (0, 1), 'quiet': (0, 1), 'overhead': (0, 100)}
_KEYS = ('rate_hz', 'out', 'format', 'depth_frames', 'names', 'signal',
         'defer', 'duration_s', 'timeline', 'calls', 'watch', ALLOC,
         'children', 'spool', 'every', 'keep', 'quiet', 'overhead')
_DIGITS = frozenset('0123456789.')
_UNITS = {'K': 1 << 10, 'M': 1 << 20, 'G': 1 << 30}
# Segments are files of their own, and that is all that can be had of them.
_NOT_OF_SEGMENTS = 'out', 'format', 'defer', 'duration_s', 'timeline'
# 1 and 0 as other variables have them.
_MODES = {'1': 'wall', '0': 'off', 'off': 'off', ALLOC: ALLOC} | dict(
    zip(MODES, MODES))


def begin(text, by_option):
    """Begin the session that *text* asks for.

    Return whether it is refused: it asks for what there is not, and the
    program is not to run.  What else fails is said on stderr, and the program
    runs, since it matters more than its profile.
    """
    source = _OPTION if by_option else _VARIABLE
    is_inherited = not by_option
    try:
        request = _read(text)
        if request.mode == 'off':
            return False
        is_inherited |= bool(request.quiet or request.parent)
        _begin(request, by_option)
    except _Refused as exc:
        _say(f'{source}: {exc}')
        return not (exc.is_of_file and is_inherited)
    except (OSError, RuntimeError, MemoryError) as exc:
        reason = exc if str(exc) else 'out of memory'
        _say(f'{source}: not profiling: {reason}')
    return False


class _Refused(ValueError):
    """What is wrong with the text, or with the file that it names."""

    def __init__(self, reason, is_of_file=False):
        super().__init__(reason)
        self.is_of_file = is_of_file


def _say(line):
    if sys.stderr is not None:
        try:
            # It escapes what the terminal cannot show.
            print(printable(line), file=sys.stderr)
        except OSError:
            pass        # nobody reads it, and there is no other place


class _Request:
    """The mode and the keys, as they are if the text does not have them."""

    mode = 'wall'
    rate_hz, depth_frames = 1000, 512
    # Per cent of the CPU time; the rate gives way.
    overhead = 5
    names = NAMES.index('all')
    signal = defer = duration_s = timeline = quiet = 0
    out = format = children = calls = spool = alloc = None
    every, keep = 10, 1 << 30
    watch = ()


def _read(text):
    request = _Request()
    request.asked, _, request.parent = text.partition(_PARENT)
    for place, item in enumerate(request.asked.split(',')):
        key, equals, value = item.partition('=')
        if equals:
            value = _value(key, value)
            setattr(request, key, (*request.watch, value) if key == 'watch'
                    else value)
            if key == ALLOC and not place:
                request.mode = ALLOC
        elif place and item == ALLOC:
            request.alloc = DEFAULT_BYTES
        elif place:
            raise _wrong_word('no KEY=VALUE:', item, ', '.join(_KEYS))
        elif item in MEMORY_MODES:
            raise _Refused(f"unknown mode '{item}': {NO_MEMORY}")
        elif item not in _MODES:
            raise _wrong_word('unknown mode', item,
                              'wall, cpu, alloc or off')
        else:
            request.mode = _MODES[item]
    for key in _NOT_OF_SEGMENTS if request.spool else ('every', 'keep'):
        if key in vars(request):
            raise _Refused(f'{key}= is not for spool=' if request.spool else
                           f'{key}= needs spool=DIRECTORY')
    if request.mode == ALLOC:
        request.rate_hz = 1
        request.alloc = request.alloc or DEFAULT_BYTES
    if request.alloc and request.defer:
        raise _Refused('alloc: a deferred session samples no allocations')
    if request.timeline and request.defer:
        raise _Refused('timeline=1: a deferred session has no time line')
    if request.calls is None:
        request.calls = OFF if request.defer else QUERIES
    if request.calls == OFF and request.watch:
        raise _Refused(f'watch={request.watch[0]}: no calls are counted here')
    if request.calls != OFF and request.defer:
        raise _Refused(f'calls={request.calls}: a deferred session counts no '
                       'calls')
    # Each process needs a file of its own.
    request.is_per_process = request.out is None or '{pid}' in request.out
    if request.children is None:
        request.children = request.is_per_process
    if request.children and not request.is_per_process:
        raise _Refused(f'children=1 needs {{pid}} in out={request.out}, so '
                       'that each process has a file of its own')
    return request


def _value(key, text):
    if key in _NUMBERS:
        least, most = _NUMBERS[key]
        # int() would take blanks and signs as well.
        if not (text.isascii() and text.isdigit()
                and least <= int(text[:10]) <= most):
            raise _Refused(f'{key}={text}: expected a whole number from '
                           f'{least} to {most}')
        return int(text)
    if key == 'names':
        if text not in NAMES:
            raise _Refused(f'names={text}: expected off, calls, opcodes or '
                           'all')
        return NAMES.index(text)
    if key == 'calls':
        if text not in COUNT_MODES:
            raise _Refused(f'calls={text}: expected off, queries, python or '
                           'all')
        return text
    if key == 'watch' and not ('.' in text and all(
            [word.isidentifier() for word in text.split('.')])):
        raise _Refused(f'watch={text}: expected the name of a function with '
                       'its module, such as shop.db.query')
    if key == 'every':
        if not (_DIGITS.issuperset(text) and text.count('.') < 2
                and 0.05 <= float(text.strip('.') or 0) <= 86_400):
            raise _Refused(f'every={text}: expected seconds from 0.05 to '
                           '86400')
        return float(text)
    if key == 'keep':
        number, unit = text[:-1], text[-1:].upper()
        if not (number.isascii() and number.isdigit() and unit in _UNITS
                and 0 < int(number[:10]) < 1 << 30):
            raise _Refused(f'keep={text}: expected a size such as 500M or 1G')
        return int(number) * _UNITS[unit]
    if key == ALLOC:
        if size_bytes(text) is None:
            raise _Refused(f'alloc={text}: a size such as 512K, 64K or 1M: '
                           'one sample per so many bytes allocated')
        return size_bytes(text)
    if key not in ('out', 'format', 'watch', 'spool'):
        raise _wrong_word('unknown key', key, ', '.join(_KEYS))
    if not text:
        raise _Refused(f'{key}= needs a value')
    return text


def _wrong_word(what, word, known):
    # No two keys begin alike, and few people err so early.
    for key in _KEYS:
        if word[:3] == key[:3]:
            return _Refused(f"{what} '{word}'. Did you mean '{key}='?")
    return _Refused(f"{what} '{word}': expected {known}")


def _begin(request, by_option):
    parent, cwd, is_elsewhere = _parent_of(request)
    if parent is None or parent.pid == os.getpid():
        parent = _ledger_of(request)
        _pass_on(request, by_option, parent, cwd)
    if not (request.is_per_process or _claim(request.out, cwd)):
        return
    # No path needs to lead to the directory that we are in ourselves.
    directory = _directory(request, cwd if is_elsewhere else '')
    try:
        if request.spool:
            write = at_exit.spooler(
                os.path.join(cwd or '', request.spool), request.every,
                request.keep, directory, parent)
        else:
            write = at_exit.writer(
                request.out, request.format, cwd, request.duration_s,
                request.timeline, directory, parent)
    except ValueError as exc:
        raise _Refused(str(exc)) from None
    core = _core.load()
    try:
        core.start(mode=request.mode, rate_hz=request.rate_hz,
                   depth_frames=request.depth_frames, names=request.names,
                   signal=request.signal, defer=bool(request.defer),
                   times=bool(request.timeline),
                   alloc_bytes=request.alloc or 0)
        core.limit_overhead(request.overhead)
    except ValueError as exc:
        raise _Refused(str(exc)) from None
    core.write_at_exit(write, bool(request.quiet), bool(request.children))
    if parent.pid != os.getpid():
        # Only now: whatever ends it from here on, it leaves a profile.
        parent.began()
    try:
        write.count(request.calls, request.watch)
    except RuntimeError as exc:
        _say(f'sampleprof: {exc}. Sampling goes on')
    if request.alloc and not request.quiet:
        import _tracemalloc
        if _tracemalloc.is_tracing():
            _say('sampleprof: tracemalloc is on, too: the time that the '
                 "program takes is mostly tracemalloc's")
    if request.spool:
        write.start()


def _parent_of(request):
    """Return the Ledger of the first process or None, the directory in which
    names begin, None if there is none, and whether that one said so."""
    parent = None
    try:
        *numbers, directory = request.parent.split(':', 3)
        parent = Ledger(*map(int, numbers))
        if directory:
            return parent, directory, True
    except (ValueError, TypeError):
        pass        # it is the first, or the text is not ours
    try:
        return parent, os.getcwd(), False
    except OSError:
        # A relative name begins wherever the program is then.
        return parent, None, False


def _ledger_of(request):
    if request.children and not request.quiet:
        try:
            return Ledger.new(_files.out_of_the_way)
        except OSError:
            pass        # what becomes of children is not known
    return Ledger(os.getpid(), -1, 0)


def _pass_on(request, by_option, ledger, cwd):
    """Say to programs that this one starts what is asked for: subprocess
    passes the option on as sys._xoptions has it."""
    known = f'{_PARENT}{ledger.key}{cwd or ""}'
    if not by_option:
        os.environ[_VARIABLE] = request.asked + known
        return
    # Only the process that the user started says where its profile is.
    quiet = '' if request.quiet else ',quiet=1'
    sys._xoptions['sampleprof'] = request.asked + quiet + known


def _claim(out, cwd):
    """Is the file this process's?  Then the programs that it starts learn
    that."""
    path = os.path.join(cwd or '', out)
    pid, start, owned = (*os.environ.get(_OWNER, '').split(' ', 2), '', '',
                         '')[:3]
    if (owned == path and pid.isascii() and pid.isdigit()
            and int(pid) != os.getpid() and start_of(pid) == start):
        return False
    own_start = start_of(os.getpid()) or '0'
    os.environ[_OWNER] = f'{os.getpid()} {own_start} {path}'
    return True


def _directory(request, prefix):
    """Return a descriptor of the directory of the file; -1: there is none.

    Raise _Refused if it cannot be written, as far as can be known before the
    program runs.
    """
    path = os.path.join(prefix, request.spool or '', _formats.with_pid(
        request.out or 'sampleprof.{pid}'))
    try:
        if request.spool:
            os.makedirs(os.path.dirname(path), exist_ok=True)
        _files.check(path)
        # At once: it may have got the number of a stream that is closed.
        return _files.out_of_the_way(
            _files.open_directory(os.path.dirname(path) or '.'))
    except OSError as exc:
        if exc.errno not in (errno.EMFILE, errno.ENFILE):
            asked = (f'spool={request.spool}' if request.spool
                     else f"out={request.out or '.'}")
            raise _Refused(f"{asked}: {exc.strerror}: "
                           f"'{exc.filename}'", True) from None
        return -1
