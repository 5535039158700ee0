"""What changed from one profile to another.

This file owns which rows of two profiles belong together, and how the weights
of one are scaled to those of the other.  It must not know how changes are
shown.

Functions are compared by name, since a new version of a program moves them
to other lines, and another checkout to other files.
"""

from profile_sampling._data import by_function, by_label
from profile_sampling._data.on_clocks import without_tasks
from profile_sampling._data.rows import (
    FunctionDiff, FunctionRow, LabelDiff, LabelRow, LineDiff, LineRow,
    function_rank)
from profile_sampling._data.tables import FRAME_COLUMNS


class Difference:
    """Two profiles side by side: Tables before and after.

    With *normalize* each kind of value of the second is scaled so that its
    total is that of the first.

    Values of tasks are compared if both have them.

    Raise ValueError if they measure different things.
    """

    def __init__(self, before, after, normalize):
        if before.value_types != after.value_types:
            before, after = without_tasks(before), without_tasks(after)
        for what in 'mode', 'value_types':
            one, other = getattr(before, what), getattr(after, what)
            if one != other:
                raise ValueError(
                    f'cannot compare profiles of different {_WORDS[what]}: '
                    f'{_text(one)} and {_text(other)}')
        self._before = before
        self._after = after
        self._types = before.value_types
        self._own = before.own
        self._ratios = None
        if normalize:
            self._ratios = [old / new if new else 1 for old, new
                            in zip(before.totals, after.totals)]

    def functions(self):
        """Return a list of FunctionDiff, the greatest change first."""
        return self._by_place(function_sums, FunctionRow, FunctionDiff)

    def lines(self):
        """Return a list of LineDiff, the greatest change first."""
        return self._by_place(_lines, LineRow, LineDiff)

    def labels(self, key):
        """Return a list of LabelDiff, the greatest change first."""
        known = {*by_label.keys(self._before), *by_label.keys(self._after)}
        by_label.check_key(key, sorted(known))
        old, new = [{row.value: row.values for row
                     in by_label.rows_of(tables, key)}
                    for tables in (self._before, self._after)]
        zero = (0,) * len(self._types)
        rows = [LabelDiff(value, *[
            LabelRow(value, self._types, values) for values in self._three(
                old.get(value, zero), new.get(value, zero))])
                for value in {**new, **old}]
        own = self._own
        rows.sort(key=lambda row: (
            -abs(row.delta.values[own]), -row.after.values[own],
            row.value is not None, row.value or ''))
        return rows

    def _by_place(self, collect, row_type, diff_type):
        old, new = collect(self._before), collect(self._after)
        zero = (0,) * len(self._types)
        none = None, (zero, zero)
        rows = []
        for key in {**new, **old}:
            its_old, old_sums = old.get(key, none)
            its_new, new_sums = new.get(key, none)
            place = its_new or its_old
            columns = [self._three(*pair) for pair in zip(old_sums, new_sums)]
            rows.append(diff_type(*place, *[
                row_type(*place, self._types, *sums)
                for place, sums in zip((its_old or place, place, place),
                                       zip(*columns))]))
        rows.sort(key=self._rank)
        return rows

    def _rank(self, row):
        own = self._own
        return (-abs(row.delta.self_values[own]),
                -abs(row.delta.cum_values[own]),
                -row.after.self_values[own], *function_rank(row.function),
                getattr(row, 'line', 0))

    def _three(self, old, new):
        """Return the values before, after, and of the change."""
        if self._ratios is not None:
            new = tuple([round(value * ratio) for value, ratio
                         in zip(new, self._ratios)])
        return old, new, tuple([b - a for a, b in zip(old, new)])


_WORDS = {'mode': 'modes', 'value_types': 'values'}


def _text(what):
    if isinstance(what, str):
        return what
    return ', '.join([value_type.name for value_type in what])


def function_sums(tables):
    """Return {name and kind: ((Function,), its sums)}."""
    return _sums(tables, [
        (function.name, function.kind) for function in tables.functions],
        tables.frames_view()[0::FRAME_COLUMNS].tolist(),
        [(function,) for function in tables.functions])


def _lines(tables):
    """Return {name, kind and line: ((Function, line), its sums)}."""
    view = tables.frames_view()
    places = list(zip(view[0::FRAME_COLUMNS].tolist(),
                      view[1::FRAME_COLUMNS].tolist()))
    places = [(tables.functions[function], line)
              for function, line in places]
    return _sums(tables, [(function.name, function.kind, line)
                          for function, line in places],
                 range(len(places)), places)


def _sums(tables, names, index_of_frame, places):
    """Return {name: (place, (self values, cumulative values))}.

    Of several places with one name it is the first by file and line.
    """
    numbers = {}
    first = {}
    for name, place in zip(names, places):
        numbers.setdefault(name, len(numbers))
        known = first.get(name)
        if known is None or function_rank(place[0]) < function_rank(known[0]):
            first[name] = place
    keys = [numbers[names[index]] for index in index_of_frame]
    name_of_key = list(numbers)
    return {name_of_key[key]: (first[name_of_key[key]], sums)
            for key, sums in by_function.sums_of_frames(
                tables, keys, len(numbers))}
