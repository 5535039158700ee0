"""What functions and lines cost.

This file owns the sums over the tree of stacks.  It must not know any file
format.
"""

from profile_sampling._data.rows import FunctionRow, LineRow
from profile_sampling._data.sums import sums_by
from profile_sampling._data.tables import FRAME_COLUMNS, NODE, NODE_COLUMNS


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


def _ranked(rows, own):
    def rank(row):
        function = row.function
        return (-row.self_values[own], -row.cum_values[own], function.name,
                function.filename, function.first_line, function.kind,
                getattr(row, 'line', 0))
    rows.sort(key=rank)
    return rows


def sums_of_frames(tables, key_of_frame, n_keys):
    """Return a list of (key, (self values, cumulative values)).

    Keys that are on the stack of no sample are left out.  One pass up the
    tree sums the subtrees, one walk down it finds where a key occurs first on
    its stack: only there does the subtree count, so recursion is not counted
    twice.
    """
    nodes = tables.nodes_view()
    parents = nodes[0::NODE_COLUMNS].tolist()
    frames = nodes[1::NODE_COLUMNS].tolist()
    keys = [key_of_frame[frame] for frame in frames[1:]]
    # What is not on any stack has a key of its own.
    keys.insert(0, n_keys)
    subtree = sums_by(tables, tables.column(NODE), len(keys))
    own = [_sums(enumerate(keys), sums, n_keys + 1) for sums in subtree]
    upwards = range(len(keys) - 1, 0, -1)
    for sums in subtree:
        for node in upwards:
            sums[parents[node]] += sums[node]
    outermost = [(node, keys[node])
                 for node in _outermost(parents, keys, n_keys)]
    cum = [_sums(outermost, sums, n_keys) for sums in subtree]
    sampled = _sampled(tables, parents)
    seen = sorted({key for node, key in outermost if sampled[node]})
    return [(key, (tuple([sums[key] for sums in own]),
                   tuple([sums[key] for sums in cum]))) for key in seen]


def _sums(keyed_nodes, values, n_keys):
    sums = [0] * n_keys
    for node, key in keyed_nodes:
        sums[key] += values[node]
    return sums


def _sampled(tables, parents):
    """Return per node whether it is on the stack of a sample.

    Those of who held the GIL need not be, nor those that the core keeps.
    """
    sampled = bytearray(len(parents))
    for node in tables.column(NODE):
        sampled[node] = 1
    for node in range(len(parents) - 1, 0, -1):
        if sampled[node]:
            sampled[parents[node]] = 1
    return sampled


def _outermost(parents, keys, n_keys):
    """Yield the nodes whose key no ancestor has."""
    n_nodes = len(parents)
    first_child = [0] * n_nodes
    next_sibling = [0] * n_nodes
    for node in range(n_nodes - 1, 0, -1):
        parent = parents[node]
        next_sibling[node] = first_child[parent]
        first_child[parent] = node
    open_keys = bytearray(n_keys)
    pending = [0]
    while pending:
        node = pending.pop()
        if node < 0:
            # Below this mark lies what is outside the key's subtree.
            open_keys[-1 - node] = 0
            continue
        if node and not open_keys[keys[node]]:
            open_keys[keys[node]] = 1
            pending.append(-1 - keys[node])
            yield node
        child = first_child[node]
        while child:
            pending.append(child)
            child = next_sibling[child]
