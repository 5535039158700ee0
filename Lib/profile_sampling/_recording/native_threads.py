"""What the profile of one process leaves out: threads that run no Python.

This file owns what is said of them.  It must not know where it is said.
"""

# The program may replace open().
from _io import FileIO
from posix import listdir

from profile_sampling._recording.children import own_ns, seconds

_TASKS = '/proc/self/task'
# Less of them than this, or than a tenth of the process, is not worth a word.
_LEAST_NS = 100_000_000
# Of the core's own threads, which the kernel knows by their names.
_OURS = b'sampleprof'


def said(raw, follows=False):
    """Return what is worth a word, or ''; *raw* are the core's tables, and
    *follows* is whether it has been said that something is not in them."""
    known = {str(native_id) for _, native_id, *_ in raw['threads']}
    try:
        others = [name for name in listdir(_TASKS) if name not in known]
    except OSError:
        return ''       # there is no /proc
    # Threads that deliver to subscribers run Python, and are in no profile.
    ns = (sum(map(_cpu_ns, others))
          - raw['stats'].get('subscribers_cpu_ns', 0))
    if ns < max(_LEAST_NS, own_ns() // 10):
        return ''
    return (f'{"Nor" if follows else "Not in it:"} {seconds(ns)} s CPU of '
            'threads that run no Python. ')


def _cpu_ns(task):
    """Return the CPU time of a thread, 0 for one of ours."""
    try:
        with FileIO(f'{_TASKS}/{task}/comm') as file:
            if file.read().startswith(_OURS):
                return 0
        with FileIO(f'{_TASKS}/{task}/schedstat') as file:
            return int(file.read().split()[0])
    except OSError:
        return 0        # it has ended
