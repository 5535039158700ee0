"""What each value of a label cost."""

from profile_sampling._data import checks
from profile_sampling._data.label_names import key_of, label_of
from profile_sampling._data.rows import LabelRow
from profile_sampling._data.sums import sums_by
from profile_sampling._data.values import COUNT

# What puts on a label that is not there.
HINTS = {'route': '. Middleware puts it on: app.add_middleware('
                  'ASGIMiddleware), of profile_sampling.middleware; for WSGI, '
                  'app = WSGIMiddleware(app)'}


def rows(tables, key):
    """Return a list of LabelRow; see Profile.label_values()."""
    check_key(key, keys(tables))
    return rows_of(tables, label_of(key))


def rows_of(tables, label):
    """Return the same also for a label that no sample has."""
    value_of_row = values(tables.labels, label)
    numbers = {}
    number_of_sample = [
        numbers.setdefault(value_of_row[labels], len(numbers))
        for labels in tables.column('labels')]
    sums = sums_by(tables, number_of_sample, len(numbers))
    types = tables.value_types
    own = tables.own
    counts = types.index(COUNT) if COUNT in types else own
    return sorted([LabelRow(value, types, values)
                   for value, values in zip(numbers, zip(*sums))],
                  key=lambda row: (-row.values[own], -row.values[counts],
                                   row.value is not None, row.value or ''))


def keys(tables):
    """Return the keys of all labels that samples have, in order."""
    return list(map(key_of, labels(tables)))


def labels(tables):
    """Return all labels that samples have, in the order of their keys; of
    asyncio tasks, TASKS."""
    used = bytearray(len(tables.labels))
    for labels in tables.column('labels'):
        used[labels] = 1
    found = set()
    # Parents come before their children.
    for row in range(len(used) - 1, 0, -1):
        if used[row]:
            parent, key, value, _ = tables.labels[row]
            used[parent] = 1
            if key is not None or value is not None:
                found.add(key)
    return sorted(found, key=key_of)


def check_key(key, known):
    """Raise ValueError if *key* is none of the labels that are *known*."""
    if checks.text('key', key) not in known:
        raise ValueError(
            f'no sample has the label {key!r}; '
            + (f'the labels are: {", ".join(known)}' if known
               else 'there are no labels') + HINTS.get(key, ''))


def values(label_rows, label):
    """Return per label set the value of a label, or of TASKS; or None."""
    found = [None]
    for parent, its_label, value, _ in label_rows[1:]:
        found.append(value if its_label == label else found[parent])
    return found
