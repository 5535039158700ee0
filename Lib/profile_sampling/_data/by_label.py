"""What each value of a label cost.

This file owns the sums over label sets.  It must not know where labels come
from, nor how they are shown.
"""

from profile_sampling._data.rows import LabelRow

TASK_NAME = 'task name'


def rows(tables, key):
    """Return a list of LabelRow; see Profile.label_values()."""
    value_of_row = _values(tables.labels, key)
    sums = {}
    for _, _, labels, _, *weights in tables.row_tuples():
        value = value_of_row[labels]
        known = sums.get(value)
        sums[value] = (weights if known is None else
                       [a + b for a, b in zip(known, weights)])
    mode = tables.mode
    return sorted([LabelRow(value, *weights)
                   for value, weights in sums.items()],
                  key=lambda row: (-row.ns(mode), -row.count,
                                   row.value is not None, row.value or ''))


def keys(tables):
    """Return the names of all labels that samples have, in order."""
    used = bytearray(len(tables.labels))
    for _, _, labels, *_ in tables.row_tuples():
        used[labels] = 1
    found = set()
    # Parents come before their children.
    for row in range(len(used) - 1, 0, -1):
        if used[row]:
            parent, key, value, _ = tables.labels[row]
            used[parent] = 1
            if key is not None:
                found.add(key)
            elif value is not None:
                found.add(TASK_NAME)
    return sorted(found)


def _values(label_rows, key):
    """Return per label set the value of a label, or None."""
    values = [None]
    for parent, its_key, value, _ in label_rows[1:]:
        # A task is a row without a key.
        if its_key is None:
            its_key = TASK_NAME
        values.append(value if its_key == key else values[parent])
    return values
