"""What became of the profiles of processes that belong together.

The ledger is a file without a name that the first process has open.  The
processes that it starts, and those that they start, write a line to it when
they begin to be profiled and one when their profile is written.

The lines of a process that cannot reach the ledger, since it is another
user's or there is no /proc, are missing in it.
"""

import os


class Ledger:
    """That of process *pid*, which has it open as *fd*; *inode* is its own."""

    def __init__(self, pid, fd, inode):
        self.pid = pid
        self._fd = fd
        self._inode = inode

    @classmethod
    def new(cls, moved=int):
        """Return one of this process; raise OSError if there can be none.

        *moved* may give the descriptor another number.
        """
        fd = moved(os.memfd_create('sampleprof', os.MFD_CLOEXEC))
        return cls(os.getpid(), fd, os.fstat(fd).st_ino)

    @property
    def key(self):
        """What follows parent= in the text of -X sampleprof."""
        return f'{self.pid}:{self._fd}:{self._inode}:'

    def began(self):
        """Say that this process is being profiled."""
        self._add(f'{os.getpid()}\n')

    def wrote(self, cpu_ns):
        """Say that its profile is written, and what CPU time it took."""
        self._add(f'{os.getpid()} {cpu_ns}\n')

    def _add(self, line):
        if self._fd < 0:
            return
        try:
            fd = os.open(f'/proc/{self.pid}/fd/{self._fd}',
                         os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        except OSError:
            return      # the first process has ended, or it is out of reach
        try:
            if self._is_it(fd):
                os.write(fd, line.encode())
        except OSError:
            return      # no memory is left for it
        finally:
            os.close(fd)

    def _is_it(self, fd):
        """Whether *fd* is the ledger still: the program may have closed it,
        or the number may be that of another process by now."""
        return os.fstat(fd).st_ino == self._inode

    def read(self):
        """Return what it says as {pid: CPU ns of a process that left a
        profile, or None}; None if it is gone."""
        try:
            if not self._is_it(self._fd):
                return None
            data = os.pread(self._fd, os.fstat(self._fd).st_size, 0)
        except OSError:
            return None
        found = {}
        for line in data.decode().splitlines():
            pid, _, cpu_ns = line.partition(' ')
            found[int(pid)] = int(cpu_ns) if cpu_ns else None
        return found

    def close(self):
        os.close(self._fd)


def is_running(pid):
    """Return whether a process has not ended, as far as /proc tells it."""
    state, *_ = _facts(pid) or 'X'
    return state not in ('Z', 'X')


def start_of(pid):
    """Return when a process began, in ticks since the machine's beginning, as
    text; None: there is no such process, or no /proc."""
    facts = _facts(pid)
    return facts and facts[19]


def _facts(pid):
    try:
        with open(f'/proc/{pid}/stat', 'rb') as file:
            # The name, in parentheses, may have anything in it.
            return file.read().rpartition(b') ')[2].decode().split()
    except OSError:
        return None
