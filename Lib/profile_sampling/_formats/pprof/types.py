"""Which values of a pprof file are which of ours.

A file of ours has the types that the profile had.  In another tool's file,
what is known to be samples, CPU or wall-clock time gets our kind and unit, and
all else remains what it is.  With one of the two clocks it gets all three
values of a session; those that the file does not have are 0.

Older files of ours have six counts more, from which their margins were worked
out, and samples that have no other values.  Both are ignored.
"""

from profile_sampling._data.values import (
    COUNT, CPU, MEASURED, OF_TASKS, WALL, unique_value_types)

# Kinds that tools use for the same, best first.
_KINDS = {
    COUNT: ('samples', 'wall-samples', 'cpu-samples'),
    CPU: ('cpu', 'cpu-time'),
    WALL: ('wall', 'wall-time'),
}
_NS_PER_UNIT = {'nanoseconds': 1, 'microseconds': 1_000,
                'milliseconds': 1_000_000, 'seconds': 1_000_000_000}
_MISSING = 0, 0
# No tool writes a tenth of that.
_MOST_TYPES = 256
_OF_TASKS = [(value_type.kind, value_type.unit) for value_type in OF_TASKS]
_OF_OLDER_FILES = ('same_leaf', 'same_line', 'same_call',
                   'same_leaf_2', 'same_line_2', 'same_call_2')


class Columns:
    """Where in the samples of a file the values of the profile are.

    n_types      how many values a sample in the file has
    value_types  tuple of ValueType in the profile
    places       for each of these (number in the file, factor), with the
                 factor 0 if it is missing there
    is_older     whether samples may have none of these values
    """

    def __init__(self, types, *, is_ours):
        """*types* are the pairs (kind, unit) in the file."""
        self.n_types = len(types)
        if self.n_types > _MOST_TYPES:
            raise ValueError(f'has {self.n_types:,} sample types; at most '
                             f'{_MOST_TYPES} can be read')
        self._kinds = [kind for kind, _ in types]
        found = {measured: place for measured in MEASURED
                 if (place := _place(measured, types)) is not None}
        if not is_ours and (CPU in found or WALL in found):
            found = {measured: found.get(measured, _MISSING)
                     for measured in MEASURED}
        ignored = {number for number, kind in enumerate(self._kinds)
                   if is_ours and kind in _OF_OLDER_FILES}
        self.is_older = bool(ignored)
        taken = ignored | {number for number, factor in found.values()
                           if factor}
        others = [number for number in range(len(types))
                  if number not in taken]
        # What a profile is about is the last in its file.
        others.sort(key=lambda number: _OF_TASKS.index(types[number])
                    if types[number] in _OF_TASKS else len(_OF_TASKS))
        # What another tool calls so is of no tasks of asyncio's.
        of_tasks = dict(zip(_OF_TASKS, OF_TASKS)) if is_ours else {}
        # Raise ValueError for types of one name.
        self.value_types = unique_value_types([
            *found, *[of_tasks.get(types[number], types[number])
                      for number in others]])
        self.places = (*found.values(), *[(number, 1) for number in others])
        self._clocks = [place for place, measured in enumerate(found)
                        if measured in (CPU, WALL)]

    def is_computing(self, values):
        """Return whether *values* are mostly of time on a CPU."""
        if len(self._clocks) < 2:
            return False
        cpu_ns, wall_ns = [values[place] for place in self._clocks]
        return 2 * cpu_ns > wall_ns

    def mode(self, default):
        """Return the kind of value that a profile is about that does not
        say so itself: the *default* or last of the file, or a clock.
        """
        name = default if default in self._kinds else self._kinds[-1]
        number = self._kinds.index(name)
        types = {number: its for its, (number, factor)
                 in zip(self.value_types, self.places) if factor}
        kind = types[number].kind
        if types[number].unit == COUNT.unit:
            # How often says little where it is known how long.
            known = [its.kind for its in types.values()]
            for clock in (WALL.kind, CPU.kind):
                if clock in known:
                    return clock
        return kind


def _place(measured, types):
    """Return the (number, factor) of the best type for one of ours."""
    for kind in _KINDS[measured]:
        for number, (its_kind, unit) in enumerate(types):
            if its_kind == kind:
                return number, _factor(kind, unit)
    return None


def _factor(kind, unit):
    if unit == COUNT.unit:
        return 1
    factor = _NS_PER_UNIT.get(unit)
    if factor is None:
        raise ValueError(f'sample type {kind} has the unknown unit {unit!r}')
    return factor
