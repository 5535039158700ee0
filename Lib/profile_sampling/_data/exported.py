"""All that a profile has, as tables whose rows refer to each other by number.

A column is an array of 64-bit numbers, or a list of texts and None.
"""

from array import array

from profile_sampling._data import opcodes
from profile_sampling._data.schema import ITEM
from profile_sampling._data.tables import FRAME_COLUMNS
from profile_sampling._data.values import MEASURED, STATES

_NONE = -1


def exported(tables):
    """Return {table: {column: values}}; see Profile.tables()."""
    label_sets, labels, number_of = _labels(tables)
    found = {
        'value_types': _rows(
            [(*its._fields(), total) for its, total
             in zip(tables.value_types, tables.totals)],
            'name', 'kind', 'unit', 'adds', 'of', total=1),
        'threads': _rows(
            [(thread.name, *_process(thread.process), thread.ident,
              thread.native_id, thread.interpreter_id)
             for thread in tables.threads],
            'name', 'host', pid=1, process_start_ns=1, ident=1, native_id=1,
            interpreter_id=1),
        'functions': _rows(
            [(function.name, *function._fields()[:3], function.kind,
              function.first_line) for function in tables.functions],
            'name', 'module', 'qualname', 'filename', 'kind', first_line=1),
        'frames': _frames(tables), 'stacks': _stacks(tables),
        'label_sets': label_sets, 'labels': labels,
        'states': {'name': list(STATES)},
        'samples': _samples(tables, number_of)}
    line = tables.timeline
    if line is not None:
        found['records'] = dict(zip(
            ('time_ns', 'sample', *[its.name for its in MEASURED]),
            [_numbers(column) for column in line.columns]))
    return found


def _numbers(column):
    try:
        return array(ITEM, column)
    except OverflowError:
        # Of a hostile file; a thread's ident has no sign.
        return array('Q', column)


def _rows(rows, *texts, **numbers):
    """Return the columns of rows: texts, and behind them numbers."""
    names = *texts, *numbers
    columns = dict(zip(names, map(list, zip(*rows)))) or {
        name: [] for name in names}
    return columns | {name: _numbers(columns[name]) for name in numbers}


def _process(process):
    return (None, 0, 0) if process is None else (
        process.host, process.pid, process.start_ns)


def _frames(tables):
    view = tables.frames_view()
    *columns, opcode = [view[number::FRAME_COLUMNS]
                        for number in range(FRAME_COLUMNS)]
    return dict(zip(('function', 'line', 'column', 'instruction_offset'),
                    map(_numbers, columns))) | {
        'opname': list(map(opcodes.name, opcode))}


def _stacks(tables):
    columns = {}
    for name, column in zip(('parent', 'frame'), tables.node_columns()):
        columns[name] = _numbers(column)
        # The first is the stack without a frame.
        columns[name][0] = _NONE
    return columns


def _labels(tables):
    """Return two tables, the sets that samples have and what is in them, and
    {row of labels: number of the set}."""
    number_of = {row: number for number, row
                 in enumerate(sorted({*tables.column('labels')}))}
    sets, labels = [], []
    for row, number in number_of.items():
        its, task_name, task_id = tables.label_set(row)
        sets.append((task_name, task_id or 0))
        labels += [(key, value, number) for key, value in its.items()]
    return (_rows(sets, 'task_name', task_id=1),
            _rows(labels, 'key', 'value', label_set=1), number_of)


def _samples(tables, number_of):
    columns = {name: _numbers(tables.column(name))
               for name in ('stack', 'thread', 'state')}
    # Nobody is a stack of its own here: 0 is one without a frame.
    held = tables.column('holder')
    columns |= {
        'label_set': _numbers(map(number_of.__getitem__,
                                  tables.column('labels'))),
        'gil_holder_stack': _numbers([node or _NONE for node in held]),
        'gil_holder_thread': _numbers([
            thread if node else _NONE for thread, node
            in zip(tables.column('holder_thread'), held)])}
    columns |= {name: _numbers(tables.column(name))
                for name in tables.schema.plain_keys}
    for value_type, column in zip(tables.value_types, tables.value_columns):
        name = value_type.name
        # Another tool's values may be called anything.
        columns[f'value_{name}' if name in columns else name] = _numbers(
            column)
    return columns
