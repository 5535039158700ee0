"""The tables of a profile.

This file owns what the C core hands over, checked: how rows refer to each
other, and the views that everything else reads.  It must not add anything up,
nor know any file format.

The tables stay in the packed form they arrive in: a profile of a large
program has 100,000 stacks, and most uses need sums over the stack tree, not
the stacks.  A stack is a node of that tree; a node's parent is its caller.
"""

import sys

from profile_sampling._data import from_core, lives, stacks
from profile_sampling._data.values import (
    COUNT, FUNCTION_KINDS, NAMES, NOT_KNOWN, STATES, Frame, Function,
    Thread, gil_holder, label_set, unique_value_types, value_named)

# Columns of the packed tables, and their item types (see memoryview.cast).
_FRAME, FRAME_COLUMNS = 'i', 5     # function, line, column, offset, opcode
_NODE, NODE_COLUMNS = 'I', 2       # parent, frame
# Columns of the key of a sample; one for each type of value follows.  The
# holder of the GIL is a thread (-1: not known) and the node of its place (0:
# the sample is no wait for the GIL).
_SAMPLE = 'q'
(NODE, THREAD, LABELS, STATE, HOLDER_THREAD, HOLDER_NODE,
 KEY_COLUMNS) = range(7)
_CUSTOM = STATES.index('custom')
# What a profile says of its whole.
_FACTS = ('mode', 'rate_hz', 'depth_frames', 'names', 'start_time_ns',
          'duration_ns', 'pid', 'python_version', 'stats', 'meta',
          'task_classes', 'latencies')


