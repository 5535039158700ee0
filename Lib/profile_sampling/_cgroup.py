"""The limit of memory of the container that this process is in."""

import os

_ROOT = '/sys/fs/cgroup'
# What version 1 says where there is none, and more than any machine has.
_MOST = 1 << 56


def limit_bytes(root=_ROOT, path='/proc/self/cgroup'):
    """Return the least limit of its groups, in bytes; None: there is none."""
    found = []
    for line in _read(path).splitlines():
        _, _, rest = line.partition(':')
        controllers, _, group = rest.partition(':')
        if not controllers:
            name, top = 'memory.max', root
        elif 'memory' in controllers.split(','):
            name, top = 'memory.limit_in_bytes', os.path.join(root, 'memory')
        else:
            continue
        # In a container the path may be that outside of it: its own is on top.
        parts = [part for part in group.split('/') if part not in ('', '..')]
        for length in range(len(parts) + 1):
            text = _read(os.path.join(top, *parts[:length], name)).strip()
            if text.isdigit() and int(text) < _MOST:
                found.append(int(text))
    return min(found, default=None)


def _read(path):
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ''       # no such version, or out of reach
