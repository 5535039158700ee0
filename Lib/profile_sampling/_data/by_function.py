"""What functions and lines cost.

This file owns the sums over the tree of stacks.  It must not know any file
format.
"""

import _profile
from profile_sampling._data.rows import FunctionRow, LineRow, function_rank
from profile_sampling._data.by_state import RUNNING
from profile_sampling._data.sums import packed
from profile_sampling._data.tables import FRAME_COLUMNS, STATE
from profile_sampling._data.values import COUNT


def functions(tables):
    """Return a list of FunctionRow; see Profile.functions()."""
    functions = tables.functions
    keys = tables.frames_view()[0::FRAME_COLUMNS].tolist()
    types = tables.value_types
    rows = [FunctionRow(functions[key], types, *values) for key, values
            in sums_of_frames(tables, keys, len(functions))]
    return _ranked(rows, tables.own)


def lines(tables):
    """Return a list of LineRow; see Profile.lines()."""
    view = tables.frames_view()
    numbers = {}
    keys = [numbers.setdefault(key, len(numbers)) for key
            in zip(view[0::FRAME_COLUMNS].tolist(),
                   view[1::FRAME_COLUMNS].tolist())]
    places = list(numbers)
    functions = tables.functions
    types = tables.value_types
    rows = []
    for key, values in sums_of_frames(tables, keys, len(places)):
        function, line = places[key]
        rows.append(LineRow(functions[function], line, types, *values))
    return _ranked(rows, tables.own)


def lines_of(tables, wanted):
    """Return {function: {line: cumulative values}} of the functions that
    have 1 in *wanted*.
    """
    view = tables.frames_view()
    numbers = {None: 0}
    keys = [numbers.setdefault((function, line), len(numbers))
            if wanted[function] else 0 for function, line
            in zip(view[0::FRAME_COLUMNS].tolist(),
                   view[1::FRAME_COLUMNS].tolist())]
    places = list(numbers)
    found = {}
    for key, (_, cum) in sums_of_frames(tables, keys, len(places)):
        if key:
            function, line = places[key]
            found.setdefault(tables.functions[function], {})[line] = cum
    return found


def running_records(tables):
    """Return {function: (self, cumulative)}: how many records each has of
    samples that were taken while it ran.
    """
    if COUNT not in tables.value_types:
        return {}
    keys = tables.frames_view()[0::FRAME_COLUMNS].tolist()
    width = tables.sample_columns
    rows = tables.samples_view()
    running = b''.join([
        rows[number * width:(number + 1) * width].tobytes()
        for number, state in enumerate(tables.column(STATE))
        if state == RUNNING])
    counts = tables.value_types.index(COUNT)
    return {tables.functions[key]: (own[counts], cum[counts])
            for key, (own, cum) in sums_of_frames(
                tables, keys, len(tables.functions), running)}


def _ranked(rows, own):
    def rank(row):
        return (-row.self_values[own], -row.cum_values[own],
                *function_rank(row.function), getattr(row, 'line', 0))
    rows.sort(key=rank)
    return rows


def sums_of_frames(tables, key_of_frame, n_keys, samples=None):
    """Return a list of (key, (self values, cumulative values)).

    Keys that are on the stack of no sample are left out.  *samples* are rows
    of the table of samples, packed; without it, all.
    """
    if not n_keys:
        return []
    seen, own, cum = _profile.sum_stacks(
        tables.nodes, tables.samples if samples is None else samples,
        len(tables.value_types), packed(key_of_frame), n_keys)
    own, cum = [list(zip(*[sums[start:start + n_keys].tolist()
                           for start in range(0, len(sums), n_keys)]))
                for sums in (memoryview(own).cast('q'),
                             memoryview(cum).cast('q'))]
    return [(key, (own[key], cum[key])) for key in range(n_keys)
            if seen[key]]
