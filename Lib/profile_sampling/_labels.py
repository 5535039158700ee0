"""What samples belong to, in the program's own words.

This file owns how labels are put on and taken off.  It must not know how
they get onto samples: the core reads the context variable that holds them.
"""

from profile_sampling._session import _core

# What the profiler itself tells of a sample, in pprof's labels.
RESERVED = ('interpreter', 'state', 'task id', 'task name', 'thread id',
            'thread name', 'thread native id')


class label:
    """Labels for the samples of what runs inside.

        with label(route='/users/{id}'):
            ...

    They are put on top of those that hold already: an inner label of the
    same name hides the outer one, and a value of None takes it away.  Labels
    belong to the context (contextvars), so asyncio tasks inherit them and
    never mix; a thread begins without.

    Used as a decorator, the labels hold during each call of the function,
    which may be a coroutine function or a generator function.  set() puts
    them on for the rest of the context.

    A value is any hashable object; its text is made once, when the labels
    are put on.

    Raise ValueError for a name that is the profiler's own, TypeError for a
    value that is not hashable, and what str() of a value raises.
    """

    __slots__ = ('_changes', '_tokens')

    def __init__(self, /, **labels):
        for name in labels:
            if name in RESERVED:
                raise ValueError(
                    f'{name!r} is a label of the profiler itself')
        self._changes = labels
        self._tokens = []

    def set(self):
        """Put the labels on until others are put on in this context."""
        _core().enter_labels(self._changes)

    def __enter__(self):
        self._tokens.append(_core().enter_labels(self._changes))
        return self

    def __exit__(self, exc_type, exc, traceback):
        _core().exit_labels(self._tokens.pop())

    def __call__(self, function):
        from profile_sampling import _decorate
        return _decorate.labelled(self._changes, function)


def labels():
    """Return the labels that hold in this context, as a dict of str.

    label(**labels()) puts them on elsewhere, such as in a new thread.
    """
    return _core().labels()


def sample(weight=1, /, **labels):
    """Take a sample of the caller's stack, for an event of the program.

    It counts *weight* times and weighs no time; its state is 'custom'.
    The labels are added to those that hold.  Return whether anybody
    samples; without a session or subscription nothing happens.

    Raise what label() raises, and ValueError or OverflowError for a weight
    that is negative or beyond 64 bits.
    """
    label(**labels)
    if weight < 0:
        raise ValueError(f'weight must not be negative, but is {weight}')
    return _core().sample(weight, labels)
