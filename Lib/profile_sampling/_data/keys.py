"""What samples are grouped by: thread, state, task, file, pid or a label."""

from profile_sampling._data import by_label, checks
from profile_sampling._data.label_names import (
    BLOCK_TYPE, key_of, label_of)
from profile_sampling._data.tables import FRAME_COLUMNS
from profile_sampling._data.values import STATES, Thread, did_you_mean

_OWN = _THREAD, _STATE, _FILE, _PID = 'thread', 'state', 'file', 'pid'
# What a label that is called otherwise is called here, too.
_TYPE = 'type'
# Clocks say what their values cost, samples decide nothing.
MEASURED = _THREAD, _STATE


def check(tables, key):
    """Raise ValueError if there is no such key."""
    checks.text('key', key)
    labels = by_label.labels(tables)
    plain = tables.schema.plain_keys
    if key not in (*_OWN, *plain) and _label(key, labels) not in labels:
        known = [*_OWN, *plain, *map(key_of, labels)]
        raise ValueError(f'no sample has the label {key!r}; there are: '
                         + ', '.join(known) + did_you_mean(key, known))


def _label(key, labels):
    """Return the label that a key names, of those that there are."""
    if key == _TYPE and _TYPE not in labels:
        return BLOCK_TYPE
    return label_of(key)


def values(tables, key):
    """Return the value of a key in each sample: a text, a Thread or None.

    A part need not have a key that the whole has: there all are without.
    """
    labels = by_label.labels(tables)
    if key == _THREAD:
        return [tables.threads[number] for number in tables.column('thread')]
    if key == _PID:
        names = _process_names(tables.processes)
        pids = [names[thread.process] for thread in tables.threads]
        return [pids[number] for number in tables.column('thread')]
    if key == _STATE:
        return [STATES[number] for number in tables.column('state')]
    if key == _FILE:
        of_nodes = innermost_files(tables)
        return [of_nodes[number] for number in tables.column('stack')]
    if key in tables.schema.plain_keys:
        return list(map(str, tables.column(key)))
    of_sets = by_label.values(tables.labels, _label(key, labels))
    return [of_sets[number] for number in tables.column('labels')]


def _process_names(processes):
    """Return {process: its number}, and of those that have the same the host,
    and which of there it was, the first being the oldest."""
    names = {None: None}
    for process in processes - {None}:
        same = [its for its in processes if its and its.pid == process.pid]
        there = sorted([its.start_ns for its in same
                        if its.host == process.host])
        words = str(process.pid)
        if len(there) < len(same):
            words += f' on {process.host or "another host"}'
        if len(there) > 1:
            words += f' #{there.index(process.start_ns) + 1}'
        names[process] = words
    return names


def innermost_files(tables):
    """Return {node: file of the innermost Python function, or None} of the
    stacks of samples."""
    files = [tables.functions[function].filename for function
             in tables.frames_view()[0::FRAME_COLUMNS]]
    innermost, _ = tables.innermost_python()
    return {node: None if frame < 0 else files[frame]
            for node, frame in innermost.items()}


def texts(values):
    """Return {value: it in words}; threads of several processes have the
    number of theirs, and those of one name are numbered in their order."""
    values = list(values)
    processes = {value.process for value in values
                 if isinstance(value, Thread)}
    found, seen = {}, {}
    for value in values:
        words = text(value)
        if isinstance(value, Thread) and value not in found:
            if len(processes) > 1 and value.process:
                words += f', process {value.process.pid}'
            number = seen[words] = seen.get(words, 0) + 1
            if number > 1:
                words += f' {number}'
        found.setdefault(value, words)
    return found


def text(value):
    """Return the value of a key in words."""
    if value is None:
        return '[without]'
    if isinstance(value, str):
        return value
    name = f'thread {value.native_id}' if value.name is None else value.name
    if value.interpreter_id:
        name += f' (interpreter {value.interpreter_id})'
    return name
