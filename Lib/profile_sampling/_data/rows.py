"""The rows of what a profile adds up to."""

from profile_sampling._data import opcodes
from profile_sampling._data.values import Value, value_named


class _Row(Value):
    """A row with a value for each value type, and names for these.

    self_values becomes self_count, self_cpu_ns, ..., and values count,
    cpu_ns, ...
    """

    __slots__ = ()

    def __getattr__(self, name):
        # None of ours; help() and others ask for what begins so.
        if name[:1] != '_':
            for slot in self.__slots__:
                prefix = slot.removesuffix('values')
                if prefix != slot and name.startswith(prefix):
                    return value_named(name.removeprefix(prefix),
                                       self.value_types, getattr(self, slot))
        raise AttributeError(
            f'{type(self).__name__!r} object has no attribute {name!r}')

    def __repr__(self):
        fields = []
        for slot in self.__slots__:
            value = getattr(self, slot)
            prefix = slot.removesuffix('values')
            if prefix != slot:
                fields += [f'{prefix}{value_type.name}={number}' for
                           value_type, number in zip(self.value_types, value)]
            elif slot != 'value_types':
                fields.append(f'{slot}={value!r}')
        return f'{type(self).__name__}({", ".join(fields)})'


_CUMULATIVE = 'value_types', 'self_values', 'cum_values'


class FunctionRow(_Row):
    """What a function cost: self is its own, cum includes its callees.

    self_count, self_cpu_ns, self_wall_ns, cum_count, cum_cpu_ns and
    cum_wall_ns are the values of a profile of times.

    C functions, operators and pseudo functions are callees like any other:
    the self time of a Python function is that of its bytecode alone.
    """

    __slots__ = ('function', *_CUMULATIVE)


class LineRow(_Row):
    """What a line cost: self is its own, cum includes what it called.

    As for functions, self is the time of the line's bytecode alone; what
    its C functions and operators took is in cum.  line is 0 for what is
    not Python.
    """

    __slots__ = ('function', 'line', *_CUMULATIVE)


class CallSiteRow(Value):
    """What a line cost with all that it called, and what it was doing.

    function  the Function; one of the kind 'outside' is all that is on no line
              of mine
    line      where in it, 0 where there is none
    called    name of what most of that time was in, or ''
    total     of Profile.value_type: the sum of states
    states    {state: the same}, of states that were
    margin    how far the running part may be off; None if it is not known
    """

    __slots__ = 'function', 'line', 'called', 'total', 'states', 'margin'

    def __hash__(self):
        return hash((self.function, self.line, self.total))


class CalleeRow(_Row):
    """What was directly below an instruction, and for how long.

    function  a C function, an operator or a pseudo function
    values    of its samples, as in Sample
    """

    __slots__ = ('function', 'value_types', 'values')


class LabelRow(_Row):
    """What the samples with one value of a label cost.

    value   the text; None for the samples without the label
    values  of its samples, as in Sample; what sample() counted is in count
    """

    __slots__ = ('value', 'value_types', 'values')


class CallRow(_Row):
    """How much of a function's values a caller, or a callee, has.

    function  the Function that called it, or that it called; None where
              nothing called it, or for what it did itself
    values    of its samples, as in Sample
    """

    __slots__ = ('function', 'value_types', 'values')


class DiffRow(Value):
    """What changed for a line, a function or the samples with one value.

    name           of the function, or the value; None for samples without it
    function       the Function, or None for what is none
    line           where in it, 0 where there is none
    called         name of what most of the line's time was in, or ''
    before, after  what it cost: the mean, if there are several runs
    margin         how far the change may be off; None if it is not known
    runs_before, runs_after
                   tuples of what it cost in each run
    """

    __slots__ = ('name', 'function', 'line', 'called', 'before', 'after',
                 'margin', 'runs_before', 'runs_after')

    @property
    def change(self):
        return self.after - self.before

    @property
    def relative(self):
        """The change as a share of what was before; None if that was 0."""
        return self.change / self.before if self.before else None

    @property
    def is_clear(self):
        """Whether it is more than the margin: hardly by chance."""
        return self.margin is not None and abs(self.change) > self.margin


class Gate(Value):
    """What is to be said of something that must not get worse.

    target   its text, such as 'total:3%'
    least    the increase that counts, as a share of what it was before
    least_bytes
             the same of memory in bytes; None: it is the share
    row      its DiffRow
    verdict  'regression', 'passed' or 'inconclusive'
    """

    __slots__ = 'target', 'least', 'row', 'verdict', 'least_bytes'


class GILHolderRow(_Row):
    """How long a place in a thread waited while another held the GIL.

    thread    the Thread that waited
    function  its innermost Python function, or None if there was none
    line      where in it; 0 when there is none
    holder    the GILHolder
    values    of its samples, as in Sample
    """

    __slots__ = ('thread', 'function', 'line', 'holder', 'value_types',
                 'values')


class AwaitedRow(Value):
    """What tasks awaited, and for how long.

    function     the Function of the innermost coroutine, or the type of what
                 it waits for; None where nothing is on the stack
    awaiting_ns  how long
    """

    __slots__ = ('function', 'awaiting_ns')


