"""The profile as a value.

This file owns the meaning of the tables the C core hands over and every
number computed from them.  It must not know any file format (save and load
ask _formats and _pprof_read) nor how a sample is taken.

The tables stay in the packed form they arrive in: a profile of a large
program has 100,000 stacks, and most uses need sums over the stack tree, not
the stacks.  A stack is a node of that tree; a node's parent is its caller.
"""

from profile_sampling._values import (
    FUNCTION_KINDS, NAMES, STATES, CalleeRow, Frame, Function, FunctionRow,
    GILHolder, GILHolderRow, InstructionRow, LabelRow, LineRow, Thread,
    label_set, own_clock)

# Columns of the packed tables, and their item types (see memoryview.cast).
_FRAME, _FRAME_COLUMNS = 'i', 5    # function, line, column, offset, opcode
_NODE, _NODE_COLUMNS = 'I', 2      # parent, frame
# node, thread, labels, state; of a wait for the GIL the thread that held it
# (-1: not known) and the node of its place (0: no such wait); count, cpu, wall
_SAMPLE, _SAMPLE_COLUMNS = 'q', 9
_KEY_COLUMNS = 6


class Sample:
    """One row of a profile: a stack of a thread in a state, and its weight.

    stack      tuple of Frame, leaf first; () when nothing was on the stack
    thread     the Thread
    labels     what the program had labelled it with, as a dict of str
    task_name  name of the asyncio task, or None
    task_id    id() of the asyncio task, or None
    state      'running', 'blocked', 'gil wait', 'gc', 'lost', 'unsampled',
               or 'custom' for what sample() took
    gil_holder the GILHolder in the state 'gil wait', else None
    count      how many records were taken
    cpu_ns     CPU time of the thread they stand for, in nanoseconds
    wall_ns    wall-clock time they stand for, in nanoseconds
    """

    __slots__ = ('_profile', '_node', '_labels', '_holder', 'thread', 'state',
                 'count', 'cpu_ns', 'wall_ns')

    def __init__(self, profile, row):
        node, thread, labels, state, *holder, count, cpu_ns, wall_ns = row
        self._profile = profile
        self._node = node
        self._labels = labels
        self._holder = holder
        self.thread = profile.threads[thread]
        self.state = STATES[state]
        self.count = count
        self.cpu_ns = cpu_ns
        self.wall_ns = wall_ns

    @property
    def stack(self):
        return self._profile._stack(self._node)

    @property
    def labels(self):
        return dict(self._profile._label_set(self._labels)[0])

    @property
    def task_name(self):
        return self._profile._label_set(self._labels)[1]

    @property
    def task_id(self):
        return self._profile._label_set(self._labels)[2]

    @property
    def gil_holder(self):
        return self._profile._gil_holder(*self._holder)

    def __repr__(self):
        return (f'<Sample {self.state} count={self.count} '
                f'cpu_ns={self.cpu_ns} wall_ns={self.wall_ns}>')


class Samples:
    """The samples of a profile as a sequence; made when asked for."""

    __slots__ = ('_profile', '_rows')

    def __init__(self, profile):
        self._profile = profile
        self._rows = profile._rows()

    def __len__(self):
        return len(self._rows) // _SAMPLE_COLUMNS

    def __getitem__(self, index):
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        index = range(len(self))[index]
        start = index * _SAMPLE_COLUMNS
        return Sample(self._profile,
                      self._rows[start:start + _SAMPLE_COLUMNS])


