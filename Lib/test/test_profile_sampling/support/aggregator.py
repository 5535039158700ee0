"""A profile made of nothing but a subscription: what a subscriber has to do so
that its sums are those of a session of the same time."""

import _thread
import os
from array import array

from profile_sampling import _clock
from profile_sampling._data import intake
from profile_sampling._data.values import MEASURED, NAMES, OF_TASKS
from profile_sampling._profile import Profile
from profile_sampling._subscribing.batch import NOT_KNOWN

# Of task classes, after the function: sums, but for the longest step and life
# and the histogram, which is last.
_LONGEST = 5, 6


class Aggregator:
    """A callback for subscribe() that adds up what it gets."""

    def __init__(self):
        # Batches come on another thread than the one that wants a profile.
        self._lock = _thread.RLock()
        self._start_time_ns = _clock.time_ns()
        self._start_ns = _clock.monotonic_ns()
        self._pid = os.getpid()
        self._samples = {}
        self._classes = {}
        self._stats = {}

    def __call__(self, batch):
        """Add the samples of a batch."""
        with self._lock:
            rows = batch.rows
            self._stats = batch.stats
            samples = self._samples
            for key, values, _ in batch.samples():
                key = rows, key
                sums = samples.get(key)
                samples[key] = values if sums is None else tuple(
                    map(int.__add__, sums, values))
            if batch._has_task_classes:
                self._add_classes(batch.raw)

    def _add_classes(self, raw):
        for function, *counters in raw['task_classes']:
            function = raw['functions'][function]
            known = self._classes.get(function)
            if known is not None:
                counters = _added(known, counters)
            self._classes[function] = counters

    def profile(self, *, mode='wall', rate_hz=1000, depth_frames=512,
                names='all'):
        """Return what has been added so far as a Profile.

        The arguments only describe what was subscribed to.
        """
        with self._lock:
            profile = intake.tables({
                **_Dense(self._classes).raw(self._samples),
                'mode': mode, 'rate_hz': rate_hz,
                'depth_frames': depth_frames, 'names': NAMES.index(names),
                'stats': dict(self._stats), 'pid': self._pid,
                'start_time_ns': self._start_time_ns,
                'duration_ns': _clock.monotonic_ns() - self._start_ns})
            return Profile._from_tables(profile)


def _added(known, counters):
    sums = list(map(int.__add__, known[:-1], counters[:-1]))
    for place in _LONGEST:
        sums[place] = max(known[place], counters[place])
    few, many = sorted([memoryview(lives).cast('I').tolist()
                        for lives in (known[-1], counters[-1])], key=len)
    for place, number in enumerate(few):
        many[place] += number
    return [*sums, array('I', many).tobytes()]


class _Dense:
    """The rows of all keys, with numbers of its own."""

    def __init__(self, classes):
        self._numbers = {}
        self._functions = {}
        self._frames = array('i')
        self._nodes = array('I', (0, 0))
        self._labels = [(0, None, None, 0, 0, 0)]
        self._threads = []
        self._classes = classes
        self._task_classes = {}

    def _function(self, content):
        return self._functions.setdefault(content, len(self._functions))

    def _number(self, rows, kind, number, add):
        """Return the number of a row here; *add* makes one of its content."""
        key = rows, kind, number
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = add(rows, number)
        return found

    def _add_frame(self, rows, number):
        function, *place = rows.frames[number]
        self._frames.extend((self._function(rows.functions[function]),
                             *place))
        return len(self._frames) // 5 - 1

    def _path(self, rows, kind, number, table, add):
        path = []
        while number and (rows, kind, number) not in self._numbers:
            path.append(number)
            number = table[number][0]
        parent = self._numbers.get((rows, kind, number), 0)
        for number in reversed(path):
            parent = add(rows, parent, table[number])
            self._numbers[rows, kind, number] = parent
        return parent

    def _add_node(self, rows, parent, row):
        frame = self._number(rows, 'frame', row[1], self._add_frame)
        self._nodes.extend((parent, frame))
        return len(self._nodes) // 2 - 1

    def _add_label(self, rows, parent, row):
        _, key, value, task_id, function, is_work = row
        task_class = 0
        if function is not None:
            task_class = 1 + self._class(rows.functions[function])
        self._labels.append((parent, key, value, task_id, task_class,
                             is_work))
        return len(self._labels) - 1

    def _class(self, function):
        return self._task_classes.setdefault(function,
                                             len(self._task_classes))

    def _add_thread(self, rows, number):
        self._threads.append(rows.threads[number])
        return len(self._threads) - 1

    def raw(self, sums):
        samples = array('q')
        for (rows, key), values in sums.items():
            node, thread, labels, state, holder_thread, holder = key
            if holder and holder_thread != NOT_KNOWN:
                holder_thread = self._number(rows, 'thread', holder_thread,
                                             self._add_thread)
            samples.extend((
                self._path(rows, 'node', node, rows.nodes, self._add_node),
                self._number(rows, 'thread', thread, self._add_thread),
                self._path(rows, 'label', labels, rows.labels,
                           self._add_label),
                state, holder_thread,
                self._path(rows, 'node', holder, rows.nodes, self._add_node),
                *values))
        for function in self._classes:
            self._class(function)
        classes = [(self._function(function), *self._classes.get(function, ()))
                   for function in self._task_classes]
        return {'functions': list(self._functions),
                'frames': self._frames.tobytes(),
                'nodes': self._nodes.tobytes(),
                'labels': self._labels,
                'threads': self._threads,
                'task_classes': classes,
                'measured': [(value_type.kind, value_type.unit)
                             for value_type in (*MEASURED, *OF_TASKS)],
                'samples': samples.tobytes()}
