"""The end of a session that the command line started.

It is imported before the program runs, and so it must import little; it writes
while the interpreter ends, and then it must import nothing, trust nothing the
program may have changed, and never raise.
"""

import errno
import os
import sys

from profile_sampling import _core, _files, _formats
from profile_sampling._data import intake
from profile_sampling._data.losses import (
    lost_counts, other_losses, rate_came_to)
from profile_sampling._data.values import COUNT, RUN
from profile_sampling._recording import latencies, native_threads
from profile_sampling._recording.children import Children, own_ns
from profile_sampling._recording.counting import Counting
from profile_sampling._recording.descriptors import with_a_descriptor
from profile_sampling._recording.ledger import start_of

# What the command line has to say of the program: name=text, one in a line.
META_VARIABLE = 'PYTHONSAMPLEPROF_META'
_STDERR = 2
# A handler of signals may raise while the profile is written.
_TRIES = 5
_FAULTS = OSError, ValueError, TypeError, AttributeError, MemoryError
_PID = '{pid}'
_ANOTHER = 'record -o PATH, or -X sampleprof=out=PATH'
# What helps, by what is wrong.
_ADVICE = {
    errno.EMFILE: 'Raise the limit on open files: ulimit -n',
    errno.ENFILE: 'Raise the limit on open files of the whole system',
    errno.EFBIG: 'Raise the limit on the size of files: ulimit -f',
    errno.ENOMEM: 'Raise the limit on memory: ulimit -v',
    errno.ENOSPC: f'Free some space, or name a file on another disk: '
                  f'{_ANOTHER}',
    errno.ENOENT: f'Name a file in a directory that stays: {_ANOTHER}',
    errno.EACCES: 'Name a file in a directory that the program may write at '
                  f'its end: {_ANOTHER}',
    errno.EROFS: f'Name a file on a disk that can be written: {_ANOTHER}',
}
_ADVICE[errno.EDQUOT] = _ADVICE[errno.ENOSPC]
_ADVICE[errno.EPERM] = _ADVICE[errno.EACCES]
_SAFE = frozenset('abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ'
                  '0123456789@%+=:,./-_')
_LOOK = {
    'pprof': '{python} -m profile_sampling report {path}',
    'text': 'less {path}',
    'collapsed': 'load it into a flame graph viewer',
}


def writer(out, format, cwd, duration_s, has_timeline, directory, ledger):
    """Return the function that the core calls with its tables at the end.

    It takes the tables and *quiet*, and does with them what write() does; its
    attribute count() begins to count calls, as Counting() does.
    All that it needs has been imported when this returns.  The end is that
    of the program if *duration_s* is 0, or at most so many seconds away.
    With *has_timeline* moments are kept from now on.
    *directory* is an open one, which the file is to be in, or -1.
    """
    format = _format_of(out, format)
    encode = _formats.encoder(format)
    meta = _take_meta()
    say = _say if _is_open(_STDERR) else _say_nothing
    if has_timeline:
        _formats.check_timeline(format)
        from profile_sampling._data import timeline     # noqa: F401
        from profile_sampling._formats.pprof import writer
        writer.import_moments()
    latencies.begin_session()
    is_per_process = out is None or _PID in out
    if is_per_process:
        meta |= _run_of(ledger.pid)
    children = Children(ledger if is_per_process else None)
    _mark(ledger)
    kept = _files.Kept(_path(out, format, cwd), directory)
    if duration_s:
        from profile_sampling._recording import limit
        limit.end_after(duration_s)

    core = _core.load()
    countings = []

    def write_here(raw, quiet, is_exec):
        name, note = out, ''
        if is_exec:
            # The program that comes may be profiled, too, as process {pid}.
            name = (_default_out(format) if out is None else out).replace(
                _PID, f'{_PID}.exec')
            note = 'The process becomes another program. '
        raw['meta'] = meta
        raw['latencies'] = latencies.end_session()
        for counting in countings:
            # After a snapshot the session goes on.
            raw['counts'] = (counting.so_far() if core.is_written_at_exit()
                             else counting.end())
        native_threads.count(raw)
        if not quiet:
            note += children.said()
            note += native_threads.said(raw, follows='Not in ' in note)
        is_written = write(raw, name, format, cwd, quiet, encode, say,
                           '' if quiet else note, kept, children.have_files)
        if is_written and os.getpid() != ledger.pid:
            ledger.wrote(own_ns())

    def write_at_exit(raw, quiet, is_exec):
        with_a_descriptor(write_here, raw, quiet, is_exec)

    write_at_exit.count = lambda *what: countings.append(Counting(*what))
    return write_at_exit