class Profile:
    """What a session measured.  Immutable; see start(), stop() and load().

    Weights are measured times, never counts times a period: over a
    session the wall weights of a thread add up to its life in it, and the
    CPU weights to its CPU time.  Times are in nanoseconds.
    """

    __slots__ = ('_mode', '_rate_hz', '_depth_frames', '_names',
                 '_start_time_ns', '_duration_ns', '_python_version',
                 '_pid', '_threads', '_stats', '_functions', '_frames',
                 '_nodes', '_labels', '_samples', '_totals', '_frame_cache',
                 '_label_cache')

    def __init__(self):
        raise TypeError('profiles are made by stop(), snapshot(), profile(), '
                        'Profile.load() and Profile.merge()')

    @classmethod
    def _from_raw(cls, raw):
        """Build a profile from the tables of the core.

        Raise ValueError when a row refers to one that does not exist.
        """
        self = object.__new__(cls)
        self._mode = raw['mode']
        self._rate_hz = raw['rate_hz']
        self._depth_frames = raw['depth_frames']
        self._names = raw.get('names', 0)
        if not 0 <= self._names < len(NAMES):
            raise ValueError(f'unknown kinds of names: {self._names}')
        self._start_time_ns = raw['start_time_ns']
        self._duration_ns = raw['duration_ns']
        self._pid = raw.get('pid') or None
        self._python_version = raw.get('python_version')
        if self._python_version is None:
            self._python_version = _running_version()
        self._threads = tuple([Thread(ident, native_id, name or None, interp)
                               for ident, native_id, name, interp
                               in raw['threads']])
        self._stats = dict(raw['stats'])
        self._functions, moved = _unique_functions(raw['functions'])
        self._frames = bytes(raw['frames'])
        self._nodes = bytes(raw['nodes'])
        self._labels = list(raw['labels'])
        self._samples = bytes(raw['samples'])
        _check_references(raw, self)
        if moved:
            frames = bytearray(self._frames)
            column = memoryview(frames).cast(_FRAME)
            for i in range(0, len(column), _FRAME_COLUMNS):
                column[i] = moved[column[i]]
            self._frames = bytes(frames)
        rows = self._rows()
        self._totals = tuple([
            sum(rows[column::_SAMPLE_COLUMNS])
            for column in range(_KEY_COLUMNS, _SAMPLE_COLUMNS)])
        self._frame_cache = {}
        self._label_cache = {}
        return self

    @property
    def mode(self):
        """'wall' or 'cpu': the clock that the session sampled by."""
        return self._mode

    @property
    def rate_hz(self):
        """How many ticks per second were asked for."""
        return self._rate_hz

    @property
    def depth_frames(self):
        """How many frames of a stack were kept at most."""
        return self._depth_frames

    @property
    def names(self):
        """What was named beyond Python frames, as start() takes it.

        'calls,opcodes', 'calls', 'opcodes' or 'off'; 'off' also for a file
        that does not tell.
        """
        return NAMES[self._names]

    @property
    def start_time_ns(self):
        """When the session started, since the epoch (time.time_ns())."""
        return self._start_time_ns

    @property
    def duration_ns(self):
        """How long the session was, on the monotonic clock."""
        return self._duration_ns

    @property
    def python_version(self):
        """Version of the interpreter that was profiled; '' if unknown."""
        return self._python_version

    @property
    def pid(self):
        """Number of the process that was profiled.

        None if it is not known, or if there were several: see merge().
        """
        return self._pid

    @property
    def threads(self):
        """Tuple of the Thread objects.

        A loaded profile has those that any sample names.
        """
        return self._threads

    @property
    def stats(self):
        """Counters of the session by name, as a new dict."""
        return dict(self._stats)

    @property
    def samples(self):
        """Sequence of Sample; the stacks are made when asked for."""
        return Samples(self)

    @property
    def total_count(self):
        """Sum of the counts of all samples."""
        return self._totals[0]

    @property
    def total_cpu_ns(self):
        """Sum of the CPU time of all samples, over all threads."""
        return self._totals[1]

    @property
    def total_wall_ns(self):
        """Sum of the wall-clock time of all samples, over all threads."""
        return self._totals[2]

    def functions(self):
        """Return a list of FunctionRow, the most expensive first.

        The order is by flat time on the mode's own clock, then by
        cumulative time, then by name.  A function that is on a stack more
        than once counts once for that stack.

        C functions, operators and pseudo functions have rows of their own;
        their time is not in the flat time of the Python function that they
        are in, but in its cumulative time.
        """
        functions = self._functions
        keys = self._frames_table()[0::_FRAME_COLUMNS].tolist()
        rows = [FunctionRow(functions[key], *weights) for key, weights
                in enumerate(self._aggregate(keys, len(functions)))
                if weights is not None]
        return self._ranked(rows)

    def lines(self):
        """Return a list of LineRow, the most expensive first.

        The order is that of functions(), then by line.  A line that is on
        a stack more than once counts once for that stack.

        A line has flat time only while its own bytecode runs; what its C
        functions and operators took is in its cumulative time, and in that
        of instructions().
        """
        table = self._frames_table()
        numbers = {}
        keys = [numbers.setdefault(key, len(numbers)) for key
                in zip(table[0::_FRAME_COLUMNS].tolist(),
                       table[1::_FRAME_COLUMNS].tolist())]
        sums = self._aggregate(keys, len(numbers))
        rows = [LineRow(self._functions[function], line, *weights)
                for (function, line), weights in zip(numbers, sums)
                if weights is not None]
        return self._ranked(rows)

    def instructions(self):
        """Return a list of InstructionRow, the most expensive first.

        A row is an instruction at which the innermost Python frame of some
        sample was.  Its weights include the C functions, operators and
        pseudo functions it was in, so that the rows add up to all samples
        with a Python frame.  The order is by flat time on the mode's own
        clock, then by name and place.

        Rows tell instructions apart, and specialised from unspecialised
        executions, as well as the profile does: a file keeps both only if
        the session named opcodes.
        """
        from profile_sampling import _instructions
        return _instructions.rows(self)

    def label_values(self, key):
        """Return a list of LabelRow, one for each value of a label.

        The samples without the label have a row with the value None.  The
        most expensive come first, on the mode's own clock.  The names of
        asyncio tasks are the values of 'task name'.
        """
        from profile_sampling import _label_rows
        return _label_rows.rows(self, key)

    def gil_holders(self):
        """Return a list of GILHolderRow: who held the GIL while others
        waited for it, the longest time first.

        There is a row for each place of a thread that waited and each place
        of a thread that held the GIL meanwhile.  They add up to the wall
        time of all samples in the state 'gil wait'.
        """
        from profile_sampling import _gil_holders
        return _gil_holders.rows(self)

    def save(self, path, format=None, *, annotate=False):
        """Write the profile to a file, whole or not at all.

        *format* is 'pprof', 'collapsed' or 'text'; without it the
        extension of *path* decides.  With *annotate*, names in collapsed
        stacks end in flamegraph.pl's mark of their kind: '_[k]' for C
        functions, '_[i]' for operators, '_[j]' for pseudo functions.  The
        file is readable by its owner alone.  A symbolic link or another
        user's file at *path* is refused.

        Raise ValueError for an unknown format or one that has no such
        marks, OSError if it cannot be written.
        """
        from profile_sampling import _files, _formats
        format = _formats.choose(path, format)
        _files.replace(path, _formats.encode(
            self, format, **_formats.annotation(format, annotate)))

    @classmethod
    def load(cls, path, *, max_bytes=None):
        """Read a pprof file, one of ours or another tool's.

        *max_bytes* bounds the memory spent on it (default 512 MiB).

        Raise ValueError if the file is not a pprof file, is damaged or
        needs more memory than that; OSError if it cannot be read.
        """
        from profile_sampling import _pprof_read
        return cls._from_raw(_pprof_read.read(path, max_bytes))

    @classmethod
    def merge(cls, *profiles, max_bytes=None):
        """Return the sum of profiles, such as those of several processes.

        Each sample gets the label 'pid', the number of the process it was
        taken in, unless the program has labelled it so itself.  Weights and
        counters are added up; the duration is the time in which at least
        one of the sessions was running.  The rate is 0 if it was not the
        same in all.

        *max_bytes* bounds the memory spent on the sum (default 512 MiB).

        Raise ValueError for profiles of different modes, for none, and if
        the sum needs more memory than that.
        """
        from profile_sampling import _merge
        merger = _merge.Merger(max_bytes)
        for profile in profiles:
            merger.add(profile)
        return cls._from_raw(merger.raw())

    def __repr__(self):
        return (f'<Profile mode={self._mode!r} rate_hz={self._rate_hz} '
                f'duration={self._duration_ns / 1e9:.3f}s '
                f'samples={self.total_count} threads={len(self._threads)}>')

    # Views of the packed tables, for this package's writers.

    def _frames_table(self):
        return memoryview(self._frames).cast(_FRAME)

    def _nodes_table(self):
        return memoryview(self._nodes).cast(_NODE)

    def _rows(self):
        return memoryview(self._samples).cast(_SAMPLE)

    def _row_tuples(self):
        """Iterate over (node, thread, labels, state, count, cpu_ns, wall_ns).

        These may be there several times: see _held_row_tuples().
        """
        rows = self._rows().tolist()
        return zip(*[rows[column::_SAMPLE_COLUMNS] for column
                     in (0, 1, 2, 3, 6, 7, 8)])

    def _held_row_tuples(self):
        """Iterate over (node, thread, labels, state, holder's thread,
        holder's node, count, cpu_ns, wall_ns)."""
        rows = iter(self._rows().tolist())
        return zip(*[rows] * _SAMPLE_COLUMNS)

    def _gil_holder(self, thread, node):
        """Return the GILHolder of two columns of a sample, or None."""
        from profile_sampling import _gil_holders
        if not node:
            return None
        return _gil_holders.holder(
            None if thread == _gil_holders.NOT_KNOWN else self.threads[thread],
            self._stack(node))

    def _frame_tuples(self):
        """Iterate over (function, line, column, offset, opcode)."""
        frames = iter(self._frames_table().tolist())
        return zip(*[frames] * _FRAME_COLUMNS)

    def _innermost_python(self):
        """Return two lists: per node, the frame that is the innermost of
        Python, and the frame that this one calls; -1 where there is none.
        """
        python = [self._functions[function].kind == 'python'
                  for function in self._frames_table()[0::_FRAME_COLUMNS]]
        nodes = self._nodes_table().tolist()
        innermost = [-1]
        callees = [-1]
        for parent, frame in zip(nodes[2::_NODE_COLUMNS],
                                 nodes[3::_NODE_COLUMNS]):
            if python[frame]:
                innermost.append(frame)
                callees.append(-1)
            else:
                innermost.append(innermost[parent])
                callee = callees[parent]
                callees.append(frame if callee < 0 else callee)
        return innermost, callees

    def _stack(self, node):
        nodes = self._nodes_table()
        stack = []
        while node:
            stack.append(self._frame(nodes[2 * node + 1]))
            node = nodes[2 * node]
        return tuple(stack)

    def _frame(self, index):
        frame = self._frame_cache.get(index)
        if frame is None:
            start = index * _FRAME_COLUMNS
            function, *rest = self._frames_table()[
                start:start + _FRAME_COLUMNS]
            frame = Frame(self._functions[function], *rest)
            self._frame_cache[index] = frame
        return frame

    def _label_set(self, row):
        """Return (labels, task name, task id) of a row of labels."""
        found = self._label_cache.get(row)
        if found is None:
            found = label_set(self._labels, row)
            self._label_cache[row] = found
        return found

    def _ranked(self, rows):
        mode = self._mode

        def rank(row):
            function = row.function
            return (-row.flat_ns(mode), -row.cum_ns(mode), function.name,
                    function.filename, function.first_line, function.kind,
                    getattr(row, 'line', 0))
        rows.sort(key=rank)
        return rows

    def _aggregate(self, key_of_frame, n_keys):
        """Return per key (flat count, cpu, wall, cum count, cpu, wall).

        None for a key on no stack.  One pass up the tree sums the
        subtrees, one walk down it finds where a key occurs first on its
        stack: only there does the subtree count, so recursion is not
        counted twice.
        """
        nodes = self._nodes_table()
        parents = nodes[0::_NODE_COLUMNS].tolist()
        frames = nodes[1::_NODE_COLUMNS].tolist()
        keys = [key_of_frame[frame] for frame in frames[1:]]
        keys.insert(0, -1)
        subtree = [[0] * len(keys) for _ in range(3)]
        for node, _, _, _, *weights in self._row_tuples():
            for sums, weight in zip(subtree, weights):
                sums[node] += weight
        flat = [[0] * n_keys for _ in range(3)]
        seen = bytearray(n_keys)
        for node, key in enumerate(keys):
            if node:
                seen[key] = 1
                for sums, own in zip(flat, subtree):
                    sums[key] += own[node]
        for sums in subtree:
            for node in range(len(keys) - 1, 0, -1):
                sums[parents[node]] += sums[node]
        cum = [[0] * n_keys for _ in range(3)]
        for node in _outermost(parents, keys, n_keys):
            for sums, own in zip(cum, subtree):
                sums[keys[node]] += own[node]
        return [weights if seen[key] else None
                for key, weights in enumerate(zip(*flat, *cum))]


