"""Tables of tasks: what their lives were spent in, and who held their loop."""

from profile_sampling._data import by_await, by_task, by_wait, culprits
from profile_sampling._data.label_names import without_mark
from profile_sampling._data.values import TASK
from profile_sampling._formats import tables_of_waits
from profile_sampling._formats.table import Column, Table
from profile_sampling._formats.tables_of_waits import holder_text, place_text
from profile_sampling._formats.words import (
    brief, not_shown, share, state_name)

_OF_REQUESTS = (('mean', 'mean'), ('running', 'running'),
                ('loop_wait', 'loop wait'), ('gil_wait', 'GIL wait'),
                ('waiting', 'waiting'))
# How many things that tasks awaited, and that held their loop, are shown; the
# latter if they held it for as much of the waits.
_AWAITED = _HOLDERS = 3
_STATES_NAMED = 2
_LEAST_SHARE = 0.1
_UNKNOWN, _WITHOUT = '[unknown]', '[without]'


def tasks(tables, sites, top):
    """The Tables of a profile: classes of tasks, and who held their loop."""
    rows = by_task.rows(tables)
    if not rows:
        return [Table('tasks', 'There are no tasks in this profile.', [], [],
                      value_type=TASK)]
    return [_classes(rows, top), *tables_of_waits.loop(tables, sites, top)]


def _classes(rows, top):
    columns = [
        Column('life_ns', 'life', 'value'),
        Column('finished', 'ended', 'count'),
        Column('mean_ns', 'mean', 'time'),
        Column('p50_ns', 'p50', 'time', 'data'),
        Column('p99_ns', 'p99', 'time'),
        Column('longest_ns', 'longest', 'time', 'data'),
        *_states('wide'),
        Column('longest_step_ns', 'step', 'time', 'wide'),
        Column('cancelled', '', 'count', 'data'),
        Column('steps', '', 'count', 'data'),
        Column('task', 'task', 'name', 'text'),
        Column('task_class', '', 'text', 'data'),
        Column('awaited', 'awaited', 'below')]
    cells = [(row.life_ns, row.finished, row.mean_ns, row.p50_ns, row.p99_ns,
              row.longest_ns, row.running_ns, row.loop_wait_ns,
              row.awaiting_ns, row.longest_step_ns, row.cancelled, row.steps,
              _name(row), row.name, _awaited(row.awaited))
             for row in rows[:top]]
    return Table('tasks', 'Tasks by how long they lived', columns, cells,
                 value_type=TASK, notes=not_shown(
                     len(rows), top, 'class of tasks', 'classes of tasks'))


def _states(where):
    return (Column('running_ns', 'running', 'value', where),
            Column('loop_wait_ns', 'loop wait', 'value', where),
            Column('awaiting_ns', 'awaiting', 'value', where))


def _name(row):
    if row.name is None:
        return '', _UNKNOWN
    if row.function is None:
        return '', row.name
    return row.function.module or '', row.function.qualname


def _awaited(rows):
    return [(_UNKNOWN if row.function is None else row.function.name, row.awaiting_ns)
            for row in rows[:_AWAITED]]


def by_label(tables, top, key):
    """The Table of the values of a label: latencies, if the program reported
    of requests, and what they come of."""
    rows = by_task.rows_of_label(tables, key)
    key = without_mark(key)
    notes, awaited = [], None
    requests = [row for row in rows if row.count]
    if requests:
        rest_ns = sum([row.life_ns for row in rows if not row.count])
        if rest_ns:
            notes.append(f'Tasks in no request: {brief(rest_ns)}')
        # Those first that have waited longest for an answer, all together.
        rows = sorted(requests, key=lambda row: -row.mean_ns * row.count)
        title, columns = f'Requests by {key}', _of_requests(rows)
        lives = by_await.Lives(tables)
        if lives.key == key:
            awaited, threads = lives.of_values, lives.in_threads()
    else:
        title, columns = f'Tasks by {key}', _of_all()
    columns += [
        (Column('value', key, 'text'), lambda row: (
            _WITHOUT if row.value is None else row.value)),
        (Column('awaited', 'awaited', 'below'), lambda row: [
            (name, _each(row, ns)) for name, ns in (
                _awaited(row.awaited) if awaited is None else
                _at_lines(awaited.get(row.value, ()),
                          threads.get(row.value, {})))])]
    return Table(f'tasks_by_{key}', title, [column for column, _ in columns],
                 [tuple([cell(row) for _, cell in columns])
                  for row in rows[:top]],
                 value_type=TASK,
                 notes=not_shown(len(rows), top, 'value') + notes)


