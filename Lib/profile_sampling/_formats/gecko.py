"""Writer of processed profiles of the Firefox Profiler, *.gecko.json.

The format is defined by src/types/profile.ts and
docs-developer/CHANGELOG-formats.md of
https://github.com/firefox-devtools/profiler; this is version 60 of it, which
newer ones of the viewer convert.

A thread has its samples, with what the profile is about as their weight and
the CPU time beside it.  A frame is a line of a function; Python functions are
what the viewer calls JavaScript.  The category of the innermost frame says the
state of a sample, or the kind of the function if the thread was running.  If
the profile has a time line, samples are at their moments.  Else they are laid
end to end: those of equal labels and tasks together, with a marker that is as
long, then by the names on their stacks.  Counters are in the information about
the profile.

What gets lost: types of values beyond these two, columns and instructions,
who held the GIL, and which process a sample of a merged profile is of, but for
its label.
"""

from profile_sampling._data import states, timeline
from profile_sampling._data.call_paths import ROOT, CallPaths
from profile_sampling._data.measures import measures
from profile_sampling._data.on_clocks import on_clocks
from profile_sampling._data.values import (
    CPU, FUNCTION_KINDS, NO_FRAMES, STATES, WALL, Function, printable)
from profile_sampling._formats import json_text

VERSION = 60
# The version that the browser's own format had then.
_GECKO_VERSION = 31
# In the order of FUNCTION_KINDS and of STATES; grey is what has none.
_KIND_COLORS = 'yellow', 'blue', 'lightblue', 'grey'
_STATE_COLORS = {state.name: state.color for state in states.TABLE
                 if state.color}
_WEIGHTS = {'nanoseconds': ('tracing-ms', 1e6), 'bytes': ('bytes', 1)}
_NO_FRAMES = Function(None, NO_FRAMES, '', 0, 'pseudo')
_INTERVAL = 1                   # the phase of a marker


def encode(tables):
    """Return the bytes of the file of a profile."""
    return json_text.data(_File(on_clocks(tables)).value())


class _Strings:
    """Texts by their numbers."""

    def __init__(self):
        self._numbers = {}

    def number(self, text):
        return self._numbers.setdefault(printable(text), len(self._numbers))

    def texts(self):
        return list(self._numbers)


class _FrameTexts(dict):
    """The frames of places as text, numbered as they come."""

    def __init__(self, file):
        self._file = file

    def __missing__(self, place):
        text = self[place] = str(self._file.frame(place))
        return text


