"""Whether a signal was sent to all of our process group, or to us alone.

This file owns the process that witnesses it.  It must not know what a signal
is for.

What is sent to the group has reached our child already, and the kernel does
not say what is.  So there is a process in the group that does nothing, and
blocks all signals: what was sent to the group is pending there.
"""

import os
import signal
import time

# Reads until we are gone, however we end.
_COMMAND = ['cat']
_PENDING = 'ShdPnd:'
# Who signals all processes of a service, one after the other, is through.
_SETTLE_S = 0.01


class Witness:
    """A process of our group for a block of code."""

    def __enter__(self):
        self._pipe = os.pipe()
        self._pid = self._spawn()
        return self

    def __exit__(self, *exception):
        self._end()
        for fd in self._pipe:
            os.close(fd)

    def saw(self, number):
        """Whether a signal that we have got was sent to all of the group.

        Not if that is not known, on systems without these numbers.
        """
        if self._pid is None:
            return False
        time.sleep(_SETTLE_S)
        return self.forget(number)

    def forget(self, number):
        """Forget a signal; return whether there was one to the group."""
        if not self._is_pending(number):
            return False
        # It cannot forget: another one takes its place.
        last, self._pid = self._pid, self._spawn()
        _end(last)
        return True

    def _spawn(self):
        try:
            return os.posix_spawnp(
                _COMMAND[0], _COMMAND, {},
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, self._pipe[0], 0),
                    (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                    (os.POSIX_SPAWN_DUP2, 1, 2)],
                setsigmask=signal.valid_signals())
        except OSError:
            # No more processes: then signals to the group come twice.
            return None

    def _is_pending(self, number):
        try:
            with open(f'/proc/{self._pid}/status') as file:
                lines = file.readlines()
        except OSError:
            return False
        masks = [int(line.removeprefix(_PENDING), 16) for line in lines
                 if line.startswith(_PENDING)]
        return any([mask >> number - 1 & 1 for mask in masks])

    def _end(self):
        if self._pid is not None:
            _end(self._pid)


def _end(pid):
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
