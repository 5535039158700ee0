"""The processes that can be asked, as rows."""

import os
import time

from profile_sampling._data.values import printable
from profile_sampling._formats import words
from profile_sampling._reach import look, processes
from profile_sampling._reach.processes import Refusal
from profile_sampling._reach.text import words_of

# CPU time is that of so long.
_WINDOW_S = 0.2
# Why a process cannot be asked, in few words.
_REASONS = {'other-python': 'another Python', 'off': 'switched off',
            'other-user': 'another user'}


class Row:
    """A process: its share of a CPU, and why it cannot be asked, or None.

    now    a Look, or None
    stem   what stands before its name: where its masters are in the list
    """

    def __init__(self, process, cpu, refusal):
        self.process = process
        self.cpu = cpu
        self.refusal = refusal
        self.now = None
        self.stem = ''


def rows(*, with_looks=False):
    """Return a Row for each Python process."""
    before = {process.pid: process.cpu_ticks
              for process in processes.pythons()}
    time.sleep(_WINDOW_S)
    found = []
    ticks = os.sysconf('SC_CLK_TCK') * _WINDOW_S
    for process in processes.pythons():
        if process.pid in before:
            row = Row(process, (process.cpu_ticks - before[process.pid])
                      / ticks, _refusal(process))
            if with_looks and row.refusal is None:
                try:
                    row.now = look.look(process, with_tasks=False)
                except Refusal as exc:
                    row.refusal = exc
            found.append(row)
    return _in_order(found)


def _refusal(process):
    try:
        process.check()
    except Refusal as exc:
        return exc
    return None


def _in_order(rows):
    by_pid = {row.process.pid: row for row in rows}
    children = {}
    for row in rows:
        parent = row.process.parent
        children.setdefault(parent if parent in by_pid else None,
                            []).append(row)
    found = []

    def add(row, stem, below):
        row.stem = stem
        found.append(row)
        its = children.get(row.process.pid, ())
        for child in its:
            is_last = child is its[-1]
            add(child, below + ('└ ' if is_last else '├ '),
                below + ('  ' if is_last else '│ '))

    for row in children.get(None, ()):
        add(row, '', '')
    return found


def render(rows, width):
    """Return the text of rows."""
    if not rows:
        return ('No Python process of this user is here.'
                + ('' if os.geteuid() == 0 else '  As root you see all.')
                + '\n')
    reached = [row for row in rows if row.refusal is None]
    noun = 'process' if len(rows) == 1 else 'processes'
    head = f'{"PID":>7} {"CPU":>6}  {"Up":<12} {"Threads":>7}  Process'
    more = ', and what it does now'
    said = f'{len(rows)} Python {noun}, {len(reached)} can be reached.'
    clock = time.strftime('%H:%M:%S')
    lines = [words.padded(said, width - len(clock)) + clock, '',
             head + more * (len(head + more) <= width)]
    for row in rows:
        process = row.process
        line = (f'{process.pid:>7} {row.cpu * 100:>4.0f} %  '
                f'{look.seconds(process.up_s):<12} {process.threads:>7}  '
                + row.stem + _said(row))
        lines.append(words.start(printable(line), width))
    if reached:
        busiest = max(reached, key=lambda row: row.cpu).process.pid
        lines += ['', f'Look:  dump -p {busiest}']
    return '\n'.join(lines) + '\n'


def _said(row):
    process = row.process
    if row.refusal is not None:
        reason = row.refusal.reason
        return f'{process.name}  cannot: {_REASONS.get(reason) or reason.replace("-", " ")}'
    if row.now is None:
        return ' '.join(process.command) or process.name
    return f'{process.name}  {now_of(row.now)}'


def now_of(found):
    """Return what a process does now, by its first answer."""
    if found.circles:
        return 'deadlock'
    if found.is_stuck:
        return f'holds the GIL for {look.seconds(found.held_s)}'
    if not found.busy:
        return 'idle'
    thread = found.busy[0]
    where = look.answers(found)['where']
    return f'{look.LETTERS[thread.state]} {words_of(thread.state)}  ' + (
        where.forms[-2] if len(where.forms) > 1 else where.forms[0])


def as_json(rows):
    """Return the object of rows."""
    found = []
    for row in rows:
        process = row.process
        one = {'pid': process.pid, 'pid_inside': process.pid_inside,
               'parent': process.parent,
               'user': processes.user_name(process.uid, False),
               'name': process.name, 'command': process.command,
               'cpu': round(row.cpu, 3), 'up_s': round(process.up_s, 2),
               'threads': process.threads,
               'reach': row.refusal.reason if row.refusal else 'yes'}
        if row.now is not None:
            one['now'] = {key: answer.forms[0] for key, answer
                          in look.answers(row.now).items()}
        found.append(one)
    return {'format': 'sampleprof-list', 'version': 1, 'processes': found}
