"""What threads were doing, by any key: running, or waiting for what."""

from profile_sampling._data.allocations import variance_column
from profile_sampling._data.sums import sums_of
from profile_sampling._data.values import COUNT, STATES

RUNNING = STATES.index('running')


class StateSums:
    """The sums of one key.

    total            of the values that the profile is about
    by_state         the same for each of STATES
    running_records  how many samples were taken while it ran; of an amount
                     of memory its variance: what margins are made of
    """

    __slots__ = ('total', 'by_state', 'running_records')

    def __init__(self, by_state, running_records):
        self.total = sum(by_state)
        self.by_state = by_state
        self.running_records = running_records


def sums(tables, keys, n_keys):
    """Return a list of StateSums.

    *keys* has the key of each sample, a number below *n_keys*, or -1 for
    samples that are left out.
    """
    by_state = [[0] * len(STATES) for _ in range(n_keys + 1)]
    records = [0] * (n_keys + 1)
    states = tables.column('state')
    for key, state, value in zip(keys, states,
                                 tables.own_column):
        by_state[key][state] += value
    variances = variance_column(tables)
    if variances is not None:
        records = sums_of(variances, keys, n_keys + 1)
    elif COUNT in tables.value_types:
        counts = tables.value(COUNT.name)
        for key, state, count in zip(keys, states, counts):
            if state == RUNNING:
                records[key] += count
    return [StateSums(*row) for row in zip(by_state[:n_keys], records)]


def whole(tables):
    """Return the StateSums of all samples."""
    [row] = sums(tables, [0] * len(tables.column('state')), 1)
    return row
