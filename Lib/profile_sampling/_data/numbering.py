"""Numbers for rows of tables that are put together."""


def number_of(rows, row):
    """Return the place of *row* in the dict *rows*, where it is put."""
    return rows.setdefault(row, len(rows))


def frame_numbers(tables, functions, frames):
    """Return the number of each frame of *tables*.

    *functions* has what stands for each of their functions; the dict *frames*
    has the rows that have numbers already.
    """
    return [number_of(frames, (functions[function], *place))
            for function, *place in tables.frame_tuples()]
