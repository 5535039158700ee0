"""The small values a profile is made of."""

from profile_sampling._data import opcodes, states

# The clocks that sessions sample by: kinds of values.
MODES = ('wall', 'cpu')
STATES = tuple([state.name for state in states.TABLE])
# The order in which they are shown.
SHOWN_STATES = tuple([state.name for state in states.SHOWN])
RUNNING, WAITING, NATIVE = map(STATES.index, (
    'running', 'waiting', 'native'))
# Of a thread that waits because it has nothing to do.  The core does not know
# it: it is decided once, of all of a profile; see idle.py.
IDLE = STATES.index('idle')
# States of samples that are nowhere: on no line of the program's.
NOWHERE = frozenset(map(STATES.index, states.names_of('nothing')))
# States of tasks that no thread runs: they are on no clock of a thread.
AWAITING, LOOP_WAIT = STATES.index('awaiting'), STATES.index('loop_wait')
OFF_CLOCKS = frozenset(map(STATES.index, states.names_of('tasks')))
# In which a thread has a CPU, or would have one.
WANT_CPU = 'running', 'native', 'gc', 'cpu_wait'
FUNCTION_KINDS = ('python', 'C', 'operator', 'pseudo')
# How alike two words are if one may be meant by the other: difflib's ratio.
_ALIKE = 0.7
# What stands for the stack of a sample that has none.
NO_FRAMES = '[no frames]'
# What a session names beyond Python frames, by the core's bits.
NAMES = ('off', 'calls', 'opcodes', 'all')
OPCODES = NAMES.index('opcodes')
# Who held the GIL, in two columns of a sample: the row of a thread that is
# not known, and both for samples that are no wait for it.
NOT_KNOWN = -1
NOBODY = -1, 0
# Whose a function is, if it is the program's own; see origins.py.
MINE = 'mine'
# Row 0 of labels: parent, key, value, task id.
EMPTY_LABELS = 0, None, None, 0


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


# How values add up.
SUM, LEVEL = 'sum', 'level'
# Kinds that are levels, also of other tools.
_LEVELS = frozenset({'inuse', *[
    f'{amount}_{what}' for amount in ('inuse', 'peak')
    for what in ('space', 'objects', 'variance')]})


class ValueType(Value):
    """What the values in one place of Sample.values measure.

    name  in Python: 'count', 'cpu_ns', 'wall_ns', 'alloc_bytes'
    kind  what is measured, as in a pprof file: 'samples', 'cpu', 'alloc'
    unit  'count', 'nanoseconds', 'bytes' or another text
    adds  'sum', or 'level' for what there is at a moment, such as bytes in
          use: it adds up over stacks and processes, but not over time
    of    'tasks' for what is measured of asyncio tasks, else 'threads'
    """

    __slots__ = ('name', 'kind', 'unit', 'adds', 'of')

    def __init__(self, name, kind, unit, adds=SUM, of='threads'):
        super().__init__(name, kind, unit, adds, of)

    def which(self, adds=None, of=None):
        """Return the same, of which that is said, if it can be."""
        return ValueType(self.name, self.kind, self.unit,
                         adds if adds in (SUM, LEVEL) else self.adds,
                         of if of in ('threads', 'tasks') else self.of)


_SUFFIXES = {'count': '', 'nanoseconds': '_ns'}


def value_type(kind, unit, adds=None, of='threads'):
    """Return the ValueType of what a pprof file calls so."""
    name = kind + _SUFFIXES.get(unit, f'_{unit}')
    return ValueType('count' if name == 'samples' else name, kind, unit,
                     adds or (LEVEL if kind in _LEVELS else SUM), of)


COUNT = value_type('samples', 'count')
CPU = value_type('cpu', 'nanoseconds')
WALL = value_type('wall', 'nanoseconds')
# What the core measures of threads, in the order of its columns, and then of
# tasks.
MEASURED = COUNT, CPU, WALL
TASK = value_type('task', 'nanoseconds', of='tasks')
DELAY = value_type('delay', 'nanoseconds', of='tasks')
OF_TASKS = TASK, DELAY


def unique_value_types(given):
    """Return a tuple of ValueType, for those or for (kind, unit, ...).

    Raise ValueError if two of them have the same name.
    """
    types = {}
    for one in given:
        type_ = one if isinstance(one, ValueType) else value_type(*one)
        if types.setdefault(type_.name, type_) is not type_:
            raise ValueError('two types of values have the name '
                             f'{type_.name!r}')
    return tuple(types.values())


