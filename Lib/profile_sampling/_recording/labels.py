"""What samples belong to, in the program's own words."""

import _contextvars

from profile_sampling import _core
from profile_sampling._data.label_names import RESERVED

# The blocks that the context is in, innermost first: (label, token, rest).
# A label may be entered by many tasks and threads at the same time.
_entered = _contextvars.ContextVar('profile_sampling.entered', default=None)


class label:
    """Labels for the samples of what runs inside.

        with label(route='/users/{id}'):
            ...

    They are put on top of those that hold already: an inner label of the
    same name hides the outer one, and a value of None takes it away.  Labels
    belong to the context (contextvars), so asyncio tasks inherit them and
    never mix; a thread begins without.

    Used as a decorator, the labels hold during each call of the function,
    which may be a coroutine function or a generator function.  Those of a
    generator hold only while it runs, not in who it yields to.  set() puts
    them on for the rest of the context.

    A value is any hashable object; its text is made once, by label().

    Raise ValueError for a name that is the profiler's own, TypeError for a
    value that is not hashable, and what str() of a value raises.
    """

    __slots__ = ('_core', '_changes')

    def __init__(self, /, **labels):
        self._core = _core.load()
        self._changes = _texts(labels)

    @classmethod
    def _of(cls, changes):
        """Return one of names that may be the profiler's own."""
        self = object.__new__(cls)
        self._core = _core.load()
        self._changes = changes
        return self

    def set(self):
        """Put the labels on until others are put on in this context."""
        self._core.enter_labels(self._changes)

    def __enter__(self):
        token = self._core.enter_labels(self._changes)
        _entered.set((self, token, _entered.get()))
        return self

    def __exit__(self, exc_type, exc, traceback):
        # Blocks in generators can end in another order than they began, and
        # in another context, which then has no such block.
        block, inner = _entered.get(), []
        while block is not None and block[0] is not self:
            inner.append(block[0])
            block = block[2]
        if block is None:
            return
        _, token, rest = block
        self._core.exit_labels(token)
        _entered.set(rest)
        for its in reversed(inner):
            its.__enter__()

    def __call__(self, function):
        from profile_sampling._recording import wrap
        return wrap.labelled(self._changes, function)


def labels():
    """Return the labels that hold in this context, as a dict of str.

    label(**labels()) puts them on elsewhere, such as in a new thread.
    """
    return _core.load().labels()


def sample(weight=1, /, **labels):
    """Take a sample of the caller's stack, for an event of the program.

    It counts *weight* times and weighs no time; its state is 'custom'.
    The labels are added to those that hold.  Return whether anybody
    samples; without a session or subscription nothing happens.

    Raise what label() raises, TypeError for a weight that is no int, and
    ValueError or OverflowError for one that is negative or beyond 64 bits.
    """
    changes = _texts(labels)
    if weight < 0:
        raise ValueError(f'weight must not be negative, but is {weight}')
    return _core.load().sample(weight, changes)


def _texts(labels):
    """Return the labels with their values as text, None left alone."""
    for name, value in labels.items():
        if name in RESERVED:
            raise ValueError(f'{name!r} is a label of the profiler itself')
        if value is not None and type(value) is not str:
            # What has no stable value makes no label.
            hash(value)
            # A subclass of str would be asked for its text again.
            labels[name] = str.__str__(str(value))
    return labels
