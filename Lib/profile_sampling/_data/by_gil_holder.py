"""Who held the GIL while others waited for it.

This file owns the sums per waiter and holder.  It must not know any file
format.
"""

from profile_sampling._data.rows import GILHolderRow


def rows(tables):
    """Return a list of GILHolderRow; see Profile.gil_holders()."""
    frames = list(tables.frame_tuples())
    innermost, _ = tables.innermost_python()
    sums = {}
    for (node, thread, _, _, holder_thread, holder_node, count, _,
         wall_ns) in tables.held_row_tuples():
        if not holder_node:
            continue
        frame = innermost[node]
        place = frames[frame][:2] if frame >= 0 else None
        key = thread, place, holder_thread, holder_node
        known = sums.get(key, (0, 0))
        sums[key] = known[0] + count, known[1] + wall_ns
    # Places may differ in what is not told.
    rows = {}
    for (thread, place, *held), (count, wall_ns) in sums.items():
        function, line = place or (None, 0)
        if function is not None:
            function = tables.functions[function]
        key = (tables.threads[thread], function, line,
               tables.gil_holder(*held))
        known = rows.get(key, (0, 0))
        rows[key] = known[0] + count, known[1] + wall_ns
    return sorted([GILHolderRow(*key, *weights)
                   for key, weights in rows.items()], key=_rank)


def _rank(row):
    held = row.holder
    return (-row.wall_ns, _by_thread(row.thread), *_by_name(row.function),
            row.line, _by_thread(held.thread), *_by_name(held.function),
            held.line, *_by_name(held.callee))


def _by_thread(thread):
    if thread is None:
        return -1, -1, -1, ''
    return (thread.interpreter_id, thread.native_id, thread.ident,
            thread.name or '')


def _by_name(function):
    if function is None:
        return '', '', 0, ''
    return (function.name, function.filename, function.first_line,
            function.kind)