class Tables:
    """All that one profile says; not to be changed.

    mode, rate_hz, depth_frames, start_time_ns, duration_ns, pid,
    python_version, meta
                as in Profile
    stats       its counters
    names       by the core's bits
    threads     tuple of Thread
    functions   tuple of Function, without duplicates
    frames, nodes, samples
                packed; see the views of them
    labels      list of (parent row, key, value, task id); see label_set()
    value_types tuple of ValueType: the columns of values
    own         which of them the profile is about, a number
    whole_cpu_ns
                of a part of a profile, the CPU time of all of it, which its
                counters are of; else None
    totals      sums over all samples, one for each of them; what the program
                counted itself by sample() is no number of samples
    span_ns     of a part by time, its (begin, end); else None
    task_classes, latencies
                tuples of TaskClass and of Latency; of a part those of all
    timeline    a Timeline, or None; or, in raw tables, what makes it of the
                Tables when it is first asked for
    is_recorded_here
                whether this process, or one that it ran for that, recorded
                it; else a file says so, and it may name what it likes
    idle        whether each sample is idle: bytes; None: stacks tell it, of
                which nothing was left out

    Raise ValueError when a row refers to one that does not exist.
    """

    __slots__ = ('mode', 'rate_hz', 'depth_frames', 'names', 'start_time_ns',
                 'duration_ns', 'pid', 'python_version', 'stats', 'meta',
                 'threads', 'functions', 'frames', 'nodes', 'labels',
                 'samples', 'whole_cpu_ns', 'value_types', 'own', 'totals',
                 'span_ns', 'task_classes', 'latencies', 'idle',
                 'is_recorded_here',
                 '_timeline', '_frame_cache', '_label_cache',
                 '_innermost_python')

    def __init__(self, raw):
        self.is_recorded_here = raw.get('is_recorded_here', False)
        if 'value_types' not in raw:
            raw = from_core.converted(raw)
            self.is_recorded_here = True
        self.rate_hz = raw['rate_hz']
        self.depth_frames = raw['depth_frames']
        self.names = raw.get('names', 0)
        if not 0 <= self.names < len(NAMES):
            raise ValueError(f'unknown kinds of names: {self.names}')
        self.start_time_ns = raw['start_time_ns']
        self.duration_ns = raw['duration_ns']
        self.pid = raw.get('pid') or None
        self.python_version = raw.get('python_version')
        if self.python_version is None:
            self.python_version = _running_version()
        self.threads = tuple([Thread(ident, native_id, name or None, interp)
                              for ident, native_id, name, interp
                              in raw['threads']])
        self.stats = dict(raw['stats'])
        self.meta = dict(raw.get('meta', ()))
        self.functions, moved = _unique_functions(raw['functions'])
        self.frames = bytes(raw['frames'])
        self.nodes = bytes(raw['nodes'])
        self.labels = list(raw['labels'])
        self.samples = bytes(raw['samples'])
        self.idle = raw.get('idle')
        self.whole_cpu_ns = raw.get('whole_cpu_ns')
        self.value_types = unique_value_types(raw['value_types'])
        self.task_classes = lives.united(raw.get('task_classes', ()))
        self.latencies = lives.united(raw.get('latencies', ()))
        _check_labels(self.labels)
        self._check(len(raw['functions']))
        if moved:
            frames = bytearray(self.frames)
            column = memoryview(frames).cast(_FRAME)
            for i in range(0, len(column), FRAME_COLUMNS):
                column[i] = moved[column[i]]
            self.frames = bytes(frames)
        self._choose(raw['mode'])
        self._add_up()
        if 'lives' in raw:
            self.task_classes, self.latencies = raw['lives'](self)
        self.span_ns = raw.get('span_ns')
        self._timeline = raw.get('timeline')
        self._frame_cache = {}
        self._label_cache = {}
        self._innermost_python = None

    def _check(self, n_functions):
        """Raise ValueError unless every row refers to existing ones."""
        for what, rows, row_bytes in (
                ('frames', self.frames, 4 * FRAME_COLUMNS),
                ('nodes', self.nodes, 4 * NODE_COLUMNS),
                ('samples', self.samples, 8 * self.sample_columns)):
            if len(rows) % row_bytes:
                raise ValueError(f'the table of {what} has a broken row')
        frames = self.frames_view()
        stacks.check_rows('functions', frames[::FRAME_COLUMNS], n_functions)
        nodes = self.nodes_view()
        stacks.check_nodes(nodes, len(frames) // FRAME_COLUMNS)
        n_nodes = len(nodes) // NODE_COLUMNS
        # Where nobody held the GIL there need not be a thread 0.
        for what, column, n_rows, least in (
                ('nodes', NODE, n_nodes, 0),
                ('nodes', HOLDER_NODE, n_nodes, 0),
                ('threads', THREAD, len(self.threads), 0),
                ('threads', HOLDER_THREAD, max(1, len(self.threads)),
                 NOT_KNOWN),
                ('labels', LABELS, len(self.labels), 0),
                ('states', STATE, len(STATES), 0)):
            stacks.check_rows(what, self.column(column), n_rows, least)
        for column in self.value_columns():
            stacks.check_values(column)

    @property
    def length_ns(self):
        """How long it is what these samples are of."""
        if self.span_ns is None:
            return self.duration_ns
        begin_ns, end_ns = self.span_ns
        return end_ns - begin_ns

    @property
    def has_timeline(self):
        return self._timeline is not None

    @property
    def timeline(self):
        self.read_timeline()
        return self._timeline

    def read_timeline(self):
        """Make the time line if it is still to be made."""
        if callable(self._timeline):
            self._timeline = self._timeline(self)

    def __getstate__(self):
        self.read_timeline()    # what makes it cannot be pickled
        return object.__getstate__(self)

    def with_timeline(self, timeline):
        """Return the same tables with a time line."""
        tables = self._copy()
        tables._timeline = timeline
        return tables

    def about(self, kind):
        """Return the same tables, about another kind of values, such as
        'cpu', or those of a name, such as 'cpu_ns'.

        Raise ValueError if there is none.
        """
        kinds = {value_type.name: value_type.kind
                 for value_type in self.value_types}
        tables = self._copy()
        tables._choose(kind if kind in kinds.values()
                       else kinds.get(kind, kind))
        return tables

    def _choose(self, kind):
        kinds = [value_type.kind for value_type in self.value_types]
        if kind not in kinds:
            raise ValueError(f'the mode {kind!r} is no kind of value in '
                             f'this profile; there are: {", ".join(kinds)}')
        self.mode = kind
        # Kinds may differ in their unit only: the last one, as in files.
        self.own = max([number for number, its_kind in enumerate(kinds)
                        if its_kind == kind])

    def with_samples(self, numbers):
        """Return the same tables with those samples alone."""
        width = self.sample_columns
        tables = self._copy()
        tables.samples = _rows(self.samples, width, numbers)
        if self.idle is not None:
            tables.idle = bytes(map(self.idle.__getitem__, numbers))
        tables._add_up()
        if self.has_timeline:
            tables._timeline = lambda _: self.timeline.of_rows(
                {old: new for new, old in enumerate(numbers)})
        return tables

    def with_idle(self, idle):
        """Return the same tables, of whose samples these are idle: bytes."""
        tables = self._copy()
        tables.idle = idle
        return tables

    def _copy(self):
        tables = object.__new__(Tables)
        for name in self.__slots__:
            setattr(tables, name, getattr(self, name))
        return tables

    def facts(self):
        """Return what is said of the whole, as the core gives it.

        That is what equal profiles have in common, and so not whether they
        were recorded here: see inherited().
        """
        facts = {name: getattr(self, name) for name in _FACTS}
        facts['value_types'] = tuple([
            (value_type.kind, value_type.unit)
            for value_type in self.value_types])
        return facts

    def inherited(self):
        """Return facts() with all else that tables made of these have."""
        return self.facts() | {'is_recorded_here': self.is_recorded_here}

    def frames_view(self):
        return memoryview(self.frames).cast(_FRAME)

    def nodes_view(self):
        return memoryview(self.nodes).cast(_NODE)

    def samples_view(self):
        return memoryview(self.samples).cast(_SAMPLE)

    @property
    def sample_columns(self):
        """How many columns the table of samples has."""
        return KEY_COLUMNS + len(self.value_types)

    @property
    def n_sampled_threads(self):
        """How many threads have samples; others only held the GIL."""
        return len(set(self.column(THREAD)))

    def column(self, number):
        """Return a column of the table of samples as a list."""
        return self.samples_view()[number::self.sample_columns].tolist()

    def value_columns(self):
        """Iterate over the columns of values, as lists."""
        return map(self.column, range(KEY_COLUMNS, self.sample_columns))

    def value_column(self, name):
        """Return the number of the column of the values *name*.

        Raise AttributeError if there is none.
        """
        return value_named(name, self.value_types,
                           range(KEY_COLUMNS, self.sample_columns))

    def total(self, name):
        """Return the sum of the values *name*; see Profile.total()."""
        return value_named(name, self.value_types, self.totals)

    def _add_up(self):
        self.totals = tuple(map(sum, self.value_columns()))
        if COUNT in self.value_types and _CUSTOM in self.column(STATE):
            self._take_custom_from_totals()

    def _take_custom_from_totals(self):
        column = self.value_column(COUNT.name)
        custom = sum([count for state, count
                      in zip(self.column(STATE), self.column(column))
                      if state == _CUSTOM])
        totals = list(self.totals)
        totals[column - KEY_COLUMNS] -= custom
        self.totals = tuple(totals)

    def row_tuples(self):
        """Iterate over (node, thread, labels, state, holder's thread,
        holder's node, value, ...)."""
        rows = iter(self.samples_view().tolist())
        return zip(*[rows] * self.sample_columns)

    def gil_holder(self, thread, node):
        """Return the GILHolder of two columns of a sample, or None."""
        if not node:
            return None
        return gil_holder(
            None if thread == NOT_KNOWN else self.threads[thread],
            self.stack(node))

    def frame_tuples(self):
        """Iterate over (function, line, column, offset, opcode)."""
        frames = iter(self.frames_view().tolist())
        return zip(*[frames] * FRAME_COLUMNS)

    def innermost_python(self):
        """Return innermost() of the frames of Python."""
        if self._innermost_python is None:
            self._innermost_python = self.innermost(bytes([
                self.functions[function].kind == 'python'
                for function in self.frames_view()[0::FRAME_COLUMNS]]))
        return self._innermost_python

    def innermost(self, wanted):
        """Return two columns: per node, the innermost of the frames that have
        1 in *wanted*, and the frame that this one calls; -1 where there is
        none.
        """
        return stacks.innermost(self.nodes_view(), wanted)

    def stack(self, node):
        nodes = self.nodes_view()
        stack = []
        while node:
            stack.append(self._frame(nodes[2 * node + 1]))
            node = nodes[2 * node]
        return tuple(stack)

    def _frame(self, index):
        frame = self._frame_cache.get(index)
        if frame is None:
            start = index * FRAME_COLUMNS
            function, *rest = self.frames_view()[
                start:start + FRAME_COLUMNS]
            frame = Frame(self.functions[function], *rest)
            self._frame_cache[index] = frame
        return frame

    def label_set(self, row):
        """Return (labels, task name, task id) of a row of labels."""
        found = self._label_cache.get(row)
        if found is None:
            found = label_set(self.labels, row)
            self._label_cache[row] = found
        return found


def _rows(samples, width, numbers):
    """Return some rows of packed samples."""
    size = 8 * width
    return b''.join([samples[number * size:(number + 1) * size]
                     for number in numbers])


def function_row(function):
    """Return a Function as the core gives it."""
    return (function.module, function.qualname, function.filename,
            function.first_line, FUNCTION_KINDS.index(function.kind))


def thread_row(thread):
    """Return a Thread as the core gives it."""
    return (thread.ident, thread.native_id, thread.name,
            thread.interpreter_id)


def _unique_functions(rows):
    """Return the functions without duplicates, and how indices moved.

    Two code objects can be the same function to a reader: a module loaded
    twice, a template compiled per call.  The second result is None when
    nothing moved.
    """
    numbers = {}
    moved = []
    for module, qualname, filename, first_line, kind in rows:
        if not 0 <= kind < len(FUNCTION_KINDS):
            raise ValueError(f'unknown kind of function: {kind}')
        # Only Python code has a place; readers rely on it.
        python = kind == 0
        key = (module, qualname, filename if python else '',
               first_line if python else 0, FUNCTION_KINDS[kind])
        moved.append(numbers.setdefault(key, len(numbers)))
    functions = tuple([Function(*key) for key in numbers])
    return functions, None if len(moved) == len(functions) else moved


def _check_labels(labels):
    """Raise ValueError unless every row's parent comes before it."""
    if not labels:
        raise ValueError('the table of labels has no empty set')
    for row, (parent, *_) in enumerate(labels[1:], 1):
        if not 0 <= parent < row:
            raise ValueError('a label comes before its parent')


def _running_version():
    return '.'.join(map(str, sys.version_info[:3]))
