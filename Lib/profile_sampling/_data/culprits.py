"""Whose lines held what others waited for: the GIL and event loops.

What a stack is charged to does not depend on figures: the innermost line of
mine on it, or else the package that ran, or else the module of C.
"""

from profile_sampling._data import origins
from profile_sampling._data.by_gil_holder import ranked_by
from profile_sampling._data.by_site import is_loop
from profile_sampling._data.tables import FRAME_COLUMNS, NODE_COLUMNS
from profile_sampling._data.values import (
    DELAY, IDLE, STATES, WAITING, Value)

_GIL_WAIT = STATES.index('gil_wait')

# How a line kept a loop from going on; none did where it waited for the next
# of its timers, which are due to the millisecond.
RAN, HELD_GIL, TIMERS = 'ran in it', 'held the GIL', 'its own timers'
_SELECTS = frozenset({'select', 'selectors'})
_OFF = frozenset({WAITING, IDLE})
_OURS, _PROFILER = frozenset({'profile_sampling', '_profile'}), 'the profiler'
# What is named beside the first has this much of it; more than a few are
# counted.
_ALIKE, _MOST_NAMED = 2 / 3, 3


class HeldRow(Value):
    """What others waited for while this held it.

    function  the Function that is mine; None: outside of my code
    line      where in it, or 0
    inside    the package or C function that it was in, or that held it
              outside of my code; '' if there is none, or it was not seen
    how       RAN, HELD_GIL or TIMERS
    ns        how long others waited, all together
    """

    __slots__ = ('function', 'line', 'inside', 'how', 'ns')

    @property
    def is_known(self):
        return self.function is not None or bool(self.inside)


def of_gil(tables, mine=None):
    """Return a list of HeldRow: who held the GIL while threads waited."""
    sums = {}
    for node, ns in zip(tables.column('holder'),
                        tables.value_columns[ranked_by(tables)]):
        if node:
            sums[node, HELD_GIL] = sums.get((node, HELD_GIL), 0) + ns
    known = sum(sums.values())
    return _rows(Places(tables, mine), sums, _gil_wait(tables) - known,
                 HELD_GIL)


def of_loop(tables, mine=None):
    """Return a list of HeldRow: who kept tasks from going on."""
    if DELAY not in tables.value_types:
        return []
    sums, places = {}, Places(tables, mine)
    for node, holder, state, ns in zip(
            *map(tables.column, ('stack', 'holder', 'state')),
            tables.value(DELAY.name)):
        if ns:
            how = places.how(node, holder, state)
            key = holder or node, how
            sums[key] = sums.get(key, 0) + ns
    return _rows(places, sums, 0, RAN)


def named(rows):
    """Return the first row and those that have two thirds of it; none if
    these are too many to be named."""
    if not rows:
        return []
    found = [row for row in rows if row.ns >= _ALIKE * rows[0].ns]
    return found if len(found) <= _MOST_NAMED else []


def _gil_wait(tables):
    return sum([ns for state, ns in zip(
        tables.column('state'), tables.value_columns[ranked_by(tables)])
        if state == _GIL_WAIT])


def _rows(places, sums, missing_ns, how):
    of_place, inside = {}, {}
    for (node, its_how), ns in sums.items():
        function, line, what = places.holder(node, its_how)
        # What a line of mine was in is said of most of its time.
        key = (function, line, what if function is None else '', its_how)
        of_place[key] = of_place.get(key, 0) + ns
        its = inside.setdefault(key, {})
        its[what] = its.get(what, 0) + ns
    if missing_ns > 0:
        key = None, 0, '', how
        of_place[key] = of_place.get(key, 0) + missing_ns
        inside.setdefault(key, {'': 0})
    found = [HeldRow(function, line, min(
        inside[key], key=lambda what: (-inside[key][what], what)), its_how, ns)
        for key, ns in of_place.items() if ns
        for function, line, _, its_how in [key]]
    found.sort(key=lambda row: (
        -row.ns, row.function.name if row.function else row.inside, row.line,
        row.how))
    return found


class Places:
    """What stacks are charged to; *mine* has 1 for each function that is."""

    def __init__(self, tables, mine=None):
        self._functions = tables.functions
        self._mine = origins.mine(tables) if mine is None else mine
        self._is_package = [origin == origins.PACKAGES
                            for origin in origins.of_functions(tables)]
        self._is_loop = list(map(is_loop, tables.functions))
        self._libraries = list(map(origins.library, tables.functions))
        self._frames = tables.frames_view()
        self._nodes = tables.nodes_view()
        self._known = {}

    def at(self, node, is_holder=False):
        """Return (Function of mine or None, line, what it was in): of its
        libraries the outermost.  A file has of a holder of the GIL no more
        than the innermost.
        """
        key = node, is_holder
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._find(node, is_holder)
        return found

    def how(self, node, holder, state):
        """Return how an event loop was held by a sample."""
        return (HELD_GIL if holder else TIMERS if state in _OFF
                and self._selects(node) else RAN)

    def holder(self, node, how):
        """The same as at(), of what held it so."""
        return ((None, 0, TIMERS) if how == TIMERS
                else self.at(node, how == HELD_GIL))

    def _selects(self, node):
        for function in self._stack(node):
            if function.kind != 'pseudo' and function.module not in _SELECTS:
                return is_loop(function)
        return False

    def _stack(self, node):
        while node:
            frame = FRAME_COLUMNS * self._nodes[NODE_COLUMNS * node + 1]
            yield self._functions[self._frames[frame]]
            node = self._nodes[NODE_COLUMNS * node]

    def _find(self, node, is_holder):
        leaf = inner = outer = None
        while node:
            frame = FRAME_COLUMNS * self._nodes[NODE_COLUMNS * node + 1]
            node = self._nodes[NODE_COLUMNS * node]
            number, line = self._frames[frame:frame + 2]
            function = self._functions[number]
            if function.kind == 'pseudo':
                continue
            leaf = leaf or function
            if self._mine[number]:
                inside = self._library(inner if is_holder else outer)
                return function, line, inside or (
                    '' if leaf.kind == 'python' else leaf.name)
            if self._is_loop[number]:
                # It calls what is not its caller's business.
                break
            if self._libraries[number]:
                if is_holder:
                    inner = number if inner is None else inner
                else:
                    inner = self._nearer(inner, number)
                if outer is None or self._is_package[number] or (
                        not self._is_package[outer]):
                    outer = number
        if leaf is None:
            return None, 0, ''
        return None, 0, self._library(inner) or (
            leaf.module or '').partition('.')[0].lstrip('_') or leaf.name

    def _nearer(self, known, number):
        if known is None or (self._is_package[number]
                             and not self._is_package[known]):
            return number
        return known

    def _library(self, number):
        if number is None:
            return ''
        name = origins.library(self._functions[number])
        return _PROFILER if name in _OURS else name
