"""What functions and lines cost."""

from profile_sampling._data import stacks
from profile_sampling._data.rows import FunctionRow, LineRow, function_rank
from profile_sampling._data.by_state import RUNNING
from profile_sampling._data.tables import FRAME_COLUMNS
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
    """Return {function: {line: cumulative value}} of the functions that have
    1 in *wanted*, by the profile's own value.
    """
    view = tables.frames_view()
    numbers = {None: 0}
    keys = [numbers.setdefault((function, line), len(numbers))
            if wanted[function] else 0 for function, line
            in zip(view[0::FRAME_COLUMNS].tolist(),
                   view[1::FRAME_COLUMNS].tolist())]
    places = list(numbers)
    found = {}
    for key, (_, [cum]) in stacks.sums_of_keys(
            tables.nodes_view(), zip(tables.column('stack'),
                                     tables.own_column),
            keys, len(places)).items():
        if key:
            function, line = places[key]
            found.setdefault(tables.functions[function], {})[line] = cum
    return found


def without_frames(tables):
    """Return a list of the FunctionRow of what has no stack, if anything: the
    program was not begun yet, or the thread runs no Python.  Its function is
    None."""
    rows = [values for node, values
            in zip(tables.column('stack'), tables.values()) if not node]
    if not rows:
        return []
    values = tuple(map(sum, zip(*rows)))
    return [FunctionRow(None, tables.value_types, values, values)]


def running_records(tables):
    """Return {function: (self, cumulative)}: how many records each has of
    samples that were taken while it ran; None is what has no stack.
    """
    keys = tables.frames_view()[0::FRAME_COLUMNS].tolist()
    found = {tables.functions[key]: counts for key, counts
             in running_sums(tables, keys, len(tables.functions)).items()}
    if COUNT in tables.value_types:
        found[None] = (sum([count for node, state, count in zip(
            tables.column('stack'), tables.column('state'),
            tables.value(COUNT.name)) if not node and state == RUNNING]),) * 2
    return found


def running_sums(tables, key_of_frame, n_keys):
    """Return the same by the keys of sums_of_frames()."""
    if COUNT not in tables.value_types:
        return {}
    running = [(node, count) for node, state, count in zip(
        tables.column('stack'), tables.column('state'),
        tables.value(COUNT.name)) if state == RUNNING]
    return {key: (own, cum) for key, ((own,), (cum,)) in stacks.sums_of_keys(
        tables.nodes_view(), running, key_of_frame, n_keys).items()}


def _ranked(rows, own):
    def rank(row):
        return (-row.self_values[own], -row.cum_values[own],
                *function_rank(row.function), getattr(row, 'line', 0))
    rows.sort(key=rank)
    return rows


def sums_of_frames(tables, key_of_frame, n_keys):
    """Return a list of (key, (self values, cumulative values)).

    Keys that are on the stack of no sample are left out.
    """
    samples = zip(tables.column('stack'), *tables.value_columns)
    return list(stacks.sums_of_keys(tables.nodes_view(), samples,
                                    key_of_frame, n_keys).items())
