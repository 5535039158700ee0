"""A batch of records, as a subscriber gets it.

This file owns the meaning of what the core hands over for a batch, in two
forms: columns, for those who want numbers, and objects, for those who want
ease.  It must not know how batches are delivered.
"""

from profile_sampling._data.lives import of_core
from profile_sampling._data.same_rows import (
    FUNCTION_COLUMNS, LABEL_COLUMNS, NO_STRING, unpacked)
from profile_sampling._data.tables import (
    FRAME_COLUMNS, NODE_COLUMNS, function_row)
from profile_sampling._data.values import (
    FUNCTION_KINDS, STATES, Frame, Function, Thread, Value, gil_holder,
    label_set)

KINDS_OF_ROWS = ('strings', 'functions', 'frames', 'nodes', 'labels',
                 'threads')
RECORD_KINDS = ('sample', 'thread start', 'thread end', 'gc', 'fork', 'rate',
                'lost', 'task', 'delay')
_SAMPLE = 0
_TASK = RECORD_KINDS.index('task')
_DELAY = RECORD_KINDS.index('delay')
_RESIDUE, _MERGED = 1, 2
_GIL_WAIT = STATES.index('gil_wait')
NO_THREAD = 0xFFFFFFFF
# Columns of a batch, and their item types (see memoryview.cast).
COLUMNS = {'time_ns': 'Q', 'kind': 'B', 'state': 'B', 'flags': 'H',
           'thread': 'I', 'node': 'I', 'labels_row': 'I', 'count': 'Q',
           'cpu_ns': 'Q', 'wall_ns': 'Q', 'holder_thread': 'I',
           'holder_node': 'I'}


class Rows:
    """What the numbers in batches stand for.

    serial     changes when all numbers begin anew
    strings    list of str
    functions  list of Function
    frames     list of Frame
    nodes      list of (parent node, frame); 0 is the root of all stacks
    labels     list of (parent row, key, value, task id); 0 is the empty
               set; a row without key is an asyncio task
    threads    list of Thread
    tasks      {row of labels: TaskLabel} for those of tasks whose function
               is known

    They grow with each batch; only the module of a function and the name of
    a thread are ever reported anew.
    """

    def __init__(self, serial):
        self.serial = serial
        self.strings = []
        self.functions = []
        self.frames = []
        self.nodes = []
        self.labels = []
        self.threads = []
        self.tasks = {}
        self._stacks = {}
        self._label_sets = {}

    def add(self, raw):
        """Add the rows of a batch: all of them, or none.

        Rows that were here before, since a batch had to be delivered again,
        come to where they were.
        """
        first = dict(zip(KINDS_OF_ROWS, raw['first']))
        strings = self.strings[:first['strings']] + raw['strings']

        def text(row):
            return None if row == NO_STRING else strings[row]

        def thread(ident, native_id, name, interpreter_id):
            return Thread(ident, native_id, text(name), interpreter_id)
        functions = self.functions[:first['functions']]
        for module, qualname, filename, line, kind in unpacked(
                raw['functions'], 'I', FUNCTION_COLUMNS):
            functions.append(Function(text(module), text(qualname),
                                      text(filename), line,
                                      FUNCTION_KINDS[kind]))
        moved = {}
        for row, module in raw['changed_functions']:
            old = functions[row]
            moved[old] = functions[row] = Function(
                text(module), old.qualname, old.filename, old.first_line,
                old.kind)
        frames = self.frames[:first['frames']]
        if moved:
            frames = [_moved(frame, moved) for frame in frames]
        frames = frames + [
            Frame(functions[function], *place) for function, *place
            in unpacked(raw['frames'], 'i', FRAME_COLUMNS)]
        nodes = unpacked(raw['nodes'], 'I', NODE_COLUMNS)
        classes = memoryview(raw['task_functions']).cast('I').tolist()
        labels = []
        tasks = {}
        for parent, key, value, task, task_class, is_work in unpacked(
                raw['labels'], 'Q', LABEL_COLUMNS):
            if task_class:
                tasks[first['labels'] + len(labels)] = TaskLabel(
                    functions[classes[task_class - 1]], bool(is_work))
            labels.append((parent, text(key), text(value), task))
        threads = self.threads[:first['threads']]
        threads += [thread(*numbers) for numbers in raw['threads']]
        for row, numbers in raw['changed_threads']:
            threads[row] = thread(*numbers)
        old_tasks = self.tasks
        if moved:
            old_tasks = {
                row: TaskLabel(moved.get(task.function, task.function),
                               task.is_work)
                for row, task in old_tasks.items()}
        # From here on nothing fails.
        if moved or first['nodes'] < len(self.nodes):
            self._stacks = {}
        self.strings = strings
        self.functions = functions
        self.frames = frames
        self.nodes[first['nodes']:] = nodes
        self.labels[first['labels']:] = labels
        self.tasks = old_tasks
        self.tasks.update(tasks)
        self.threads = threads

    def stack(self, node):
        """Return the stack of a node as a tuple of Frame, leaf first."""
        stack = self._stacks.get(node)
        if stack is None:
            frames = []
            at = node
            while at:
                at, frame = self.nodes[at]
                frames.append(self.frames[frame])
            stack = self._stacks[node] = tuple(frames)
        return stack

    def gil_holder(self, thread, node):
        """Return the GILHolder of two columns of a batch, or None."""
        if not node:
            return None
        return gil_holder(
            None if thread == NO_THREAD else self.threads[thread],
            self.stack(node))

    def label_set(self, row):
        """Return (labels as a dict, task name, task id) of a row."""
        found = self._label_sets.get(row)
        if found is None:
            found = label_set(self.labels, row)
            self._label_sets[row] = found
        return found


