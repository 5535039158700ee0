"""Parts of a profile."""

from array import array

from profile_sampling._data import checks, keys, match, timeline
from profile_sampling._data.schema import ITEM
from profile_sampling._data.subset import Source
from profile_sampling._data.tables import (
    FRAME_COLUMNS, NODE_COLUMNS)
from profile_sampling._data.values import MEASURED, WALL


def filtered(tables, *, function, file, state, thread, task, labels):
    """Return the samples that match; see Profile.filter()."""
    tests = []
    functions = None
    if function is not None:
        functions = match.functions(tables, function)
    if file is not None:
        found = match.files(tables, file)
        functions = found if functions is None else bytearray(
            map(int.__and__, functions, found))
    if functions is not None:
        tests.append(('stack', _stacks(tables, functions)))
    if state is not None:
        tests.append(('state', match.states(state)))
    if thread is not None:
        tests.append(('thread', match.threads(tables, thread)))
    if task is not None:
        tests.append(('labels', match.task(tables, task)))
    if labels is not None:
        tests += [('labels', found) for found in match.labels(tables, labels)]
    rows = range(len(tables))
    for name, found in tests:
        column = tables.column(name)
        rows = [row for row in rows if found[column[row]]]
    return Source(tables).part(rows)


def focused(tables, pattern, *, matching):
    """Return the samples with (or without) a frame that matches."""
    found = _stacks(tables, match.pattern(tables, pattern))
    return Source(tables).part([
        row for row, node in enumerate(tables.column('stack'))
        if found[node] == matching])


def where(tables, key, pattern):
    """Return the samples whose value of a key, in words, matches.

    Raise ValueError for a bad pattern.
    """
    compiled = match.states_like if key == 'state' else match.compiled
    search = compiled(pattern).search
    values = keys.values(tables, key)
    found = {value: search(keys.text(value)) for value in set(values)}
    return Source(tables).part([
        row for row, value in enumerate(values) if found[value]])


def between(tables, begin_ns, end_ns):
    """Return what a range of time has; see Profile.between().

    Raise ValueError if there is no time line, or the range is none.
    """
    if not tables.has_timeline:
        raise ValueError('the profile has no time line: record it with '
                         '--timeline, or profile(timeline=True)')
    if tables.timeline.is_stale:
        raise ValueError('the time line is not of these samples any more: '
                         'another tool has changed them')
    for name, number in ('begin_ns', begin_ns), ('end_ns', end_ns):
        checks.whole(name, number, least=0)
    if begin_ns >= end_ns:
        raise ValueError('the range of time ends before it begins')
    part = timeline.between(tables.timeline, begin_ns, end_ns)
    # What has no moments cannot be there.
    types = [value_type for value_type in tables.value_types
             if value_type in MEASURED]
    order = [MEASURED.index(value_type) for value_type in types]
    kinds = [value_type.kind for value_type in types]
    mode = tables.mode if tables.mode in kinds else WALL.kind
    sums = dict(sorted(timeline.sums(part).items()))
    columns = list(zip(*sums.values())) or [()] * len(MEASURED)
    return Source(tables).part(
        list(sums), [array(ITEM, columns[number]) for number in order],
        part, value_types=types, mode=mode,
        span_ns=_span(tables, begin_ns, end_ns))


def _span(tables, begin_ns, end_ns):
    """Return what there is of a range."""
    first_ns, last_ns = tables.span_ns or (0, tables.end_ns)
    begin_ns = min(max(begin_ns, first_ns), last_ns)
    return begin_ns, max(begin_ns, min(end_ns, last_ns))


def grouped(tables, key):
    """Return {value: Tables}; see Profile.group_by()."""
    if key == 'function':
        leaves = _leaf_functions(tables)
        values = [leaves[node] for node in tables.column('stack')]
    else:
        keys.check(tables, key)
        values = keys.values(tables, key)
    groups = {}
    for row, value in enumerate(values):
        groups.setdefault(value, []).append(row)
    own = tables.own_column
    ranked = [(-sum([own[row] for row in rows]), -len(rows), number)
              for number, rows in enumerate(groups.values())]
    source = Source(tables)
    items = list(groups.items())
    return {items[number][0]: source.part(items[number][1])
            for *_, number in sorted(ranked)}


def _stacks(tables, functions):
    return match.stacks(tables, match.frames(tables, functions))


def _leaf_functions(tables):
    functions = [tables.functions[function] for function
                 in tables.frames_view()[0::FRAME_COLUMNS]]
    frames = tables.nodes_view()[1::NODE_COLUMNS].tolist()
    return [None, *[functions[frame] for frame in frames[1:]]]
