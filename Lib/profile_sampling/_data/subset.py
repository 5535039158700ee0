"""Some of the samples of a profile, as tables of their own.

This file owns how samples are copied with no more of the other tables than
they use, and without frames that are to be hidden.  It must not know why
these samples were chosen.
"""

from array import array
from itertools import repeat

from profile_sampling._data.numbering import number_of
from profile_sampling._data.sums import added
from profile_sampling._data.tables import (
    HOLDER_NODE, KEY_COLUMNS, NODE, Tables, function_row, thread_row)
from profile_sampling._data.trees import copied
from profile_sampling._data.values import EMPTY_LABELS, NOBODY, NOT_KNOWN


class Source:
    """The tables of a profile, to be copied in parts.

    *hidden_frames*, if given, has 1 for each frame that is to be left out of
    the stacks, *hidden_nodes* for each node.  Not of the places of who held
    the GIL: a wait would be none.  *idle* has 1 for each sample that is idle,
    if that is not known any more: those are not put together with others.
    """

    def __init__(self, tables, *, hidden_frames=b'', hidden_nodes=b'',
                 idle=None):
        self.tables = tables
        self.hidden = hidden_frames, hidden_nodes
        self._idle = tables.idle if idle is None else idle
        self._idle_of_keys = None

    def part(self, rows, timeline=None, **facts):
        """Return Tables of *rows*, as row_tuples() has them.

        Its time line is what *timeline*, or that of the tables, has of them;
        *facts* are what is true of the part and was not before.
        """
        part = _Part(self)
        rows = list(rows)
        raw = part.raw(rows) | facts
        if self.tables.has_timeline:
            keys = list(_numbered_keys(rows))
            # Most parts are asked for their sums alone.
            raw['timeline'] = lambda _: self._timeline(
                timeline, dict(zip(keys, part.numbers)))
        return Tables(raw)

    def _timeline(self, timeline, numbers):
        if timeline is None:
            timeline = self.tables.timeline
        keys = _numbered_keys(self.tables.row_tuples())
        return timeline.of_rows({row: numbers[key] for row, key
                                 in enumerate(keys) if key in numbers})

    def idle_of(self, rows):
        """Return which rows are idle: bytes; None: whole stacks tell it."""
        if self._idle is None:
            return None
        if self._idle_of_keys is None:
            self._idle_of_keys = dict(zip(
                _numbered_keys(self.tables.row_tuples()), self._idle))
        return bytes(map(self._idle_of_keys.__getitem__, _numbered_keys(rows)))


def _numbered_keys(rows):
    """Iterate over (key of a row, how many had the same until then).

    Two may have one: a sample that is idle, and one that is not.
    """
    seen = {}
    for row in rows:
        key = row[:KEY_COLUMNS]
        number = seen[key] = seen.get(key, 0) + 1
        yield key, number


def _cpu_ns(tables):
    """Return the CPU time of the whole that tables are of; None: no clock."""
    if tables.whole_cpu_ns is not None:
        return tables.whole_cpu_ns
    try:
        return tables.total('cpu_ns')
    except AttributeError:
        return None


class _Part:
    """The rows of one part; a row's number is its place."""

    def __init__(self, source):
        self._source = source
        self._threads = {}
        self._labels = {0: 0}
        self._label_rows = [EMPTY_LABELS]
        # Of the rows that were given.
        self.numbers = []

    def raw(self, rows):
        tables = self._source.tables
        functions, frames, nodes, stacks, places = self._stacks(
            {row[NODE] for row in rows}, {row[HOLDER_NODE] for row in rows})
        samples, idle = self._samples(rows, stacks, places)
        return tables.inherited() | {
            'whole_cpu_ns': _cpu_ns(tables),
            'functions': functions, 'frames': frames, 'nodes': nodes,
            'labels': self._label_rows,
            'threads': [thread_row(tables.threads[number])
                        for number in self._threads],
            'samples': samples, 'idle': idle, 'span_ns': tables.span_ns}

    def _stacks(self, stacks, places):
        """Copy functions, frames and nodes.

        The last two results are the new numbers of the nodes wanted.
        """
        tables = self._source.tables
        old_frames = list(tables.frame_tuples())
        tree, of_stacks, of_places = copied(
            tables.nodes_view(), stacks, places, *self._source.hidden)
        numbers = {}
        tree.frames[1:] = array('I', [number_of(numbers, frame)
                                      for frame in tree.frames[1:]])
        functions = {}
        frames = array('i')
        for number in numbers:
            function, *place = old_frames[number]
            frames.append(number_of(functions, function))
            frames.extend(place)
        return ([function_row(tables.functions[number])
                 for number in functions], frames.tobytes(), tree.packed(),
                of_stacks, of_places)

    def _samples(self, rows, stacks, places):
        """Copy samples; those that become alike are one.

        The second result is which are idle, or None.
        """
        threads = self._threads
        numbers = {}
        sums = []
        idle = self._source.idle_of(rows)
        for (node, thread, labels, state, holder_thread, holder_node,
             *values), is_idle in zip(rows, idle or repeat(0)):
            holder = NOBODY
            if holder_node:
                holder = (NOT_KNOWN if holder_thread == NOT_KNOWN
                          else number_of(threads, holder_thread),
                          places[holder_node])
            key = (stacks[node], number_of(threads, thread),
                   self._label(labels), state, *holder, is_idle)
            number = number_of(numbers, key)
            self.numbers.append(number)
            if number < len(sums):
                sums[number] = added(sums[number], values)
            else:
                sums.append(values)
        packed = array('q')
        for (*key, _), values in zip(numbers, sums):
            packed.extend(key)
            packed.extend(values)
        return packed.tobytes(), None if idle is None else bytes(
            [is_idle for *_, is_idle in numbers])

    def _label(self, wanted):
        numbers = self._labels
        if wanted in numbers:
            return numbers[wanted]
        row = wanted
        rows = self._source.tables.labels
        path = []
        while row not in numbers:
            path.append(row)
            row = rows[row][0]
        for row in reversed(path):
            parent, *label = rows[row]
            numbers[row] = len(self._label_rows)
            self._label_rows.append((numbers[parent], *label))
        return numbers[wanted]
