"""Numbers for rows of tables that are put together.

This file owns how a row gets its number: by what it says, in the order in
which rows come.  It must not know what is put together, or why.
"""


def number_of(rows, row):
    """Return the place of *row* in the dict *rows*, where it is put."""
    return rows.setdefault(row, len(rows))


def number_nodes(tables, functions, frames, nodes):
    """Return the number of each node of *tables*.

    *functions* has what stands for each of their functions.  The dicts
    *frames* and *nodes* have the rows that have numbers already.
    """
    frame_numbers = [number_of(frames, (functions[function], *place))
                     for function, *place in tables.frame_tuples()]
    # Node 0 is the empty stack.
    numbers = [0]
    rows = tables.nodes_view()[2:].tolist()
    # Callers come before their callees.
    for parent, frame in zip(rows[0::2], rows[1::2]):
        numbers.append(1 + number_of(
            nodes, (numbers[parent], frame_numbers[frame])))
    return numbers
