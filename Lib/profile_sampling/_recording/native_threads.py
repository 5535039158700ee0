"""What threads take that run no Python, such as those of BLAS.

They are in no sample.  The kernel tells their CPU time, and how long they
waited for a CPU; of threads that have ended it tells nothing.
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
# In counters of a profile.
COUNTERS = 'native_threads', 'native_threads_cpu_ns', 'native_threads_wait_ns'


def count(raw):
    """Add to the counters of the core's tables what such threads took until
    now."""
    known = {str(native_id) for _, native_id, *_ in raw['threads']}
    try:
        times = [times for task in listdir(_TASKS)
                 if task not in known and (times := _times(task, known))]
    except OSError:
        return      # there is no /proc
    # Threads that deliver to subscribers run Python, and are in no profile.
    cpu_ns = (sum([cpu_ns for cpu_ns, _ in times])
              - raw['stats'].get('subscribers_cpu_ns', 0))
    if cpu_ns > 0:
        raw['stats'] |= zip(COUNTERS, (
            len([cpu_ns for cpu_ns, _ in times if cpu_ns]), cpu_ns,
            sum([wait_ns for _, wait_ns in times])))


def said(raw, follows=False):
    """Return what is worth a word, or ''; *follows* is whether it has been
    said that something else is not in the profile."""
    ns = raw['stats'].get(COUNTERS[1], 0)
    if ns < max(_LEAST_NS, own_ns() // 10):
        return ''
    return (f'{"Nor" if follows else "Not in it:"} {seconds(ns)} s CPU of '
            'threads that run no Python. ')


def _times(task, known):
    """Return the CPU time of a thread, and how long it waited for a CPU; None
    for one of ours, or if it is known by its number in its own namespace."""
    try:
        if _read(task, 'comm').startswith(_OURS):
            return None
        for line in _read(task, 'status').splitlines():
            if line.startswith(b'NSpid:'):
                if line.split()[-1].decode() in known:
                    return None
        cpu_ns, wait_ns, *_ = map(int, _read(task, 'schedstat').split())
        return cpu_ns, wait_ns
    except OSError:
        return None     # it has ended


def _read(task, name):
    with FileIO(f'{_TASKS}/{task}/{name}') as file:
        return file.read()
