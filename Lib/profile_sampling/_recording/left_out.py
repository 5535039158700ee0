"""What the profile of one process leaves out: its children.

This file owns when that is worth a word, and the word.  It must not know where
it is said.
"""

try:
    import resource
except ImportError:
    resource = None         # nobody counts what children take

# A child that starts this interpreter takes more, helpers of the system less.
_LEAST_NS = 10_000_000


def begin(out):
    """Return the function that says what the file *out* leaves out.

    It returns '' for nothing, and imports nothing.
    """
    if resource is None or out is None or '{pid}' in out:
        # Each process has a file of its own.
        return lambda: ''
    begin_ns = _children_ns()
    return lambda: _said(_children_ns() - begin_ns)


def _children_ns():
    """Return the CPU time of all children that have been waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return round((usage.ru_utime + usage.ru_stime) * 1e9)


def _said(ns):
    if ns < _LEAST_NS:
        return ''
    return (f'Not in it: {ns / 1e9:.2f} s CPU of child processes; for those '
            'of Python use record -- COMMAND, or {pid} in the name. ')
