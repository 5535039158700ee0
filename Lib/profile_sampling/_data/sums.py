"""Sums of the values of samples."""


def sums_by(tables, keys, n_keys):
    """Return, for each value type, the list of the sums of each key.

    *keys* has the key of each sample, a number below *n_keys*.
    """
    return [sums_of(column, keys, n_keys) for column in tables.value_columns]


def sums_of(column, keys, n_keys):
    """Return the same of one column."""
    sums = [0] * n_keys
    for key, value in zip(keys, column):
        sums[key] += value
    return sums


def added(one, other):
    """Return the sums of two rows of values."""
    return tuple([a + b for a, b in zip(one, other)])
