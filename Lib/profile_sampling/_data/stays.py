"""Which ticks found a thread where the ticks before did.

This file owns the sums of them.  It must not know what they say of margins
(confidence.py).

Tables.stays() has them for each tick of running code, compared with the tick
before on its thread and with the one before that: whether both are at the
same leaf, on the same line, and below the same call.
"""

from profile_sampling._data.tables import KEY_COLUMNS
from profile_sampling._data.values import STAYS

# What rows are told apart by: the function at the leaf, the line of the
# innermost Python function, or any call above them.
LEAF, LINE, CALL = range(3)
_KINDS = len(STAYS) // 2
# Of a row: how many of its ticks came after one of the row, and how many had
# one two ticks before.
NONE = 0, 0


def of_kind(values, kind):
    """Return the two of one kind, from values of the types STAYS."""
    return values[kind], values[kind + _KINDS]


def sums(stays, keys, n_keys, kind):
    """Return a list of such pairs, from Tables.stays().

    *keys* has the key of each of its samples, a number below *n_keys*, or -1
    for those that are left out.
    """
    pairs = []
    for number in of_kind(range(KEY_COLUMNS, stays.sample_columns), kind):
        found = [0] * (n_keys + 1)
        for key, value in zip(keys, stays.column(number)):
            found[key] += value
        pairs.append(found[:n_keys])
    return list(zip(*pairs))
