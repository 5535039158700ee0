"""One run of a program as a child, with a profile of all its processes."""

import os
import signal
import sys

from profile_sampling import _files, _formats
from profile_sampling._cli import child, gather, meta, program
from profile_sampling._cli.common import Failure, say
from profile_sampling._formats import words
from profile_sampling._recording.children import seconds

# What asks us to end.
_ENDING = signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT
# Characters of a command in a message.
_MAX_NAME = 200
# Numbers of processes, likewise.
_MAX_PIDS = 10


def check_format(format, options):
    """Fail if files of this format cannot have what is asked for."""
    try:
        if options.timeline:
            _formats.check_timeline(format)
        _formats.options_of(format, source=not options.no_source)
    except ValueError as exc:
        raise Failure(str(exc), 2) from None


def profiled(wanted, options, parts):
    """Run a Program; return how it Ended."""
    session = program.session_text(options, out=parts.out, quiet=True,
                                   parent=parts.ledger.key)
    return child.run(wanted.command(),
                     os.environ | {'PYTHONSAMPLEPROF': session})


def to_file(wanted, options, format, output):
    """Run a program and write its profile; return the status."""
    parts = gather.Parts(None if _files.descriptor(output) is not None
                         else output)
    return saved(wanted, options, parts, _save, format, output)


def saved(wanted, options, parts, save, *arguments):
    """Run a program and call what saves its profile; return the status.

    It is the program's, or 1 if that is 0 and *save* failed or returned
    False, for nothing was recorded.  A signal that asks us to end while the
    program does not run is obeyed: then the status is the signal's, and the
    parts stay.
    """
    handlers = _interruptible()
    try:
        ended = profiled(wanted, options, parts)
        try:
            is_saved = save(ended, wanted, options, parts, *arguments)
        except Failure as exc:
            say(exc)
            is_saved = False
        return ended.status or int(not is_saved)
    except _Interrupted as exc:
        if parts.are_there():
            name = signal.Signals(exc.number).name
            say(f'ended by {name}: the profile was not written. '
                f'{parts.keep()}; to merge them: {parts.command()}')
        return -exc.number
    finally:
        parts.remove()
        for number, handler in handlers.items():
            signal.signal(number, handler)


class _Interrupted(BaseException):
    """A signal asks us to end."""

    def __init__(self, number):
        self.number = number


def _interruptible():
    """Have signals raise _Interrupted, unless they are ignored; return the
    handlers that they had."""
    def interrupt(number, frame):
        for each in handlers:
            signal.signal(each, signal.SIG_IGN)
        raise _Interrupted(number)

    handlers = {number: handler for number, handler in [
        (number, signal.getsignal(number)) for number in _ENDING]
        if handler != signal.SIG_IGN}
    for number in handlers:
        signal.signal(number, interrupt)
    return handlers


def merged(wanted, options, parts):
    """Return the tables of the profile of a program that has ended, or None
    if nothing was recorded."""
    _say_still_running(parts)
    tables = parts.merged(meta.of(wanted, options), options.max_bytes)
    if parts.silent:
        say(words.counted(len(parts.silent), 'process', 'processes')
            + f' left no profile (PID {_pids(parts.silent)}): ended by a '
              'signal, replaced by another program, or unable to write')
    return tables


def _save(ended, wanted, options, parts, format, output):
    tables = merged(wanted, options, parts)
    if tables is None:
        say_nothing_written(wanted, parts)
        return False
    parts.save(tables, output, format, **_formats.options_of(
        format, source=not options.no_source))
    if not options.quiet:
        say(f'wrote {output}, of '
            + words.counted(len(parts.left), 'process', 'processes')
            + _not_in_it(ended, parts))
    return True


def _not_in_it(ended, parts):
    """Return what is said of CPU time that is in no profile.

    There is a difference without a process that has none, too: to begin and to
    end takes time.
    """
    if not parts.silent and ended.pid in parts.begun:
        return ''
    cpu_s = ended.usage.ru_utime + ended.usage.ru_stime
    ns = parts.uncovered_ns(round(cpu_s * 1e9))
    return (f'; {seconds(ns)} s of the CPU time of all processes is not in it'
            if ns else '')


def _say_still_running(parts):
    pids = parts.still_come()
    if pids:
        say(f'still running after the command: {_pids(pids)}; what they '
            'record is not in this profile, and will be in '
            f'{parts.directory} when they end')


def _pids(pids):
    numbers = sorted(pids)
    more = ', ...' if len(numbers) > _MAX_PIDS else ''
    return ', '.join(map(str, numbers[:_MAX_PIDS])) + more


def say_nothing_written(wanted, parts):
    if parts.begun:
        # What became of them has been said.
        say('nothing was recorded')
        return
    name = wanted.name
    if len(name) > _MAX_NAME:
        name = f'{name[:_MAX_NAME]}...'
    say(f'nothing was recorded: no process of "{name}" ran {sys.executable} '
        'or another build of it that profiles, without -I and -E, which hide '
        'the environment')
