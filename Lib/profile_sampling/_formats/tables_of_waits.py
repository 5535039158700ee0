"""Tables of what was waited for, and who held what others waited for."""

from profile_sampling._data import by_await, by_task, by_wait, culprits
from profile_sampling._data.values import DELAY, TASK, WALL
from profile_sampling._formats.table import Column, Table
from profile_sampling._formats.words import counted, said

_LEFT_OUT = {by_wait.OTHER_TASKS: 'for other tasks', 'resting': 'resting'}
ALL, NOT_SEEN, OUTSIDE = 'all', 'not seen', 'outside my code'
_ROWS, _LEAST_SHARE = 5, 0.01


def place_text(row):
    """Return what a row of a line of mine, or of what is outside, is called.
    """
    if row.function is not None:
        return f'{row.function.name}:{row.line}'
    return f'{OUTSIDE} ({row.inside})' if row.inside else OUTSIDE


def holder_text(row):
    return (row.how if row.how == culprits.TIMERS
            else place_text(row) if row.is_known else NOT_SEEN)


def threads(tables, sites, top):
    """The Tables of what threads waited for, and who held the GIL."""
    own = tables.value_types[tables.own]
    rows = by_wait.of_threads(sites.tables, sites.mine)
    holders = culprits.of_gil(sites.tables, sites.mine)
    waited, for_gil = [sum([row.ns for row in its])
                       for its in (rows, holders)]
    title = f'Threads waited {said(waited)}' + (
        f', and {said(for_gil)} more for the GIL' if for_gil else '')
    shown = [_waits('waits', f'{title}.', 'waited', rows, own, top,
                    sites.busy)]
    if holders:
        shown.append(_held('gil_held', 'Who held the GIL while others waited',
                           holders, WALL, top))
    return shown


def tasks(tables, sites, top):
    """The Tables of what tasks awaited, and who held their loop."""
    if not by_task.has_tasks(tables):
        return [Table('awaited', 'There are no tasks in this profile.', [], [],
                      value_type=TASK)]
    lives = by_await.Lives(tables, sites.mine)
    whose = 'Requests' if lives.are_requests else 'Tasks'
    took = 'that they took' if lives.are_requests else 'of their lives'
    shown = [_waits(
        'awaited', f'{whose} awaited {said(lives.awaited_ns)} of the '
        f'{said(lives.took_ns)} {took}.', 'awaited', lives.awaited, TASK, top,
        lives.took_ns)]
    if lives.left_out:
        shown[0].notes.append('Not in it: ' + ', '.join(
            [f'{said(ns)} {_LEFT_OUT[what]}' for what, ns in lives.left_out]))
    return [*shown, _lives(lives), *loop(tables, sites, top)]


def loop(tables, sites, top):
    """The Tables of who held the event loop: one or none."""
    holders = culprits.of_loop(tables, sites.mine)
    return [_held('loop_held', 'Who held the event loop while other tasks '
                  'could go on', holders, DELAY, top)] if holders else []


def awaited_by_requests(tables, sites):
    """The Table of what requests awaited most, beside the lines of threads;
    or none."""
    if not by_task.has_tasks(tables):
        return []
    lives = by_await.Lives(tables, sites.mine)
    rows = [row for row in lives.awaited
            if row.kind in _OUTSIDE_THE_PROGRAM][:_FIRST]
    if not lives.are_requests or not rows:
        return []
    return [Table(
        'awaited_by_requests', 'Awaited by requests, beside that, of the '
        f'{said(lives.took_ns)} that they took',
        [Column('share', 'share', 'share'),
         Column('awaited_ns', 'time', 'value'),
         Column('for', 'kind', 'text'), Column('at', 'line', 'name'),
         Column('what', 'what', 'text')],
        [(row.ns / lives.took_ns, row.ns, row.kind, ('', place_text(row)),
          row.what) for row in rows], value_type=TASK)]


# What a program waits for that nothing of its own does meanwhile.
_OUTSIDE_THE_PROGRAM = frozenset({
    by_wait.POOL, by_wait.DATABASE, by_wait.HTTP, by_wait.SOCKET,
    by_wait.FILE, by_wait.CHILD, by_wait.LOCK})
_FIRST = 3


def _waits(key, title, heading, rows, value_type, top, whole):
    total = sum([row.ns for row in rows])
    top = _top(rows, total, top)
    cells = [(row.ns, _part(row.ns, total), _part(row.ns, whole), row.kind,
              ('', place_text(row)), row.what) for row in rows[:top]]
    return Table(
        key, title,
        [Column(f'{heading}_ns', heading, 'value'),
         Column('share', 'share', 'share'),
         Column('of_all', '', 'share', 'data'), Column('for', 'for', 'text'),
         Column('at', 'at', 'name'), Column('what', 'what', 'text')],
        [*cells, *_ends(rows, top, total, lambda ns, name: (
            ns, _part(ns, total), _part(ns, whole), name, ('', ''), ''))],
        value_type=value_type)


def _held(key, title, rows, value_type, top):
    total = sum([row.ns for row in rows])
    top = _top(rows, total, top)
    hows = len({row.how for row in rows} - {culprits.TIMERS}) > 1
    cells = [(row.ns, _part(row.ns, total), ('', holder_text(row)), row.how,
              row.inside if row.function is not None else '')
             for row in rows[:top]]
    return Table(
        key, title,
        [Column('waited_ns', 'waited', 'value'),
         Column('share', 'share', 'share'),
         Column('held_by', 'held by', 'name'),
         Column('how', 'how', 'text', 'both' if hows else 'data'),
         Column('in', 'in', 'text')],
        [*cells, *_ends(rows, top, total, lambda ns, name: (
            ns, _part(ns, total), ('', name), '', ''))],
        value_type=value_type)


def _lives(lives):
    total = lives.took_ns
    title = ('What requests took' if lives.are_requests
             else 'The lives of tasks')
    return Table('lives', title, [
        Column('ns', 'time', 'value'), Column('share', 'share', 'share'),
        Column('part', '', 'text')],
        [(ns, _part(ns, total), name) for name, ns in lives.parts if ns]
        + [(total, 1.0, ALL)], value_type=TASK)


def _top(rows, total, top):
    """Return how many rows are shown: those with hardly anything are one."""
    return min(top, max(_ROWS, sum([row.ns >= _LEAST_SHARE * total
                                    for row in rows])))


def _ends(rows, top, total, row_of):
    """Iterate over the rows that make a table add up."""
    rest = rows[top:]
    if rest:
        yield row_of(sum([row.ns for row in rest]),
                     counted(len(rest), 'more row'))
    yield row_of(total, ALL)


def _part(ns, total):
    return ns / total if total else 0.0