def spooler(directory, every_s, keep_bytes, opened, ledger):
    """Return the same for a profile in segments, files of a *directory*: a
    spool.Spool has what is asked for there.

    Its attribute start() begins to write them, when the session has begun.
    """
    from profile_sampling._recording.spool import Spool
    meta = _take_meta() | _run_of(ledger.pid)
    host = meta.setdefault('host', os.uname().nodename)
    encode = _formats.encoder('pprof')
    say = _say if _is_open(_STDERR) else _say_nothing
    latencies.begin_session()
    children = Children(ledger)
    _mark(ledger)
    kept = _files.Kept(os.path.join(directory, ''), opened)

    def put(raw, path, is_known):
        raw['meta'] = meta
        return write(raw, path, 'pprof', None, True, encode,
                     _say_nothing if is_known else say, '', kept)

    spool = Spool(directory, every_s, keep_bytes, host, put, say)

    def write_last(raw, quiet, is_exec):
        note = '' if quiet else children.said()
        is_written = spool.write_last(raw, is_exec)
        if is_written and os.getpid() != ledger.pid:
            ledger.wrote(own_ns())
        if is_written and not quiet:
            say(f'sampleprof: wrote {spool.num_written:,} segments to '
                f'{_quoted(directory)}. {note}Look: {_python()} -m '
                f'profile_sampling report {_quoted(directory)}')

    def write_at_exit(raw, quiet, is_exec):
        with_a_descriptor(write_last, raw, quiet, is_exec)

    write_at_exit.count = lambda *what: spool.countings.append(
        Counting(*what))
    write_at_exit.start = spool.start
    return write_at_exit


def _mark(ledger):
    """Say in the ledger which children of a fork are profiled."""
    # The program may take its modules out of sys.modules.
    core = _core.load()

    def mark_child():
        if core.is_written_at_exit():
            ledger.began()

    os.register_at_fork(after_in_child=mark_child)


def _take_meta():
    """Return what META_VARIABLE says; the program does not see it."""
    text = os.environ.pop(META_VARIABLE, '')
    return dict([line.partition('=')[::2] for line in text.splitlines()])


def _run_of(pid):
    """Return what tells the run that process *pid* has begun, by its name."""
    start = start_of(pid)
    return {} if start is None else {RUN: f'{pid}.{start}'}


def write(raw, out=None, format=None, cwd=None, quiet=False, encode=None,
          say=None, note='', kept=None, is_one_of_several=False):
    """Write the profile of the core's tables; return its size in bytes, 0 if
    it could not be written.

    *out* None stands for sampleprof.{pid} with the format's extension, in
    *cwd*, the directory that the program was started in: it may have gone
    elsewhere.  What happened is said in one line on stderr; *quiet* leaves
    it out if all went well, and else what could be done.  *encode* is the
    encoder of the format, if it has been imported; *say* says a line
    elsewhere; *note* is said of a profile that is written; *kept* is a
    _files.Kept; *is_one_of_several* says whether others of the run are there.
    """
    say = say or _say
    shown = '?'
    for tries_left in reversed(range(_TRIES)):
        try:
            format = _format_of(out, format)
            if out is None:
                out = _default_out(format)
            shown = os.fsdecode(_formats.with_pid(out))
            tables = intake.tables(raw)
            encode = encode or _formats.encoder(format)
            data = encode(tables)
            _replace(_path(out, format, cwd), data, kept)
            # Without a name of its own, and of a directory, the report is of
            # all processes of the newest run.
            look_at = ('' if out == _default_out('pprof')
                       else os.path.dirname(shown) if is_one_of_several
                       else shown)
            line = _success(tables, shown, format, note, look_at)
            break
        # Nothing may leave: the exit status is the program's, not ours.
        except BaseException as exc:
            # What a handler of the program's signals or an audit hook raised
            # is no fault of the file's.
            is_ours = isinstance(exc, _FAULTS)
            if is_ours or not tries_left:
                say(_failure(exc, shown, is_ours, quiet))
                return 0
    if not quiet:
        say(line)
    return len(data)


