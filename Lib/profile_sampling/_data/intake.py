"""The tables of the core, made into what Tables takes.

A row of labels that is a task has its class as a fifth item: 1 and a row of
the task classes, or 0; the sixth says whether the thread only works for it.  A
class may have no counters.  Here the class is a label of its own, outside of
its task.  Samples of tasks that no thread runs are of no tick: they count 0.
What the core measures beyond count and time of threads is left out if no
sample has any.
"""

from profile_sampling import _clock
from profile_sampling._data import (
    allocations, counting_cost, idle, origins)
from profile_sampling._data.label_names import TASK_CLASS
from profile_sampling._data.lives import of_core
from profile_sampling._data.schema import (
    CORE_KEYS, Schema, unpacked)
from profile_sampling._data.shared import share
from profile_sampling._data.tables import Tables
from profile_sampling._data.values import (
    COUNT, FUNCTION_KINDS, MEASURED, NOT_KNOWN, OF_TASKS, OFF_CLOCKS,
    Function, Process, value_type)

# Time, count, CPU and wall time; and the row of the sample, of which the upper
# half is nothing.
_MOMENT_COLUMNS, _ROW = 5, 0xFFFFFFFF


def tables(raw):
    """Return the Tables of what has been handed over, by the core or by the
    reader of files: all of a session, of a block in it, or of a file.

    What follows from all of it is decided here, unless a file says it: what is
    idle, and whose code is whose.  Parts keep that, and files.
    """
    installed = None
    is_of_core = 'measured' in raw
    if is_of_core:
        installed = raw.get('installed', origins.HERE)
        raw = _converted(raw)
    found = Tables(raw)
    if is_of_core:
        found = counting_cost.taken_out(found)
    found.origins = _origins(found.functions, found.origins or {}, installed)
    if not raw.get('is_idle_known'):
        idle.decide(found, is_slice=raw.get('is_slice', False))
    if found.has_mine is None:
        found.has_mine = origins.has_mine(found)
    return found


def _origins(functions, known, installed):
    """Return whose each code is: what is *known* of it, or what follows from
    where the interpreter is installed."""
    if known.keys() >= {origins.code_of(function) for function in functions
                        if function.kind == 'python'}:
        return known
    return origins.decide(
        functions, installed or origins.guessed(functions)) | known


def _converted(raw):
    """Return the dict of tables with a schema, and no class in labels."""
    rows = Rows(raw)
    _check(rows, raw)
    raw = share(raw, rows)
    labels, moved = _labels(raw)
    if len(moved) > 1:
        _change(rows['labels'], map(moved.__getitem__, rows['labels']))
    if not OFF_CLOCKS.isdisjoint(rows['state']):
        # They are of no tick.
        for row, state in enumerate(rows['state']):
            if state in OFF_CLOCKS:
                rows[COUNT.name][row] = 0
    _change(rows['holder_thread'], [
        thread if node else NOT_KNOWN for thread, node
        in zip(rows['holder_thread'], rows['holder'])])
    values = [value_type for value_type in rows.schema.values
              if value_type in MEASURED or any(rows[value_type.name])]
    functions = raw['functions']
    process = _process(raw)
    if raw.get('moments') is not None:
        raw = raw | {'timeline': _timeline(raw)}
    raw = raw | {
        'is_recorded_here': True, 'labels': labels,
        'threads': [(*row[:4], process) for row in raw['threads']],
        'keys': rows.schema.keys, 'value_types': values,
        'columns': [rows[column.name]
                    for column in (*rows.schema.keys, *values)],
        'task_classes': [of_core(functions[row], *counters)
                         for row, *counters in raw['task_classes']
                         if counters]}
    if raw.get('allocations') is None:
        return raw
    # Rows of labels have moved.
    return allocations.add(raw, moved)


def _timeline(raw):
    """Return what makes a Timeline of the moments, for the Tables."""
    def timeline(_):
        from profile_sampling._data.timeline import bounded
        start_ns = raw['start_ns']
        return bounded(
            [(max(time_ns - start_ns, 1), sample & _ROW, *values)
             for time_ns, *values, sample
             in zip(*unpacked(raw['moments'], _MOMENT_COLUMNS))],
            raw['resolution_ns'])
    return timeline


def _process(raw):
    """Return the Process whose tables these are, or None."""
    pid = raw.get('pid')
    if not pid:
        return None
    return Process(pid, raw.get('meta', {}).get('host', ''),
                   _clock.process_start_ns(pid))


def _change(column, numbers):
    for row, number in enumerate(numbers):
        column[row] = number


class Rows(dict):
    """The columns of the core's rows by name, to be changed.

    The core's names are ours: no value is called as a key is.
    """

    def __init__(self, raw):
        types = {(its.kind, its.unit): its for its in (*MEASURED, *OF_TASKS)}
        self.schema = Schema(raw.get('keys', CORE_KEYS), tuple([
            types.get(tuple(its)) or value_type(*its)
            for its in raw['measured']]), 0)
        super().__init__(zip(
            [column.name for column in (*self.schema.keys,
                                        *self.schema.values)],
            unpacked(raw['samples'], self.schema.width)))


def _check(rows, raw):
    """Raise ValueError unless all rows have labels."""
    labels = rows['labels']
    if labels and not 0 <= min(labels) <= max(labels) < len(raw['labels']):
        raise ValueError('a row refers to labels that do not exist')


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
