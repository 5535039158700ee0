"""All samples of a profile, with fewer frames in their stacks.

This file owns which frames are left out: those that are hidden or folded,
what a function calls that is collapsed, and what is above a root.  It must
not know how tables are copied.

No sample is left out: what frames weighed themselves goes to their callers.
"""

from profile_sampling._data import match, origins
from profile_sampling._data.subset import Source
from profile_sampling._data.tables import FRAME_COLUMNS, NODE_COLUMNS

_KINDS = {'C': 'C', 'operators': 'operator', 'pseudo': 'pseudo'}
_ORIGINS = origins.STDLIB, origins.PACKAGES
# What can be folded into what calls it.
FOLDS = *_KINDS, *_ORIGINS


def shaped(tables, *, hide=(), fold=(), collapse=(), root=None):
    """Return Tables without the frames that are asked for.

    hide, collapse  patterns of functions
    fold            some of FOLDS
    root            pattern of the functions that stacks begin at, or None
    """
    if not (hide or fold or collapse or root):
        return tables
    kinds = {_KINDS.get(name) for name in fold}
    functions = bytearray([function.kind in kinds
                           for function in tables.functions])
    functions = _matching(tables, hide, functions)
    return Source(tables, hidden_frames=match.frames(tables, functions),
                  hidden_nodes=_nodes(tables, fold, collapse, root)).part(
                      tables.row_tuples())


def _nodes(tables, fold, collapse, root):
    """Return 1 for each node that is left out for what is above it."""
    parents = tables.nodes_view()[0::NODE_COLUMNS].tolist()
    found = []
    if set(fold) & set(_ORIGINS):
        found.append(_within_libraries(tables, fold, parents))
    if collapse:
        within = _innermost(tables, collapse)
        found.append([within[parent] >= 0 for parent in parents])
    if root:
        found.append([frame < 0 for frame in _innermost(tables, [root])])
    if not found:
        return b''
    hidden = bytearray(map(any, zip(*found)))
    hidden[0] = 0
    return hidden


def _within_libraries(tables, fold, parents):
    """Return which nodes are in folded code that folded code has called.

    What code entered a library by is kept, and what states are told by.
    """
    origin = origins.of_functions(tables.functions)
    of_frames = tables.frames_view()[0::FRAME_COLUMNS].tolist()
    is_folded = [origin[function] in fold for function in of_frames]
    is_pseudo = [tables.functions[function].kind == 'pseudo'
                 for function in of_frames]
    python, _ = tables.innermost_python()
    in_folded = [frame >= 0 and is_folded[frame] for frame in python.tolist()]
    frames = tables.nodes_view()[1::NODE_COLUMNS].tolist()
    return [within and in_folded[parent] and not is_pseudo[frame]
            for within, parent, frame in zip(in_folded, parents, frames)]


def _innermost(tables, patterns):
    none = bytearray(len(tables.functions))
    return match.innermost(
        tables, _matching(tables, patterns, none)).tolist()


def _matching(tables, patterns, found):
    """Add the functions that match any of the patterns."""
    for pattern in patterns:
        found = bytearray(map(int.__or__, found,
                              match.pattern(tables, pattern)))
    return found
