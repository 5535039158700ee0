"""What each line of the program cost, waiting included."""

from profile_sampling._data import by_state, origins
from profile_sampling._data.confidence import Precision
from profile_sampling._data.rows import CallSiteRow, function_rank
from profile_sampling._data.stacks import below
from profile_sampling._data.tables import FRAME_COLUMNS, NODE_COLUMNS
from profile_sampling._data.values import (
    COUNTING, IDLE, NOWHERE, STATES, Function)

# What is on no line, or none of mine; rows of these come last.
OUTSIDE = Function(None, 'Outside my code', '', 0, 'outside')
IMPORTS = Function(None, 'Imports', '', 0, 'outside')
# They run what is not called by the line that runs them.
_LOOPS = frozenset({
    'asyncio.base_events.BaseEventLoop.run_forever',
    'asyncio.base_events.BaseEventLoop._run_once', 'asyncio.runners.Runner.run',
    'gevent.hub.Hub.run',
    # In a child of a fork: its parent's lines are below it.
    'multiprocessing.process.BaseProcess._bootstrap',
    'socketserver.BaseServer.serve_forever',
    'trio._core._run.unrolled_run'})
COUNTING_CALLS = Function(None, 'Counting calls', '', 0, 'outside')
NO_LINES = OUTSIDE, IMPORTS, COUNTING_CALLS
# Of the time of a line: a callee with less is not named, one with more needs
# no share.
HARDLY, MOSTLY = 0.1, 0.95


def is_outside(function):
    """Return whether a row of this function is one of NO_LINES."""
    return function is not None and function.kind == OUTSIDE.kind


def is_loop(function):
    """Return whether a function runs what others gave it: that is on no line
    of its callers."""
    return function.name in _LOOPS


class SiteRow:
    """What a call site cost.

    function  the Function; of a stack without Python what is at its leaf
    line      where in it, 0 for what is not Python
    sums      its StateSums
    callees   list of (Function, value): what it called that is not Python,
              the most expensive first; the rest was in the line itself.  Of a
              line of mine, the innermost functions that *library* was in
    library   of a line of mine, (name, value) of what took most of its time;
              ('', 0) for what it called without a library
    """

    __slots__ = ('function', 'line', 'sums', 'callees', 'library')

    def __init__(self, function, line, sums, callees, library=('', 0)):
        self.function = function
        self.line = line
        self.sums = sums
        self.callees = callees
        self.library = library


class Sites:
    """The lines of a profile, and what is on no line.

    rows       list of SiteRow, the most expensive first
    idle       value of threads that had nothing to do, if that is left out
    idle_rows  the same by SiteRow
    idle_threads  how many threads that was in
    nowhere    list of (state, value)
    busy       sum of all values but the idle ones
    whole      StateSums of all that is shown
    precision  the Precision of running time
    is_mine    whether rows are lines of mine: None if the profile, or the one
               that it is a part of, has hardly any
    tables     those that all this is of
    places     the Places of their samples
    """

    __slots__ = ('rows', 'idle', 'idle_rows', 'idle_threads',
                 'nowhere', 'busy', 'whole', 'precision', 'is_mine',
                 'tables', 'places', '_mine')

    def __init__(self, tables, mine=None, is_mine=False, idle=False):
        """*mine* has 1 for each function that is.  Unless *is_mine*, rows are
        the lines of all code.  With *idle*, threads that had nothing to do are
        like all others."""
        self.tables = tables
        is_idle = [state == IDLE and not idle
                   for state in tables.column('state')]
        is_busy = [not its_idle and state not in NOWHERE for its_idle, state
                   in zip(is_idle, tables.column('state'))]
        self.idle_rows = (Places(tables).rows(is_idle) if any(is_idle)
                          else [])
        self.idle = sum([row.sums.total for row in self.idle_rows])
        self.idle_threads = len({thread for its_idle, thread in zip(
            is_idle, tables.column('thread')) if its_idle})
        [self.whole] = by_state.sums(
            tables, [-1 if its_idle else 0 for its_idle in is_idle], 1)
        self.nowhere = [(STATES[state], self.whole.by_state[state])
                        for state in sorted(NOWHERE)
                        if self.whole.by_state[state]]
        self.busy = self.whole.total
        self.precision = Precision(tables, self.whole)
        self._mine = mine
        self.is_mine = is_mine if is_mine or mine is None else None
        self.places = self._places_of(tables)
        self.rows = self.places.rows(is_busy)

    def rows_of(self, wanted):
        """Return the same rows of some samples alone: those that have a true
        value in *wanted*."""
        return self.places.rows(wanted)

    @property
    def mine(self):
        """Which functions are mine, whatever rows are."""
        return (origins.mine(self.tables) if self._mine is None
                else self._mine)

    def _places_of(self, tables):
        return (MyPlaces(tables, self._mine) if self.is_mine
                else Places(tables))


