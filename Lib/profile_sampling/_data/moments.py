"""Records with their moments, kept while they come.

This file owns how many are kept, and how a time line is made of them when the
samples are known that they belong to.  It must not know where they come from.

Records stay the columns that they come as; nothing is done for each of them
until there are too many.  Then those of one key in one span of time become
one, among records that came one after the other.
"""

from array import array

from profile_sampling._data import timeline
from profile_sampling._data.values import NOT_KNOWN

_SAMPLE = 0
_NO_THREAD = 0xFFFFFFFF
# No session is as long.
_MAX_RESOLUTION_NS = 1 << 62
# What is kept of a record, and its items (see memoryview.cast): its moment,
# what samples are told apart by, and what it weighs.
_COLUMNS = {'time_ns': 'Q', 'node': 'I', 'thread': 'I', 'labels_row': 'I',
            'state': 'B', 'holder_thread': 'I', 'holder_node': 'I',
            'count': 'Q', 'cpu_ns': 'Q', 'wall_ns': 'Q'}


class Moments:
    """Records of a time line that grows."""

    def __init__(self):
        # (serial of the rows, columns)
        self._parts = []
        self._length = 0
        self._bound = timeline.MAX_RECORDS
        self.resolution_ns = 0

    def __len__(self):
        return self._length

    def add(self, serial, kinds, columns):
        """Add a batch.

        *serial* tells rows apart that have the same numbers; *kinds* has
        what each record is, and *columns* are by the names of a Batch.
        """
        kept = [memoryview(columns[name]).cast('B').cast(item)
                for name, item in _COLUMNS.items()]
        kinds = bytes(kinds)
        if any(kinds):
            places = [place for place, kind in enumerate(kinds)
                      if kind == _SAMPLE]
            kept = [array(column.format, [column[place] for place in places])
                    for column in kept]
        self._add(serial, kept)

    def add_numbers(self, serial, columns):
        """Add samples whose columns are lists."""
        self._add(serial, [array(item, columns[name])
                           for name, item in _COLUMNS.items()])

    def _add(self, serial, columns):
        if len(columns[0]):
            self._parts.append((serial, columns))
            self._length += len(columns[0])
        if self._length > self._bound:
            self._make_fewer()

    def _make_fewer(self):
        """Make them be half of the bound, however coarse they become.

        There are more only if there are more samples.
        """
        self._put_together()
        while (self._length > timeline.MAX_RECORDS // 2
               and (self.resolution_ns < _MAX_RESOLUTION_NS
                    or len(self._parts) > 1)):
            self._put_together()
        self._bound = max(timeline.MAX_RECORDS, 2 * self._length)

    def _put_together(self):
        self.resolution_ns = min(_MAX_RESOLUTION_NS, max(
            2 * self.resolution_ns, timeline.FIRST_RESOLUTION_NS))
        parts = iter(self._parts)
        self._parts = []
        self._length = 0
        # Two by two, so that what is worked on stays small at first.
        for serial, columns in parts:
            records = _records(columns)
            other, columns = next(parts, (None, None))
            if other == serial:
                records += _records(columns)
            self._append(serial, records)
            if other not in (None, serial):
                self._append(other, _records(columns))

    def _append(self, serial, records):
        records = timeline.together(records, self.resolution_ns)
        self._parts.append((serial, _columns(records)))
        self._length += len(records)

    def timeline(self, tables, rows, start_ns):
        """Return the Timeline of the samples of *tables*.

        *rows* has the number of each sample by the serial of its rows and
        its key; *start_ns* is when the profile began, on the clock of the
        records.  Those of other samples are left out.
        """
        records = []
        for serial, columns in self._parts:
            for time_ns, key, *values in _records(columns):
                row = rows.get((serial, *key))
                if row is not None:
                    records.append((max(time_ns - start_ns, 1), row, *values))
        return timeline.bounded(timeline.settled(records, tables),
                                self.resolution_ns)


def key_of(node, thread, labels, state, holder_thread, holder_node):
    """Return the key of a sample of tables as records have it."""
    if holder_node and holder_thread == NOT_KNOWN:
        holder_thread = _NO_THREAD
    return node, thread, labels, state, holder_thread, holder_node


def _records(columns):
    """Return a list of (time_ns, key, count, cpu_ns, wall_ns)."""
    time_ns, *keys, count, cpu_ns, wall_ns = columns
    return list(zip(time_ns, zip(*keys), count, cpu_ns, wall_ns))


def _columns(records):
    """The same the other way round."""
    times, keys, *values = zip(*records)
    return [array(item, column) for item, column
            in zip(_COLUMNS.values(), (times, *zip(*keys), *values))]
