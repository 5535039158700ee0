"""The profiles of all processes of a command, as one."""

import contextlib
import os
import shlex
import shutil
import sys
import tempfile
import time

from profile_sampling import _formats
from profile_sampling._cli.common import (
    PROG, Failure, fault, load, summed, write)
from profile_sampling._recording.children import uncovered_ns
from profile_sampling._recording.ledger import Ledger

_PREFIX = '.sampleprof-'
_EXTENSION = '.pb.gz'
# What the text of -X sampleprof gives a meaning.
_MARKS = ',', '{pid}'
# Helpers, as of multiprocessing, end as soon as they see that they are alone.
_GRACE_S = 1.0
_POLL_S = 0.02


class Parts:
    """The profiles of processes, a file each, in a directory of their own.

    It is beside the file that is to be written, so that the same disk is full
    or not.

    ledger  what the processes say of themselves
    taken   the files that are in the sum
    begun   the numbers of all processes that began to be profiled
    left    those of processes that have left one, or several by exec
    silent  those of processes that have ended and left no profile
    """

    def __init__(self, output=None):
        beside = None if output is None else os.path.abspath(
            os.path.dirname(output) or os.curdir)
        if beside is not None and any([mark in beside for mark in _MARKS]):
            beside = None
        try:
            self.directory = os.path.abspath(
                tempfile.mkdtemp(prefix=_PREFIX, dir=beside))
        except OSError as exc:
            where = '' if beside is None else f' in {beside}'
            raise Failure(f'cannot make a directory{where}: '
                          f'{exc.strerror}') from None
        self.ledger = Ledger.new()
        self._is_needed = False
        self._late = []
        self.taken = []
        self.begun = self.left = self.silent = frozenset()

    @property
    def out(self):
        """The name that each process is to write its profile under."""
        return os.path.join(self.directory, '{pid}' + _EXTENSION)

    def paths(self):
        try:
            names = os.listdir(self.directory)
        except OSError as exc:
            # The program may have removed all that is beside its output.
            raise Failure('nothing was recorded: cannot read '
                          f'{self.directory}, where processes were to leave '
                          f'their profiles: {exc.strerror}') from None
        return sorted([os.path.join(self.directory, name) for name in names
                       if name.endswith(_EXTENSION)
                       and not name.startswith('.')])

    def are_there(self):
        return os.path.isdir(self.directory) and bool(self.paths())

    def still_come(self):
        """Return the numbers of processes that have not left theirs yet.

        Those that end within a second are waited for.
        """
        deadline = time.monotonic() + _GRACE_S
        while late := self._running():
            if time.monotonic() > deadline:
                break
            time.sleep(_POLL_S)
        self._late = late
        return late

    def _running(self):
        own = os.stat(sys.executable)
        return sorted([pid for pid, cpu_ns in self.ledger.read().items()
                       if cpu_ns is None and _runs(pid, own)])

    def keep(self):
        """Leave them where they are; return a sentence that says so."""
        self._is_needed = True
        return f'The profiles of its processes are in {self.directory}'

    def command(self):
        """Return the command that merges them."""
        paths = os.path.join(self.directory, f'*{_EXTENSION}')
        return f'{PROG} merge -o OUT {shlex.quote(paths)}'

    def remove(self):
        """Remove them, unless nothing else is left of them.

        The directory stays for those that still come.
        """
        self.ledger.close()
        if self._is_needed:
            return
        if self._late:
            for path in self.taken:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)
            return
        shutil.rmtree(self.directory, ignore_errors=True)

    def merged(self, meta, max_bytes):
        """Return the tables of the sum, which have *meta*.

        Return None if there are no profiles.  If they cannot be added up
        they stay where they are; that may take *max_bytes* of memory.
        """
        self.taken = paths = self.paths()
        self._read_ledger()
        if not paths:
            return None
        with self._kept_on_failure():
            tables = (load(paths[0], max_bytes) if len(paths) == 1
                      else summed(((path, load(path, max_bytes))
                                   for path in paths), max_bytes))
        # By the program that was run, in a directory that is ours.
        return tables.with_facts(meta=meta, is_recorded_here=True)

    def _read_ledger(self):
        """Learn who has left no profile."""
        self.begun = frozenset(self.ledger.read())
        self.left = frozenset(
            [int(os.path.basename(path).partition('.')[0])
             for path in self.taken])
        self.silent = self.begun.difference(self.left, self._late)

    def uncovered_ns(self, cpu_ns):
        """Return how much of the CPU time of all processes is in no profile.
        """
        return uncovered_ns(cpu_ns, [
            ns for ns in self.ledger.read().values() if ns is not None])

    def save(self, tables, output, format, **options):
        """Write the sum; if that fails, the parts stay where they are."""
        with self._kept_on_failure():
            write(output, _formats.encode(tables, format, **options))

    @contextlib.contextmanager
    def _kept_on_failure(self):
        try:
            yield
        except (Failure, ValueError) as exc:
            raise Failure(f'{fault(exc)}. {self.keep()}') from None


def _runs(pid, executable):
    """Return whether a process that began as a Python is still one."""
    try:
        return os.path.samestat(os.stat(f'/proc/{pid}/exe'), executable)
    except OSError:
        # It has ended, or is another user's.
        return False
