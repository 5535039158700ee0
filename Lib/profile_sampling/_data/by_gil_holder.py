"""Who held the GIL while others waited for it."""

from profile_sampling._data import origins
from profile_sampling._data.rows import GILHolderRow, function_rank
from profile_sampling._data.sums import added
from profile_sampling._data.values import NOT_KNOWN, WALL


def rows(tables):
    """Return a list of GILHolderRow; see Profile.gil_holders()."""
    frames = list(tables.frame_tuples())
    innermost, _ = tables.innermost_python()
    sums = {}
    for node, thread, holder_thread, holder_node, values in zip(
            *map(tables.column, ('stack', 'thread', 'holder_thread',
                                 'holder')), tables.values()):
        if not holder_node:
            continue
        frame = innermost[node]
        place = frames[frame][:2] if frame >= 0 else None
        _add(sums, (thread, place, holder_thread, holder_node), values)
    # Places may differ in what is not shown.
    rows = {}
    for (thread, place, *held), values in sums.items():
        function, line = place or (None, 0)
        if function is not None:
            function = tables.functions[function]
        _add(rows, (tables.threads[thread], function, line,
                    tables.gil_holder(*held)), values)
    types = tables.value_types
    waited = ranked_by(tables)
    result = [GILHolderRow(*key, types, tuple(values))
              for key, values in rows.items()]
    result.sort(key=lambda row: (-row.values[waited], *_rank(row)))
    return result


def held(tables):
    """Return ({name of a GILHolder: how long others waited for it}, {name of
    a library: the same}).

    What is mine is of no library.
    """
    of_node = {}
    for node, value in zip(
            tables.column('holder'),
            tables.value_columns[ranked_by(tables)]):
        if node:
            of_node[node] = of_node.get(node, 0) + value
    names, libraries = {}, {}
    origin = dict(zip(tables.functions, origins.of_functions(tables)))
    for node, value in of_node.items():
        # The name is the same in each thread.
        holder = tables.gil_holder(NOT_KNOWN, node)
        names[holder.name] = names.get(holder.name, 0) + value
        library = origins.library(holder.function)
        if library and origin.get(holder.function) != origins.MINE:
            libraries[library] = libraries.get(library, 0) + value
    return names, libraries


def ranked_by(tables):
    """Return the number of the value that says how long threads waited."""
    types = tables.value_types
    return types.index(WALL) if WALL in types else tables.own


def _add(sums, key, values):
    known = sums.get(key)
    sums[key] = values if known is None else added(known, values)


def _rank(row):
    held = row.holder
    return (_by_thread(row.thread), *function_rank(row.function),
            row.line, _by_thread(held.thread), *function_rank(held.function),
            held.line, *function_rank(held.callee))


def _by_thread(thread):
    if thread is None:
        return -1, -1, -1, -1, ''
    pid = -1 if thread.process is None else thread.process.pid
    return (pid, thread.interpreter_id, thread.native_id, thread.ident,
            thread.name or '')