def _format_of(out, format):
    if out is None and format is None:
        return 'pprof'
    format = _formats.choose(out, format)
    _formats.check_at_exit(format)
    return format


def _default_out(format):
    return f'sampleprof.{_PID}{_formats.extension(format)}'


def _path(out, format, cwd):
    """Return the absolute name of the file as a text, if *cwd* is known."""
    if out is None:
        out = _default_out(format)
    return os.path.join(os.fsdecode(cwd or b''),
                        os.fsdecode(_formats.with_pid(out)))


def _replace(path, data, kept):
    """Make *path* a file with the content *data*."""
    directory = kept and kept.directory_of(path)
    if directory is not None:
        try:
            # Wherever the program has gone, and whatever root it has.
            _files.replace(os.path.basename(path), data, dir_fd=directory)
            return
        except FileNotFoundError:
            pass    # it is removed, but there may be another in its place
    _files.replace(path, data)


def _success(tables, shown, format, note, look_at):
    # On the wall clock, what the user waited; the threads' sum is in the
    # report.
    is_cpu = tables.mode == 'cpu'
    ns = tables.total('cpu_ns') if is_cpu else tables.duration_ns
    lost = ', '.join([f'{sum(lost_counts(tables.stats).values()):,} lost',
                      *other_losses(tables.stats)])
    look = _LOOK[format].format(
        python=_python(), path=_quoted(look_at) if look_at else '').rstrip()
    samples = (tables.total(COUNT.name) if COUNT in tables.value_types
               else tables.stats['allocations'])
    rate_hz = rate_came_to(tables)
    rate = ('' if rate_hz in (None, tables.rate_hz)
            else f' at {rate_hz:,} to {tables.rate_hz:,} Hz')
    return (f'sampleprof: wrote {_quoted(shown)} '
            f'({ns / 1e9:.1f} s {"CPU" if is_cpu else "wall"}, '
            f'{samples:,} samples{rate}, {lost}). {note}Look: {look}')


def _failure(exc, shown, is_ours, quiet):
    line = f'sampleprof: cannot write {_quoted(shown)}: {_reason(exc)}'
    if not is_ours:
        return (f'{line}. The program raised it: a handler of signals, an '
                'audit hook or what it has replaced')
    number = (errno.ENOMEM if isinstance(exc, MemoryError)
              else getattr(exc, 'errno', None))
    # Of a process that another one has started, it is not the user who has
    # named the file.
    advice = _ADVICE.get(
        number, '' if quiet else f'Name another file: {_ANOTHER}')
    return f'{line}. {advice}' if advice else line


def _python():
    """How the user called this interpreter."""
    name = sys.orig_argv[0] if sys.orig_argv else ''
    if os.path.basename(name).startswith('python'):
        return _quoted(name)
    # An embedding program has no option -m.
    return 'python'


def _reason(exc):
    if isinstance(exc, OSError) and exc.strerror:
        return exc.strerror
    return f'{exc}' or type(exc).__name__


def _quoted(text):
    """Quote for a POSIX shell, on one line."""
    if text and _SAFE.issuperset(text):
        return text
    if text.isprintable():
        return "'" + text.replace("'", "'\"'\"'") + "'"
    # $'…' is the shells' own notation for backslash escapes.
    return "$'" + ''.join([
        f'\\{char}' if char in "\\'" else
        char if char.isprintable() else
        ''.join([f'\\x{byte:02x}' for byte in os.fsencode(char)])
        for char in text]) + "'"


def _is_open(fd):
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def _say_nothing(line):
    """There was no stderr: what has its number now is the program's own."""


def _say(line):
    """Print a line on the process's stderr, whatever sys.stderr is."""
    data = memoryview(line.encode('utf-8', 'backslashreplace') + b'\n')
    try:
        while data:
            data = data[os.write(_STDERR, data):]
    except OSError:
        # Closed, or nobody reads it: there is no other place to say so.
        pass
