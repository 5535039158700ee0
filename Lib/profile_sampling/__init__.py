"""A sampling profiler inside the interpreter.

    import profile_sampling

    with profile_sampling.profile() as block:
        work()
    block.profile.save('work.pb.gz')

The interpreter takes the samples itself, of all its threads, and weighs
each by measured wall-clock and CPU time.
"""

from profile_sampling import _core
from profile_sampling._profile import Profile
from profile_sampling._recording.labels import label, labels, sample
from profile_sampling._recording.session import profile, region, \
    running, snapshot, start, stats, stop

__all__ = ['Batch', 'Profile', 'ProfileDiff', 'Record', 'Rows',
           'SampleRecord', 'Subscription', 'Task', 'label', 'labels',
           'profile', 'region', 'request', 'running', 'sample', 'snapshot',
           'start', 'stats', 'stop', 'subscribe']


# What profiles make, to be named in annotations and tests of a class.
_ROWS = ('AwaitedRow', 'CallRow', 'CallSiteRow', 'CalleeRow', 'DiffRow',
         'FunctionRow', 'GILHolderRow', 'Gate', 'InstructionRow', 'LabelRow',
         'LineRow', 'LoopHolderRow', 'RequestTimes', 'SlowRequestsRow',
         'TaskLabelRow', 'TaskRow')
_PARTS = {'CallCount': '_data.counts', 'CallNode': '_data.tree',
          'Finding': '_formats.findings', 'Sample': '_samples',
          'Timeline': '_data.timeline'}
_VALUES = ('Frame', 'Function', 'GILHolder', 'Process', 'Thread',
           'ValueType')


def __getattr__(name):
    try:
        home = _home_of(name)
    except ImportError:
        _core.check_goes_on()
        raise
    value = globals()[name] = getattr(home, name)
    return value


def _home_of(name):
    # Most programs do not subscribe.  The rest is imported at once: the child
    # of a fork may find the lock of an import taken for ever, and at the end
    # of a program, when finalizers have labels, no import works.
    if name in ('subscribe', 'Subscription'):
        from profile_sampling._subscribing import subscription as home
    elif name in ('AllocationRecord', 'Batch', 'Record', 'Rows',
                  'SampleRecord'):
        from profile_sampling._subscribing import batch as home
    elif name == 'Task':
        home = _core.load()
    elif name in _ROWS:
        from profile_sampling._data import rows as home
    elif name in _VALUES:
        from profile_sampling._data import values as home
    elif name in _PARTS:
        from importlib import import_module
        home = import_module(f'profile_sampling.{_PARTS[name]}')
    elif name == 'ProfileDiff':
        from profile_sampling import _difference as home
    elif name == 'request':
        from profile_sampling._recording import requests as home
    else:
        raise AttributeError(
            f'module {__name__!r} has no attribute {name!r}')
    return home


def load_ipython_extension(shell):
    """Add %sampleprof to a notebook; %load_ext profile_sampling calls it."""
    from profile_sampling import _notebook
    _notebook.load(shell)


def unload_ipython_extension(shell):
    from profile_sampling import _notebook
    _notebook.unload(shell)


def __dir__():
    return sorted({*globals(), *__all__, *_ROWS, *_VALUES, *_PARTS})
