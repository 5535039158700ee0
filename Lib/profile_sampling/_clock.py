"""The clocks of this process.

Programs put functions of their own in the place of time.time(),
time.monotonic() and their like, to have their tests run at a time of their
choice.
"""

import os
import time
from os import close, open, read

# Of /proc/PID/stat, behind the name of the program.
_START_TICKS = 19

if hasattr(time, 'clock_gettime_ns'):
    from time import CLOCK_MONOTONIC, CLOCK_REALTIME, clock_gettime_ns

    def monotonic_ns():
        """As time.monotonic_ns()."""
        return clock_gettime_ns(CLOCK_MONOTONIC)

    def time_ns():
        """As time.time_ns()."""
        return clock_gettime_ns(CLOCK_REALTIME)
else:
    # Nothing is recorded there.
    from time import monotonic_ns, time_ns


def monotonic():
    """As time.monotonic()."""
    return monotonic_ns() / 1e9


def process_start_ns(pid):
    """Return when a process began, since the machine was started: the same
    whenever it is asked; 0 if that is not known, as without /proc."""
    try:
        # The descriptor is no child's.
        file = open(f'/proc/{pid}/stat', os.O_RDONLY)
        try:
            data = read(file, 4096)
        finally:
            close(file)
        ticks = int(data.rpartition(b')')[2].split()[_START_TICKS])
        return ticks * 1_000_000_000 // os.sysconf('SC_CLK_TCK')
    except (OSError, ValueError, IndexError):
        return 0
