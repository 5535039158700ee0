"""The tables of a profile.

The tables stay in the packed form they arrive in: a profile of a large
program has 100,000 stacks, and most uses need sums over the stack tree, not
the stacks.  A stack is a node of that tree; a node's parent is its caller.
"""

import sys
from itertools import compress

from profile_sampling._data import lives, schema, stacks
from profile_sampling._data.schema import CORE_KEYS, Schema
from profile_sampling._data.values import (
    COUNT, FUNCTION_KINDS, MINE, NAMES, NOT_KNOWN, STATES, Frame, Function,
    Thread, code_of, gil_holder, label_set, unique_value_types, value_named)

# Columns of the packed tables, and their item types (see memoryview.cast).
_FRAME, FRAME_COLUMNS = 'i', 5     # function, line, column, offset, opcode
_NODE, NODE_COLUMNS = 'I', 2       # parent, frame
_CUSTOM = STATES.index('custom')
# What a profile says of its whole.
_FACTS = ('mode', 'rate_hz', 'depth_frames', 'names', 'start_time_ns',
          'covered', 'pid', 'python_version', 'stats', 'meta',
          'task_classes', 'latencies', 'counts')
# What is decided of it, which equal profiles need not have in common.
_KEPT = 'is_recorded_here', 'origins', 'has_mine'


