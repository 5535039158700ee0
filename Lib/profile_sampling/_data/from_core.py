"""The tables of the core, made into what Tables takes.

This file owns what the core says beyond what it measures of threads: values
of tasks, of each sample, and the class of a task in the table of labels.  It
must not know what tasks come to.

A row of labels that is a task has its class as a fifth item: 1 and a row of
the task classes, or 0; the sixth says whether the thread only works for it.  A
class may have no counters.  Here the class is a label of its own, outside of
its task.  Samples of tasks that no thread runs are of no tick: they count 0.
What the core measures beyond count and time of threads is left out if no
sample has any.
"""

from profile_sampling._data.label_names import TASK_CLASS
from profile_sampling._data.lives import of_core
from profile_sampling._data.shared import share
from profile_sampling._data.values import (
    MEASURED, OFF_CLOCKS, Function, FUNCTION_KINDS)

_SAMPLE, _SAMPLE_BYTES = 'q', 8
_LABELS, _STATE, _KEY_COLUMNS = 2, 3, 6
_COUNT = _KEY_COLUMNS


def converted(raw):
    """Return the dict of tables with value types, and no class in labels."""
    _check(raw)
    raw = share(raw)
    labels, moved = _labels(raw)
    samples, types = _samples(raw, moved)
    functions = raw['functions']
    return raw | {
        'labels': labels, 'samples': samples, 'value_types': types,
        'task_classes': [of_core(functions[row], *counters)
                         for row, *counters in raw['task_classes']
                         if counters]}


def rows_on_clocks(raw):
    """Iterate over (number, key, values) of the samples of threads."""
    width = _width(raw)
    row = iter(memoryview(raw['samples']).cast(_SAMPLE).tolist())
    for number, row in enumerate(zip(*[row] * width)):
        if row[_STATE] not in OFF_CLOCKS:
            yield (number, row[:_KEY_COLUMNS],
                   row[_KEY_COLUMNS:_KEY_COLUMNS + len(MEASURED)])


def _width(raw):
    return _KEY_COLUMNS + len(raw['measured'])


def _check(raw):
    """Raise ValueError unless samples are rows that have labels."""
    width = _width(raw)
    if len(raw['samples']) % (width * _SAMPLE_BYTES):
        raise ValueError('the table of samples has a broken row')
    labels = memoryview(raw['samples']).cast(_SAMPLE)[_LABELS::width].tolist()
    if labels and not 0 <= min(labels) <= max(labels) < len(raw['labels']):
        raise ValueError('a row refers to labels that do not exist')


def _samples(raw, moved):
    """Return the samples, packed, and the types of values that they have."""
    width = _width(raw)
    given = memoryview(raw['samples']).cast(_SAMPLE)
    always = _KEY_COLUMNS + len(MEASURED)
    columns = [number for number in range(width)
               if number < always or any(given[number::width])]
    samples = memoryview(bytearray(
        len(given) // width * len(columns) * _SAMPLE_BYTES)).cast(_SAMPLE)
    for place, number in enumerate(columns):
        samples[place::len(columns)] = given[number::width]
    for place, labels in enumerate(given[_LABELS::width]):
        samples[place * len(columns) + _LABELS] = moved[labels]
    for place, state in enumerate(given[_STATE::width]):
        if state in OFF_CLOCKS:
            samples[place * len(columns) + _COUNT] = 0
    return samples.tobytes(), [
        raw['measured'][number - _KEY_COLUMNS]
        for number in columns[_KEY_COLUMNS:]]


def _labels(raw):
    """Return the rows of labels without classes, and their new numbers."""
    names = [_class_name(raw['functions'][row])
             for row, *_ in raw['task_classes']]
    labels = []
    moved = []
    classes = {}
    for parent, key, value, task_id, task_class, _ in raw['labels']:
        # The first row is its own parent.
        if moved:
            if not 0 <= parent < len(moved):
                raise ValueError('a label comes before its parent')
            parent = moved[parent]
        if task_class:
            label = parent, TASK_CLASS, names[task_class - 1], 0
            parent = classes.get(label)
            if parent is None:
                parent = classes[label] = len(labels)
                labels.append(label)
        moved.append(len(labels))
        labels.append((parent, key, value, task_id))
    return labels, moved


def _class_name(row):
    *names, kind = row
    return Function(*names, FUNCTION_KINDS[kind]).name
