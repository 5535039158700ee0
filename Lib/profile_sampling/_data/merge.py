"""One profile of several processes.

Weights are measured times, so they can be added whatever the rates were.
Those of different modes are not: what a sample was taken for differs.
"""

from array import array
from itertools import repeat

from profile_sampling._data import (
    allocations, checks, content, counts, lives, timeline)
from profile_sampling._data.losses import add_counter
from profile_sampling._data.numbering import frame_numbers, number_of
from profile_sampling._data.origins import ORIGINS
from profile_sampling._data.schema import LABELS, NODES, THREADS, of_rows
from profile_sampling._data.tables import function_row, thread_row
from profile_sampling._data.trees import Tree
from profile_sampling._data.values import (
    EMPTY_LABELS, LEVEL, NOT_KNOWN, RUN)

MAX_BYTES = 512 << 20
# Between the versions of Python in which the profiles were taken.
_AND = ', '
_MAX_SUM = (1 << 63) - 1
# What a row takes with its key and its share of the dict, on the high side.
_ROW_BYTES = {'functions': 400, 'frames': 250, 'labels': 250, 'threads': 300,
              'samples': 400}
_NODE_BYTES = 100


class Merger:
    """Adds up profiles, one after the other: none is kept.

        merger = Merger()
        for path in paths:
            merger.add(Tables(read(path)))
        raw = merger.raw()
    """

    def __init__(self, max_bytes=None):
        self._max_bytes = (MAX_BYTES if max_bytes is None
                           else checks.whole(
                               'max_bytes', max_bytes, least=0))
        self._mode = None
        self._rates = set()
        self._depth_frames = 0
        self._names = 0
        self._versions = {}
        self._spans = []
        self._stats = {}
        self._meta = None
        self._processes, self._parts = set(), []
        self._are_recorded_here = True
        self._origins, self._has_mine = {}, False
        self._types = {}
        self._keys = []
        self._levels = _Levels()
        # Of each type, as if no weights were of other signs.
        self._sums = []
        # Rows by what they say; a row's number is its place.
        self._rows = {table: {} for table in _ROW_BYTES}
        self._rows['labels'][EMPTY_LABELS] = 0
        self._tree = Tree()
        # (start_time_ns, Timeline, keys here of its samples)
        self._timelines = []
        self._task_classes = ()
        self._latencies = ()
        self._counts = []

    def add(self, tables):
        """Add the tables of a profile.

        Raise ValueError if it has another mode than those before, if a sum
        does not fit in 64 bits, or if all needs too much memory; then the
        merger is of no use any more.
        """
        if self._mode is None:
            self._mode = tables.mode
        elif tables.mode != self._mode:
            raise ValueError(
                f'cannot merge a profile of mode {tables.mode} with one of '
                f'mode {self._mode}: their weights mean different things')
        self._rates.add(tables.rate_hz)
        self._depth_frames = max(self._depth_frames, tables.depth_frames)
        self._names |= tables.names
        self._versions.update(
            dict.fromkeys(tables.python_version.split(_AND)))
        self._spans += [(tables.start_time_ns, *span)
                        for span in tables.covered]
        self._meta = (tables.meta if self._meta is None else
                      dict(self._meta.items() & tables.meta.items()))
        self._processes |= tables.processes
        self._parts.append((tables.start_time_ns, tables.meta))
        for name, value in tables.stats.items():
            add_counter(self._stats, name, value)
        self._are_recorded_here &= tables.is_recorded_here
        for code, origin in tables.origins.items():
            # Who knows where things are installed knows more.
            self._origins[code] = min(
                origin, self._origins.get(code, origin), key=ORIGINS.index)
        self._has_mine |= tables.has_mine
        self._add_samples(tables, self._nodes(tables), self._labels(tables))
        self._add_lives(tables)
        if _NODE_BYTES * len(self._tree) + sum([
                _ROW_BYTES[table] * len(rows) for table, rows
                in self._rows.items()]) > self._max_bytes:
            raise ValueError(f'all profiles together need more than '
                             f'{self._max_bytes:,} bytes of memory; pass a larger '
                             'max_bytes')

    def _add_lives(self, tables):
        self._task_classes = lives.united(
            [*self._task_classes, *tables.task_classes])
        self._latencies = lives.united(
            [*self._latencies, *tables.latencies])
        self._counts.append(tables.counts)

    def _number(self, table, row):
        return number_of(self._rows[table], row)

    def _nodes(self, tables):
        """Return the number here of each node of a profile."""
        functions = [self._number('functions', function_row(function))
                     for function in tables.functions]
        return self._tree.add(tables.tree(), frame_numbers(
            tables, functions, self._rows['frames']))

    def _labels(self, tables):
        """Return the number here of each row of labels."""
        numbers = [0]
        for parent, *label in tables.labels[1:]:
            numbers.append(self._number('labels', (numbers[parent], *label)))
        return numbers

    def _add_samples(self, tables, nodes, labels):
        threads = [self._number('threads', thread_row(thread))
                   for thread in tables.threads]
        places = self._value_places(tables.value_types)
        self._add_sums(tables, places)
        n_values = len(self._types)
        in_place = places == list(range(n_values))
        columns = dict(zip(tables.schema.keys, tables.renumbered({
            NODES: nodes, THREADS: [*threads, NOT_KNOWN], LABELS: labels})))
        keys = list(zip(*[columns.get(key) or repeat(0, len(tables))
                          for key in self._keys_with(tables.schema.keys)]))
        samples = self._rows['samples']
        rows = tables.values()
        if not in_place:
            rows = (_spread(values, places, n_values) for values in rows)
        for key, values in zip(keys, self._levels.now(tables, places, rows,
                                                      keys, samples)):
            known = samples.get(key)
            samples[key] = (list(values) if known is None else
                            [a + b for a, b in zip(known, values)])
        if tables.has_timeline:
            self._timelines.append(
                (tables.start_time_ns, tables.timeline, keys))

    def _keys_with(self, keys):
        """Return all keys; what was added before has 0 of those that are new.
        """
        new = [key for key in keys if key not in self._keys]
        if new:
            if self._keys:
                self._rows['samples'] = {
                    (*key, *[0] * len(new)): values for key, values
                    in self._rows['samples'].items()}
            self._keys += new
        return self._keys

    def _add_sums(self, tables, places):
        """Refuse now what Tables would not take in the end."""
        self._sums += [0] * (len(self._types) - len(self._sums))
        for place, column in zip(places, tables.value_columns):
            self._sums[place] += sum(map(abs, column))
            if self._sums[place] > _MAX_SUM:
                raise ValueError('the weights of all samples add up to more '
                                 'than 64 bits')

    def _value_places(self, value_types):
        """Return which number each type of values has here.

        What was added before has 0 of those that are new.
        """
        before = len(self._types)
        places = [self._types.setdefault(value_type, len(self._types))
                  for value_type in value_types]
        new = len(self._types) - before
        if new:
            for weights in self._rows['samples'].values():
                weights += [0] * new
        return places

    def raw(self):
        """Return the tables of all that was added, as the core gives them.

        Raise ValueError if that is nothing.
        """
        if self._mode is None:
            raise ValueError('there are no profiles to merge')
        start_time_ns, covered = _united(self._spans)
        memory = (allocations.united_meta(self._parts)
                  if len(self._processes) == 1
                  and allocations.space(allocations.IN_USE) in self._types
                  else {})
        rows = self._rows
        line = None
        if self._timelines:
            line = _joined(self._timelines, rows['samples'],
                           start_time_ns)
        return {
            'mode': self._mode, 'timeline': line,
            # 0: not known, since there is not one for all.
            'rate_hz': (self._rates.pop() if len(self._rates) == 1 else 0),
            'depth_frames': self._depth_frames, 'names': self._names,
            'start_time_ns': start_time_ns, 'covered': covered,
            'python_version': _AND.join(sorted(filter(None, self._versions))),
            'stats': self._stats,
            # A sum is no process of a run.
            'meta': {name: text for name, text in self._meta.items()
                     if name != RUN} | memory,
            'is_recorded_here': self._are_recorded_here,
            'origins': self._origins, 'has_mine': self._has_mine,
            'keys': tuple(self._keys), 'value_types': tuple(self._types),
            'is_idle_known': True,
            'task_classes': self._task_classes, 'latencies': self._latencies,
            'counts': counts.united(self._counts),
            'functions': list(rows['functions']),
            'frames': _packed('i', rows['frames']),
            'nodes': self._tree.packed(),
            'labels': list(rows['labels']),
            'threads': list(rows['threads']),
            'columns': of_rows(rows['samples'],
                               len(self._keys) + len(self._types))}