def _at_lines(rows, states):
    """Return (what, ns) of what requests awaited most: at lines of mine, and
    in a worker thread what that did."""
    found = []
    for row in rows[:_AWAITED]:
        if row.kind != by_wait.WORKER or row.what == by_wait.FREE_WORKER:
            place = f' at {place_text(row)}' if row.function else ''
            found.append((f'{row.kind}{place}' if row.kind != by_wait.OTHER
                          else f'{row.what}{place}', row.ns))
            continue
        total = sum(states.values())
        did = ', '.join([
            f'{state_name(state)} {share(ns, total)}' for state, ns in sorted(
                states.items(), key=lambda item: -item[1])[:_STATES_NAMED]])
        found.append((f'{row.kind} ({did})' if did else row.kind, row.ns))
    return found


def slow_requests(tables, sites, top, key):
    """The Table of what the slowest requests did, beside all others; or none,
    if nothing is known of them."""
    rows = by_task.slow_requests(tables, key, by_task.SLOWEST)
    key = without_mark(key)
    if not rows:
        return []
    columns = [
        Column('share', '', 'text', 'data'), Column('count', 'count', 'count'),
        *[Column(f'{name}_ns', heading, 'time',
                 'both' if name == 'mean' or any(
                     [getattr(part, f'{name}_ns') for row in rows
                      for part in (row.slowest, row.others)]) else 'data')
          for name, heading in _OF_REQUESTS],
        Column('value', key, 'text')]
    cells = []
    for row in rows[:top]:
        for which, part in ('slowest', row.slowest), ('others', row.others):
            cells.append((which, *part._fields(), f'{row.value}, {which}'))
    return [Table(f'slow_requests_by_{key}',
                  f'What the slowest {by_task.SLOWEST:.0%} did, for each request',
                  columns, cells, value_type=TASK,
                  notes=not_shown(len(rows), top, 'value') + (
                      _loop_waits(tables, sites) if any(
                          [row.slowest.loop_wait_ns for row in rows])
                      else []))]


def _loop_waits(tables, sites):
    """Say what held the loop, whoever waited: of single requests it is not
    known."""
    held = culprits.of_loop(tables, sites.mine)
    total = sum([row.ns for row in held])
    said = [f'{share(row.ns, total)} while {holder_text(row)}'
            + (f' ({row.inside}) ' if row.function and row.inside else ' ')
            + row.how for row in held[:_HOLDERS]
            if row.ns >= _LEAST_SHARE * total and row.how != culprits.TIMERS]
    return [f'Waits of all tasks for their loop: {", ".join(said)}'] if (
        said) else []


def _of_all():
    return [(Column(key, heading, 'value'), cell)
            for key, heading, cell in _STATES[:-1]]


def _of_requests(rows):
    """Latencies, and what tasks did for one request in the mean."""
    states = _STATES[1:]
    if not any([row.spawned_ns for row in rows]):
        states = states[:-1]
    return [
        (Column('mean_ns', 'mean', 'time'), lambda row: row.mean_ns),
        (Column('p50_ns', 'p50', 'time', 'wide'), lambda row: row.p50_ns),
        (Column('p99_ns', 'p99', 'time'), lambda row: row.p99_ns),
        (Column('longest_ns', '', 'time', 'data'),
         lambda row: row.longest_ns),
        (Column('count', 'count', 'count'), lambda row: row.count),
        *[(Column(key, '', 'count', 'data'), cell)
          for key, _, cell in _STATES],
        *[(Column(f'mean_{key}', heading, 'time',
                  'wide' if heading == 'spawned' else 'both'),
           lambda row, cell=cell: _each(row, cell(row)))
          for key, heading, cell in states]]


def _each(row, ns):
    """Return the part of one request; all where there are none."""
    return round(ns / row.count) if row.count else ns


_STATES = (
    ('life_ns', 'life', lambda row: row.life_ns),
    ('running_ns', 'running', lambda row: row.running_ns),
    ('loop_wait_ns', 'loop wait', lambda row: row.loop_wait_ns),
    ('awaiting_ns', 'awaiting', lambda row: row.awaiting_ns),
    ('spawned_ns', 'spawned', lambda row: row.spawned_ns))
