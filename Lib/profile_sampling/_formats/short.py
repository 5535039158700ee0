"""A profile in a few lines.

This file owns what is worth a line where there is room for ten: str().  It
must not compute what a profile means: that is _data's.
"""

from profile_sampling._data import by_function
from profile_sampling._data.idle import left_out
from profile_sampling._data.losses import lost_counts
from profile_sampling._data.on_clocks import on_clocks
from profile_sampling._data.sums import sums_by
from profile_sampling._data.tables import STATE
from profile_sampling._data.values import COUNT, OF_TASKS, STATES, printable
from profile_sampling._formats.words import (
    amount, not_shown, seconds, share, short_end, shown_order,
    state_name, title)

_TOP = 5
_NAME = 50


def text(tables):
    """Return the report of str(): no line break at its end."""
    tables = on_clocks(tables)
    busy = left_out(tables)
    lines = [_heading(tables), _totals(tables, busy)]
    states = _states(busy)
    if states:
        lines.append(states)
    rows = by_function.functions(busy)
    if rows:
        lines += ['', f'{"self":>8} {"cum":>8}  function']
        lines += [f'{own:>8} {cum:>8}  {name}'
                  for own, cum, name in _shares(busy, rows[:_TOP])]
        lines += _more(rows, _TOP)
    return '\n'.join(lines)


def _heading(tables):
    own = tables.value_types[tables.own]
    text = f'{title(own)} profile'
    if tables.python_version:
        text += f' of Python {printable(tables.python_version)}'
    text += f': {seconds(tables.duration_ns)}'
    if tables.rate_hz:
        text += f' at {tables.rate_hz:,} Hz'
    threads = tables.n_sampled_threads
    return f'{text}, {threads:,} {"thread" if threads == 1 else "threads"}'


def _totals(tables, busy):
    texts = []
    for number in shown_order(tables):
        value_type = tables.value_types[number]
        if value_type in OF_TASKS and number != tables.own:
            continue
        name = 'samples' if value_type == COUNT else title(value_type)
        texts.append(f'{amount(tables.totals[number], value_type)} {name}')
    lost = sum(lost_counts(tables.stats).values())
    texts.append(f'{lost:,} lost')
    idle = tables.totals[tables.own] - busy.totals[busy.own]
    if idle:
        value_type = tables.value_types[tables.own]
        texts.append(f'{amount(idle, value_type)} idle left out')
    return ', '.join(texts)


def _states(tables):
    """The states and their shares of what the profile is about."""
    sums = sums_by(tables, tables.column(STATE), len(STATES))[tables.own]
    total = sum(sums)
    return ', '.join([f'{state_name(state)} {share(value, total)}'
                      for state, value in zip(STATES, sums) if value])


def _shares(tables, rows):
    own = tables.own
    total = tables.totals[own]
    for row in rows:
        yield (share(row.self_values[own], total),
               share(row.cum_values[own], total),
               short_end(printable(row.function.name), _NAME, '.'))


def _more(rows, shown):
    return not_shown(len(rows), shown, 'function')
