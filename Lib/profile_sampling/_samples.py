"""The samples of a profile as values."""

# Nothing to import: os has done it.
from _collections_abc import Sequence

from profile_sampling._data.label_names import TASK_CLASS
from profile_sampling._data.values import STATES, value_named


class Sample:
    """One row of a profile: a stack of a thread in a state, and its weight.

    stack      tuple of Frame, leaf first; () when nothing was on the stack
    thread     the Thread
    labels     what the program had labelled it with, as a dict of str
    task_name  name of the asyncio task, or None
    task_id    id() of the asyncio task, or None
    task_class name of the function that the task runs, or None
    state      'running', 'native', 'waiting', 'gil_wait', 'cpu_wait', 'gc',
               'asleep_with_gil',
               'lost', 'unsampled', or 'custom' for what sample() took; of a
               task that no thread runs, 'awaiting' or 'loop_wait'
    gil_holder the GILHolder in the state 'gil_wait', else None
    values     tuple of numbers, one for each of Profile.value_types; each
               also has a name:
    count      how many records were taken
    cpu_ns     CPU time of the thread they stand for, in nanoseconds
    wall_ns    wall-clock time they stand for, in nanoseconds
    """

    __slots__ = ('_tables', '_row')

    def __init__(self, tables, row):
        self._tables = tables
        self._row = row

    def __getattr__(self, name):
        # Slots come here before they are set, as copy() asks for them.
        if name[:1] == '_':
            raise AttributeError(
                f'{type(self).__name__!r} object has no attribute {name!r}')
        if name in self._tables.schema.plain_keys:
            return self._key(name)
        return value_named(name, self._tables.value_types, self.values)

    def _key(self, name):
        return self._tables.column(name)[self._row]

    @property
    def values(self):
        return tuple([column[self._row]
                      for column in self._tables.value_columns])

    @property
    def thread(self):
        return self._tables.threads[self._key('thread')]

    @property
    def state(self):
        return STATES[self._key('state')]

    @property
    def stack(self):
        return self._tables.stack(self._key('stack'))

    @property
    def labels(self):
        labels = dict(self._label_set[0])
        labels.pop(TASK_CLASS, None)
        return labels

    @property
    def task_name(self):
        return self._label_set[1]

    @property
    def task_id(self):
        return self._label_set[2]

    @property
    def task_class(self):
        return self._label_set[0].get(TASK_CLASS)

    @property
    def _label_set(self):
        return self._tables.label_set(self._key('labels'))

    @property
    def gil_holder(self):
        return self._tables.gil_holder(self._key('holder_thread'),
                                       self._key('holder'))

    def _content(self):
        return (self.thread, self.state, self._tables.value_types,
                self.values, self._label_set, self.gil_holder, self.stack)

    def __eq__(self, other):
        if type(other) is not Sample:
            return NotImplemented
        if self.values != other.values:
            return False
        if self._tables is other._tables and self._row == other._row:
            return True
        return self._content() == other._content()

    def __hash__(self):
        return hash((self.thread, self.state, self.values))

    def __repr__(self):
        values = zip(self._tables.value_types, self.values)
        return f'<Sample {self.state} ' + ' '.join(
            [f'{value_type.name}={value}'
             for value_type, value in values]) + '>'


class Samples(Sequence):
    """The samples of a profile as a sequence; made when asked for."""

    __slots__ = ('_tables',)

    def __init__(self, tables):
        self._tables = tables

    def __len__(self):
        return len(self._tables)

    def __getitem__(self, index):
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        return Sample(self._tables, range(len(self))[index])

    def __iter__(self):
        for row in range(len(self)):
            yield Sample(self._tables, row)
