"""A batch, as a subscriber gets it."""

from profile_sampling._data.allocations import changes, margin_bytes
from profile_sampling._data.lives import of_core
from profile_sampling._data.tables import FRAME_COLUMNS, NODE_COLUMNS
from profile_sampling._data.values import (
    FUNCTION_KINDS, MEASURED, OF_TASKS, STATES, Frame, Function, Thread,
    Value, gil_holder, label_set)

EVENT_KINDS = (None, 'thread start', 'thread end', 'gc', 'fork', 'rate')
_GIL_WAIT = STATES.index('gil_wait')
_NO_THREAD = 0xFFFFFFFF
NOT_KNOWN = -1
_KEY_COLUMNS = 6
COLUMNS = _KEY_COLUMNS + len(MEASURED) + len(OF_TASKS)
(_NODE, _THREAD, _LABELS, _STATE, _HOLDER_THREAD, _HOLDER_NODE, _COUNT,
 _CPU_NS, _WALL_NS, _TASK_NS, _DELAY_NS) = range(COLUMNS)


def unpacked(data, item, width):
    """Return the rows of so many numbers of that type, as tuples."""
    numbers = iter(memoryview(data).cast('B').cast(item).tolist())
    return list(zip(*[numbers] * width))


def _numbers(raw, name):
    return memoryview(raw[name]).cast('I').tolist()


class Rows:
    """What the keys of samples stand for.  Rows have the numbers that the core
    gives them, which are the same in all batches of a serial.

    serial  differs when all numbers begin anew
    nodes   {number: (parent node, frame)}; 0 is the root of all stacks
    """

    def __init__(self, serial):
        self.serial = serial
        self.functions = {}
        self.frames = {}
        self.nodes = {}
        self.labels = {}
        self.threads = {}
        self._stacks = {}
        self._label_sets = {}

    def add(self, raw):
        """Add what a batch uses; return the numbers of its nodes, threads and
        rows of labels."""
        functions = _numbers(raw, 'function_numbers')
        frames = _numbers(raw, 'frame_numbers')
        nodes = _numbers(raw, 'node_numbers')
        labels = _numbers(raw, 'label_numbers')
        threads = _numbers(raw, 'thread_numbers')
        for number, function in zip(functions, raw['functions']):
            # The module may be known later.
            if self.functions.get(number) != function:
                self.functions[number] = function
                self._stacks = {}
        for number, (function, *place) in zip(
                frames, unpacked(raw['frames'], 'i', FRAME_COLUMNS)):
            if number not in self.frames:
                self.frames[number] = functions[function], *place
        for number, (parent, frame) in zip(
                nodes, unpacked(raw['nodes'], 'I', NODE_COLUMNS)):
            if number not in self.nodes:
                self.nodes[number] = nodes[parent], (
                    frames[frame] if number else 0)
        for number, (parent, key, value, task_id, task_class, is_work) in zip(
                labels, raw['labels']):
            if number not in self.labels:
                function = None
                if task_class:
                    function = functions[raw['task_classes'][
                        task_class - 1][0]]
                self.labels[number] = (labels[parent], key, value, task_id,
                                       function, is_work)
        self.threads.update(zip(threads, raw['threads']))
        return nodes, threads, labels

    def _function(self, number):
        *names, kind = self.functions[number]
        return Function(*names, FUNCTION_KINDS[kind])

    def thread(self, number):
        return Thread(*self.threads[number])

    def stack(self, node):
        """Return the stack of a node as a tuple of Frame, leaf first."""
        stack = self._stacks.get(node)
        if stack is None:
            frames = []
            at = node
            while at:
                at, frame = self.nodes[at]
                function, *place = self.frames[frame]
                frames.append(Frame(self._function(function), *place))
            stack = self._stacks[node] = tuple(frames)
        return stack

    def gil_holder(self, thread, node):
        """Return the GILHolder of two columns of a sample, or None."""
        if not node:
            return None
        return gil_holder(
            None if thread == NOT_KNOWN else self.thread(thread),
            self.stack(node))

    def label_set(self, row):
        """Return (labels, name and id of the task) of a row of labels."""
        found = self._label_sets.get(row)
        if found is None:
            path = {}
            at = row
            while at not in path:
                path[at] = self.labels[at][:4]
                at = path[at][0]
            found = self._label_sets[row] = label_set(path, row)
        return found

    def _task_function(self, row):
        function = self.labels[row][4]
        return None if function is None else self._function(function)


