"""A profile of memory as it was at a moment, or in a part of its time.

It says what a profile would say if its recording had ended earlier.

Moments are as exact as the intervals in which blocks were allocated and freed:
see growth.Steps.
"""

from array import array

from profile_sampling._data import growth, resident
from profile_sampling._data.allocations import (
    ALLOCATED, BEGUN, ENDED, FREED, IN_USE, PEAK, PEAK_NS, VALUES,
    has_moments, readings, with_readings)
from profile_sampling._data.growth import SURVIVED
from profile_sampling._data.schema import ITEM
from profile_sampling._data.values import Value

_PER_VALUE = 3


class Window(Value):
    """A moment, or a part of the time of a recording, since the epoch.

    begin_ns  None: it is a moment
    end_ns    the moment, or the end
    age_ns    only of blocks that were allocated so long before it
    """

    __slots__ = ('begin_ns', 'end_ns', 'age_ns')

    def part(self, tables, amount):
        """Return the Tables that a report by an amount is of.

        Raise ValueError if the profile has no moments, or not these.
        """
        check(tables)
        first_ns, last_ns = bounds(tables)
        step_ns = growth.steps(tables).step_ns
        if self.begin_ns is not None:
            if self.end_ns <= self.begin_ns:
                raise ValueError('the time ends before it begins')
            if self.end_ns - self.begin_ns < step_ns:
                raise ValueError(
                    f'{amount} needs two moments that are further apart: memory '
                    f'is known by intervals of {step_ns / 1e9:g} s, this is '
                    f'{(self.end_ns - self.begin_ns) / 1e9:g} s')
            if amount == SURVIVED:
                # Until the end of all.
                behind_ns = _behind(growth.steps(tables), self.end_ns)
                return _rows(tables, lambda begun: begun < behind_ns)
        if self.end_ns < last_ns or amount == PEAK:
            tables = until(tables, self.end_ns, self.begin_ns or first_ns)
        if self.age_ns:
            latest_ns = self.end_ns - self.age_ns - step_ns
            tables = _rows(tables, lambda begun: begun <= latest_ns)
        return tables


def check(tables):
    """Raise ValueError for a profile without moments, or of several
    processes."""
    if not has_moments(tables):
        raise ValueError('the profile does not have moments: it was written '
                         'before memory had any, or by another tool; it says '
                         'what is in use at the end only')
    if len(tables.processes) > 1:
        raise ValueError(f'{len(tables.processes)} processes have no moments '
                         'in common: report each file on its own')


def bounds(tables):
    """Return the first and the last moment of a profile, since the epoch."""
    return tables.start_time_ns, tables.start_time_ns + tables.end_ns


def _rows(tables, is_wanted):
    return tables.with_samples([
        number for number, begun in enumerate(tables.column(BEGUN))
        if is_wanted(begun)])


def _behind(steps, time_ns):
    """Return when the step ends that a moment is in, or ends."""
    return steps.begin_ns + (steps.of(time_ns - 1) + 1) * steps.step_ns


def _highest(tables, begin_ns, end_ns):
    """Return the step with most in use of a part of the time."""
    its = growth.steps(tables)
    [levels] = growth.in_use(tables, [0] * len(tables), 1)
    return max(range(its.of(begin_ns), its.of(end_ns - 1) + 1),
               key=levels.__getitem__)


def _columns(tables, amount):
    return [tables.value(its.name) for its in VALUES
            if its.kind.startswith(f'{amount}_')]


def _in_use_at(tables, behind_ns):
    """Return three columns: what was in use when a step ended."""
    begun, ended = map(tables.column, (BEGUN, ENDED))
    return [[(value + f * (end >= behind_ns)) * (begin < behind_ns)
             for value, f, begin, end in zip(its, freed, begun, ended)]
            for its, freed in zip(_columns(tables, IN_USE),
                                  _columns(tables, FREED))]


def until(tables, time_ns, since_ns):
    """Return what a profile would be if it had been taken at a moment; its
    peak is one that was since another."""
    steps = growth.steps(tables)
    behind_ns = _behind(steps, time_ns)
    begun, ended = map(tables.column, (BEGUN, ENDED))
    columns = {
        ALLOCATED: [[value * (begin < behind_ns)
                     for value, begin in zip(column, begun)]
                    for column in _columns(tables, ALLOCATED)],
        FREED: [[value * (end < behind_ns)
                 for value, end in zip(column, ended)]
                for column in _columns(tables, FREED)],
        IN_USE: _in_use_at(tables, behind_ns)}
    meta = dict(tables.meta)
    if not since_ns <= (tables.start_time_ns
                        + int(meta.get(PEAK_NS, 0))) <= time_ns:
        highest_ns = (steps.begin_ns + steps.step_ns
                      * _highest(tables, since_ns, time_ns))
        peak_ns = min(max(highest_ns, since_ns), time_ns)
        columns[PEAK] = _in_use_at(tables, highest_ns + steps.step_ns)
        meta[PEAK_NS] = str(max(0, peak_ns - tables.start_time_ns))
    seen = [its for its in readings(tables) if its.time_ns <= time_ns]
    meta = with_readings(meta, seen, resident.facts_at(
        tables, seen[-1], sum(columns[IN_USE][1])) if seen else {})
    end_ns = max(time_ns - tables.start_time_ns, 0)
    changed = dict(zip(tables.value_types, tables.value_columns)) | {
        its: array(ITEM, column) for amount, its_columns in columns.items()
        for its, column in zip([one for one in VALUES if one.kind.startswith(
            f'{amount}_')], its_columns)}
    return tables.with_columns(
        [*tables.key_columns, *changed.values()], meta=meta,
        # What was counted is of all of it.
        whole_cpu_ns=0, covered=tuple([
            (begin, min(end, end_ns)) for begin, end in tables.covered
            if begin < end_ns]) or ((0, end_ns),))
