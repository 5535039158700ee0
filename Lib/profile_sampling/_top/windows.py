"""What the seconds of a process add up to.

Each sample of a second goes into one cell, and cells add up over any window.
"""

from collections import Counter, deque
from itertools import islice

from profile_sampling._data import by_label, by_wait, origins
from profile_sampling._data.by_site import OUTSIDE, MyPlaces, Places
from profile_sampling._data.tables import FRAME_COLUMNS, NODE_COLUMNS
from profile_sampling._data.values import (
    IDLE, LOOP_WAIT, NOT_KNOWN, NOWHERE, OFF_CLOCKS, OF_TASKS, STATES)
from profile_sampling._reach.look import ROUTES


# Seconds that are kept one by one, and of which only the states are kept.
_MOST_S, _HISTORY_S = 300, 600
# A thread holds the GIL in these.
HOLDING = tuple(map(STATES.index, ('running', 'gc', 'asleep_with_gil')))
GIL_WAIT, WAITING = map(STATES.index, ('gil_wait', 'waiting'))
# What tasks do while no thread runs them: wait for the loop, for a worker
# thread or what that does, for anything else.
LOOP, THREAD, ELSE = range(3)
AWAIT_THREADS = 'run_sync_in_worker_thread', 'to_thread', 'run_in_executor'


class Spot:
    """Where a stack is; equal ones are one object.

    place      (Function, line), the innermost line of mine, or outside
    inner      the same of all Python code
    library, leaf
               what the line of mine calls: the outermost library, or '', and
               the innermost Function, or None
    functions  tuple of (Function, whether it is mine), the innermost first
    wait       (name, kind) of what it waits for, or None
    """

    __slots__ = ('place', 'inner', 'library', 'leaf', 'functions', 'wait')

    def __init__(self, *facts):
        (self.place, self.inner, self.library, self.leaf, self.functions,
         self.wait) = facts

    @property
    def outermost(self):
        """The outermost Function of mine, or None."""
        return next((function for function, is_mine
                     in reversed(self.functions) if is_mine), None)


class Sums:
    """What a window adds up to, in nanoseconds.

    cells      Counter of (Spot, thread, route or None, state).  What waits for
               work, as a look has seen, is idle
    held       Counter of (Spot of who had the GIL, route of who waited)
    tasks      Counter of (route, LOOP, THREAD or ELSE)
    in_threads Counter of routes: what worker threads did for tasks
    delays     Counter of Spots: how long tasks waited for the loop meanwhile
    latencies  {route: Latency} of the requests that have ended
    length_ns  of the window
    gils_ns    how long a GIL could be held: of each process its length
    knows_ends whether requests that end are known
    """

    def __init__(self, waits_for_work=frozenset()):
        self._waits_for_work = waits_for_work
        (self.cells, self.held, self.tasks, self.in_threads,
         self.delays) = [Counter() for _ in range(5)]
        self.latencies = {}
        self.length_ns = self.gils_ns = 0
        self.knows_ends = False

    def add(self, other):
        self.length_ns += other.length_ns
        self.gils_ns += other.gils_ns
        for mine, its in ((self.cells, other.cells), (self.held, other.held),
                          (self.tasks, other.tasks),
                          (self.in_threads, other.in_threads),
                          (self.delays, other.delays)):
            mine.update(its)
        for route, row in other.latencies.items():
            known = self.latencies.get(route)
            self.latencies[route] = row if known is None else known.plus(row)

    def by(self, key, *, idle=False):
        """Return {key(spot, thread, route): [ns of each state]}, without
        those whose key is None, and without what is idle."""
        found = {}
        for (spot, thread, route, state), ns in self.cells.items():
            if self.is_idle(spot, thread, state):
                if not idle:
                    continue
                state = IDLE
            group = key(spot, thread, route)
            if group is not None:
                row = found.get(group)
                if row is None:
                    row = found[group] = [0] * len(STATES)
                row[state] += ns
        return found

    @property
    def num_gils(self):
        """Of how many processes it is, on average."""
        return round(self.gils_ns / (self.length_ns or 1))

    def states(self, *, idle=False):
        """Return the sums by state."""
        return self.by(lambda *_: True, idle=idle).get(True,
                                                       [0] * len(STATES))

    @property
    def idle_ns(self):
        return sum([ns for (spot, thread, _, state), ns in self.cells.items()
                    if self.is_idle(spot, thread, state)])

    def is_idle(self, spot, thread, state):
        function, line = spot.inner
        return state == IDLE or (
            state == WAITING and function is not None
            and (thread, function.filename, line) in self._waits_for_work)

    def counters(self, key, what):
        """Return {key(spot, thread, route): Counter of what(spot, route)},
        without what is idle or None."""
        found = {}
        for (spot, thread, route, state), ns in self.cells.items():
            value = (None if self.is_idle(spot, thread, state)
                     else what(spot, route))
            if value is not None:
                group = key(spot, thread, route)
                if group not in found:
                    found[group] = Counter()
                found[group][value] += ns
        return found

    def callees(self, key):
        """Return the same of (library, leaf), what places call."""
        return self.counters(key, lambda spot, _: None if spot.leaf is None
                             else (spot.library, spot.leaf))


