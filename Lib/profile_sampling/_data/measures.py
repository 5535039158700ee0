"""What the samples of a profile can be added up by.

What the program counted itself by sample() is no number of samples: it is not
in the totals, and it is a measure of its own here.
"""

from profile_sampling._data.allocations import VARIANCES
from profile_sampling._data.values import COUNT, STATES, Value, printable

_CUSTOM = STATES.index('custom')
_TITLES = {'wall': 'wall time', 'cpu': 'CPU time', 'samples': 'samples',
           'task': 'life of tasks', 'delay': 'delay of other tasks',
           'alloc_space': 'allocated', 'alloc_objects': 'objects allocated',
           'inuse_space': 'in use', 'inuse_objects': 'objects in use',
           'freed_space': 'freed', 'freed_objects': 'objects freed',
           'peak_space': 'at the peak', 'peak_objects': 'objects at the peak'}


class Measure(Value):
    """A number for each sample.

    name    as that of the ValueType; 'custom' for what sample() counted
    title   in words
    unit    'nanoseconds', 'count', 'bytes' or another text
    column  list of numbers, one for each row of the table of samples
    """

    __slots__ = ('name', 'title', 'unit', 'column')


def measures(tables):
    """Return a list of Measure; what the profile is about is the first.

    Their sums are the profile's totals.
    """
    found = []
    for value_type, column in zip(tables.value_types, tables.value_columns):
        if value_type in VARIANCES:
            # They are what margins are made of.
            continue
        title = _TITLES.get(value_type.kind, printable(value_type.kind))
        found.append(Measure(value_type.name, title, value_type.unit, column))
    own = tables.value_types[tables.own].name
    found.sort(key=lambda measure: measure.name != own)
    return [part for measure in found for part in _parts(tables, measure)]


def own_measure(tables):
    """Return the Measure that the profile is about."""
    return measures(tables)[0]


def _parts(tables, measure):
    if measure.name != COUNT.name or measure.unit != COUNT.unit:
        return [measure]
    is_custom = [state == _CUSTOM for state in tables.column('state')]
    if True not in is_custom:
        return [measure]
    parts = [[value if its is custom else 0 for value, its
              in zip(measure.column, is_custom)] for custom in (False, True)]
    return [Measure(measure.name, measure.title, measure.unit, parts[0]),
            Measure('custom', 'counted by sample()', measure.unit, parts[1])]
