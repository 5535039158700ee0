"""A profile without what tasks do while no thread runs them."""

from profile_sampling._data.values import OF_TASKS, OFF_CLOCKS


def on_clocks(tables):
    """Return the samples of threads; if the profile is about tasks, those
    that weigh something there.

    On a thread's clock what tasks wait for weighs nothing.
    """
    if tables.value_types[tables.own] in OF_TASKS:
        return tables.with_samples([
            number for number, value
            in enumerate(tables.own_column) if value])
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
