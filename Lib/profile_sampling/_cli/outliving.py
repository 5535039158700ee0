"""Processes that still run when the command that began them has ended.

This file owns how they are found.  It must not know what becomes of their
profiles.
"""

import os
import sys
import time

# Helpers, as of multiprocessing, end as soon as they see that they are alone.
_GRACE_S = 1.0
_POLL_S = 0.02


def find(text):
    """Return the numbers of processes that run this Python and have *text*
    in their environment.

    Those that end within a second are waited for.  Where there is no /proc,
    none is found.
    """
    mark = os.fsencode(text)
    own = os.stat(sys.executable)
    try:
        pids = sorted([int(name) for name in os.listdir('/proc')
                       if name.isdecimal()])
    except OSError:
        return []
    deadline = time.monotonic() + _GRACE_S
    while pids := [pid for pid in pids if _is_one(pid, mark, own)]:
        if time.monotonic() > deadline:
            break
        time.sleep(_POLL_S)
    return pids


def _is_one(pid, mark, own):
    try:
        with open(f'/proc/{pid}/environ', 'rb') as file:
            return (mark in file.read()
                    and os.path.samestat(os.stat(f'/proc/{pid}/exe'), own))
    except OSError:
        # It has just ended, or is another user's.
        return False