def _joined(timelines, samples, start_time_ns):
    """Return one Timeline of all, since *start_time_ns*."""
    numbers = {key: number for number, key in enumerate(samples)}
    records = []
    for its_start_ns, line, keys in timelines:
        after_ns = max(its_start_ns - start_time_ns, 0)
        for time_ns, row, *values in zip(*line.columns):
            records.append((time_ns + after_ns,
                            numbers[_padded(keys[row], samples)], *values))
    return timeline.bounded(
        records, max([line.resolution_ns for _, line, _ in timelines]),
        is_stale=any([line.is_stale for _, line, _ in timelines]))


def plus(one, other):
    """Return the tables of the sum of two; see Profile.__add__()."""
    # Which columns of values come first must not depend on who is added.
    one, other = sorted((one, other), key=lambda tables: [
        value_type.name for value_type in tables.value_types])
    merger = Merger()
    merger.add(one)
    merger.add(other)
    raw = merger.raw()
    if one.pid == other.pid:
        raw['pid'] = one.pid
    facts = one.facts()
    if facts == other.facts() and not _is_twice(one, other):
        # Parts of one profile: its counters are not those of a part.
        raw |= facts | {'value_types': raw['value_types']}
    return raw


def _is_twice(one, other):
    """Return whether two are the same, and so no parts that are apart."""
    return len(one) > 0 and content.same(one, other)


