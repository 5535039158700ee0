"""What functions and lines cost.

This file owns the sums over the tree of stacks.  It must not know any file
format.
"""

from profile_sampling._data.rows import FunctionRow, LineRow
from profile_sampling._data.tables import FRAME_COLUMNS, NODE_COLUMNS


def functions(tables):
    """Return a list of FunctionRow; see Profile.functions()."""
    functions = tables.functions
    keys = tables.frames_view()[0::FRAME_COLUMNS].tolist()
    rows = [FunctionRow(functions[key], *weights) for key, weights
            in enumerate(_aggregate(tables, keys, len(functions)))
            if weights is not None]
    return _ranked(rows, tables.mode)


def lines(tables):
    """Return a list of LineRow; see Profile.lines()."""
    view = tables.frames_view()
    numbers = {}
    keys = [numbers.setdefault(key, len(numbers)) for key
            in zip(view[0::FRAME_COLUMNS].tolist(),
                   view[1::FRAME_COLUMNS].tolist())]
    sums = _aggregate(tables, keys, len(numbers))
    rows = [LineRow(tables.functions[function], line, *weights)
            for (function, line), weights in zip(numbers, sums)
            if weights is not None]
    return _ranked(rows, tables.mode)


def _ranked(rows, mode):
    def rank(row):
        function = row.function
        return (-row.flat_ns(mode), -row.cum_ns(mode), function.name,
                function.filename, function.first_line, function.kind,
                getattr(row, 'line', 0))
    rows.sort(key=rank)
    return rows


def _aggregate(tables, key_of_frame, n_keys):
    """Return per key (flat count, cpu, wall, cum count, cpu, wall).

    None for a key on no stack.  One pass up the tree sums the
    subtrees, one walk down it finds where a key occurs first on its
    stack: only there does the subtree count, so recursion is not
    counted twice.
    """
    nodes = tables.nodes_view()
    parents = nodes[0::NODE_COLUMNS].tolist()
    frames = nodes[1::NODE_COLUMNS].tolist()
    keys = [key_of_frame[frame] for frame in frames[1:]]
    keys.insert(0, -1)
    subtree = [[0] * len(keys) for _ in range(3)]
    for node, _, _, _, *weights in tables.row_tuples():
        for sums, weight in zip(subtree, weights):
            sums[node] += weight
    flat = [[0] * n_keys for _ in range(3)]
    seen = bytearray(n_keys)
    for node, key in enumerate(keys):
        if node:
            seen[key] = 1
            for sums, own in zip(flat, subtree):
                sums[key] += own[node]
    for sums in subtree:
        for node in range(len(keys) - 1, 0, -1):
            sums[parents[node]] += sums[node]
    cum = [[0] * n_keys for _ in range(3)]
    for node in _outermost(parents, keys, n_keys):
        for sums, own in zip(cum, subtree):
            sums[keys[node]] += own[node]
    return [weights if seen[key] else None
            for key, weights in enumerate(zip(*flat, *cum))]


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
