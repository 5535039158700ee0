"""The reference aggregator: a profile made of nothing but a subscription.

This file owns how batches of records become the tables of a Profile, with no
more than any other subscriber gets.  The core's own table does the same
faster; a test holds them to the same result.
"""

import _thread
import os
from array import array

from profile_sampling import _clock
from profile_sampling._data import intake
from profile_sampling._data.moments import Moments
from profile_sampling._data.tables import function_row, thread_row
from profile_sampling._data.values import (
    EMPTY_LABELS, MEASURED, NAMES, NOBODY, NOT_KNOWN, OF_TASKS)
from profile_sampling._profile import Profile
from profile_sampling._subscribing.batch import NO_THREAD, RECORD_KINDS

_SAMPLE = 0
# Of a sample, beside its key: count, CPU and wall time, and what is of tasks.
_VALUES = len(MEASURED) + len(OF_TASKS)
_VALUE_OF_KIND = {RECORD_KINDS.index('task'): 3,
                  RECORD_KINDS.index('delay'): 4}


class Aggregator:
    """A callback for subscribe() that adds up what it gets.

        aggregator = Aggregator()
        with subscribe(aggregator):
            work()
        profile = aggregator.profile()

    Its profile is that of a session of the same time, with values of tasks if
    the subscription has *tasks*.  With *timeline*, it has a time line: 36
    bytes of memory for a sample, 9 MB at most.
    """

    def __init__(self, *, timeline=False):
        # Batches come on another thread than the one that wants a profile.
        self._lock = _thread.RLock()
        self._start_time_ns = _clock.time_ns()
        self._start_ns = _clock.monotonic_ns()
        self._pid = os.getpid()
        self._generations = {}
        self._samples = {}
        self._moments = Moments() if timeline else None
        self._stats = {}
        self._lost = {'lost_records': 0, 'lost_wall_ns': 0, 'lost_cpu_ns': 0}

    def __call__(self, batch):
        """Add the samples of a batch."""
        with self._lock:
            self._add(batch)

    def _add(self, batch):
        # Another subscription has rows of its own, whatever their serial.
        rows = batch.rows
        self._generations[rows] = _Seen(batch)
        self._stats = batch.stats
        samples = self._samples
        if self._moments is not None:
            self._moments.add(rows, batch.kind, vars(batch))
        for kind, *key, count, cpu_ns, wall_ns in zip(
                batch.kind, batch.node, batch.thread, batch.labels_row,
                batch.state, batch.holder_thread, batch.holder_node,
                batch.count, batch.cpu_ns, batch.wall_ns):
            if kind != _SAMPLE and kind not in _VALUE_OF_KIND:
                continue
            sums = samples.setdefault((rows, *key), [0] * _VALUES)
            if kind == _SAMPLE:
                sums[0] += count
                sums[1] += cpu_ns
                sums[2] += wall_ns
            else:
                sums[_VALUE_OF_KIND[kind]] += wall_ns
        for record in batch.records:
            if record.kind == 'lost':
                self._lost['lost_records'] += record.count
                self._lost['lost_wall_ns'] += record.wall_ns
                self._lost['lost_cpu_ns'] += record.cpu_ns

    def profile(self, *, mode='wall', rate_hz=1000, depth_frames=512,
                names='all'):
        """Return what has been added so far as a Profile.

        The arguments only describe what was subscribed to.
        """
        with self._lock:
            return self._profile(mode, rate_hz, depth_frames, names)

    def _profile(self, mode, rate_hz, depth_frames, names):
        tables = _AllRows()
        for rows, seen in self._generations.items():
            tables.add_rows(rows, seen)
        stats = dict(self._stats)
        for name, value in self._lost.items():
            if value:
                stats[name] = stats.get(name, 0) + value
        profile = intake.tables({
            **tables.raw(self._samples),
            'mode': mode, 'rate_hz': rate_hz, 'depth_frames': depth_frames,
            'names': NAMES.index(names), 'stats': stats,
            'pid': self._pid,
            'start_time_ns': self._start_time_ns,
            'duration_ns': _clock.monotonic_ns() - self._start_ns})
        if self._moments is not None:
            profile = profile.with_timeline(self._moments.timeline(
                profile, {key: row for row, key in enumerate(self._samples)},
                self._start_ns))
        return Profile._from_tables(profile)


