"""One profile of several processes.

This file owns what becomes of the numbers of profiles that are added up.  It
must not know where the profiles come from.

Weights are measured times, so they can be added whatever the rates were.
Those of different modes are not: what a sample was taken for differs.
"""

from array import array

from profile_sampling._data import content, lives, timeline
from profile_sampling._data.losses import add_counter
from profile_sampling._data.numbering import number_nodes, number_of
from profile_sampling._data.tables import function_row, thread_row
from profile_sampling._data.values import EMPTY_LABELS, NOBODY, NOT_KNOWN

MAX_BYTES = 512 << 20
PID_LABEL = 'pid'
# Between the versions of Python in which the profiles were taken.
_AND = ', '
_MAX_SUM = (1 << 63) - 1
# What a row takes with its key and its share of the dict, on the high side.
_ROW_BYTES = {'functions': 400, 'frames': 250, 'nodes': 250, 'labels': 250,
              'threads': 300, 'samples': 400}


class Merger:
    """Adds up profiles, one after the other: none is kept.

        merger = Merger()
        for path in paths:
            merger.add(Tables(read(path)))
        raw = merger.raw()
    """

    def __init__(self, max_bytes=None, *, label_pids=True):
        self._label_pids = label_pids
        self._max_bytes = MAX_BYTES if max_bytes is None else max_bytes
        self._mode = None
        self._rates = set()
        self._depth_frames = 0
        self._names = 0
        self._versions = {}
        self._spans = []
        self._stats = {}
        self._meta = None
        self._are_recorded_here = True
        self._types = {}
        # Of each type, as if no weights were of other signs.
        self._sums = []
        # Rows by what they say; a row's number is its place.
        self._rows = {table: {} for table in _ROW_BYTES}
        self._rows['labels'][EMPTY_LABELS] = 0
        # (start_time_ns, Timeline, keys here of its samples)
        self._timelines = []
        self._task_classes = ()
        self._latencies = ()

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
        self._spans.append((tables.start_time_ns, tables.duration_ns))
        self._meta = (tables.meta if self._meta is None else
                      dict(self._meta.items() & tables.meta.items()))
        for name, value in tables.stats.items():
            add_counter(self._stats, name, value)
        self._are_recorded_here &= tables.is_recorded_here
        self._add_samples(tables, self._nodes(tables), self._labels(tables))
        self._add_lives(tables)
        if sum([_ROW_BYTES[table] * len(rows) for table, rows
                in self._rows.items()]) > self._max_bytes:
            raise ValueError(f'all profiles together need more than '
                             f'{self._max_bytes:,} bytes of memory; pass a larger '
                             'max_bytes')

    def _add_lives(self, tables):
        self._task_classes = lives.united(
            [*self._task_classes, *tables.task_classes])
        self._latencies = lives.united(
            [*self._latencies, *tables.latencies])

    def _number(self, table, row):
        return number_of(self._rows[table], row)

    def _nodes(self, tables):
        """Return the number here of each node of a profile."""
        functions = [self._number('functions', function_row(function))
                     for function in tables.functions]
        return number_nodes(tables, functions, self._rows['frames'],
                            self._rows['nodes'])

    def _labels(self, tables):
        """Return the number here of each row of labels.

        The process is the outermost label of all, so that one of the
        program's own with that name hides it.
        """
        numbers = [0]
        if self._label_pids and tables.pid is not None:
            numbers[0] = self._number(
                'labels', (0, PID_LABEL, str(tables.pid), 0))
        for parent, *label in tables.labels[1:]:
            numbers.append(self._number('labels', (numbers[parent], *label)))
        return numbers

    def _add_samples(self, tables, nodes, labels):
        threads = [self._number('threads', thread_row(thread))
                   for thread in tables.threads]
        samples = self._rows['samples']
        places = self._value_places(tables.value_types)
        self._add_sums(tables, places)
        n_values = len(self._types)
        in_place = places == list(range(n_values))
        keys = []
        for (node, thread, label, state, holder_thread, holder_node,
             *weights) in tables.row_tuples():
            holder = NOBODY
            if holder_node:
                holder = (NOT_KNOWN if holder_thread == NOT_KNOWN
                          else threads[holder_thread], nodes[holder_node])
            key = (nodes[node], threads[thread], labels[label], state,
                   *holder)
            if not in_place:
                weights = _spread(weights, places, n_values)
            known = samples.get(key)
            if known is not None:
                weights = [a + b for a, b in zip(known, weights)]
            samples[key] = weights
            keys.append(key)
        if tables.has_timeline:
            self._timelines.append(
                (tables.start_time_ns, tables.timeline, keys))

    def _add_sums(self, tables, places):
        """Refuse now what Tables would not take in the end."""
        self._sums += [0] * (len(self._types) - len(self._sums))
        for place, column in zip(places, tables.value_columns()):
            self._sums[place] += sum(map(abs, column))
            if self._sums[place] > _MAX_SUM:
                raise ValueError('the weights of all samples add up to more '
                                 'than 64 bits')

    def _value_places(self, value_types):
        """Return which number each type of values has here.

        What was added before has 0 of those that are new.
        """
        before = len(self._types)
        places = [self._types.setdefault((value_type.kind, value_type.unit),
                                         len(self._types))
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
        start_time_ns, duration_ns = _united(self._spans)
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
            'start_time_ns': start_time_ns, 'duration_ns': duration_ns,
            'python_version': _AND.join(sorted(filter(None, self._versions))),
            'stats': self._stats, 'meta': self._meta,
            'is_recorded_here': self._are_recorded_here,
            'value_types': tuple(self._types),
            'task_classes': self._task_classes, 'latencies': self._latencies,
            'functions': list(rows['functions']),
            'frames': _packed('i', rows['frames']),
            'nodes': _packed('I', [(0, 0), *rows['nodes']]),
            'labels': list(rows['labels']),
            'threads': list(rows['threads']),
            'samples': _packed('q', [(*key, *weights) for key, weights
                                     in rows['samples'].items()])}