class _LifeRow(Value):
    __slots__ = ()

    @property
    def life_ns(self):
        """All that is known of the lives of tasks."""
        return self.running_ns + self.loop_wait_ns + self.awaiting_ns


class TaskRow(_LifeRow):
    """What the tasks of a class spent their lives in.

    name          of the function that they run, the outermost coroutine;
                  None: it is not known
    function      the Function, or None
    running_ns    how long threads ran their steps, waits of these threads
                  included
    loop_wait_ns  how long they could have run and their loop was busy
    awaiting_ns   how long what they waited for had not happened
    finished      how many have ended
    cancelled     how many of these by being cancelled
    steps         how often they were run
    mean_ns, p50_ns, p99_ns, longest_ns
                  of the lives of those that have ended.  The percentiles
                  are known to within 6 %; None if none has ended
    longest_step_ns
                  the longest that one ran without giving way to others
    awaited       tuple of AwaitedRow, the longest first

    From finished on, values are counters of all tasks of the session: of a
    part of a profile they are None.
    """

    __slots__ = ('name', 'function', 'running_ns', 'loop_wait_ns',
                 'awaiting_ns', 'finished', 'cancelled', 'steps', 'mean_ns',
                 'p50_ns', 'p99_ns', 'longest_ns', 'longest_step_ns',
                 'awaited')


class TaskLabelRow(_LifeRow):
    """What tasks with one value of a label spent their lives in.

    value         the text; None for tasks without the label
    running_ns, loop_wait_ns, awaiting_ns, awaited
                  as in TaskRow, without the tasks that a request started
                  and what it did after it was answered
    spawned_ns    the lives of these, and that
    count         how many requests have ended
    mean_ns, p50_ns, p99_ns, longest_ns
                  how long they took

    The last five are None where the program reported no requests, see
    request(), and in a part of a profile.
    """

    __slots__ = ('value', 'running_ns', 'loop_wait_ns', 'awaiting_ns',
                 'spawned_ns', 'count', 'mean_ns', 'p50_ns', 'p99_ns',
                 'longest_ns', 'awaited')

    @property
    def name(self):
        return self.value


class RequestTimes(Value):
    """What some requests did, for each of them in the mean.

    count         how many they are
    mean_ns       how long one took: the sum of the following
    running_ns    threads ran its task; of a request in no task, its thread
                  was on a CPU
    loop_wait_ns  its task could have run, but the loop was busy
    gil_wait_ns   the thread of a request in no task waited for the GIL
    waiting_ns    the rest: it awaited something, or its thread waited
    """

    __slots__ = ('count', 'mean_ns', 'running_ns', 'loop_wait_ns',
                 'gil_wait_ns', 'waiting_ns')


class SlowRequestsRow(Value):
    """What the slowest requests with one value of a label did.

    value            the text of the label
    slowest, others  RequestTimes of the slowest ones and of all others
    """

    __slots__ = 'value', 'slowest', 'others'


class LoopHolderRow(Value):
    """How long others waited for their loop while something held it.

    task_class       name of the function of the task that ran, or None: a
                     callback, or the loop itself; or another thread
    function         its innermost Python function, or what else is at the
                     leaf of the stack; None if there was nothing
    line             where in it; 0 when there is none
    callee           what was directly below that is not Python, most of that
                     time; or None
    delay_ns         how long all others waited because of it, together
    is_gil_wait      whether the loop waited for the GIL meanwhile: then all
                     that is of another thread, which held it
    """

    __slots__ = ('task_class', 'function', 'line', 'callee', 'delay_ns',
                 'is_gil_wait')


class InstructionRow(_Row):
    """What an instruction of a Python function cost.

    function, line, column, instruction_offset
                         where it is, as in Frame
    base_opcode          number of the generic instruction, 0 when not known
    self_values          of all samples whose innermost Python frame was at
                         it, in whatever C function, operator or state
    specialized_count    how many of the records saw it specialized
    unspecialized_count  how many saw it generic although the interpreter
                         has specializations of it.  Both are 0 when it has
                         none, or the session did not name opcodes
    opnames              the specializations that were seen, as a tuple of
                         (name, count), the most frequent first
    callees              tuple of CalleeRow, the most expensive first.  What
                         they leave of the self values was in the bytecode
                         itself
    """

    __slots__ = ('function', 'line', 'column', 'instruction_offset',
                 'base_opcode', 'value_types', 'self_values',
                 'specialized_count', 'unspecialized_count', 'opnames',
                 'callees')

    @property
    def base_opname(self):
        """Name of the generic instruction, or None when not known."""
        return opcodes.name(self.base_opcode)

    @property
    def deoptimized_count(self):
        """Records that saw it generic, if any saw it specialized."""
        return self.unspecialized_count if self.specialized_count else 0


def function_rank(function):
    """Return what orders functions of equal weight; None comes first."""
    if function is None:
        return '', '', 0, ''
    return (function.name, function.filename, function.first_line,
            function.kind)
