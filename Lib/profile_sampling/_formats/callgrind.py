"""Writer of files for KCachegrind, QCachegrind and callgrind_annotate.

The format is defined in the manual of Valgrind, chapter "Callgrind Format
Specification", version 1.

Each type of values is an event, what the profile is about first, as it is in
our unit.  Cost lines are lines of source with what they did themselves, and
lines with calls: what was called from there, with all that was below it.  By
recursion a function can be on a stack more than once; then what its innermost
frame called is what it called.  So own cost and calls of a function add up to
its cumulative values, which is how readers compute these.

Numbers of calls are exact.  What was not counted has 1, as readers take no
call for own cost; a line of the head says what was.

What gets lost: stacks beyond one call, columns and instructions, threads,
states but for pseudo-frames, labels, tasks, who held the GIL and counters.
"""

from profile_sampling._data.call_graph import CallGraph
from profile_sampling._data.call_paths import ROOT, CallPaths
from profile_sampling._data.measures import measures
from profile_sampling._data.counts import place_key
from profile_sampling._data.values import NO_FRAMES, printable

_UNKNOWN = '???'
_NO_FRAMES = _UNKNOWN, NO_FRAMES
_EVENTS = {'wall_ns': 'WallNs', 'cpu_ns': 'CpuNs', 'count': 'Samples',
           'custom': 'Counted'}


def encode(tables):
    """Return the bytes of the file of a profile."""
    all_measures = measures(tables)
    paths = CallPaths(tables, by_line=True)
    own = paths.self_sums([measure.column for measure in all_measures])
    totals = [sum(measure.column) for measure in all_measures]
    lines = [*_head(tables, all_measures, totals),
             *_Body(tables, paths, own).lines(),
             f'totals: {_numbers(totals)}', '']
    return '\n'.join(lines).encode()


def _head(tables, all_measures, totals):
    events = _event_names(all_measures)
    yield from ('# callgrind format', 'version: 1',
                'creator: profile_sampling')
    if tables.pid is not None:
        yield f'pid: {tables.pid}'
    command = printable(tables.meta.get('command', '')).strip()
    if command:
        yield f'cmd: {command}'
    yield (f'desc: Trigger: {printable(tables.mode)} profile of Python '
           f'{printable(tables.python_version)}')
    yield 'desc: Calls: ' + (
        f'counted ({tables.counts.mode})' if _has_calls(tables)
        else 'not counted, 1 stands for any number')
    yield 'positions: line'
    for event, measure in zip(events, all_measures):
        yield f'event: {event} : {measure.title} ({printable(measure.unit)})'
    # Readers take this line for the last of the head.
    yield f'events: {" ".join(events)}'
    yield f'summary: {_numbers(totals)}'


def _has_calls(tables):
    return tables.counts is not None and tables.counts.has_calls


def _event_names(all_measures):
    """Return a name of letters and digits for each measure."""
    names = []
    for measure in all_measures:
        name = _EVENTS.get(measure.name) or ''.join(
            [char for char in measure.name.title()
             if char.isascii() and char.isalnum()])
        if not name[:1].isalpha():
            name = f'Event{name}'
        while name in names:
            name += 'x'
        names.append(name)
    return names


def _numbers(values):
    return ' '.join(map(str, values))


class _Body:
    """The lines of the functions."""

    def __init__(self, tables, paths, own):
        self._paths = paths
        self._own = own
        self._graph = CallGraph(
            paths, _keys([function for function, _ in paths.places]),
            by_place=True)
        calls = [self._graph.of_innermost_calls(paths.cumulative(sums))
                 for sums in own]
        self._n_calls = [1] * len(self._graph.calls)
        if _has_calls(tables):
            self._count(tables.counts.calls)
        self._calls = list(zip(*calls))
        self._numbers = {}, {}
        self._called = {}

    def _count(self, counted):
        """Put exact numbers in place of 1."""
        sums = {}
        for row in counted:
            key = place_key(row.caller), row.line, place_key(row.callee)
            sums[key] = sums.get(key, 0) + row.calls + row.resumes
        places = self._paths.places
        functions = {}
        for place, number in enumerate(self._graph.function):
            functions.setdefault(number, places[place][0])
        for number, (place, called) in enumerate(self._graph.calls):
            function, line = places[place]
            n_calls = sums.get((place_key(function), line,
                                place_key(functions[called])))
            if n_calls:
                self._n_calls[number] = n_calls

    def lines(self):
        """Yield the lines, by function."""
        costs = list(zip(*map(self._paths.of_places, self._own)))
        calls = {}
        for number, (place, _) in enumerate(self._graph.calls):
            calls.setdefault(place, []).append(number)
        places = [[] for _ in self._graph.keys]
        for place, function in enumerate(self._graph.function):
            places[function].append(place)
        if any(sums[ROOT] for sums in self._own):
            yield from self._position('fl', 'fn', _NO_FRAMES)
            yield f'0 {_numbers([sums[ROOT] for sums in self._own])}'
        for key, its_places in zip(self._graph.keys, places):
            yield from self._position('fl', 'fn', key)
            for place in its_places:
                line = self._paths.places[place][1]
                if any(costs[place]):
                    yield f'{line} {_numbers(costs[place])}'
                for call in calls.get(place, ()):
                    yield from self._call(call, line)

    def _call(self, number, line):
        costs = self._calls[number]
        if not any(costs):
            return
        called = self._graph.calls[number][1]
        if called in self._called:
            yield self._called[called]
        else:
            position = 'cfi', 'cfn', self._graph.keys[called]
            yield from self._position(*position)
            # From now on without names.
            self._called[called] = '\n'.join(self._position(*position))
        yield f'calls={self._n_calls[number]} 0\n{line} {_numbers(costs)}'

    def _position(self, file_kind, name_kind, key):
        """Yield the lines that say which function is meant.

        A name is written out where it comes for the first time.
        """
        for kind, name, numbers in zip((file_kind, name_kind), key,
                                       self._numbers):
            number = numbers.get(name)
            if number is None:
                number = numbers[name] = len(numbers) + 1
                yield f'{kind}=({number}) {name}'
            else:
                yield f'{kind}=({number})'


def _keys(functions):
    """Return (file, name) of functions; names are those of one in a file."""
    keys = [_key(function) for function in functions]
    lines = {}
    for function, key in zip(functions, keys):
        lines.setdefault(key, set()).add(function.first_line)
    return [key if len(lines[key]) == 1
            else (key[0], f'{key[1]}:{function.first_line}')
            for function, key in zip(functions, keys)]


def _key(function):
    return (printable(function.filename).strip() or _UNKNOWN,
            printable(function.name).strip() or '[no name]')
