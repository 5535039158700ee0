"""A profile as columns, for libraries that compute with tables."""

from profile_sampling._data import (
    by_function, by_gil_holder, by_instruction, by_label, checks)
from profile_sampling._data.idle import shown
from profile_sampling._data.label_names import TASKS
from profile_sampling._data.sums import sums_by
from profile_sampling._data.tables import NODE_COLUMNS
from profile_sampling._data.values import STATES

_THREAD = 'thread', 'thread_id', 'native_id', 'interpreter_id', 'pid'
_FUNCTION = 'function', 'kind', 'file', 'first_line'


def columns(tables, what, idle=False):
    """Return {name: list}; see Profile.columns()."""
    checks.one_of('what', what, tuple(_TABLES))
    # What says the state of its rows has them all.
    if what not in _WITH_STATES:
        tables = shown(tables, idle)
    names, rows = _TABLES[what](tables)
    columns = {name: [] for name in names}
    appends = [column.append for column in columns.values()]
    for row in rows:
        for append, cell in zip(appends, row, strict=True):
            append(cell)
    return columns


def _values(tables, *prefixes):
    return [f'{prefix}{value_type.name}' for prefix in prefixes or ('',)
            for value_type in tables.value_types]


def _function(function):
    if function is None:
        return (None,) * len(_FUNCTION)
    return (function.name, function.kind, function.filename,
            function.first_line)


def _thread(thread):
    if thread is None:
        return (None,) * len(_THREAD)
    return (thread.name, thread.ident, thread.native_id,
            thread.interpreter_id, thread.process and thread.process.pid)


def _samples(tables):
    keys = [label for label in by_label.labels(tables) if label != TASKS]
    names = ['stack', *_FUNCTION, 'line', *_THREAD, 'state', 'task_name',
             'task_id', 'gil_holder', *tables.schema.plain_keys,
             *[f'label_{key}' for key in keys], *_values(tables)]
    return names, _sample_rows(tables, keys)


def _sample_rows(tables, keys):
    function_names = [function.name for function in tables.functions]
    frames = list(tables.frame_tuples())
    names = [function_names[function] for function, *_ in frames]
    places = [(*_function(tables.functions[function]), line)
              for function, line, *_ in frames]
    nodes = tables.nodes_view()
    parents = nodes[0::NODE_COLUMNS].tolist()
    frame_of_node = nodes[1::NODE_COLUMNS].tolist()
    nowhere = *_function(None), 0
    more = list(map(tables.column, tables.schema.plain_keys))
    for row, (node, thread, labels, state, holder_thread, holder_node,
              values) in enumerate(zip(*map(tables.column, (
                  'stack', 'thread', 'labels', 'state', 'holder_thread',
                  'holder')), tables.values())):
        place = places[frame_of_node[node]] if node else nowhere
        stack = []
        while node:
            stack.append(names[frame_of_node[node]])
            node = parents[node]
        its_labels, task_name, task_id = tables.label_set(labels)
        holder = tables.gil_holder(holder_thread, holder_node)
        yield (tuple(stack), *place, *_thread(tables.threads[thread]),
               STATES[state], task_name, task_id,
               None if holder is None else holder.name,
               *[column[row] for column in more],
               *[its_labels.get(key) for key in keys], *values)


def _functions(tables):
    return ([*_FUNCTION, *_values(tables, 'self_', 'cum_')],
            [(*_function(row.function), *row.self_values, *row.cum_values)
             for row in by_function.functions(tables)])


def _lines(tables):
    return ([*_FUNCTION, 'line', *_values(tables, 'self_', 'cum_')],
            [(*_function(row.function), row.line, *row.self_values,
              *row.cum_values) for row in by_function.lines(tables)])


def _instructions(tables):
    return ([*_FUNCTION, 'line', 'column', 'instruction_offset',
             'base_opname', *_values(tables, 'self_'), 'specialized_count',
             'unspecialized_count', 'deoptimized_count'],
            [(*_function(row.function), row.line, row.column,
              row.instruction_offset, row.base_opname, *row.self_values,
              row.specialized_count, row.unspecialized_count,
              row.deoptimized_count) for row in by_instruction.rows(tables)])


def _labels(tables):
    return (['key', 'value', *_values(tables)],
            [(key, row.value, *row.values) for key in by_label.keys(tables)
             for row in by_label.rows(tables, key)])


def _threads(tables):
    sums = sums_by(tables, tables.column('thread'), len(tables.threads))
    return ([*_THREAD, *_values(tables)],
            [(*_thread(thread), *values) for thread, values
             in zip(tables.threads, zip(*sums))])


def _states(tables):
    column = tables.column('state')
    sums = sums_by(tables, column, len(STATES))
    there = set(column)
    return (['state', *_values(tables)],
            [(state, *values) for number, (state, values)
             in enumerate(zip(STATES, zip(*sums))) if number in there])


def _gil_holders(tables):
    held = [f'holder_{name}' for name in (*_THREAD, *_FUNCTION, 'line')]
    return ([*_THREAD, *_FUNCTION, 'line', *held, 'holder_callee',
             *_values(tables)],
            [(*_thread(row.thread), *_function(row.function), row.line,
              *_thread(row.holder.thread), *_function(row.holder.function),
              row.holder.line, row.holder.callee and row.holder.callee.name,
              *row.values) for row in by_gil_holder.rows(tables)])


_WITH_STATES = 'samples', 'states'
_TABLES = {
    'samples': _samples, 'functions': _functions, 'lines': _lines,
    'instructions': _instructions, 'labels': _labels, 'threads': _threads,
    'states': _states, 'gil_holders': _gil_holders,
}