class TaskLabel(Value):
    """What is known of the task of a row of labels, beside name and id.

    function  the Function that the task runs
    is_work   the thread is not in the task: an executor's, it works for it
    """

    __slots__ = ('function', 'is_work')


def _moved(frame, functions):
    function = functions.get(frame.function)
    if function is None:
        return frame
    return Frame(function, frame.line, frame.column,
                 frame.instruction_offset, frame.opcode)


class Batch:
    """Records, in the order in which they came; see SampleRecord.time_ns.

    Columns, as memoryviews of numbers, one item per record:

    time_ns     its moment, on time.monotonic_ns(); see SampleRecord
    kind        index into RECORD_KINDS; 0 is a sample
    state       index into STATES
    flags       1: what no tick had hit, on the stack of another sample;
                2: several samples of one stack, because the buffer was full
    thread      index into rows.threads
    node        index into rows.nodes: the stack
    labels_row  index into rows.labels
    count       how many samples it stands for
    cpu_ns      CPU time that it weighs, in nanoseconds
    wall_ns     wall-clock time that it weighs, in nanoseconds
    holder_node  of a wait for the GIL, where its holder was: index into
                 rows.nodes, a stack; else 0
    holder_thread  the thread of the holder; 0xFFFFFFFF: it is not known

    subscription  the Subscription that it belongs to

    rows   the Rows that these numbers refer to, up to this batch
    first  numbers of the first rows that are new with this batch, by name:
           'strings', 'functions', 'frames', 'nodes', 'labels', 'threads'
    stats     what stats() of the package counted until then, as a dict
    task_classes  what was counted of tasks since the subscription began, as
           a list of TaskClass; None for who did not ask for *tasks*, or gets
           only some threads or labels

    Iterating gives the samples as objects; other records are in records.
    The numbers of what was lost are in the record 'lost', which comes first.
    """

    STATES = STATES
    RECORD_KINDS = RECORD_KINDS

    def __init__(self, raw, rows, subscription=None):
        self.rows = rows
        self.subscription = subscription
        self.first = dict(zip(KINDS_OF_ROWS, raw['first']))
        self.stats = raw['stats']
        self._lost = raw['lost']
        # The same as the core has it.
        self.counted_tasks = raw['task_classes']
        # They are numbers of functions until then.
        self._functions = rows.functions
        for name, item in COLUMNS.items():
            setattr(self, name, memoryview(raw[name]).cast(item))

    def __len__(self):
        """How many records there are, of any kind."""
        return len(self.kind)

    def __iter__(self):
        """Iterate over the samples, as SampleRecord."""
        return self._of_kind(_SAMPLE)

    def task_waits(self):
        """Iterate over what tasks waited for, as SampleRecord.

        Subscribers get it who asked for *tasks*.  The state is 'awaiting' or
        'loop_wait', and wall_ns is time of tasks' lives: it is on no thread's
        clock.
        """
        return self._of_kind(_TASK)

    def delays(self):
        """Iterate over what kept loops busy while tasks waited for them, as
        SampleRecord.

        Subscribers get it who asked for *tasks*.  wall_ns is a proportion: a
        sample weighs its time for each task that waited meanwhile.
        """
        return self._of_kind(_DELAY)

    @property
    def task_classes(self):
        if self.counted_tasks is None:
            return None
        return [of_core(function_row(self._functions[function]), *counters)
                for function, *counters in self.counted_tasks]

    def _of_kind(self, wanted):
        rows = self.rows
        for kind, *numbers in zip(
                self.kind, self.time_ns, self.state, self.flags, self.thread,
                self.node, self.labels_row, self.count, self.cpu_ns,
                self.wall_ns, self.holder_thread, self.holder_node):
            if kind == wanted:
                yield SampleRecord(rows, *numbers)

    @property
    def records(self):
        """The records that are no samples, as a list of Record."""
        records = []
        if self._lost is not None:
            records.append(Record('lost', self._lost[0], None,
                                  *self._lost[1:]))
        for i, kind in enumerate(self.kind):
            if kind not in (_SAMPLE, _TASK, _DELAY):
                name = RECORD_KINDS[kind]
                thread = None
                if name not in ('fork', 'rate'):
                    thread = self.rows.threads[self.thread[i]]
                records.append(Record(name, self.time_ns[i], thread,
                                      self.count[i], self.cpu_ns[i],
                                      self.wall_ns[i]))
        return records

    def __repr__(self):
        return f'<Batch of {len(self)} records>'


