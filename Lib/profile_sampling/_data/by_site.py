"""What each line of the program cost, waiting included.

This file owns the sums per call site: the line of the innermost Python
function, with all that C functions, operators, waiting and the collector
took there.  It must not know how they are shown.
"""

from profile_sampling._data import by_state, idle
from profile_sampling._data.confidence import Precision
from profile_sampling._data.rows import function_rank
from profile_sampling._data.tables import (
    FRAME_COLUMNS, KEY_COLUMNS, NODE, NODE_COLUMNS, STATE, THREAD)
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
        numbers = places.of_samples
        keys = [-1 if its_idle or state in _NOWHERE else number
                for its_idle, state, number
                in zip(is_idle, tables.column(STATE), numbers)]
        waits = [number if its_idle else -1
                 for its_idle, number in zip(is_idle, numbers)]
        self.rows = places.rows(keys)
        self.idle_rows = places.rows(waits) if any(is_idle) else []
        self.idle = sum([row.sums.total for row in self.idle_rows])
        self.idle_threads = len({thread for its_idle, thread in zip(
            is_idle, tables.column(THREAD)) if its_idle})
        [self.whole] = by_state.sums(
            tables, [-1 if its_idle else 0 for its_idle in is_idle], 1)
        self.nowhere = [(STATES[state], self.whole.by_state[state])
                        for state in sorted(_NOWHERE)
                        if self.whole.by_state[state]]
        self.busy = self.whole.total
        self.precision = Precision(tables, self.whole)


def _ranked(rows):
    """Sort rows by value; what is equal by name, which takes longer."""
    rows.sort(key=lambda row: -row.sums.total)
    result = []
    for row in rows:
        if not result or result[-1][0].sums.total != row.sums.total:
            result.append([])
        result[-1].append(row)
    return [row for equal in result for row in (
        equal if len(equal) == 1 else sorted(equal, key=lambda row: (
            *function_rank(row.function), row.line)))]


class _Places:
    """The call sites of samples, as numbers.

    of_samples  the number of each sample's
    """

    def __init__(self, tables):
        self._tables = tables
        self._frames = tables.frames_view()
        self._nodes = tables.nodes_view()
        self._innermost, called = tables.innermost_python()
        self._numbers = {}
        self._called = [called[node] if self._innermost[node] >= 0 else -1
                        for node in tables.column(NODE)]
        self.of_samples = self._of_samples()
        self._places = list(self._numbers)

    def _of_samples(self):
        """Return the number of the place of each sample."""
        known = {}
        found = []
        for node in self._tables.column(NODE):
            frame = self._innermost[node]
            # What is not Python has no line.
            key = frame
            if frame < 0:
                key = (-2 - self._nodes[NODE_COLUMNS * node + 1] if node
                       else -1)
            number = known.get(key)
            if number is None:
                number = known[key] = self._numbers.setdefault(
                    self._place(key), len(self._numbers))
            found.append(number)
        return found

    def _place(self, key):
        """Return (function or None, line)."""
        if key == -1:
            return None, 0
        if key < 0:
            return self._frames[FRAME_COLUMNS * (-2 - key)], 0
        start = FRAME_COLUMNS * key
        return self._frames[start], self._frames[start + 1]

    def rows(self, keys):
        """Return the SiteRows of samples with these numbers, or -1."""
        tables = self._tables
        sums = by_state.sums(tables, keys, len(self._places))
        callees = self._callees(keys)
        functions = tables.functions
        used = set(keys)
        rows = [SiteRow(None if function is None else functions[function],
                        line, its_sums, callees.get(number, ()))
                for number, ((function, line), its_sums)
                in enumerate(zip(self._places, sums)) if number in used]
        return _ranked(rows)

    def _callees(self, keys):
        tables = self._tables
        functions = tables.functions
        called_functions = self._frames[0::FRAME_COLUMNS].tolist()
        sums = {}
        for key, called, value in zip(
                keys, self._called,
                tables.column(KEY_COLUMNS + tables.own)):
            if key >= 0 and called >= 0:
                pair = key, called_functions[called]
                sums[pair] = sums.get(pair, 0) + value
        callees = {}
        for (key, function), value in sums.items():
            if functions[function].kind != 'pseudo':
                callees.setdefault(key, []).append(
                    (functions[function], value))
        for its_callees in callees.values():
            its_callees.sort(key=lambda item: (-item[1],
                                               *function_rank(item[0])))
        return callees