def value_named(name, value_types, values):
    """Return the one of *values* that has the type *name*.

    Raise AttributeError if there is none.
    """
    for value_type, value in zip(value_types, values):
        if value_type.name == name:
            return value
    raise AttributeError(
        f'there is no value {name!r}; those of this profile are: '
        + ', '.join([value_type.name for value_type in value_types]))


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
                itself was doing, such as '[waiting]')
    """

    __slots__ = ('module', 'qualname', 'filename', 'first_line', 'kind')

    @property
    def name(self):
        """module.qualname, or the qualname alone without a module."""
        if self.module is None:
            return self.qualname
        return f'{self.module}.{self.qualname}'


# What counting calls took, as a stack of its own.
COUNTING = Function(None, '[counting calls]', '', 0, 'pseudo')


class Frame(Value):
    """One place on a stack: a function, and how far it has come.

    line                1-based, 0 when not known
    column              1-based, 0 when not known
    instruction_offset  in bytes from the start of the bytecode, -1 when
                        not known
    opcode              number of the instruction, 0 when not known.  In
                        the innermost Python frame of a stack it is the
                        instruction as specialized at that moment, if the
                        session named opcodes; in all others the generic one

    A pprof file keeps the last two only of the innermost Python frame, and
    only if the session named opcodes.
    """

    __slots__ = ('function', 'line', 'column', 'instruction_offset',
                 'opcode')

    @property
    def opname(self):
        """Name of the instruction, such as 'BINARY_OP_ADD_INT', or None."""
        return opcodes.name(self.opcode)

    @property
    def base_opname(self):
        """Name of the generic instruction, such as 'BINARY_OP', or None."""
        return opcodes.name(opcodes.base(self.opcode))


# In what is kept of a program, what the profiles of its processes have in
# common, and no others.
RUN = 'run'


class Process(Value):
    """A process that was profiled.  A number of a process is given again, and
    each container has its own.

    pid       its number
    host      what the profile says of where it ran; '' if it does not
    start_ns  when it began, since its host was started; 0 if not known
    """

    __slots__ = ('pid', 'host', 'start_ns')


class Thread(Value):
    """A thread that was profiled.

    ident           threading.get_ident() of it
    native_id       the operating system's number of it
    name            the name it had in threading, or None
    interpreter_id  number of the interpreter it ran in, 0 for the main one
    process         its Process; None if that is not known, and in batches,
                    which are of the process that they are in
    """

    __slots__ = ('ident', 'native_id', 'name', 'interpreter_id', 'process')

    def __init__(self, ident, native_id, name, interpreter_id, process=None):
        super().__init__(ident, native_id, name, interpreter_id, process)


class GILHolder(Value):
    """Who had the GIL while another thread waited for it, and where.

    thread    the Thread, or None when it is not known
    function  its innermost Python function; a pseudo function, '[unknown]',
              when it is not known, and what else is on the stack of a thread
              without Python code
    line      where in it, 0 when not known
    callee    the C function, operator or pseudo function that it was in, or
              None
    site      the Frame of the innermost line of the program's own code on the
              holder's stack; None if there is none, and in batches
    """

    __slots__ = ('thread', 'function', 'line', 'callee', 'site')

    def __init__(self, thread, function, line, callee, site=None):
        super().__init__(thread, function, line, callee, site)

    @property
    def name(self):
        """The names of the function and, in parentheses, of the callee."""
        if self.callee is None:
            return self.function.name
        return f'{self.function.name} ({self.callee.name})'


def code_of(function):
    """Return what has an origin: a file, or what was generated for a module.
    """
    path = function.filename
    return f'{function.module}:{path}' if path[:1] == '<' else path


def gil_holder(thread, stack, site=None):
    """Return the GILHolder of a stack: Python functions, and what the
    innermost calls."""
    callee, frame = None, stack[0]
    if frame.function.kind != 'python' and len(stack) > 1:
        callee, frame = frame.function, stack[1]
    return GILHolder(thread, frame.function, frame.line, callee, site)


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


def did_you_mean(given, known):
    """Return a question about what was given, '' if nothing is like it."""
    import difflib
    close = difflib.get_close_matches(given, known, 1, _ALIKE)
    return f'. Did you mean {close[0]!r}?' if close else ''


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