class _File:

    def __init__(self, tables):
        self._tables = tables
        self._strings = _Strings()
        self._paths = CallPaths(tables, by_line=True)
        # The last one is for samples without a frame; the viewer leaves out
        # what has no stack.
        self._places = [*self._paths.places, (_NO_FRAMES, 0)]
        self._categories = _categories()
        self._frames = {}
        # The stacks of nodes, as text: there may be millions.
        self._stack_frames = ','.join(
            map(_FrameTexts(self).__getitem__, self._paths.place[1:]))
        # All others: (the node of the caller, frame).
        self._more_stacks = {}

    def value(self):
        """Return the whole file as a dict."""
        threads = self._threads()
        return {'meta': self._meta(), 'libs': [], 'pages': [],
                'threads': threads, 'shared': self._shared()}

    def frame(self, place):
        """Return the number of a place's frame, of the category that its
        kind has."""
        return self._frame(place, self._category_of_kind(place))

    def _frame(self, place, category):
        return self._frames.setdefault((place, category), len(self._frames))

    def _stack(self, node, state):
        """Return the number of a stack whose innermost frame has a state."""
        category = self._categories['state', state]
        # That of the root is -1, which is the last one.
        place = self._paths.place[node]
        if category is None:
            if node != ROOT:
                return node - 1
            category = self._category_of_kind(place)
        key = self._paths.parents[node], self._frame(place, category)
        return len(self._paths) - 1 + self._more_stacks.setdefault(
            key, len(self._more_stacks))

    def _category_of_kind(self, place):
        kind = self._places[place][0].kind
        return self._categories['kind', FUNCTION_KINDS.index(kind)]

    def _threads(self):
        tables, of_node = self._tables, self._paths.of_node
        all_measures = measures(tables)
        columns = {measure.name: measure.column for measure in all_measures}
        weights = all_measures[0].column
        nothing = [0] * len(weights)
        walls = columns.get(WALL.name, nothing)
        cpus = columns.get(CPU.name, nothing)
        texts = {row: _label_text(*tables.label_set(row))
                 for row in set(tables.column('labels'))}
        places = list(zip([texts[row] for row in tables.column('labels')],
                          [of_node[node] for node in tables.column('stack')],
                          tables.column('state')))
        records = timeline.by_thread(tables, all_measures[0].name)
        if records is not None:
            rows = [[(*places[row], weight, wall_ns, cpu_ns, begin_ns)
                     for begin_ns, row, weight, cpu_ns, wall_ns in its_records]
                    for its_records in records]
        else:
            rows = [[] for _ in tables.threads]
            for thread, place, *values in zip(tables.column('thread'), places,
                                              weights, walls, cpus):
                rows[thread].append((*place, *values, None))
            for its_rows in rows:
                its_rows.sort(key=lambda row: row[:-1])
        kind, scale = _WEIGHTS.get(all_measures[0].unit, ('samples', 1))
        return [self._thread(thread, its_rows, kind, scale)
                for thread, its_rows in zip(tables.threads, rows)]

    def _thread(self, thread, rows, weight_type, scale):
        pid = (thread.process.pid if thread.process
               else self._tables.pid or 0)
        is_main = (thread.native_id == pid if pid
                   else thread.name == 'MainThread')
        # The first sample is where the thread begins: readers take the CPU
        # time of a sample for that since the one before.
        stacks, times, weights, cpus = [None], [0], [0], [0]
        markers = []
        now = 0
        for text, node, state, weight, wall, cpu, begin in rows:
            now = max(now, begin or 0)
            if text and (not markers or markers[-1][0] != text):
                markers.append([text, now / 1e6, now / 1e6])
            now += wall or cpu
            stacks.append(self._stack(node, state))
            times.append(now / 1e6)
            weights.append(weight / scale)
            cpus.append(cpu)
            if text:
                markers[-1][2] = now / 1e6
        return {
            'processType': 'default', 'processName': 'Python',
            'processStartupTime': 0, 'processShutdownTime': None,
            'registerTime': 0, 'unregisterTime': None, 'pausedRanges': [],
            'name': ('thread' if thread.name is None
                     else printable(thread.name)),
            'isMainThread': is_main, 'pid': str(pid),
            'tid': thread.native_id or thread.ident,
            'samples': {
                'stack': stacks, 'time': times, 'weight': weights,
                'weightType': weight_type, 'threadCPUDelta': cpus,
                'length': len(stacks)},
            'markers': self._markers(markers)}

    def _markers(self, markers):
        name = self._strings.number('labels')
        return {
            'data': [{'type': 'labels', 'labels': text}
                     for text, _, _ in markers],
            'name': [name] * len(markers),
            'startTime': [start for _, start, _ in markers],
            'endTime': [end for _, _, end in markers],
            'phase': [_INTERVAL] * len(markers),
            'category': [0] * len(markers), 'length': len(markers)}

    def _shared(self):
        strings = self._strings
        files = {}
        functions = {}
        func_of_place = [functions.setdefault(function, len(functions))
                         for function, _ in self._places]
        funcs = list(functions)
        for function in funcs:
            if function.filename:
                files.setdefault(strings.number(function.filename),
                                 len(files))
        n = len(funcs)
        func_table = {
            'name': [strings.number(function.name) for function in funcs],
            'isJS': [function.kind == 'python' for function in funcs],
            'relevantForJS': [function.kind == 'pseudo'
                              for function in funcs],
            'resource': [-1] * n,
            'source': [files[strings.number(function.filename)]
                       if function.filename else None for function in funcs],
            'lineNumber': [function.first_line or None
                           for function in funcs],
            'columnNumber': [None] * n, 'length': n}
        return {
            'stackTable': self._stack_table(),
            'frameTable': self._frame_table(func_of_place),
            'funcTable': func_table,
            'resourceTable': dict.fromkeys(
                ('lib', 'name', 'host', 'type'), ()) | {'length': 0},
            'nativeSymbols': dict.fromkeys(
                ('libIndex', 'address', 'name', 'functionSize'), ())
            | {'length': 0},
            'sources': {'length': len(files), 'uuid': [None] * len(files),
                        'filename': list(files)},
            'stringArray': strings.texts()}

    def _stack_table(self):
        more = self._more_stacks
        parents = self._paths.parents[1:]
        prefixes = [json_text.numbers(column, origin=1) for column
                    in (parents, [parent for parent, _ in more])]
        return {
            # Nobody calls what has -1; nothing else is negative.
            'prefix': json_text.array([
                text.replace('-1', 'null') for text in prefixes]),
            'frame': json_text.array([
                self._stack_frames, *[str(frame) for _, frame in more]]),
            'length': len(parents) + len(more)}

    def _frame_table(self, func_of_place):
        n = len(self._frames)
        places = [place for place, _ in self._frames]
        return {
            'address': [-1] * n, 'inlineDepth': [0] * n,
            'category': [category for _, category in self._frames],
            'subcategory': [0] * n,
            'func': [func_of_place[place] for place in places],
            'nativeSymbol': [None] * n, 'innerWindowID': [0] * n,
            'line': [self._places[place][1] or None
                     for place in places],
            'column': [None] * n, 'length': n}

    def _meta(self):
        tables = self._tables
        return {
            'interval': 1000 / tables.rate_hz if tables.rate_hz else 1,
            'startTime': tables.start_time_ns / 1e6, 'processType': 0,
            'product': 'Python', 'misc': printable(tables.python_version),
            'stackwalk': 1, 'debug': False, 'version': _GECKO_VERSION,
            'preprocessedProfileVersion': VERSION, 'symbolicated': True,
            'symbolicationNotSupported': True,
            'importedFrom': 'profile_sampling',
            'sourceCodeIsNotOnSearchfox': True,
            'sampleUnits': {'time': 'ms', 'eventDelay': 'ms',
                            'threadCPUDelta': 'ns'},
            'categories': _category_list(),
            'markerSchema': [{
                'name': 'labels', 'chartLabel': '{marker.data.labels}',
                'tableLabel': '{marker.data.labels}',
                'tooltipLabel': '{marker.data.labels}',
                'display': ['marker-chart', 'marker-table',
                            'timeline-overview'],
                'fields': [{'key': 'labels', 'label': 'Labels',
                            'format': 'string'}]}],
            'extra': [{'label': 'Counters', 'entries': [
                {'label': printable(name), 'format': 'integer',
                 'value': value} for name, value in tables.stats.items()]}]}


def _categories():
    """Return {('kind' or 'state', number): number of its category}."""
    numbers = {('kind', number): 1 + number
               for number in range(len(FUNCTION_KINDS))}
    after = 1 + len(FUNCTION_KINDS)
    for number, state in enumerate(STATES):
        # Running is what kinds are given for.
        numbers['state', number] = None
        if state in _STATE_COLORS:
            numbers['state', number] = after
            after += 1
    return numbers


def _category_list():
    rows = [('Other', 'grey'), *zip(FUNCTION_KINDS, _KIND_COLORS)]
    rows += [(state.replace('_', ' '), _STATE_COLORS[state])
             for state in STATES if state in _STATE_COLORS]
    return [{'name': name, 'color': color, 'subcategories': ['Other']}
            for name, color in rows]


def _label_text(labels, task_name, _):
    pairs = [f'{key}={value}' for key, value in labels.items()]
    if task_name is not None:
        pairs.append(f'task={task_name}')
    return printable(', '.join(pairs))
