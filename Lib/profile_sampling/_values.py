"""The small values a profile is made of.

This file owns what a function, a frame, a thread and a table row are, how
they compare and print, and how text from a profiled program is made safe
to show.  It must not know how they are stored or written.
"""

MODES = ('wall', 'cpu')
STATES = ('running', 'blocked', 'gil wait', 'gc', 'lost', 'unsampled',
          'custom', 'asleep with gil')
FUNCTION_KINDS = ('python', 'C', 'operator', 'pseudo')
# What a session names beyond Python frames, by the core's bits.
NAMES = ('off', 'calls', 'opcodes', 'calls,opcodes')
CALLS, OPCODES = 1, 2


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

    module      name of the module, or None when it is not known or there
                is none, as for the methods of built-in types
    qualname    qualified name; in brackets for a pseudo function; for an
                operator its method ('int.__mul__'), or both types where
                the second one's does the work ('int + float')
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
                        not known
    opcode              number of the instruction, 0 when not known.  In
                        the innermost Python frame of a stack it is the
                        instruction as specialised at that moment, if the
                        session named opcodes; in all others the generic one

    A pprof file keeps the last two only of the innermost Python frame, and
    only if the session named opcodes.
    """

    __slots__ = ('function', 'line', 'column', 'instruction_offset',
                 'opcode')

    @property
    def opname(self):
        """Name of the instruction, such as 'BINARY_OP_ADD_INT', or None."""
        from profile_sampling import _opcodes
        return _opcodes.name(self.opcode)

    @property
    def base_opname(self):
        """Name of the generic instruction, such as 'BINARY_OP', or None."""
        from profile_sampling import _opcodes
        return _opcodes.name(_opcodes.base(self.opcode))


class Thread(Value):
    """A thread that was profiled.

    ident           threading.get_ident() of it
    native_id       the operating system's number of it
    name            the name it had in threading, or None
    interpreter_id  number of the interpreter it ran in, 0 for the main one
    """

    __slots__ = ('ident', 'native_id', 'name', 'interpreter_id')


class _FlatRow(Value):
    __slots__ = ()

    def flat_ns(self, mode):
        """Own time on the clock of *mode*, in nanoseconds."""
        return self.flat_cpu_ns if mode == 'cpu' else self.flat_wall_ns


class _Row(_FlatRow):
    __slots__ = ()

    def cum_ns(self, mode):
        """Time including callees on the clock of *mode*, in nanoseconds."""
        return self.cum_cpu_ns if mode == 'cpu' else self.cum_wall_ns


_FLAT = ('flat_count', 'flat_cpu_ns', 'flat_wall_ns')
_WEIGHTS = (*_FLAT, 'cum_count', 'cum_cpu_ns', 'cum_wall_ns')


class FunctionRow(_Row):
    """What a function cost: flat is its own, cum includes its callees.

    C functions, operators and pseudo functions are callees like any other:
    the flat time of a Python function is that of its bytecode alone.
    """

    __slots__ = ('function', *_WEIGHTS)


class LineRow(_Row):
    """What a line cost: flat is its own, cum includes what it called.

    As for functions, flat is the time of the line's bytecode alone; what
    its C functions and operators took is in cum.  line is 0 for what is
    not Python.
    """

    __slots__ = ('function', 'line', *_WEIGHTS)


class CalleeRow(Value):
    """What was directly below an instruction, and for how long.

    function  a C function, an operator or a pseudo function
    count     records of samples
    cpu_ns    CPU time, in nanoseconds
    wall_ns   wall-clock time, in nanoseconds
    """

    __slots__ = ('function', 'count', 'cpu_ns', 'wall_ns')

    def ns(self, mode):
        """Time on the clock of *mode*, in nanoseconds."""
        return self.cpu_ns if mode == 'cpu' else self.wall_ns


class LabelRow(Value):
    """What the samples with one value of a label cost.

    value    the text; None for the samples without the label
    count    records of samples, and the weights of sample()
    cpu_ns   CPU time, in nanoseconds
    wall_ns  wall-clock time, in nanoseconds
    """

    __slots__ = ('value', 'count', 'cpu_ns', 'wall_ns')

    def ns(self, mode):
        """Time on the clock of *mode*, in nanoseconds."""
        return self.cpu_ns if mode == 'cpu' else self.wall_ns


class GILHolder(Value):
    """Who had the GIL while another thread waited for it, and where.

    thread    the Thread, or None when it is not known
    function  its innermost Python function; a pseudo function, '[unknown]',
              when it is not known, and what else is on the stack of a thread
              without Python code
    line      where in it, 0 when not known
    callee    the C function, operator or pseudo function that it was in, or
              None
    """

    __slots__ = ('thread', 'function', 'line', 'callee')

    @property
    def name(self):
        """The names of the function and, in parentheses, of the callee."""
        if self.callee is None:
            return self.function.name
        return f'{self.function.name} ({self.callee.name})'


class GILHolderRow(Value):
    """How long a place in a thread waited while another held the GIL.

    thread    the Thread that waited
    function  its innermost Python function, or None if there was none
    line      where in it; 0 when there is none
    holder    the GILHolder
    count     records of samples
    wall_ns   wall-clock time, in nanoseconds
    """

    __slots__ = ('thread', 'function', 'line', 'holder', 'count', 'wall_ns')


class InstructionRow(_FlatRow):
    """What an instruction of a Python function cost.

    function, line, column, instruction_offset
                         where it is, as in Frame
    base_opcode          number of the generic instruction, 0 when not known
    flat_count, flat_cpu_ns, flat_wall_ns
                         all samples whose innermost Python frame was at
                         it, in whatever C function, operator or state
    specialised_count    how many of the records saw it specialised
    unspecialised_count  how many saw it generic although the interpreter
                         has specialisations of it.  Both are 0 when it has
                         none, or the session did not name opcodes
    opnames              the specialisations that were seen, as a tuple of
                         (name, count), the most frequent first
    callees              tuple of CalleeRow, the most expensive first.  What
                         they leave of the flat weights was in the bytecode
                         itself
    """

    __slots__ = ('function', 'line', 'column', 'instruction_offset',
                 'base_opcode', *_FLAT, 'specialised_count',
                 'unspecialised_count', 'opnames', 'callees')

    @property
    def base_opname(self):
        """Name of the generic instruction, or None when not known."""
        from profile_sampling import _opcodes
        return _opcodes.name(self.base_opcode)

    @property
    def deoptimised_count(self):
        """Records that saw it generic, if any saw it specialised."""
        return self.unspecialised_count if self.specialised_count else 0


def label_set(rows, row):
    """Return (labels as a dict, task name, task id) of a row of labels.

    A row is (parent row, key, value, task id); row 0 is the empty set, and
    a row without key is an asyncio task.
    """
    labels = {}
    task_name = task_id = None
    while row:
        row, key, value, task = rows[row]
        if key is None:
            # A file may name a task without its id.
            task_name, task_id = value, task or None
        else:
            # An inner label hides an outer one of the same name.
            labels.setdefault(key, value)
    return dict(sorted(labels.items())), task_name, task_id


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


# Ticks at which no signal could reach the thread that was running.  It is no
# news below this share of all.
TICKS_UNHEARD = 'ticks_unheard'
TICKS_MISSED = 'ticks_missed'
TICKS_SERVED = 'signals_sent', 'ticks_noted', 'ticks_busy'
# With more than that share missed, samples are far from even.
MISSED_SHARE = 0.1
UNHEARD_SHARE = 0.1

# Counters of something lost that do not count samples, and what they do.
LOST_THREADS = 'lost_threads'
LOST_LABELS = {'lost_labels': 'labels', 'lost_tasks': 'task',
               'lost_holders': 'holder of the GIL'}


def lost_counts(stats):
    """Return {reason: count} of the nonzero counters of lost samples.

    The total counter, when the core keeps one, is left out if reasons are
    given: they add up to it.
    """
    counts = {key.removeprefix('lost').strip('_'): value
              for key, value in stats.items()
              if key.startswith('lost') and not key.endswith('_ns')
              and key != LOST_THREADS and key not in LOST_LABELS and value}
    if len(counts) > 1:
        counts.pop('', None)
    return counts


def missed_share(stats):
    """Return the share of ticks that came too late for what they fell into.

    Of the ticks whose deadline fell into a thread's running time, those
    that the kernel let wait for a CPU until the thread had stopped running.
    """
    missed = stats.get(TICKS_MISSED, 0)
    served = sum([stats.get(key, 0) for key in TICKS_SERVED])
    return missed / (missed + served) if missed else 0.0


def other_losses(stats):
    """Return, in words, the nonzero losses that are not lost samples."""
    texts = [f'{stats[key]:,} samples without their {what}'
             for key, what in LOST_LABELS.items() if stats.get(key)]
    if stats.get(LOST_THREADS):
        texts.append(f'{stats[LOST_THREADS]:,} threads not profiled')
    unheard = stats.get(TICKS_UNHEARD, 0)
    if unheard > UNHEARD_SHARE * stats.get('ticks', 0):
        texts.append(f'{unheard:,} ticks answered late, as signals are '
                     'blocked or forbidden or /proc is missing')
    missed = missed_share(stats)
    if missed > MISSED_SHARE:
        texts.append(f'{missed:.0%} of the ticks missed')
    return texts