def sites_of(tables, mine=(), all=False, idle=False):
    """Return Sites by lines of mine; see origins.mine().

    With *all* they are by lines of all code; so they are if the profile
    has hardly any time in code of mine, unless *mine* says what that is.
    """
    if all:
        return Sites(tables, idle=idle)
    return Sites(tables, origins.mine(tables, mine),
                 tables.has_mine or bool(mine), idle)


def called(row, *, with_share=False):
    """Return the name of what most of the time of a line was in, as (module
    or '', the rest): the outermost library, and the innermost function."""
    if not row.callees:
        return '', ''
    library, of_library = row.library
    function, value = row.callees[0]
    module, name = function.module or '', function.qualname
    if value < HARDLY * row.sums.total:
        if of_library < HARDLY * row.sums.total:
            return '', ''
        value, module, name = of_library, '', library
    elif library:
        module, name = '', f'{library} \N{HORIZONTAL ELLIPSIS} {name}'
    if with_share and value < MOSTLY * row.sums.total:
        name += f' {100 * value / row.sums.total:.0f}%'
    return module, name


def called_name(row):
    """Return the same in one text."""
    return '.'.join(filter(None, called(row)))


def public_rows(sites):
    """Return a list of CallSiteRow; see Profile.call_sites()."""
    return [CallSiteRow(
        row.function, row.line, called_name(row), row.sums.total,
        {state: ns for state, ns in zip(STATES, row.sums.by_state) if ns},
        sites.precision.margin_ns(row.sums.running_records))
            for row in sites.rows]


def _ranked(rows):
    """Sort rows by value; what is equal by name, which takes longer."""
    rows.sort(key=lambda row: (_is_last(row), -row.sums.total))
    result = []
    for row in rows:
        if not result or result[-1][0].sums.total != row.sums.total:
            result.append([])
        result[-1].append(row)
    return [row for equal in result for row in (
        equal if len(equal) == 1 else sorted(equal, key=lambda row: (
            _is_last(row), *function_rank(row.function), row.line)))]


def _is_last(row):
    return is_outside(row.function) + (row.function is COUNTING_CALLS)


class Places:
    """The call sites of samples, as numbers.

    of_samples  the number of each sample's
    places      list of (Function or None, line)
    is_charged  per frame, whether samples below it may be charged to it
    """

    def __init__(self, tables):
        self._tables = tables
        self._frames = tables.frames_view()
        self._nodes = tables.nodes_view()
        self._innermost, self._called = self._find(tables)
        self._numbers = {}
        self.of_samples = self._number_samples()
        self.places = list(self._numbers)

    def _find(self, tables):
        """Return innermost() of the frames that are charged."""
        self.is_charged = bytes([
            tables.functions[function].kind == 'python'
            for function in self._frames[0::FRAME_COLUMNS]])
        return tables.innermost_python()

    def _number_samples(self):
        """Return the number of the place of each sample."""
        known = {}
        found = []
        for node in self._tables.column('stack'):
            key = self._key(node)
            number = known.get(key)
            if number is None:
                number = known[key] = self._numbers.setdefault(
                    self._place(key), len(self._numbers))
            found.append(number)
        return found

    def _key(self, node):
        """Return the number of a frame, or a negative one."""
        frame = self._innermost[node]
        # What is not Python has no line.
        return (frame if frame >= 0 else
                -2 - self._nodes[NODE_COLUMNS * node + 1] if node else -1)

    def at(self, node):
        """Return the (Function or None, line) of a node."""
        return self._place(self._key(node))

    def of_frame(self, frame):
        """Return the (Function, line) of a frame that is charged."""
        return self._place(frame)

    def _place(self, key):
        """Return (Function or None, line)."""
        if key == -1:
            return None, 0
        if key < 0:
            function = self._function(-2 - key)
            return COUNTING_CALLS if function == COUNTING else function, 0
        return self._function(key), self._frames[FRAME_COLUMNS * key + 1]

    def _function(self, frame):
        return self._tables.functions[self._frames[FRAME_COLUMNS * frame]]

    def rows(self, wanted):
        """Return the SiteRows of the samples that are *wanted*."""
        tables = self._tables
        keys = [number if is_wanted else -1 for number, is_wanted
                in zip(self.of_samples, wanted)]
        sums = by_state.sums(tables, keys, len(self.places))
        called = self._add_up_callees(keys)
        used = set(keys)
        return _ranked([
            SiteRow(function, line, its_sums, *called.get(number, ((),)))
            for number, ((function, line), its_sums)
            in enumerate(zip(self.places, sums)) if number in used])

    def _add_up_callees(self, keys):
        """Return, by the number of a place, what SiteRow has of callees."""
        sums = {}
        for key, node, value in zip(
                keys, self._tables.column('stack'),
                self._tables.own_column):
            called = self.called(node) if key >= 0 else None
            if called is not None:
                pair = key, *called
                sums[pair] = sums.get(pair, 0) + value
        return self._of_places(sums)

    def called(self, node):
        """Return (name of the library, number of the innermost function) of
        what the place of a node calls, or None."""
        called = self._called[node]
        if self._innermost[node] < 0 or called < 0:
            return None
        function = self._frames[FRAME_COLUMNS * called]
        if self._tables.functions[function].kind == 'pseudo':
            return None
        return '', function

    def _of_places(self, sums):
        callees = {}
        for (key, _, function), value in sums.items():
            callees.setdefault(key, []).append(
                (self._tables.functions[function], value))
        return {key: (_sorted(its),) for key, its in callees.items()}


