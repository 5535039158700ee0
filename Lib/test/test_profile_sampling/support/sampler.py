"""The sampler thread of this process, as the kernel sees it."""

import os

from test import support


def native_id():
    """Its native id, as soon as it has given itself its name."""
    for _ in support.sleeping_retry(support.SHORT_TIMEOUT):
        for thread in os.listdir('/proc/self/task'):
            with open(f'/proc/self/task/{thread}/comm') as file:
                if file.read().strip() == 'sampleprof':
                    return int(thread)


def wakeups():
    """How often it went to sleep until now."""
    with open(f'/proc/self/task/{native_id()}/status') as file:
        status = dict(line.split(':', 1) for line in file)
    return int(status['voluntary_ctxt_switches'])


def waited_ns():
    """How long it waited for a CPU until now."""
    with open(f'/proc/self/task/{native_id()}/schedstat') as file:
        return int(file.read().split()[1])
