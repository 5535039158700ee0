"""What a notebook makes of a profile: cells by their names, and not itself."""

from profile_sampling._data import match, origins
from profile_sampling._data.subset import Source
from profile_sampling._data.tables import (
    NODE_COLUMNS, Tables, function_row, thread_row)
from profile_sampling._data.values import Function

# What runs cells, in whose threads nothing of the program is.
_NOTEBOOK = 'IPython', 'ipykernel'
# What compilers of cells call the code of one.
_CODE = '<module>', '<cell line:'


def without_notebook(tables, filename, before=()):
    """Return Tables in which stacks begin at the code of one cell.

    *filename* is that of the code, *before* the idents of threads that were
    there before it.  Threads of the notebook itself are left out, those
    without a frame of Python, and those of before in which no code of mine
    ran; others are as they are.  Who held the GIL while the code waited is
    still said, of any thread.
    """
    functions = tables.functions
    is_cell = [function.filename == filename and _is_code(function)
               for function in functions]
    is_notebook = [(function.module or '').partition('.')[0] in _NOTEBOOK
                   for function in functions]
    cells = match.innermost(tables, is_cell)
    notebooks = match.innermost(tables, is_notebook)
    rows = set(zip(tables.column('stack'), tables.column('thread')))
    threads = {thread for node, thread in rows if cells[node] >= 0}
    # Of a thread that hardly ran nothing may be known but its state.
    python, _ = tables.innermost_python()
    known = {thread for node, thread in rows if python[node] >= 0}
    mine = match.innermost(tables, origins.mine(tables))
    known -= {number for number, thread in enumerate(tables.threads)
              if thread.ident in before} - {
                  thread for node, thread in rows if mine[node] >= 0}
    left_out = {thread for node, thread in rows if notebooks[node] >= 0
                or thread not in known} - threads
    # Below the cell's outermost call.
    below = bytearray(len(cells))
    parents = tables.nodes_view()[0::NODE_COLUMNS]
    for node in range(len(cells) - 1, 0, -1):
        parent = parents[node]
        if below[node] or (cells[node] >= 0 > cells[parent]):
            below[parent] = 1
    below[0] = 0
    return Source(tables, hidden_nodes=below).part(
        [row for row, thread in enumerate(tables.column('thread'))
         if thread not in left_out])


def named(tables, name_of):
    """Return Tables in which files of cells have the names of the cells.

    name_of(filename) is that of a cell, or None.
    """
    functions = [_named(function, name_of(function.filename))
                 for function in tables.functions]
    found = Tables(tables.inherited() | {
        'origins': tables.origins | {
            origins.code_of(cell): tables.origins[origins.code_of(function)]
            for cell, function in zip(functions, tables.functions)
            if function.kind == 'python'},
        'whole_cpu_ns': tables.whole_cpu_ns,
        'functions': list(map(function_row, functions)),
        'threads': [*map(thread_row, tables.threads)],
        'frames': tables.frames, 'nodes': tables.nodes,
        'labels': tables.labels, 'columns': tables.columns})
    if tables.has_timeline:
        # Samples have the numbers that they had.
        found = found.with_timeline(lambda _: tables.timeline)
    return found


def _named(function, cell):
    if cell is None:
        return function
    qualname = f'<{cell}>' if _is_code(function) else function.qualname
    return Function(function.module, qualname, cell, function.first_line,
                    function.kind)


def _is_code(function):
    return function.qualname.startswith(_CODE)
