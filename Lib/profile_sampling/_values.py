"""The small values a profile is made of.

This file owns what a function, a frame, a thread and a table row are, how
they compare and print, and how text from a profiled program is made safe
to show.  It must not know how they are stored or written.
"""

MODES = ('wall', 'cpu')
STATES = ('running', 'blocked', 'gil wait', 'gc', 'lost', 'unsampled')
FUNCTION_KINDS = ('python', 'C', 'operator', 'pseudo')


class Value:
    """An immutable record whose fields are its __slots__.

    Written out because dataclasses and collections cost more to import
    than everything else in this package.
    """

    __slots__ = ()

    def __init__(self, *fields):
        for name, field in zip(self.__slots__, fields, strict=True):
            object.__setattr__(self, name, field)

    def __setattr__(self, name, value):
        raise AttributeError(f'{type(self).__name__} objects are immutable')

    def __delattr__(self, name):
        raise AttributeError(f'{type(self).__name__} objects are immutable')

    def _fields(self):
        return tuple([getattr(self, name) for name in self.__slots__])

    def __eq__(self, other):
        if type(other) is not type(self):
            return NotImplemented
        return self._fields() == other._fields()

    def __hash__(self):
        return hash(self._fields())

    def __reduce__(self):
        return type(self), self._fields()

    def __repr__(self):
        fields = ', '.join([f'{name}={getattr(self, name)!r}'
                            for name in self.__slots__])
        return f'{type(self).__name__}({fields})'


class Function(Value):
    """Something that can stand on a stack.

    module      name of the module, or None when it is not known
    qualname    qualified name; in brackets for a pseudo function
    filename    path of the source; '' unless kind is 'python'
    first_line  line of its definition; 0 when there is none
    kind        'python', 'C', 'operator' or 'pseudo' (what the interpreter
                itself was doing, such as '[blocked]')
    """

    __slots__ = ('module', 'qualname', 'filename', 'first_line', 'kind')

    @property
    def name(self):
        """module.qualname, or the qualname alone without a module."""
        if self.module is None:
            return self.qualname
        return f'{self.module}.{self.qualname}'


class Frame(Value):
    """One place on a stack: a function, and how far it has come.

    line                1-based, 0 when not known
    column              1-based, 0 when not known
    instruction_offset  in bytes from the start of the bytecode, -1 when
                        not known (it does not survive a pprof file)
    opcode              number of the instruction, 0 when not known (the
                        same)
    """

    __slots__ = ('function', 'line', 'column', 'instruction_offset',
                 'opcode')


class Thread(Value):
    """A thread that was profiled.

    ident           threading.get_ident() of it
    native_id       the operating system's number of it
    name            the name it had in threading, or None
    interpreter_id  number of the interpreter it ran in, 0 for the main one
    """

    __slots__ = ('ident', 'native_id', 'name', 'interpreter_id')


class _Row(Value):
    __slots__ = ()

    def flat_ns(self, mode):
        """Own time on the clock of *mode*, in nanoseconds."""
        return self.flat_cpu_ns if mode == 'cpu' else self.flat_wall_ns

    def cum_ns(self, mode):
        """Time including callees on the clock of *mode*, in nanoseconds."""
        return self.cum_cpu_ns if mode == 'cpu' else self.cum_wall_ns


_WEIGHTS = ('flat_count', 'flat_cpu_ns', 'flat_wall_ns',
            'cum_count', 'cum_cpu_ns', 'cum_wall_ns')


class FunctionRow(_Row):
    """What a function cost: flat is its own, cum includes its callees."""

    __slots__ = ('function', *_WEIGHTS)


class LineRow(_Row):
    """What a line cost: flat is its own, cum includes what it called."""

    __slots__ = ('function', 'line', *_WEIGHTS)


def own_clock(mode):
    """Which of the two clocks a mode weighs by: 'cpu' or 'wall'."""
    return 'cpu' if mode == 'cpu' else 'wall'


def printable(text):
    """Return *text* with everything but visible characters escaped.

    Names are chosen by the profiled program.  Control characters would
    reach the reader's terminal, bidirectional marks would reorder a line,
    and lone surrogates cannot be encoded; all become backslash escapes.
    """
    if text.isprintable():
        return text
    return ''.join([
        char if char.isprintable()
        else char.encode('unicode_escape').decode('ascii')
        for char in text])


# The one counter of something lost that does not count samples.
LOST_THREADS = 'lost_threads'


def lost_counts(stats):
    """Return {reason: count} of the nonzero counters of lost samples.

    The total counter, when the core keeps one, is left out if reasons are
    given: they add up to it.
    """
    counts = {key.removeprefix('lost').strip('_'): value
              for key, value in stats.items()
              if key.startswith('lost') and not key.endswith('_ns')
              and key != LOST_THREADS and value}
    if len(counts) > 1:
        counts.pop('', None)
    return counts
