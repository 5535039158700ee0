"""Sums of the values of samples."""


def sums_by(tables, keys, n_keys):
    """Return, for each value type, the list of the sums of each key.

    *keys* has the key of each sample, a number below *n_keys*.
    """
    result = []
    for column in tables.value_columns:
        sums = [0] * n_keys
        for key, value in zip(keys, column):
            sums[key] += value
        result.append(sums)
    return result


def added(one, other):
    """Return the sums of two rows of values."""
    return tuple([a + b for a, b in zip(one, other)])
