"""What a user may name in a profile, and where that is.

A pattern is a text or a regular expression
that is compiled; it is searched for in the name of a function, and in the name of its file.
Elsewhere a text is a name and has to be equal.  What is found is a bytearray,
with 1 in the place of each row of a table that matches.
"""

import os
import re

from profile_sampling._data import by_label
from profile_sampling._data.label_names import TASKS
from profile_sampling._data.stacks import innermost_of_all
from profile_sampling._data.tables import FRAME_COLUMNS, NODE_COLUMNS
from profile_sampling._data.values import STATES, Function, Thread


def functions(tables, wanted):
    """Find functions by name, as a Function or by a compiled expression."""
    match wanted:
        case str():
            return _flags([wanted in (function.name, function.qualname)
                           for function in tables.functions])
        case Function():
            return _flags([function == wanted
                           for function in tables.functions])
        case re.Pattern(pattern=str()):
            return _flags([wanted.search(function.name)
                           for function in tables.functions])
    raise TypeError('function must be a name, a Function or a compiled '
                    f'regular expression for texts, not {wanted!r}')


def files(tables, wanted):
    """Find functions by the path of their file."""
    if isinstance(wanted, re.Pattern) and isinstance(wanted.pattern, str):
        return _flags([function.filename and wanted.search(function.filename)
                       for function in tables.functions])
    if isinstance(wanted, (str, os.PathLike)):
        path = os.fsdecode(wanted)
        # What is not Python has no file, and '' is not the name of one.
        return _flags([path and function.filename == path
                       for function in tables.functions])
    raise TypeError('file must be a path or a compiled regular expression '
                    f'for texts, not {wanted!r}')


def pattern(tables, wanted):
    """Find functions by a pattern for their names and files."""
    search = compiled(wanted).search
    return _flags([search(function.name) or search(function.filename)
                   for function in tables.functions])


def frames(tables, functions):
    """Return which frames are in one of the *functions* that were found."""
    return bytearray([functions[function] for function
                      in tables.frames_view()[0::FRAME_COLUMNS]])


def innermost(tables, functions):
    """Return of each node the innermost frame of *functions*; -1: none."""
    return innermost_of_all(tables.node_columns(), frames(tables, functions))


def stacks(tables, frames):
    """Return which nodes of samples have one of *frames* on their stack."""
    innermost, _ = tables.innermost(frames)
    found = bytearray(len(tables.nodes_view()) // NODE_COLUMNS)
    for node in set(tables.column('stack')):
        found[node] = innermost[node] >= 0
    return found


def states(wanted):
    """Find states: one, or several in a list or another iterable."""
    if isinstance(wanted, str):
        wanted = [wanted]
    try:
        wanted = list(wanted)
    except TypeError:
        raise TypeError('state must be the name of a state or several of '
                        f'them, not {wanted!r}') from None
    names = set()
    for state in wanted:
        # 'GIL wait', as tables say, is gil_wait.
        name = str(state).replace(' ', '_').lower()
        if name not in STATES:
            raise ValueError(f'there is no state {state!r}; the states are: '
                             + ', '.join(STATES))
        names.add(name)
    return _flags([state in names for state in STATES])


def states_like(wanted):
    """Return a pattern for states, spelt as for states(), compiled."""
    return re.compile(compiled(wanted).pattern.replace(' ', '_'),
                      re.IGNORECASE)


def threads(tables, wanted):
    """Find threads by name, by native id or as a Thread."""
    match wanted:
        case Thread():
            return _flags([thread == wanted for thread in tables.threads])
        case str():
            return _flags([thread.name == wanted
                           for thread in tables.threads])
        case int() if not isinstance(wanted, bool):
            return _flags([thread.native_id == wanted
                           for thread in tables.threads])
    raise TypeError('thread must be the name of a thread, its native id or '
                    f'a Thread, not {wanted!r}')


def task(tables, wanted):
    """Find rows of labels by the name of the task."""
    if not isinstance(wanted, str):
        raise TypeError(f'task must be the name of a task, not {wanted!r}')
    return _flags([value == wanted for value in
                   by_label.values(tables.labels, TASKS)])


def labels(tables, wanted):
    """Find rows of labels by keys and values: a bytearray for each key."""
    try:
        wanted = dict(wanted)
    except (TypeError, ValueError):
        raise TypeError('labels must be a mapping of keys to values, not '
                        f'{wanted!r}') from None
    found = []
    for key, value in wanted.items():
        if not (value is None or isinstance(value, str)):
            raise TypeError('the value of a label is a text, or None for '
                            f'the samples without it; not {value!r}, as for '
                            f'{key!r}')
        by_label.check_key(key, [label for label in by_label.labels(tables)
                                 if label != TASKS])
        found.append(_flags([one == value for one in
                             by_label.values(tables.labels, key)]))
    return found


def compiled(wanted):
    """Return a pattern as a regular expression, or raise ValueError."""
    if isinstance(wanted, re.Pattern) and isinstance(wanted.pattern, str):
        return wanted
    if not isinstance(wanted, str):
        raise TypeError('pattern must be a text or a compiled regular '
                        f'expression for texts, not {wanted!r}')
    try:
        return re.compile(wanted)
    except (re.error, OverflowError, RecursionError) as exc:
        raise ValueError(
            f'{wanted!r} is no regular expression: {exc}') from None


def _flags(found):
    return bytearray(map(bool, found))
