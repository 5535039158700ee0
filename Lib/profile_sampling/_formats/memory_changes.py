"""What changed in the memory of one process from a snapshot to a later one."""

from profile_sampling._data import by_memory
from profile_sampling._data.allocations import (
    ALLOCATED, IN_USE, has_moments, resident, space)
from profile_sampling._data.by_site import called_name, is_outside, sites_of
from profile_sampling._data.growth import GREW, SURVIVED
from profile_sampling._data.rows import DiffRow
from profile_sampling._data.values import NO_FRAMES, Value
from profile_sampling._formats import memory
from profile_sampling._formats.sites import place_cells, place_columns
from profile_sampling._formats.table import WIDTH, Column, Table, lines
from profile_sampling._formats.words import date, share, wrapped

TOP = 15
# Of what is shorter nothing is said by the hour.
_SHORTEST_NS = 60_000_000_000
NOTE = ('Growth alone is no leak: a cache that fills looks the same until it '
         'is full. A third snapshot tells. ~: less than its \N{PLUS-MINUS SIGN}')


class _Change(Value):
    """Of a line: what it had in use, has, and may be wrong about the change;
    and what it allocated between."""

    __slots__ = ('row', 'before', 'after', 'margin', 'allocated')

    @property
    def bytes(self):
        return self.after - self.before

    @property
    def is_sure(self):
        return abs(self.bytes) > self.margin


def fit(before, after):
    """Return whether both are of one process, and the later one has all that
    happened since the other."""
    return (all([has_moments(its) and memory.is_about(its)
                 for its in (before, after)])
            and before.processes == after.processes
            and None not in after.processes and len(after.processes) == 1
            and after.start_time_ns <= _end_ns(before) < _end_ns(after))


def _end_ns(tables):
    return tables.start_time_ns + tables.end_ns


def text(before, after, *, mine=(), all=False, top=TOP, width=WIDTH,
         color=False):
    """Return the report as text."""
    whole, changes = _changes(before, after, mine, all)
    found = sorted(changes, key=lambda its: -abs(its.bytes))
    shown = [its for its in found if its.is_sure][:top]
    unit = memory.unit_of(max(whole.before, whole.after))
    table = _table([*shown, whole], unit, width)
    result = [_heading('before', before), _heading('after ', after)]
    result += wrapped(_first(before, after, whole, shown).split(' '), width,
                      ' ')
    return '\n'.join([*result, '', *lines(table, width, color), '',
                      *wrapped(NOTE.split(' '), width, ' ')]) + '\n'


def for_page(before, after, *, mine=(), all=False):
    """Return (the sentence, the DiffRow of all, a list of (DiffRow, what
    survived, in words)), the largest change first."""
    whole, changes = _changes(before, after, mine, all)
    found = sorted(changes, key=lambda its: -abs(its.bytes))
    return (_first(before, after, whole, [its for its in found
                                          if its.is_sure]),
            _diff_row(whole), [(_diff_row(its), _survived(its))
                               for its in found])


def _diff_row(its):
    of = its.row.of
    if of is None:
        return DiffRow('total', None, 0, '', its.before, its.after, its.margin,
                       (its.before,), (its.after,))
    function = None if is_outside(of.function) else of.function
    return DiffRow(
        NO_FRAMES if of.function is None else of.function.name, function,
        of.line, called_name(of), its.before, its.after, its.margin,
        (its.before,), (its.after,))


def _survived(its):
    return memory.part_of(its.row.bytes(SURVIVED),
                          max(its.allocated, its.row.bytes(SURVIVED)))


def _changes(before, after, mine, all):
    """Return the change of all, and a list of those of lines."""
    sides = [by_memory.by_line(its, sites_of(its, mine, all), None, IN_USE,
                               _end_ns(before) if its is after else None)
             for its in (before, after)]
    old = {_key(row): row for row in _rows(sides[0])}
    return (_change(sides[1].whole, sides[0].whole),
            [_change(row, old.get(_key(row))) for row in _rows(sides[1])])


def _change(row, old):
    return _Change(row, 0 if old is None else old.bytes(IN_USE),
                   row.bytes(IN_USE), row.amounts[GREW][2],
                   row.bytes(ALLOCATED))


def _rows(its):
    return [*its.rows, *its.outside]


def _key(row):
    function = row.of.function
    return function and (function.name, function.filename), row.of.line


def _heading(word, tables):
    size, rss = (tables.total('inuse_space_bytes'),
                 resident(tables).get('rss', 0))
    text = (f'{word}  {date(_end_ns(tables))}, in use '
            + memory.figure(size, memory.unit_of(size), ' '))
    return text + (f', RSS {memory.figure(rss, memory.unit_of(rss), " ")}'
                   if rss else '')


def _first(before, after, whole, shown):
    if not whole.is_sure:
        return 'What is in use has changed by less than may be chance'
    size = abs(whole.bytes)
    unit = memory.unit_of(size)
    length_ns = _end_ns(after) - _end_ns(before)
    text = (f'It {"grew" if whole.bytes > 0 else "shrank"} by '
            f'{memory.figure(size, unit).removesuffix(unit[0])} '
            f'\N{PLUS-MINUS SIGN} {memory.margin(whole.margin, unit)} {unit[0]}')
    if length_ns >= _SHORTEST_NS:
        an_hour = round(size * 3600e9 / length_ns)
        text += (f', {memory.figure(an_hour, memory.unit_of(an_hour), " ")}'
                 ' an hour')
    if shown and shown[0].bytes * whole.bytes > 0:
        most = min(shown[0].bytes / whole.bytes, 1)
        text += f': {share(most, 1)} at {memory.where(shown[0].row)}'
    return text


def _table(changes, unit, width):
    columns = [
        (Column('', 'before', 'word', 'text'),
         lambda its: memory.figure(its.before, unit) if its.before else '-'),
        (Column('', 'after', 'word', 'text'),
         lambda its: memory.figure(its.after, unit) if its.after else '-'),
        (Column('', 'change', 'word', 'text'),
         lambda its: memory.signed(its.bytes, its.margin, unit)),
        (Column('', '\N{PLUS-MINUS SIGN}', 'word', 'text'),
         lambda its: memory.margin(its.margin, unit)),
        (Column('', 'survived', 'word', 'text'),
         _survived)]
    columns += [(column, lambda its, number=number: _place(its)[number])
                for number, column in enumerate(place_columns('line'))]
    if width >= memory.WITH_IN:
        columns.append((Column('in', 'in', 'name', 'text'),
                        lambda its: by_memory.called_by(its.row)))
    return Table('memory', '', [column for column, _ in columns],
                 [tuple([cell(its) for _, cell in columns])
                  for its in changes], value_type=space(IN_USE))


def _place(its):
    of = its.row.of
    return (('', 'all'), 'all', '', 0, '') if of is None else place_cells(
        of.function, of.line)