class Windows:
    """All seconds since the screen was opened.

    all       Sums of them
    history   deque of (ns by state, length in ns), one of each second
    names     {native id of a thread: name}
    """

    def __init__(self, mine=()):
        self._mine = mine
        self._spots = {}
        self._seconds = deque(maxlen=_MOST_S)
        # (thread, file, line) of threads that a look knew as idle.
        self.waits_for_work = set()
        self.all = self._nothing()
        self.history = deque(maxlen=_HISTORY_S)
        self.names = {}
        self._lasts = {}

    def add(self, tables, num_gils=1):
        """Add the Tables of one more second, of so many processes."""
        second = self._sums(tables)
        second.gils_ns = second.length_ns * num_gils
        self._seconds.append(second)
        self._lasts = {}
        self.all.add(second)
        self.all.knows_ends = bool(self.all.latencies)
        self.history.append((second.states(), second.length_ns))

    def _nothing(self):
        return Sums(self.waits_for_work)

    def last(self, seconds):
        """Return the Sums of the last so many seconds."""
        if seconds not in self._lasts:
            self._lasts[seconds] = found = self._nothing()
            for second in islice(reversed(self._seconds), seconds):
                found.add(second)
            found.knows_ends = bool(self.all.latencies)
        return self._lasts[seconds]

    def __len__(self):
        return len(self._seconds)

    def _sums(self, tables):
        sums = self._nothing()
        sums.length_ns = tables.length_ns
        spots = _Spots(tables, self._mine, self._spots)
        routes = _routes(tables)
        threads = [thread.native_id for thread in tables.threads]
        for thread in tables.threads:
            if thread.name or thread.native_id not in self.names:
                self.names[thread.native_id] = (
                    thread.name or f'thread {thread.native_id}')
        waits, wait_of = by_wait.waits(tables)
        tasks, delays = [
            tables.value(its.name) if its in tables.value_types
            else [0] * len(tables) for its in OF_TASKS]
        rows = zip(*map(tables.column, ('stack', 'thread', 'labels', 'state',
                                        'holder')),
                   tables.own_column, tasks, delays, wait_of)
        for (node, thread, labels, state, holder, ns, task_ns, delay_ns,
             wait) in rows:
            route = routes[labels]
            if state in OFF_CLOCKS:
                if task_ns:
                    sums.tasks[route, _awaits(state, spots.leaf(node))
                               ] += task_ns
                continue
            if delay_ns:
                its = spots.of(holder) if holder else spots.at(node, None)
                sums.delays[its] += delay_ns
            if not ns or state in NOWHERE or thread == NOT_KNOWN:
                continue
            spot = spots.at(node, waits[wait])
            sums.cells[spot, threads[thread], route, state] += ns
            if holder:
                sums.held[spots.of(holder), route] += ns
            if not task_ns and route is not None:
                sums.in_threads[route] += ns
        for row in tables.latencies:
            if row.key in ROUTES:
                sums.latencies[row.value] = row
        return sums


def _awaits(state, leaf):
    if state == LOOP_WAIT:
        return LOOP
    name = '' if leaf is None else leaf.qualname.rpartition('.')[2]
    return THREAD if name in AWAIT_THREADS else ELSE


def _routes(tables):
    """Return, per row of labels, the route or job, or None."""
    columns = [by_label.values(tables.labels, name) for name in ROUTES]
    return [next(filter(None, values), None) for values in zip(*columns)]


class _Spots:
    """The Spots of the stacks of tables."""

    def __init__(self, tables, mine, known):
        self._tables = tables
        self._is_mine = origins.mine(tables, mine)
        self._mine = MyPlaces(tables, self._is_mine)
        self._all = Places(tables)
        self._of_frames = tables.frames_view()[0::FRAME_COLUMNS].tolist()
        self._nodes = tables.nodes_view()
        self._known = known
        self._of_nodes = {}

    def at(self, node, wait):
        found = self._of_nodes.get((node, wait))
        if found is None:
            called = self._mine.called(node)
            library, leaf = '', None
            if called is not None:
                library, leaf = called[0], self._tables.functions[called[1]]
            facts = (self._mine.at(node), self._all.at(node), library, leaf,
                     self._functions(node), wait)
            found = self._of_nodes[node, wait] = self._known.setdefault(
                facts, Spot(*facts))
        return found

    def of(self, node):
        """Return the Spot of who had the GIL."""
        found = self._of_nodes.get((node, NOT_KNOWN))
        if found is None:
            holder = self._tables.gil_holder(NOT_KNOWN, node)
            inner = holder.function, holder.line
            site = holder.site
            place = ((OUTSIDE, 0) if site is None
                     else (site.function, site.line))
            facts = place, inner, '', holder.callee, (), None
            found = self._of_nodes[node, NOT_KNOWN] = (
                self._known.setdefault(facts, Spot(*facts)))
        return found

    def leaf(self, node):
        """Return the innermost Function of Python code, or None."""
        functions = self._functions(node)
        return functions[0][0] if functions else None

    def _functions(self, node):
        found = {}
        while node:
            number = self._of_frames[self._nodes[NODE_COLUMNS * node + 1]]
            if self._tables.functions[number].kind == 'python':
                found[number] = None
            node = self._nodes[NODE_COLUMNS * node]
        return tuple([(self._tables.functions[number],
                       bool(self._is_mine[number])) for number in found])
