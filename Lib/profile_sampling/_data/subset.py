"""Some of the samples of a profile, as tables of their own.

This file owns how samples are copied with no more of the other tables than
they use, and without frames that are to be hidden.  It must not know why
these samples were chosen.
"""

from array import array

from profile_sampling._data.numbering import number_of
from profile_sampling._data.sums import added
from profile_sampling._data.tables import (
    HOLDER_NODE, KEY_COLUMNS, NODE, NODE_COLUMNS, Tables, function_row,
    thread_row)
from profile_sampling._data.values import EMPTY_LABELS, NOBODY, NOT_KNOWN


class Source:
    """The tables of a profile, ready to be copied in parts.

    *hidden*, if given, has 1 for each frame that is to be left out of the
    stacks, or *hidden_nodes* for each node.  Not of the places of who held
    the GIL: a wait would be none.
    """

    def __init__(self, tables, hidden=None, hidden_nodes=None):
        nodes = tables.nodes_view()
        self.tables = tables
        self.parents = nodes[0::NODE_COLUMNS].tolist()
        self.frame_of_node = nodes[1::NODE_COLUMNS].tolist()
        self.frames = list(tables.frame_tuples())
        if hidden is not None:
            # Node 0 has no frame.
            hidden_nodes = bytearray([0, *[
                hidden[frame] for frame in self.frame_of_node[1:]]])
        self.hidden_nodes = hidden_nodes

    def part(self, rows, timeline=None, **facts):
        """Return Tables of *rows*, as row_tuples() has them.

        Its time line is what *timeline*, or that of the tables, has of them;
        *facts* are what is true of the part and was not before.
        """
        part = _Part(self)
        rows = list(rows)
        raw = part.raw(rows) | facts
        if self.tables.has_timeline:
            keys = [row[:KEY_COLUMNS] for row in rows]
            # Most parts are asked for their sums alone.
            raw['timeline'] = lambda _: self._timeline(
                timeline, dict(zip(keys, part.numbers)))
        return Tables(raw)

    def _timeline(self, timeline, numbers):
        if timeline is None:
            timeline = self.tables.timeline
        keys = [row[:KEY_COLUMNS] for row in self.tables.row_tuples()]
        return timeline.of_rows({row: numbers[key] for row, key
                                 in enumerate(keys) if key in numbers})


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
        self._functions = {}
        self._frames = []
        # Here the number of each frame of the source, -1 if it is not here.
        self._frame_numbers = [-1] * len(source.frames)
        self._nodes = array('I', (0, 0))
        self._threads = {}
        self._labels = {0: 0}
        self._label_rows = [EMPTY_LABELS]
        self._samples = {}
        # Of the rows that were given.
        self.numbers = []

    def raw(self, rows):
        tables = self._source.tables
        stacks = self._stacks({row[NODE] for row in rows})
        places = self._places({row[HOLDER_NODE] for row in rows})
        threads = self._threads
        samples = {}
        for (node, thread, labels, state, holder_thread, holder_node,
             *values) in rows:
            holder = NOBODY
            if holder_node:
                holder = (NOT_KNOWN if holder_thread == NOT_KNOWN
                          else number_of(threads, holder_thread),
                          places[holder_node])
            key = (stacks[node], number_of(threads, thread),
                   self._label(labels), state, *holder)
            self.numbers.append(number_of(self._samples, key))
            known = samples.get(key)
            samples[key] = values if known is None else added(known, values)
        packed = array('q')
        for key, values in samples.items():
            packed.extend(key)
            packed.extend(values)
        return tables.facts() | {
            'whole_cpu_ns': _cpu_ns(tables),
            'functions': [function_row(tables.functions[number])
                          for number in self._functions],
            'frames': array('i', [value for frame in self._frames
                                  for value in frame]).tobytes(),
            'nodes': self._nodes.tobytes(), 'labels': self._label_rows,
            'threads': [thread_row(tables.threads[number])
                        for number in self._threads],
            'samples': packed.tobytes(), 'span_ns': tables.span_ns}

    def _stacks(self, wanted):
        """Copy stacks; return the numbers of their nodes."""
        hidden = self._source.hidden_nodes
        if hidden is None:
            return self._places(wanted)
        numbers = {0: 0}
        # Stacks that become alike are one.
        known = {}
        frame_of_node = self._source.frame_of_node
        for path in self._paths(wanted, numbers):
            for node, parent in path:
                number = numbers[parent]
                if not hidden[node]:
                    key = number, frame_of_node[node]
                    number = known.get(key)
                    if number is None:
                        number = known[key] = self._add_node(*key)
                numbers[node] = number
        return numbers

    def _places(self, wanted):
        """Copy stacks with all their frames."""
        numbers = {0: 0}
        frame_of_node = self._source.frame_of_node
        for path in self._paths(wanted, numbers):
            for node, parent in path:
                numbers[node] = self._add_node(numbers[parent],
                                               frame_of_node[node])
        return numbers

    def _paths(self, wanted, numbers):
        """Iterate over what each stack has beyond those before it.

        That is a list of (node, parent), callers first, of nodes without a
        number.
        """
        parents = self._source.parents
        for node in wanted:
            path = []
            while node not in numbers:
                parent = parents[node]
                path.append((node, parent))
                node = parent
            path.reverse()
            yield path

    def _add_node(self, parent, frame):
        number = self._frame_numbers[frame]
        if number < 0:
            number = self._frame_numbers[frame] = len(self._frames)
            function, *place = self._source.frames[frame]
            self._frames.append((number_of(self._functions, function), *place))
        nodes = self._nodes
        nodes.append(parent)
        nodes.append(number)
        # Node 0 is the empty stack.
        return len(nodes) // NODE_COLUMNS - 1

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