def _joined(timelines, samples, start_time_ns):
    """Return one Timeline of all, since *start_time_ns*."""
    numbers = {key: number for number, key in enumerate(samples)}
    records = []
    for its_start_ns, line, keys in timelines:
        after_ns = max(its_start_ns - start_time_ns, 0)
        for time_ns, row, *values in zip(*line.columns):
            records.append((time_ns + after_ns, numbers[keys[row]], *values))
    return timeline.bounded(
        records, max([line.resolution_ns for _, line, _ in timelines]),
        is_stale=any([line.is_stale for _, line, _ in timelines]))


def plus(one, other):
    """Return the tables of the sum of two; see Profile.__add__()."""
    # Which columns of values come first must not depend on who is added.
    one, other = sorted((one, other), key=lambda tables: [
        value_type.name for value_type in tables.value_types])
    same_process = one.pid == other.pid
    merger = Merger(label_pids=not same_process)
    merger.add(one)
    merger.add(other)
    raw = merger.raw()
    if same_process:
        raw['pid'] = one.pid
    facts = one.facts()
    if facts == other.facts() and not _is_twice(one, other):
        # Parts of one profile: its counters are not those of a part.
        raw |= facts | {'value_types': raw['value_types']}
    return raw


def _is_twice(one, other):
    """Return whether two are the same, and so no parts that are apart."""
    return len(one.samples) > 0 and content.same(one, other)


def _united(spans):
    """Return the start and the length of several spans of time.

    What they have in common counts once, and what lies between them does
    not count.  A start of 0 is not known.
    """
    known = sorted([span for span in spans if span[0]])
    length = max([length for start, length in spans if not start], default=0)
    if not known:
        return 0, length
    covered = 0
    until = known[0][0]
    for start, duration in known:
        end = start + duration
        covered += max(0, end - max(start, until))
        until = max(until, end)
    return known[0][0], max(covered, length)


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