class Batch:
    """What all threads did since the last batch.

    Iterating gives a SampleRecord for each sample that differs; or, if the
    subscription has *moments*, for each moment.

    subscription  the Subscription that it belongs to
    rows          the Rows that the keys of its samples refer to
    stats         what stats() of the package counted until then, as a dict
    raw           what the core handed over; Profile._from_raw() takes it
    """

    STATES = STATES

    def __init__(self, raw, rows, subscription=None):
        self.raw = raw
        self.rows = rows
        self.subscription = subscription
        self.stats = raw['stats']
        self._nodes, self._threads, self._labels = rows.add(raw)
        self._samples = None

    def __len__(self):
        """How many samples differ."""
        return len(self.raw['time_ns']) // 8

    def samples(self):
        """Return [(key, values, time of the last record), ...]; what the
        values are says the core."""
        if self._samples is None:
            nodes, threads, labels = self._nodes, self._threads, self._labels
            self._samples = [
                ((row[_NODE] and nodes[row[_NODE]], threads[row[_THREAD]],
                  row[_LABELS] and labels[row[_LABELS]], row[_STATE],
                  threads[row[_HOLDER_THREAD]]
                  if row[_HOLDER_NODE] and row[_HOLDER_THREAD] >= 0
                  else row[_HOLDER_THREAD],
                  row[_HOLDER_NODE] and nodes[row[_HOLDER_NODE]]),
                 row[_KEY_COLUMNS:], time_ns)
                for row, time_ns in zip(
                    unpacked(self.raw['samples'], 'q', COLUMNS),
                    memoryview(self.raw['time_ns']).cast('Q').tolist())]
        return self._samples

    def moments(self):
        """Return [(time_ns, key, count, cpu_ns, wall_ns), ...].

        Without *moments* of the subscription, what a sample weighs is at the
        last of its moments.
        """
        samples = self.samples()
        if self.raw['moments'] is None:
            return [(time_ns, key, *values[:3])
                    for key, values, time_ns in samples if any(values[:3])]
        return [(time_ns, samples[sample & _NO_THREAD][0], count, cpu_ns,
                 wall_ns)
                for time_ns, count, cpu_ns, wall_ns, sample
                in unpacked(self.raw['moments'], 'Q', 5)]

    def __iter__(self):
        """Iterate over the samples, as SampleRecord."""
        is_merged = self.raw['moments'] is None
        for time_ns, key, *values in self.moments():
            yield SampleRecord(self.rows, key, time_ns, *values, is_merged)

    def task_waits(self):
        """Iterate over what tasks waited for, as SampleRecord.

        Subscribers get it who asked for *tasks*.  The state is 'awaiting' or
        'loop_wait', and wall_ns is time of tasks' lives: it is on no thread's
        clock.
        """
        return self._of_tasks(3)

    def delays(self):
        """Iterate over what kept loops busy while tasks waited for them, as
        SampleRecord.

        Subscribers get it who asked for *tasks*.  wall_ns is a proportion: a
        sample weighs its time for each task that waited meanwhile.
        """
        return self._of_tasks(4)

    def _of_tasks(self, number):
        for key, values, time_ns in self.samples():
            if values[number]:
                yield SampleRecord(self.rows, key, time_ns, 0, 0,
                                   values[number], True)

    def allocations(self):
        """Iterate over what was allocated, and what was freed, since the last
        batch, as AllocationRecord.

        Subscribers get it who asked for *alloc_bytes*.
        """
        if self.raw['allocations'] is None:
            return
        for node, thread, labels, begun_ns, ended_ns, *amount, variance in (
                changes(self.raw['allocations'])):
            key = (node and self._nodes[node], self._threads[thread],
                   labels and self._labels[labels])
            yield AllocationRecord(self.rows, key, begun_ns, ended_ns or None,
                                   *amount, margin_bytes(variance))

    @property
    def task_classes(self):
        """What was counted of tasks since the last batch, as a list of
        TaskClass; None for who did not ask for *tasks*, or gets only some
        threads or labels."""
        if not self._has_task_classes:
            return None
        return [of_core(self.raw['functions'][function], *counters)
                for function, *counters in self.raw['task_classes']]

    @property
    def _has_task_classes(self):
        return self.raw['gets_tasks']

    @property
    def records(self):
        """What happened besides samples, as a list of Record."""
        records = []
        for time_ns, count, cpu_ns, wall_ns, what in unpacked(
                self.raw['events'], 'Q', 5):
            kind, thread = what & _NO_THREAD, what >> 32
            if thread != _NO_THREAD:
                thread = self.rows.thread(self._threads[thread])
            else:
                thread = None
            records.append(Record(EVENT_KINDS[kind], time_ns, thread, count,
                                  cpu_ns, wall_ns))
        return records

    def __repr__(self):
        return f'<Batch of {len(self)} samples>'