def _padded(key, keys):
    """Return a key that was added before others had more columns."""
    width = len(next(iter(keys), key))
    return key if len(key) == width else (*key, *[0] * (width - len(key)))


class _Levels:
    """What there is at a moment, of several processes and of the parts of one
    profile: it adds up.  Of two moments of one process the later one counts.
    """

    def __init__(self):
        self._known = {}

    def now(self, tables, places, rows, keys, samples):
        """Return the rows of values of a profile, as they are to be added;
        take out of *samples* what they replace."""
        levels = [place for place, value_type in zip(
            places, tables.value_types) if value_type.adds == LEVEL]
        if not levels:
            return rows
        end_ns = tables.start_time_ns + tables.end_ns
        found, of_processes = [], {}
        for thread, key, values in zip(tables.column('thread'), keys, rows):
            process = tables.threads[thread].process
            if process is not None:
                values = list(values)
                if end_ns < self._known.get(process, (0, []))[0]:
                    for place in levels:
                        values[place] = 0
                of_processes.setdefault(process, []).append(
                    (key, [(place, values[place]) for place in levels]))
            found.append(values)
        for process, its in of_processes.items():
            last_ns, last = self._known.get(process, (0, []))
            if end_ns < last_ns:
                continue
            if end_ns > last_ns:
                for key, values in last:
                    # There may be more keys since.
                    sums = samples[_padded(key, keys)]
                    for place, value in values:
                        sums[place] -= value
                last = []
            self._known[process] = end_ns, last + its
        return found


def _united(spans):
    """Return the start of several spans of time, (start, begin, end) with the
    last two since the first, and what they cover since then.

    What they have in common counts once.  A start of 0 is not known: such
    spans begin with the others.
    """
    start_time_ns = min([start for start, _, _ in spans if start], default=0)
    covered = []
    for begin, end in sorted([
            ((start or start_time_ns) - start_time_ns + begin,
             (start or start_time_ns) - start_time_ns + end)
            for start, begin, end in spans]):
        if covered and begin <= covered[-1][1]:
            covered[-1] = covered[-1][0], max(end, covered[-1][1])
        else:
            covered.append((begin, end))
    return start_time_ns, tuple(covered)


def _spread(weights, places, n_values):
    result = [0] * n_values
    for place, weight in zip(places, weights):
        result[place] = weight
    return result


def _packed(item, rows):
    column = array(item)
    for row in rows:
        column.extend(row)
    return column.tobytes()
