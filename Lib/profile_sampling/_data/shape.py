"""All samples of a profile, with fewer frames in their stacks.

No sample is left out: what frames weighed themselves goes to their callers.
"""

from profile_sampling._data import match, origins
from profile_sampling._data.stacks import innermost_of_all
from profile_sampling._data.subset import Source
from profile_sampling._data.tables import FRAME_COLUMNS, NODE_COLUMNS

_KINDS = {'C': 'C', 'operators': 'operator', 'pseudo': 'pseudo'}
_ORIGINS = origins.STDLIB, origins.PACKAGES
# A table for bytes.translate(), of flags.
_NOT = bytes([1, 0]).ljust(256, b'\0')
# What can be folded into what calls it.
FOLDS = *_KINDS, *_ORIGINS


def shaped(tables, *, hide=(), fold=(), collapse=(), root=()):
    """Return Tables without the frames that are asked for.

    hide, collapse  patterns of functions
    fold            some of FOLDS
    root            the same of those that stacks begin at
    """
    if not (hide or fold or collapse or root):
        return tables
    unknown = [name for name in fold if name not in FOLDS]
    if unknown:
        raise ValueError(f'cannot fold {unknown[0]!r}; there are: '
                         + ', '.join(FOLDS))
    kinds = {_KINDS.get(name) for name in fold}
    functions = bytearray([function.kind in kinds
                           for function in tables.functions])
    functions = _matching(tables, hide, functions)
    return Source(tables, hidden_frames=match.frames(tables, functions),
                  hidden_nodes=_nodes(tables, fold, collapse, root)
                  ).part(range(len(tables)))


def _nodes(tables, fold, collapse, root):
    """Return 1 for each node that is left out for what is above it."""
    parents = tables.nodes_view()[0::NODE_COLUMNS].tolist()
    hidden = 0
    if set(fold) & set(_ORIGINS):
        hidden |= _within_libraries(tables, fold, parents)
    if collapse:
        hidden |= _bits(_of_each(_is_within(tables, collapse), parents))
    if root:
        hidden |= _bits(_is_within(tables, root).translate(_NOT))
    if not hidden:
        return b''
    flags = bytearray(hidden.to_bytes(len(parents)))
    flags[0] = 0
    return flags


def _within_libraries(tables, fold, parents):
    """Return which nodes are in folded code that folded code has called,
    as bits.

    What code entered a library by is kept, and what states are known by.
    """
    origin = origins.of_functions(tables)
    of_frames = tables.frames_view()[0::FRAME_COLUMNS].tolist()
    # The last ones are for nodes without a frame, which is number -1.
    is_folded = bytes([*[origin[function] in fold for function in of_frames],
                       False])
    is_pseudo = bytes([*[tables.functions[function].kind == 'pseudo'
                         for function in of_frames], False])
    python = innermost_of_all(tables.node_columns(), tables.is_python())
    in_folded = _of_each(is_folded, python)
    frames = tables.nodes_view()[1::NODE_COLUMNS].tolist()
    return (_bits(in_folded) & _bits(_of_each(in_folded, parents))
            & ~_bits(_of_each(is_pseudo, frames)))


def _is_within(tables, patterns):
    """Return which nodes have a function that matches on their stack."""
    none = bytearray(len(tables.functions))
    found = match.innermost(tables, _matching(tables, patterns, none))
    return bytes(map((-1).__lt__, found))


# Of many flags, which are bytes, or bits of one number: loops in C.

def _of_each(flags, numbers):
    return bytes(map(flags.__getitem__, numbers))


def _bits(flags):
    return int.from_bytes(flags)


def _matching(tables, patterns, found):
    """Add the functions that match any of the patterns."""
    for pattern in patterns:
        found = bytearray(map(int.__or__, found,
                              match.pattern(tables, pattern)))
    return found
