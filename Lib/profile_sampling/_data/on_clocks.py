"""A profile without what tasks do while no thread runs them.

This file owns which samples are of tasks alone.  It must not know who cannot
do with them.
"""

from profile_sampling._data.tables import KEY_COLUMNS, STATE
from profile_sampling._data.values import OF_TASKS, OFF_CLOCKS


def on_clocks(tables):
    """Return the samples of threads; if the profile is about tasks, those
    that weigh something there.

    On a thread's clock what tasks wait for weighs nothing.
    """
    if tables.value_types[tables.own] in OF_TASKS:
        return tables.with_samples([
            number for number, value
            in enumerate(tables.column(KEY_COLUMNS + tables.own)) if value])
    states = tables.column(STATE)
    if OFF_CLOCKS.isdisjoint(states):
        return tables
    columns = [tables.column(KEY_COLUMNS + number)
               for number, value_type in enumerate(tables.value_types)
               if value_type not in OF_TASKS]
    return tables.with_samples([
        number for number, state in enumerate(states)
        if state not in OFF_CLOCKS
        # Another tool may have written anything.
        or any([column[number] for column in columns])])
