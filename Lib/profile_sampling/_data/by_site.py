"""What each line of the program cost, waiting included.

This file owns the sums per call site: the line of the innermost Python
function, with all that C functions, operators, waiting and the collector
took there.  It must not know how they are shown.
"""

from profile_sampling._data import by_state, idle
from profile_sampling._data.confidence import Precision
from profile_sampling._data.rows import function_rank
from profile_sampling._data.tables import KEY_COLUMNS, NODE, STATE, THREAD
from profile_sampling._data.values import STATES

# States of samples that are nowhere: no line is to blame.
_NOWHERE = frozenset(map(STATES.index, ('lost', 'unsampled', 'custom')))


class SiteRow:
    """What a call site cost.

    function  the Function; of a stack without Python what is at its leaf
    line      where in it, 0 for what is not Python
    sums      its StateSums
    callees   list of (Function, value): what it called that is not Python,
              the most expensive first; the rest was in the line itself
    """

    __slots__ = ('function', 'line', 'sums', 'callees')

    def __init__(self, function, line, sums, callees):
        self.function = function
        self.line = line
        self.sums = sums
        self.callees = callees


class Sites:
    """The lines of a profile, and what is on no line.

    rows       list of SiteRow, the most expensive first
    is_idle    for each sample, whether it is
    idle       value of threads that had nothing to do; see idle.py
    idle_rows  the same by SiteRow
    idle_threads  how many threads that was in
    nowhere    list of (state, value)
    busy       sum of all values but the idle ones
    whole      StateSums of all that is not idle
    precision  the Precision of running time
    """

    __slots__ = ('rows', 'is_idle', 'idle', 'idle_rows', 'idle_threads',
                 'nowhere', 'busy', 'whole', 'precision')

    def __init__(self, tables):
        places = _Places(tables)
        self.is_idle = is_idle = idle.samples(tables)
        states = tables.column(STATE)
        keys = [-1 if its_idle or state in _NOWHERE else places.number(node)
                for its_idle, state, node
                in zip(is_idle, states, tables.column(NODE))]
        waits = [places.number(node) if its_idle else -1 for its_idle, node
                 in zip(is_idle, tables.column(NODE))]
        self.rows = places.rows(tables, keys)
        self.idle_rows = places.rows(tables, waits)
        self.idle = sum([row.sums.total for row in self.idle_rows])
        self.idle_threads = len({thread for its_idle, thread in zip(
            is_idle, tables.column(THREAD)) if its_idle})
        [self.whole] = by_state.sums(
            tables, [-1 if its_idle else 0 for its_idle in is_idle], 1)
        self.nowhere = [(STATES[state], self.whole.by_state[state])
                        for state in sorted(_NOWHERE)
                        if self.whole.by_state[state]]
        self.busy = self.whole.total
        self.precision = Precision(tables, self.whole.running_records)


class _Places:
    """Numbers of the call sites that samples have."""

    def __init__(self, tables):
        self._tables = tables
        self._frames = list(tables.frame_tuples())
        self._innermost, self._called = tables.innermost_python()
        self._nodes = tables.nodes_view()
        self._numbers = {}

    def number(self, node):
        frame = self._innermost[node]
        if frame >= 0:
            place = self._frames[frame][:2]
        elif node:
            place = self._frames[self._nodes[2 * node + 1]][0], 0
        else:
            place = None, 0
        return self._numbers.setdefault(place, len(self._numbers))

    def rows(self, tables, keys):
        """Return the SiteRows of samples with these numbers."""
        sums = by_state.sums(tables, keys, len(self._numbers))
        callees = self._callees(tables, keys)
        functions = tables.functions
        used = set(keys)
        rows = [SiteRow(None if function is None else functions[function],
                        line, its_sums, callees.get(number, ()))
                for number, ((function, line), its_sums)
                in enumerate(zip(self._numbers, sums)) if number in used]
        rows.sort(key=lambda row: (-row.sums.total,
                                   *function_rank(row.function), row.line))
        return rows

    def _callees(self, tables, keys):
        functions = tables.functions
        sums = {}
        for key, node, value in zip(
                keys, tables.column(NODE),
                tables.column(KEY_COLUMNS + tables.own)):
            called = self._called[node]
            if key < 0 or called < 0 or self._innermost[node] < 0:
                continue
            function = self._frames[called][0]
            if functions[function].kind != 'pseudo':
                its = sums.setdefault(key, {})
                its[function] = its.get(function, 0) + value
        return {key: sorted(
            [(functions[function], value) for function, value in its.items()],
            key=lambda item: (-item[1], *function_rank(item[0])))
            for key, its in sums.items()}
