"""Some of the samples of a profile, as tables of their own.

Rows of other tables that they do not use are left out, and frames that are to
be hidden.
"""

from array import array
from functools import cached_property

from profile_sampling._data.numbering import number_of
from profile_sampling._data.schema import ITEM, LABELS, NODES, THREADS
from profile_sampling._data.tables import Tables, function_row, thread_row
from profile_sampling._data.trees import Tree
from profile_sampling._data.values import EMPTY_LABELS, NOT_KNOWN

_SHAPED = 'stack'


class Source:
    """The tables of a profile, to be copied in parts.

    *hidden_frames*, if given, has 1 for each frame that is to be left out of
    the stacks, *hidden_nodes* for each node.  Not of the places of who held
    the GIL: a wait would be none.
    """

    def __init__(self, tables, *, hidden_frames=b'', hidden_nodes=b''):
        self.tables = tables
        self._hidden = hidden_frames, hidden_nodes
        self._label_rows = tables.labels

    # What each part needs, once.

    @cached_property
    def _frames(self):
        return list(self.tables.frame_tuples())

    @cached_property
    def _tree(self):
        return self.tables.tree()

    @cached_property
    def _keys(self):
        return range(len(self._frames))

    @cached_property
    def _shown_keys(self):
        hidden, _ = self._hidden
        return [-1 if its else frame for frame, its
                in enumerate(hidden)] if hidden else self._keys

    def part(self, rows, values=None, timeline=None, **facts):
        """Return Tables of the samples of these numbers.

        *values* are the columns of other values, *timeline* is another than
        that of the tables; *facts* are what is true of the part and was not
        before.
        """
        tables = self.tables
        keys = [column if key.table is None else
                list(map(column.__getitem__, rows)) for key, column
                in zip(tables.schema.keys, tables.key_columns)]
        used = {NODES: set(), THREADS: {}, LABELS: {}, _SHAPED: set()}
        for key, column in zip(tables.schema.keys, keys):
            if key.name == _SHAPED:
                used[_SHAPED].update(column)
            elif key.table in used:
                used[key.table].update(
                    set(column) if key.table == NODES
                    else dict.fromkeys(column))
        raw, stacks, places = self._stacks(used[_SHAPED], used[NODES])
        threads = [row for row in used[THREADS] if row != NOT_KNOWN]
        labels, label_rows = self._labels(used[LABELS])
        columns = tables.renumbered({
            _SHAPED: stacks, NODES: places, LABELS: labels,
            THREADS: {NOT_KNOWN: NOT_KNOWN} | {
                row: number for number, row in enumerate(threads)}}, rows)
        if values is None:
            values = [array(ITEM, map(column.__getitem__, rows))
                      for column in tables.value_columns]
        numbers = range(len(rows))
        if any(self._hidden):
            columns, values, numbers = _added_up(columns, values)
        raw |= tables.inherited() | {
            'whole_cpu_ns': _cpu_ns(tables), 'labels': label_rows,
            'threads': [thread_row(tables.threads[row]) for row in threads],
            'columns': [*columns, *values], 'span_ns': tables.span_ns} | facts
        if tables.has_timeline:
            # Most parts are asked for their sums alone.
            raw['timeline'] = lambda _: (
                tables.timeline if timeline is None else timeline).of_rows(
                    dict(zip(rows, numbers)))
        return Tables(raw)

    def _stacks(self, stacks, places):
        """Return functions, frames and nodes, and the new numbers of the nodes
        that are wanted."""
        tables, tree = self.tables, Tree()
        of_places = tree.add(self._tree, self._keys, places)
        of_stacks = tree.add(self._tree, self._shown_keys, stacks,
                             is_hidden=self._hidden[1])
        numbers = {}
        tree.keys[1:] = array('i', [number_of(numbers, frame)
                                    for frame in tree.keys[1:]])
        functions = {}
        frames = array('i')
        for number in numbers:
            function, *place = self._frames[number]
            frames.append(number_of(functions, function))
            frames.extend(place)
        return {'functions': [function_row(tables.functions[number])
                              for number in functions],
                'frames': frames.tobytes(), 'nodes': tree.packed()
                }, of_stacks, of_places

    def _labels(self, wanted):
        """Return {row: its new number} and the rows."""
        rows, numbers, found = self._label_rows, {0: 0}, [EMPTY_LABELS]
        for row in wanted:
            path = []
            while row not in numbers:
                path.append(row)
                row = rows[row][0]
            for row in reversed(path):
                parent, *label = rows[row]
                numbers[row] = len(found)
                found.append((numbers[parent], *label))
        return numbers, found


def _added_up(columns, values):
    """Return columns in which rows with the same keys are one, and the number
    of each row there."""
    known = {}
    numbers = [known.setdefault(key, len(known)) for key in zip(*columns)]
    sums = []
    for column in values:
        its = array(ITEM, bytes(8 * len(known)))
        for number, value in zip(numbers, column):
            its[number] += value
        sums.append(its)
    return [array(ITEM, column) for column in zip(*known)
            ] or columns, sums, numbers


def _cpu_ns(tables):
    """Return the CPU time of the whole that tables are of; None: no clock."""
    if tables.whole_cpu_ns is not None:
        return tables.whole_cpu_ns
    try:
        return tables.total('cpu_ns')
    except AttributeError:
        return None