class Record(Value):
    """What happened besides samples.

    kind     'thread start'; 'thread end', which weighs what the thread's
             samples were given without a tick; 'gc', a collection of
             generation *count* that took wall_ns; 'fork'; 'rate', which is
             *count* Hz from now on; 'lost', *count* records with weights
    time_ns  when, on time.monotonic_ns()
    thread   the Thread, or None
    count, cpu_ns, wall_ns
    """

    __slots__ = ('kind', 'time_ns', 'thread', 'count', 'cpu_ns', 'wall_ns')


class SampleRecord:
    """A sample on its way.

    time_ns   on time.monotonic_ns(): the moment of its tick; off the GIL,
              when the time that it weighs ended
    state     one of Batch.STATES
    count     how many samples it stands for; 0: what was left over
    cpu_ns    CPU time that it weighs, in nanoseconds
    wall_ns   wall-clock time that it weighs, in nanoseconds
    """

    __slots__ = ('_rows', 'time_ns', '_state', '_flags', '_thread', '_node',
                 '_labels', 'count', 'cpu_ns', 'wall_ns', '_holder_thread',
                 '_holder_node')

    def __init__(self, rows, time_ns, state, flags, thread, node, labels,
                 count, cpu_ns, wall_ns, holder_thread=0, holder_node=0):
        self._rows = rows
        self.time_ns = time_ns
        self._state = state
        self._flags = flags
        self._thread = thread
        self._node = node
        self._labels = labels
        self.count = count
        self.cpu_ns = cpu_ns
        self.wall_ns = wall_ns
        self._holder_thread = holder_thread
        self._holder_node = holder_node

    @property
    def key(self):
        """What to add samples up by: those of equal keys have the thread,
        stack, labels, task, state and holder of the GIL in common.  Cheap,
        and hashable."""
        return (self._rows, self._thread, self._node, self._labels,
                self._state, self._holder_thread, self._holder_node)

    @property
    def state(self):
        return STATES[self._state]

    @property
    def thread(self):
        """The Thread."""
        return self._rows.threads[self._thread]

    @property
    def stack(self):
        """Tuple of Frame, leaf first; () when nothing was on the stack."""
        return self._rows.stack(self._node)

    @property
    def labels(self):
        """The labels that held, as a dict of str; not to be changed."""
        return self._rows.label_set(self._labels)[0]

    @property
    def task_name(self):
        """Name of the asyncio task; None: there was none, or no name."""
        return self._rows.label_set(self._labels)[1]

    @property
    def task_id(self):
        """id() of the asyncio task, or None."""
        return self._rows.label_set(self._labels)[2]

    @property
    def task_class(self):
        """Name of the function that the task runs, or None."""
        task = self._rows.tasks.get(self._labels)
        return None if task is None else task.function.name

    @property
    def gil_wait_ns(self):
        """Of wall_ns, how long the thread waited for the GIL."""
        return self.wall_ns if self._state == _GIL_WAIT else 0

    @property
    def gil_holder(self):
        """Who had the GIL while the thread waited for it, as a GILHolder;
        None if it did not wait."""
        return self._rows.gil_holder(self._holder_thread, self._holder_node)

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
        return bool(self._flags & _RESIDUE)

    @property
    def is_merged(self):
        """Does it stand for several, because the buffer was full?"""
        return bool(self._flags & _MERGED)

    def __repr__(self):
        return (f'<SampleRecord {self.state} count={self.count} '
                f'cpu_ns={self.cpu_ns} wall_ns={self.wall_ns}>')