class Record(Value):
    """What happened besides samples.

    kind     'thread start'; 'thread end', which weighs what the thread's
             samples were given without a tick; 'gc', a collection of
             generation *count* that took wall_ns; 'fork'; 'rate', which is
             *count* Hz from now on
    time_ns  when, on time.monotonic_ns()
    thread   the Thread, or None
    count, cpu_ns, wall_ns
    """

    __slots__ = ('kind', 'time_ns', 'thread', 'count', 'cpu_ns', 'wall_ns')


class _Keyed:
    """What has a stack, a thread and labels, which are made when asked for."""

    __slots__ = '_rows', '_key'

    @property
    def key(self):
        """What to add records up by: those of equal keys have the thread,
        stack, labels and task in common, and samples their state and holder
        of the GIL.  Cheap, and hashable."""
        return (self._rows.serial, *self._key)

    @property
    def thread(self):
        """The Thread."""
        return self._rows.thread(self._key[_THREAD])

    @property
    def stack(self):
        """Tuple of Frame, leaf first; () when nothing was on the stack."""
        return self._rows.stack(self._key[_NODE])

    @property
    def labels(self):
        """The labels that held, as a dict of str; not to be changed."""
        return self._rows.label_set(self._key[_LABELS])[0]

    @property
    def task_name(self):
        """Name of the asyncio task; None: there was none, or no name."""
        return self._rows.label_set(self._key[_LABELS])[1]

    @property
    def task_id(self):
        """id() of the asyncio task, or None."""
        return self._rows.label_set(self._key[_LABELS])[2]

    @property
    def task_class(self):
        """Name of the function that the task runs, or None."""
        function = self._rows._task_function(self._key[_LABELS])
        return None if function is None else function.name


class AllocationRecord(_Keyed):
    """What one stack allocated in an interval of time; or what of that was
    freed in another.

    allocated_ns  when the interval began, since the epoch
    freed_ns      likewise when it was freed; None: it was allocated
    objects, bytes
                  how much, by samples
    margin_bytes  how far bytes may be off: an interval of 95 %
    """

    __slots__ = ('allocated_ns', 'freed_ns', 'objects', 'bytes',
                 'margin_bytes')

    def __init__(self, rows, key, allocated_ns, freed_ns, objects, size,
                 margin):
        self._rows = rows
        self._key = key
        self.allocated_ns = allocated_ns
        self.freed_ns = freed_ns
        self.objects = objects
        self.bytes = size
        self.margin_bytes = margin

    def __repr__(self):
        what = 'allocated' if self.freed_ns is None else 'freed'
        return f'<AllocationRecord {what} {self.bytes} bytes>'


class SampleRecord(_Keyed):
    """A sample on its way: all records of one key since the last batch, or
    what there was of them at one moment.

    time_ns   on time.monotonic_ns(): the last of its moments
    state     one of Batch.STATES
    count     how many samples it stands for; 0: what was left over
    cpu_ns    CPU time that it weighs, in nanoseconds
    wall_ns   wall-clock time that it weighs, in nanoseconds
    is_merged whether it may be more than one moment
    """

    __slots__ = 'time_ns', 'count', 'cpu_ns', 'wall_ns', 'is_merged'

    def __init__(self, rows, key, time_ns, count, cpu_ns, wall_ns, is_merged):
        self._rows = rows
        self._key = key
        self.time_ns = time_ns
        self.count = count
        self.cpu_ns = cpu_ns
        self.wall_ns = wall_ns
        self.is_merged = is_merged

    @property
    def state(self):
        return STATES[self._key[_STATE]]

    @property
    def gil_wait_ns(self):
        """Of wall_ns, how long the thread waited for the GIL."""
        return self.wall_ns if self._key[_STATE] == _GIL_WAIT else 0

    @property
    def gil_holder(self):
        """Who had the GIL while the thread waited for it, as a GILHolder;
        None if it did not wait."""
        return self._rows.gil_holder(*self._key[_HOLDER_THREAD:])

    @property
    def callee(self):
        """The C function or operator it was in, as a Function, or None."""
        for frame in self.stack[:2]:
            if frame.function.kind in ('C', 'operator'):
                return frame.function
        return None

    @property
    def opname(self):
        """Name of the instruction of the innermost Python frame, or None."""
        for frame in self.stack:
            if frame.function.kind == 'python':
                return frame.opname
        return None

    @property
    def is_residue(self):
        """Is it what no tick had hit, or of a sample in two states that counts
        in the other one?  Then its count is 0."""
        return self.count == 0

    def __repr__(self):
        return (f'<SampleRecord {self.state} count={self.count} '
                f'cpu_ns={self.cpu_ns} wall_ns={self.wall_ns}>')