def _outermost(parents, keys, n_keys):
    """Yield the nodes whose key no ancestor has."""
    n_nodes = len(parents)
    first_child = [0] * n_nodes
    next_sibling = [0] * n_nodes
    for node in range(n_nodes - 1, 0, -1):
        parent = parents[node]
        next_sibling[node] = first_child[parent]
        first_child[parent] = node
    open_keys = bytearray(n_keys)
    pending = [0]
    while pending:
        node = pending.pop()
        if node < 0:
            # Below this mark lies what is outside the key's subtree.
            open_keys[-1 - node] = 0
            continue
        if node and not open_keys[keys[node]]:
            open_keys[keys[node]] = 1
            pending.append(-1 - keys[node])
            yield node
        child = first_child[node]
        while child:
            pending.append(child)
            child = next_sibling[child]


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


def _check_references(raw, profile):
    """Raise ValueError unless every index names an existing row."""
    for what, item, columns in (('frames', 4, _FRAME_COLUMNS),
                                ('nodes', 4, _NODE_COLUMNS),
                                ('samples', 8, _SAMPLE_COLUMNS)):
        if len(raw[what]) % (item * columns):
            raise ValueError(f'the table of {what} has a broken row')
    nodes = profile._nodes_table()
    frames = profile._frames_table()
    rows = profile._rows()
    n_nodes = len(nodes) // _NODE_COLUMNS
    if not n_nodes or nodes[0] != 0:
        raise ValueError('the table of nodes has no root')
    parents = nodes[0::_NODE_COLUMNS].tolist()
    if not all(map(int.__lt__, parents[1:], range(1, n_nodes))):
        raise ValueError('a node comes before its parent')
    if not raw['labels']:
        raise ValueError('the table of labels has no empty set')
    for row, (parent, *_) in enumerate(raw['labels'][1:], 1):
        if not 0 <= parent < row:
            raise ValueError('a label comes before its parent')
    n_frames = len(frames) // _FRAME_COLUMNS
    for what, column, limit in (
            ('functions', frames[0::_FRAME_COLUMNS], len(raw['functions'])),
            ('frames', nodes[_NODE_COLUMNS + 1::_NODE_COLUMNS], n_frames),
            ('nodes', rows[0::_SAMPLE_COLUMNS], n_nodes),
            ('threads', rows[1::_SAMPLE_COLUMNS], len(profile._threads)),
            ('labels', rows[2::_SAMPLE_COLUMNS], len(raw['labels'])),
            ('nodes', rows[5::_SAMPLE_COLUMNS], n_nodes),
            ('states', rows[3::_SAMPLE_COLUMNS], len(STATES))):
        values = column.tolist()
        if values and not (0 <= min(values) and max(values) < limit):
            raise ValueError(f'a row refers to {what} that do not exist')
    if any([thread and not -1 <= thread < len(profile._threads) for thread
            in rows[4::_SAMPLE_COLUMNS].tolist()]):
        raise ValueError('a row refers to threads that do not exist')


def _running_version():
    import sys
    return '.'.join(map(str, sys.version_info[:3]))


__all__ = ['CalleeRow', 'Frame', 'Function', 'FunctionRow', 'GILHolder',
           'GILHolderRow', 'InstructionRow', 'LabelRow', 'LineRow', 'Profile', 'Sample',
           'Samples', 'Thread', 'own_clock']
