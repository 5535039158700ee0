"""What counting calls took, taken out of the lines that it was in.

A function is counted in the function itself, a call of C code in the line that
calls it.  Of its own samples each gives the same part of its time: no caller
is favoured by how often it calls.
"""

import sys
from itertools import compress

from profile_sampling._data.counts import place_key
from profile_sampling._data.tables import (
    FRAME_COLUMNS, NODE_COLUMNS, Tables, function_row, thread_row)
from profile_sampling._data.values import COUNTING, CPU, DELAY, RUNNING

# A part of a value is of so many.
_WHOLE = 1 << 32


def taken_out(tables):
    """Return the same tables without what counting took."""
    counts = tables.counts
    parts = _parts(tables) if counts is not None and counts.cost_ns else {}
    if not parts:
        return tables
    frame = len(tables.frames_view()) // FRAME_COLUMNS
    node = len(tables.nodes_view()) // NODE_COLUMNS
    numbers, rows = {}, len(tables)
    names = tables.schema.key_names
    keys = list(zip(*[[node] * rows if name == 'stack' else column
                      for name, column in zip(names, tables.key_columns)]))
    for row in parts:
        numbers.setdefault(keys[row], rows + len(numbers))
    columns = [_longer(column, len(numbers)) for column in tables.columns]
    for key, number in numbers.items():
        for column, item in zip(columns, key):
            column[number] = item
    times = [column for column, value_type in zip(
        columns[len(names):], tables.value_types)
        if value_type.unit == CPU.unit and value_type != DELAY]
    for row, part in parts.items():
        number = numbers[keys[row]]
        for column in times:
            taken = column[row] * part // _WHOLE
            column[row] -= taken
            column[number] += taken
        parts[row] = part, number
    return Tables(tables.inherited() | {
        'functions': [*map(function_row, tables.functions),
                      function_row(COUNTING)],
        'frames': tables.frames + _packed(len(tables.functions), 0, 0, -1, 0),
        'nodes': tables.nodes + _packed(0, frame),
        'threads': list(map(thread_row, tables.threads)),
        'labels': tables.labels, 'columns': columns,
        'timeline': ((lambda _: tables.timeline._parted(parts, _WHOLE))
                     if tables.has_timeline else None)})


# Where a program ends nothing can be imported, as array or struct.

def _longer(column, more):
    result = memoryview(bytearray(8 * (len(column) + more))).cast('q')
    for row, number in enumerate(column):
        result[row] = number
    return result


def _packed(*numbers):
    return b''.join([number.to_bytes(4, sys.byteorder, signed=True)
                     for number in numbers])


def without(tables):
    """Return the tables without the samples of COUNTING, and what these are
    of the values that the profile is about."""
    frames, (_, of_nodes) = tables.frame_functions(), tables.node_columns()
    counting = {number for number, function in enumerate(tables.functions)
                if function == COUNTING}
    is_counting = [bool(node) and frames[of_nodes[node]] in counting
                   for node in tables.column('stack')]
    if not any(is_counting):
        return tables, 0
    return (tables.with_samples([row for row, its in enumerate(is_counting)
                                 if not its]),
            sum(compress(tables.own_column, is_counting)))


def _parts(tables):
    """Return {number of a sample: how much of it was counting}."""
    costs = _costs(tables.counts)
    functions = list(map(place_key, tables.functions))
    frames, nodes = tables.frames_view(), tables.nodes_view()
    keys, sums = {}, {}
    for row, (node, state, ns) in enumerate(zip(
            tables.column('stack'), tables.column('state'),
            tables.value(CPU.name))):
        if state != RUNNING or not node:
            continue
        place = FRAME_COLUMNS * nodes[NODE_COLUMNS * node + 1]
        function = functions[frames[place]]
        for key in function, (function, frames[place + 1]):
            if key in costs and ns:
                sums[key] = sums.get(key, 0) + ns
                keys.setdefault(row, []).append(key)
    return {row: min(_WHOLE, sum([_WHOLE * costs[key] // sums[key]
                                  for key in its]))
            for row, its in keys.items()}


def _costs(counts):
    """Return what counting took of functions and of lines, by their keys."""
    found = {}
    calls = counts.calls
    for row, ns in zip(calls, counts.costs_of(calls)):
        if row.callee.kind == 'python':
            key = place_key(row.callee)
        elif row.caller is not None:
            key = place_key(row.caller), row.line
        else:
            continue
        found[key] = found.get(key, 0) + ns
    return found