class Tables:
    """All that one profile says; not to be changed.

    rate_hz, depth_frames, start_time_ns, pid,
    python_version, meta
                as in Profile
    stats       its counters
    names       by the core's bits
    threads     tuple of Thread
    functions   tuple of Function, without duplicates
    frames, nodes
                packed; see the views of them
    labels      list of (parent row, key, value, task id); see label_set()
    schema      the Schema of columns
    columns     list of arrays or views: the samples, in the order of the
                schema, keys first; see column() and value()
    value_types, own, mode
                what the schema says of values: which there are, the number of
                those that the profile is about, and their kind
    whole_cpu_ns
                of a part of a profile, the CPU time of all of it, which its
                counters are of; else None
    totals      sums over all samples, one for each of them; what the program
                counted itself by sample() is no number of samples
    covered     tuple of (begin, end) since the start, when a session was
                running; between them none was
    span_ns     of a part by time, its (begin, end); else None
    task_classes, latencies
                tuples of TaskClass and of Latency; of a part those of all
    counts      Counts, exact calls, or None; of a part those of all
    timeline    a Timeline, or None; or, in raw tables, what makes it of the
                Tables when it is first asked for
    is_recorded_here
                whether this process, or one that it ran for that, recorded
                it; else a file says so, and it may name what it likes
    origins     {code: whose it is}, of this or of the profile that it is a
                part of; see origins.py
    has_mine    whether enough of that profile is in code of mine for its
                lines to be shown

    Raise ValueError when a row refers to one that does not exist.
    """

    __slots__ = ('schema', 'columns', 'rate_hz', 'depth_frames', 'names',
                 'start_time_ns', 'covered', 'pid', 'python_version', 'stats', 'meta',
                 'threads', 'functions', 'frames', 'nodes', 'labels',
                 'whole_cpu_ns', 'totals',
                 'span_ns', 'task_classes', 'latencies', 'counts',
                 'is_recorded_here', 'origins', 'has_mine',
                 '_timeline', '_frame_cache', '_label_cache',
                 '_innermost_python')

    def __init__(self, raw):
        self.is_recorded_here = raw.get('is_recorded_here', False)
        self.origins = raw.get('origins')
        self.has_mine = raw.get('has_mine')
        self.rate_hz = raw['rate_hz']
        self.depth_frames = raw['depth_frames']
        self.names = raw.get('names', 0)
        if not 0 <= self.names < len(NAMES):
            raise ValueError(f'unknown kinds of names: {self.names}')
        self.start_time_ns = raw['start_time_ns']
        self.covered = (raw.get('covered')
                        or ((0, raw['duration_ns']),))
        self.pid = raw.get('pid') or None
        self.python_version = raw.get('python_version')
        if self.python_version is None:
            self.python_version = _running_version()
        self.threads = tuple([Thread(ident, native_id, name or None, *more)
                              for ident, native_id, name, *more
                              in raw['threads']])
        self.stats = dict(raw['stats'])
        self.meta = dict(raw.get('meta', ()))
        self.functions, moved = _unique_functions(raw['functions'])
        self.frames = bytes(raw['frames'])
        self.nodes = bytes(raw['nodes'])
        self.labels = list(raw['labels'])
        self.whole_cpu_ns = raw.get('whole_cpu_ns')
        self.schema = Schema(raw.get('keys', CORE_KEYS), (), 0).with_values(
            unique_value_types(raw['value_types']), raw['mode'])
        self.columns = raw.get('columns')
        if self.columns is None:
            self.columns = schema.unpacked(raw['samples'], self.schema.width)
        self.task_classes = lives.united(raw.get('task_classes', ()))
        self.latencies = lives.united(raw.get('latencies', ()))
        self.counts = raw.get('counts')
        _check_labels(self.labels)
        self._check(len(raw['functions']))
        if moved:
            frames = bytearray(self.frames)
            column = memoryview(frames).cast(_FRAME)
            for i in range(0, len(column), FRAME_COLUMNS):
                column[i] = moved[column[i]]
            self.frames = bytes(frames)
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
                ('nodes', self.nodes, 4 * NODE_COLUMNS)):
            if len(rows) % row_bytes:
                raise ValueError(f'the table of {what} has a broken row')
        frames = self.frames_view()
        stacks.check_rows('functions', frames[::FRAME_COLUMNS], n_functions)
        nodes = self.nodes_view()
        stacks.check_nodes(nodes, len(frames) // FRAME_COLUMNS)
        n_nodes = len(nodes) // NODE_COLUMNS
        n_rows = {'nodes': n_nodes, 'threads': len(self.threads),
                  'labels': len(self.labels), 'states': len(STATES)}
        for key in self.schema.keys:
            if key.table is not None:
                stacks.check_rows(key.table, self.column(key.name),
                                  n_rows[key.table], key.least)
        for column in self.value_columns:
            stacks.check_values(column)

    @property
    def end_ns(self):
        """Where the axis of time ends, which begins at 0."""
        return self.covered[-1][1]

    @property
    def duration_ns(self):
        """How much of the axis is covered."""
        return sum([end - begin for begin, end in self.covered])

    @property
    def length_ns(self):
        """How much of it these samples are of."""
        begin_ns, end_ns = self.span_ns or (0, self.end_ns)
        return sum([max(0, min(end, end_ns) - max(begin, begin_ns))
                    for begin, end in self.covered])

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
        # What makes a time line cannot be pickled, nor can views.
        self.read_timeline()
        return object.__getstate__(self._with(
            columns=list(map(schema.column, self.columns))))

    def with_timeline(self, timeline):
        """Return the same tables with a time line."""
        return self._with(_timeline=timeline)

    def by_value(self, value):
        """Return the same tables by another of their values; see number_of().
        """
        schema = self.schema
        return self._with(schema=Schema(schema.keys, schema.values,
                                        schema.number_of(value)))

    @property
    def value_types(self):
        return self.schema.values

    @property
    def own(self):
        return self.schema.about

    @property
    def mode(self):
        return self.schema.own.kind

    def with_samples(self, numbers):
        """Return the same tables with those samples alone."""
        tables = self.with_columns([
            schema.column(map(column.__getitem__, numbers))
            for column in self.columns])
        if self.has_timeline:
            tables._timeline = lambda _: self.timeline.of_rows(
                {old: new for new, old in enumerate(numbers)})
        return tables

    def with_columns(self, columns, **facts):
        """Return the same tables with others of the same schema."""
        tables = self._with(columns=columns, **facts)
        tables._add_up()
        return tables

    def with_facts(self, **facts):
        """Return the same tables of which something else is said."""
        return self._with(**facts)

    def _with(self, **changed):
        tables = object.__new__(Tables)
        for name in self.__slots__:
            setattr(tables, name, changed.get(name, getattr(self, name)))
        return tables

    def facts(self):
        """Return what is said of the whole, as the core gives it.

        That is what equal profiles have in common, and so not whether they
        were recorded here: see inherited().
        """
        facts = {name: getattr(self, name) for name in _FACTS}
        facts['keys'] = self.schema.keys
        facts['value_types'] = self.value_types
        return facts

    def inherited(self):
        """Return facts() with all else that tables made of these have."""
        return self.facts() | {name: getattr(self, name) for name in _KEPT}

    def frames_view(self):
        return memoryview(self.frames).cast(_FRAME)

    def frame_functions(self):
        """Return a list: of each frame the function."""
        return self.frames_view()[::FRAME_COLUMNS].tolist()

    def node_columns(self):
        """Return two views: of each node the caller, and the frame."""
        nodes = self.nodes_view()
        return nodes[::2], nodes[1::2]

    def tree(self):
        """Return the same as arrays, which are faster; their import is not."""
        from array import array
        nodes = array('I', self.nodes)
        return nodes[::2], nodes[1::2]

    def nodes_view(self):
        return memoryview(self.nodes).cast(_NODE)

    def __len__(self):
        """How many samples there are."""
        return len(self.columns[0])

    @property
    def processes(self):
        """The Processes of its threads; None is one that is not known."""
        return {thread.process for thread in self.threads}

    @property
    def n_sampled_threads(self):
        """How many threads have samples; others only held the GIL."""
        return len(set(self.column('thread')))

    def column(self, name):
        """Return what each sample has for a key: numbers, not to be changed.
        """
        for key, column in zip(self.schema.keys, self.columns):
            if key.name == name:
                return column
        raise KeyError(name)

    def value(self, name):
        """Return the values of that name, likewise.

        Raise AttributeError if the profile has no such values.
        """
        return value_named(name, self.value_types, self.value_columns)

    @property
    def own_column(self):
        """The values that the profile is about."""
        return self.value_columns[self.own]

    @property
    def key_columns(self):
        return self.columns[:len(self.schema.keys)]

    @property
    def value_columns(self):
        return self.columns[len(self.schema.keys):]

    def keys(self):
        """Iterate over the keys of samples, tuples."""
        return zip(*self.key_columns)

    def values(self):
        """Iterate over the values of samples, tuples."""
        return zip(*self.value_columns)

    def renumbered(self, numbers, rows=None):
        """Return the columns of keys with the numbers of other tables.

        *numbers* has what rows of a table became, by the name of the table, or
        of one key; what refers to none stays.  Without *rows*, of all samples.
        """
        found = []
        for key, column in zip(self.schema.keys, self.key_columns):
            if rows is not None:
                column = map(column.__getitem__, rows)
            its = numbers.get(key.name, numbers.get(key.table))
            found.append(schema.column(
                column if its is None else map(its.__getitem__, column)))
        return found

    def total(self, name):
        """Return the sum of the values *name*; see Profile.total()."""
        return value_named(name, self.value_types, self.totals)

    def _add_up(self):
        totals = {value_type: sum(column) for value_type, column
                  in zip(self.value_types, self.value_columns)}
        if COUNT in totals and _CUSTOM in self.column('state'):
            # What the program counted itself is no number of samples.
            totals[COUNT] -= sum(compress(self.value(COUNT.name), [
                state == _CUSTOM for state in self.column('state')]))
        self.totals = tuple(totals.values())

    def gil_holder(self, thread, node):
        """Return the GILHolder of two columns of a sample, or None."""
        if not node:
            return None
        stack = self.stack(node)
        site = next((frame for frame in stack
                     if frame.function.kind == 'python'
                     and self.origins[code_of(frame.function)] == MINE), None)
        return gil_holder(
            None if thread == NOT_KNOWN else self.threads[thread], stack, site)

    def frame_tuples(self):
        """Iterate over (function, line, column, offset, opcode)."""
        frames = iter(self.frames_view().tolist())
        return zip(*[frames] * FRAME_COLUMNS)

    def innermost_python(self):
        """Return innermost() of the frames of Python."""
        if self._innermost_python is None:
            self._innermost_python = self.innermost(self.is_python())
        return self._innermost_python

    def is_python(self):
        """Return 1 for each frame of Python."""
        return bytes([self.functions[function].kind == 'python'
                      for function in self.frame_functions()])

    def innermost(self, wanted):
        """Return two dicts: of each stack of a sample, by its node, the
        innermost of the frames that have 1 in *wanted*, and the frame that
        this one calls; -1 where there is none.
        """
        return stacks.innermost(self.node_columns(), wanted,
                                set(self.column('stack')))

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


def function_row(function):
    """Return a Function as the core gives it."""
    return (function.module, function.qualname, function.filename,
            function.first_line, FUNCTION_KINDS.index(function.kind))


def thread_row(thread):
    """Return a Thread as the core gives it."""
    return (thread.ident, thread.native_id, thread.name,
            thread.interpreter_id, thread.process)


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