def _sorted(callees):
    return sorted(callees, key=lambda item: (-item[1],
                                             *function_rank(item[0])))


class MyPlaces(Places):
    """The same, of lines that are mine.

    An import is charged for what it takes until it runs a line of mine.
    """

    def __init__(self, tables, mine):
        self._mine = mine
        super().__init__(tables)

    def _find(self, tables):
        functions = tables.functions
        of_frames = tables.frame_functions()
        wanted = bytes([
            is_mine or origins.is_importing(function) or is_loop(function)
            for function, is_mine in zip(functions, self._mine)])
        is_called = bytes([function.kind != 'pseudo'
                           for function in functions])
        self._leaves, _ = tables.innermost(
            bytes(map(is_called.__getitem__, of_frames)))
        self.is_charged = bytes(map(wanted.__getitem__, of_frames))
        # The last one is of none.
        self._names = [*map(origins.library, functions), '']
        self._libraries = _libraries(tables, self.is_charged, self._names)
        # One of few functions is looked for, not the stack of each node.
        frames = [frame for frame, number in enumerate(of_frames)
                  if is_called[number] == 0 and functions[number] == COUNTING]
        self._counting = next((
            node for node, frame in enumerate(tables.node_columns()[1])
            if node and frame == frames[0]), -1) if frames else -1
        return tables.innermost(self.is_charged)

    def _key(self, node):
        return -2 if node == self._counting else self._innermost[node]

    def _place(self, key):
        if key < 0:
            return COUNTING_CALLS if key == -2 else OUTSIDE, 0
        function = self._function(key)
        if origins.is_importing(function):
            return IMPORTS, 0
        if is_loop(function):
            return OUTSIDE, 0
        return function, self._frames[FRAME_COLUMNS * key + 1]

    def called(self, node):
        leaf = self._leaves[node]
        called = self._called[node]
        if leaf < 0 or called < 0 or self._function(called).kind == 'pseudo':
            return None
        library = ('' if self._innermost[node] < 0
                   else self._names[self._libraries[node]])
        return library, self._frames[FRAME_COLUMNS * leaf]

    def _of_places(self, sums):
        # What is called without a library is in none together with others.
        groups, leaves = {}, {}
        for (key, library, function), value in sums.items():
            group = library or function
            its = groups.setdefault(key, {})
            its[group] = its.get(group, 0) + value
            leaves.setdefault((key, group), []).append(
                (self._tables.functions[function], value))
        found = {}
        for key, its in groups.items():
            group = min(its, key=lambda group: (-its[group], str(group)))
            found[key] = (
                _sorted(leaves[key, group]),
                (group, its[group]) if isinstance(group, str) else ('', 0))
        return found


def _libraries(tables, is_wanted, names):
    """Return {node: a function of the outermost library below the innermost
    frame that is wanted, -1 for none}, of the stacks of samples: that of a
    package, or else of the standard library.  *names* are those of the
    libraries of functions.
    """
    is_package = [origin == origins.PACKAGES
                  for origin in origins.of_functions(tables)]
    of_frames = tables.frame_functions()
    parents, frames = nodes = tables.node_columns()
    found = {0: -1}
    for node in below(nodes, is_wanted, set(tables.column('stack'))):
        frame = frames[node]
        if is_wanted[frame]:
            found[node] = -1
            continue
        outer = found[parents[node]]
        function = of_frames[frame]
        if names[function] and (
                outer < 0 or is_package[function] and not is_package[outer]):
            outer = function
        found[node] = outer
    return found
