"""Which columns the rows of a profile have.

A row has keys, which say what it is of, and values, which say how much.  The
core, or a file, says which; nothing else counts columns, or knows their order.
"""

from profile_sampling._data import checks
from profile_sampling._data.values import COUNT, Value

ITEM, ITEM_BYTES = 'q', 8
# What a row refers to, and what stands there for nothing.
NODES, THREADS, LABELS, STATES = 'nodes', 'threads', 'labels', 'states'
# What values are about, by their unit.
TIMES, COUNTS, BYTES = 'times', 'counts', 'bytes'
_FAMILIES = {'nanoseconds': TIMES, 'bytes': BYTES}


class Key(Value):
    """A column that says what rows are of.

    name   such as 'stack'
    table  the table whose rows its numbers are; None: they are what they are
    least  the smallest number; -1 where a row may refer to nothing
    """

    __slots__ = ('name', 'table', 'least')

    def __init__(self, name, table=None, least=0):
        super().__init__(name, table, least)


# Those that the core has; the last two are who held the GIL and where, -1 and
# 0 in rows that are no wait for it.
CORE_KEYS = (
    Key('stack', NODES), Key('thread', THREADS), Key('labels', LABELS),
    Key('state', STATES), Key('holder_thread', THREADS, -1),
    Key('holder', NODES))


class Schema(Value):
    """The columns of a profile.

    keys    tuple of Key
    values  tuple of ValueType
    about   which of these the profile is about, a number
    """

    __slots__ = ('keys', 'values', 'about')

    @property
    def own(self):
        return self.values[self.about]

    @property
    def family(self):
        """TIMES, COUNTS or BYTES: what reports, margins and words are of."""
        return _FAMILIES.get(self.own.unit, COUNTS)

    @property
    def has_states(self):
        """Whether it says what threads were doing: not if values are bytes, or
        counts of anything but samples."""
        return self.family == TIMES or self.own == COUNT

    @property
    def plain_keys(self):
        """Names of the keys that refer to no table."""
        return [key.name for key in self.keys if key.table is None]

    @property
    def key_names(self):
        return [key.name for key in self.keys]

    @property
    def width(self):
        return len(self.keys) + len(self.values)

    def number_of(self, value):
        """Return which of the values has this name, such as 'cpu_ns', or is
        of this kind, such as 'cpu'.

        Raise ValueError if none is.
        """
        checks.text('value', value)
        for names in ([its.name for its in self.values],
                      [its.kind for its in self.values]):
            if value in names:
                return names.index(value)
        raise ValueError(f'there is no value {value!r}; there are: ' + ', '.join(
            dict.fromkeys([its.kind for its in self.values])))

    def with_values(self, values, kind):
        """Return the same keys with other values, about those of a kind.

        Raise ValueError if there are none.
        """
        kinds = [value_type.kind for value_type in values]
        if kind not in kinds:
            raise ValueError(f'the mode {kind!r} is no kind of value in '
                             f'this profile; there are: {", ".join(kinds)}')
        # Kinds may differ in their unit only: the last one, as in files.
        return Schema(self.keys, values, max([
            number for number, its_kind in enumerate(kinds)
            if its_kind == kind]))


def column(numbers=()):
    """Return numbers as a column."""
    # What a program loads that is profiled needs none: array imports a lot.
    from array import array
    return array(ITEM, numbers)


def unpacked(data, width):
    """Return the columns of packed rows, to be changed: views of a copy.

    Raise ValueError if the last row is not whole.
    """
    if len(data) % (width * ITEM_BYTES):
        raise ValueError('the table of samples has a broken row')
    view = memoryview(bytearray(data)).cast(ITEM)
    return [view[number::width] for number in range(width)]


def of_rows(rows, width):
    """Return the columns of a dict {keys: values} of tuples.

    Raise OverflowError for what is beyond 64 bits.
    """
    return (list(map(column, (*zip(*rows), *zip(*rows.values()))))
            or [column() for _ in range(width)])
