"""A profile without what tasks do while no thread runs them, and without
allocations where it is about time.
"""

from itertools import compress

from profile_sampling._data import allocations
from profile_sampling._data.values import OF_TASKS, OFF_CLOCKS


def on_clocks(tables, *, with_memory=False):
    """Return the samples of threads; if the profile is about tasks, those
    that weigh something there.  *with_memory*: allocations, too.

    On a thread's clock what tasks wait for weighs nothing.
    """
    if tables.value_types[tables.own] in OF_TASKS:
        return tables.with_samples([
            number for number, value
            in enumerate(tables.own_column) if value])
    if allocations.has_memory(tables) and not with_memory:
        tables = _of_one_kind(tables)
    states = tables.column('state')
    if OFF_CLOCKS.isdisjoint(states):
        return tables
    columns = [column for value_type, column
               in zip(tables.value_types, tables.value_columns)
               if value_type not in OF_TASKS]
    return tables.with_samples([
        number for number, state in enumerate(states)
        if state not in OFF_CLOCKS
        # Another tool may have written anything.
        or any([column[number] for column in columns])])


def _of_one_kind(tables):
    """Return the samples that weigh something in time, or in memory,
    whatever the profile is about."""
    is_of_memory = tables.value_types[tables.own] in allocations.VALUES
    columns = [column for value_type, column
               in zip(tables.value_types, tables.value_columns)
               if (value_type in allocations.VALUES) is is_of_memory]
    weighs = list(map(any, zip(*columns)))
    if all(weighs):
        return tables
    return tables.with_samples(list(compress(range(len(weighs)), weighs)))