class _Seen:
    """The rows up to a batch.  Those of the next one may come at any moment,
    into the same lists of nodes and labels, and into new ones of the rest."""

    def __init__(self, batch):
        rows = batch.rows
        self.functions = rows.functions
        self.frames = rows.frames
        self.threads = rows.threads
        self._nodes = rows.nodes, len(rows.nodes)
        self._labels = rows.labels, len(rows.labels)
        self._tasks = rows.tasks
        self._counted = batch.counted_tasks

    # Without row 0, which is the same one in all generations.

    def nodes(self):
        nodes, end = self._nodes
        return nodes[1:end]

    def labels(self):
        labels, end = self._labels
        return labels[1:end]

    def tasks_of_labels(self):
        """Return the TaskLabel of each row of labels, or None."""
        _, end = self._labels
        return [self._tasks.get(row) for row in range(1, end)]

    def task_classes(self):
        """Return {Function: its counters as the core gives them}; none if
        they are not known."""
        if self._counted is None:
            return {task.function: () for task in self.tasks_of_labels()
                    if task is not None}
        return {self.functions[row]: counters
                for row, *counters in self._counted}


class _AllRows:
    """The rows of all generations, one after the other."""

    def __init__(self):
        self._functions = []
        self._frames = array('i')
        self._nodes = array('I', (0, 0))
        self._labels = [(*EMPTY_LABELS, 0, 0)]
        self._threads = []
        self._task_classes = []
        self._bases = {}

    def add_rows(self, rows, seen):
        functions = {}
        for function in seen.functions:
            if id(function) not in functions:
                functions[id(function)] = len(self._functions)
                self._functions.append(function_row(function))
        first_frame = len(self._frames) // 5
        for frame in seen.frames:
            self._frames.extend((functions[id(frame.function)], frame.line,
                                 frame.column, frame.instruction_offset,
                                 frame.opcode))
        nodes = len(self._nodes) // 2 - 1
        for parent, frame in seen.nodes():
            self._nodes.append(parent + nodes if parent else 0)
            self._nodes.append(frame + first_frame)
        labels = len(self._labels) - 1
        classes = self._add_classes(seen)
        for (parent, *label), task in zip(seen.labels(),
                                          seen.tasks_of_labels()):
            of_task = 0, 0
            if task is not None:
                of_task = classes.get(task.function, 0), task.is_work
            self._labels.append((parent + labels if parent else 0, *label,
                                 *of_task))
        threads = len(self._threads)
        self._threads.extend(map(thread_row, seen.threads))
        self._bases[rows] = nodes, threads, labels

    def _add_classes(self, seen):
        """Return the numbers, from 1, of what tasks run."""
        numbers = {}
        classes = seen.task_classes()
        of_functions = {function: row for row, function
                        in enumerate(self._functions if classes else ())}
        for function, counters in classes.items():
            self._task_classes.append(
                (of_functions[function_row(function)], *counters))
            numbers[function] = len(self._task_classes)
        return numbers

    def raw(self, sums):
        samples = array('q')
        for key, weights in sums.items():
            rows, node, thread, labels, state, *holder = key
            nodes, threads, label_rows = self._bases[rows]
            samples.extend((node + nodes if node else 0, thread + threads,
                            labels + label_rows if labels else 0, state,
                            *_moved_holder(*holder, threads, nodes),
                            *weights))
        return {'functions': self._functions,
                'frames': self._frames.tobytes(),
                'nodes': self._nodes.tobytes(),
                'labels': self._labels,
                'threads': self._threads,
                'task_classes': self._task_classes,
                'measured': [(value_type.kind, value_type.unit)
                             for value_type in (*MEASURED, *OF_TASKS)],
                'samples': samples.tobytes()}


def _moved_holder(thread, node, threads, nodes):
    if not node:
        return NOBODY
    return (NOT_KNOWN if thread == NO_THREAD else thread + threads,
            node + nodes)
