"""Tables of a report, and how they are laid out as text."""

from profile_sampling._data import states
from profile_sampling._data.values import printable
from profile_sampling._formats.style import Style, depth, is_dark
from profile_sampling._formats.words import (
    brief, brief_amount, counted, short_end, short_name, start, text_width,
    wrapped)

WIDTH, MIN_WIDTH = 100, 60
# Below that width a text has few columns.
_WIDE = 80
# How far lines below a row are indented.
_INDENT = ' ' * 8
_GAP = 2
# Characters of a text below which a column is left out, if it has as many;
# the first text has twice as many.
_LEAST, _LEAST_OF_PATH = 8, 14
# Characters of a text for which margins, and for which other columns of
# numbers are left out.
_WANTED, _NEEDED, _OF_PATH = 40, 20, 28
# The same of all texts but the first, in text of few columns.
_NEEDED_BESIDE = 12
# Of all values: columns with less are left out before texts are.
_SMALL_SHARE = 0.05
_NOTHING = '', '-', '0.00s', '0.0ms', '0.0us'
# Of the whole: what has less is counted and not shown, after some rows; after
# more of them where what is left has as much as this, in a flat profile.
_LEAST_SHARE, _ROWS = 0.005, 5
_FLAT_SHARE, _FLAT_ROWS = 0.05, 15
_SHARES = 'share', 'self_share', 'cum_share'
# The styles of what has one: see style.py.
_STYLES = {'title': 'strong', 'heading': 'strong', 'name': 'mine',
           'large': 'warn', 'more': 'warn', 'less': 'live'} | {
    state.heading: f'state {state.letter}' for state in states.SHOWN
    if state.heading}
_LARGE_SHARE = 0.1
# The heading of what a line called, which is not mine.
_CALLED = 'in'
_TEXTS = 'name', 'text', 'path', 'tree', 'code'


class Column:
    """A column of a table.

    key      its name in JSON and TSV; a time's ends in _ns
    heading  what stands above it
    kind     what its cells are:
             share   a number from 0 to 1
             value   a number of what the profile is about
             margin  the same: how far another one may be off, or None
             change  the same, with its sign
             count   a number
             flag    a bool, shown as '='
             chance  a bool, shown as '~'
             word    a text that is not cut
             name    (module or '', the rest), the name of a function
             text    a text; it may be cut
             path    the path of a file, and a line; it may be cut
             tree    (indent, text)
             code    a line of a program; it may be cut
             time    a number of nanoseconds, in a unit of its own, or None
             below   a list of (name, nanoseconds), in a line below its row
    where    'both', 'text' (only there), 'data' (never there) or 'wide': in
             text of few columns it is left out
    """

    __slots__ = ('key', 'heading', 'kind', 'where')

    def __init__(self, key, heading, kind, where='both'):
        self.key = key
        self.heading = printable(heading)
        self.kind = kind
        self.where = where


class Table:
    """A table of a report.

    key      its name in JSON
    title    what is above it
    columns  list of Column
    rows     list of tuples, a cell for each column
    notes    lines below it
    value_type  of the cells that are values
    more     (how many rows are not in it, what one is called, and several),
             if rows are ranked
    more_share  what share of the whole these have, if shares add up
    least_share  rows with less are not for people
    is_exact  whether times are shown to a millisecond
    """

    __slots__ = ('key', 'title', 'columns', 'rows', 'notes', 'value_type',
                 'more', 'more_share', 'least_share', 'is_exact')

    def __init__(self, key, title, columns, rows, *, value_type, notes=(),
                 more=None, more_share=None, is_exact=False):
        self.key = key
        self.title = title
        self.columns = columns
        self.rows = rows
        self.notes = list(notes)
        self.value_type = value_type
        self.more = more
        self.more_share = more_share
        self.least_share = _LEAST_SHARE
        self.is_exact = is_exact

    def all_notes(self):
        """Return the notes, and how many rows are not in it."""
        return self._counted([]) + self.notes

    def for_people(self):
        """Return (rows, notes) without the rows that have hardly anything.

        A row without a rank is in no ranking, and is not counted.
        """
        numbers = [number for number, column in enumerate(self.columns)
                   if column.key in _SHARES]
        if self.more is None or not numbers:
            return self.rows, self._counted([]) + self.notes

        def share(row):
            return max([row[its] or 0 for its in numbers])

        ranked = [row for row in self.rows if row[0] is not None]
        others = [row for row in self.rows if row[0] is None
                  and share(row) >= _LEAST_SHARE]
        least = self._least_rows(ranked, numbers[0])
        shown = [row for number, row in enumerate(ranked)
                 if number < least or share(row) >= self.least_share]
        small = [row[numbers[0]] or 0 for number, row in enumerate(ranked)
                 if number >= least and share(row) < self.least_share]
        return shown + others, self._counted(small) + self.notes

    def _least_rows(self, ranked, column):
        """Return how many rows are shown whatever they have."""
        if self.more_share is None:
            return _ROWS
        rest = self.more_share + sum([row[column] or 0
                                      for row in ranked[_ROWS:]])
        for number, row in enumerate(ranked[_ROWS:_FLAT_ROWS], _ROWS):
            if rest < _FLAT_SHARE:
                return number
            rest -= row[column] or 0
        return _FLAT_ROWS

    def _counted(self, small):
        """Say how many rows are not shown, *small* the shares of some."""
        if self.more is None:
            return []
        rest, *nouns = self.more
        number = rest + len(small)
        if not number:
            return []
        text = counted(number, *[f'more {noun}' for noun in nouns])
        text = (f'{text} under {100 * self.least_share:g} %' if small
                else f'... {text}')
        if self.more_share is not None:
            text += f', {100 * (self.more_share + sum(small)):.1f} % in all'
        return [text]


def lines(table, width=WIDTH, color=False):
    """Return the lines of a table of at most *width* columns.

    No line is longer.  Where there is no space, columns are left out and texts
    are cut: see _widths().
    """
    rows, notes = table.for_people()
    numbers = [number for number, column in enumerate(table.columns)
               if column.where != 'data' and column.kind != 'below'
               and (column.where != 'wide' or width >= _WIDE)]
    columns = [table.columns[number] for number in numbers]
    scale = _scale(table)
    cells = [[_cell(row[number], table.columns[number], table, scale)
              for number in numbers] for row in rows]
    sums = [sum([abs(row[number] or 0) for row in rows])
            if table.columns[number].kind in ('value', 'time') else 0
            for number in numbers]
    widths = _widths(columns, cells, width, sums)
    shown = [number for number, of_column in enumerate(widths) if of_column]
    result = [_painted(line, 'title', color) for line in wrapped(
        printable(table.title).split(' '), width, ' ') if line]
    if not columns:
        return result
    heads = [_padded(its.heading, its.heading if its.heading in _STYLES
                     else 'heading', widths[number], its.kind, color)
             for number in shown for its in (columns[number],)]
    result.append((' ' * _GAP).join(heads).rstrip())
    for row, raw in zip(cells, rows):
        texts = []
        may_be_chance = any([cell for cell, column in zip(raw, table.columns)
                             if column.kind == 'chance'])
        for number in shown:
            kind = columns[number].kind
            texts.append(_padded(
                _fitted(row[number], widths[number], kind),
                _role(columns[number], raw[numbers[number]], may_be_chance),
                widths[number], kind, color))
        result.append((' ' * _GAP).join(texts).rstrip())
        for column, cell in zip(table.columns, raw):
            if column.kind == 'below' and cell:
                result += _below(column, cell, width)
    for note in notes:
        result += wrapped(printable(note).split(' '), width, ' ')
    return result


def _below(column, cell, width):
    parts = [f'{short_name("", printable(name), width - len(_INDENT) - 16)} '
             f'{brief(ns)}' for name, ns in cell]
    if column.heading:
        parts[0] = f'{column.heading} {parts[0]}'
    return [_INDENT + line for line
            in wrapped(parts, width - len(_INDENT), indent='')]


def below(cell):
    """Return the texts of a cell of the kind 'below'."""
    return [f'{printable(name)} {brief(ns)}' for name, ns in cell]


def _scale(table):
    return max([abs(cell) for row in table.rows
                for cell, column in zip(row, table.columns)
                if column.kind == 'value' and cell and column.where != 'data'],
               default=0)


def _cell(cell, column, table, scale):
    """A cell as text; a name is still in two parts."""
    match column.kind:
        case 'name':
            return tuple(map(printable, cell))
        case 'text' | 'path':
            return printable(cell)
        case 'code':
            return printable(cell.expandtabs())
        case 'tree':
            depth, text = cell
            return '  ' * depth + printable(text)
        case 'flag':
            return '=' if cell else ''
        case 'chance':
            return '~' if cell else ''
        case 'word':
            return cell
    return number(cell, column, table, scale)


def number(cell, column, table, scale=None):
    """A share, a count or a value as text; *scale* as for brief_amount()."""
    if cell is None:
        return ''
    match column.kind:
        case 'share':
            return f'{100 * cell:.1f}%'
        case 'count':
            return f'{cell:,}'
        case 'time':
            return brief(cell) if cell else '-'
    if not cell:
        return '-'
    text = brief_amount(cell, table.value_type, scale,
                        digits=3 if table.is_exact else 2)
    return f'+{text}' if column.kind == 'change' and cell > 0 else text


def _length(cell):
    if isinstance(cell, tuple):
        module, name = cell
        return text_width(f'{module}.{name}' if module else name)
    return text_width(cell)


def _widths(columns, cells, width, sums):
    """Return the width of each column; 0 for one that is left out.

    That is a text that is nowhere, and what there is no space for: columns in
    which there is nothing, margins, ranks, and the values that are least; in
    text of few columns the second name before values that are large.
    Then paths get shorter, and then names; the last of them may be left out.
    *sums* are of the values of each column.
    """
    widths = [max([_length(column.heading), *[_length(row[number])
                                              for row in cells]])
              for number, column in enumerate(columns)]
    for number, column in enumerate(columns):
        if column.kind in _TEXTS and not any([_length(row[number])
                                              for row in cells]):
            widths[number] = 0
    _leave_out(columns, cells, widths, width, sums)
    texts = [number for number, column in enumerate(columns)
             if column.kind in _TEXTS and widths[number]]
    least = {number: min(widths[number], _LEAST_OF_PATH
                         if columns[number].kind == 'path' else _LEAST)
             for number in texts}
    rest = width - _total(widths)
    for number in texts:
        if rest < 0 and columns[number].kind == 'path':
            cut = min(-rest, widths[number] - least[number])
            widths[number] -= cut
            rest += cut
    while texts and rest < 0:
        space = rest + sum([widths[number] for number in texts])
        needed = _LEAST + sum([least[number] for number in texts])
        if len(texts) == 1 or space >= needed:
            needs = widths[texts[-1]]
            _share_out(widths, texts, space)
            # Names that lost a class may need less than they have got.
            for number in texts[:-1]:
                used = max([_length(columns[number].heading), *[
                    _length(_fitted(row[number], widths[number],
                                    columns[number].kind)) for row in cells]])
                rest = widths[number] - used
                widths[number] = used
                widths[texts[-1]] = min(needs, widths[texts[-1]] + rest)
            break
        left_out = texts.pop()
        rest += widths[left_out] + _GAP
        widths[left_out] = 0
    return widths


def _total(widths):
    return sum([width + _GAP for width in widths if width]) - _GAP


def _leave_out(columns, cells, widths, width, sums):
    """Take columns of numbers away until texts fit, if that helps."""
    first = next((number for number, column in enumerate(columns)
                  if column.kind in _TEXTS), None)
    beside = _NEEDED_BESIDE if width < _WIDE else width

    def needed(number, wanted):
        if columns[number].kind not in _TEXTS:
            return widths[number]
        return min(widths[number], wanted,
                   _OF_PATH if columns[number].kind == 'path' else wanted,
                   wanted if number == first else beside)

    def lacks(wanted):
        return _total([needed(number, wanted)
                       for number in range(len(columns))]) > width

    for wanted, numbers in _expendable(columns, cells, sums, width):
        if not lacks(wanted):
            break
        for number in numbers:
            widths[number] = 0


def _expendable(columns, cells, sums, width):
    """Iterate over (width that a text is to have, columns that are left out if
    it has less), in their order."""
    of_kind = {}
    for number, column in enumerate(columns):
        of_kind.setdefault(column.kind, []).append(number)
    yield _WANTED, [
        number for kind in ('value', 'margin', 'time', 'flag')
        for number in of_kind.get(kind, ())
        if all([row[number] in _NOTHING for row in cells])]
    yield _WANTED, of_kind.get('margin', ())
    yield _NEEDED, [number for number, column in enumerate(columns)
                    if column.key in ('rank', 'is_tied')]
    # Of the values of a table at least two are left: of states those with
    # most.
    values = [number for kind in ('value', 'time')
              for number in of_kind.get(kind, ())]
    values.sort(key=sums.__getitem__)
    total = sum([sums[number] for number in values])
    least = values[:-2]
    for number in least:
        if sums[number] < _SMALL_SHARE * total:
            yield _NEEDED, [number]
    if least and width < _WIDE:
        yield _NEEDED, of_kind.get('name', ())[1:]
    for number in least:
        yield _NEEDED, [number]


def _share_out(widths, texts, space):
    """Give each text the same, but none more than it needs: what is left is
    for the others."""
    shortest_first = sorted(texts, key=widths.__getitem__)
    for number, text in enumerate(shortest_first):
        widths[text] = max(1, min(
            widths[text], space // (len(texts) - number)))
        space -= widths[text]


def _fitted(cell, width, kind):
    match kind:
        case 'name':
            return short_name(*cell, width)
        case 'path':
            return short_end(cell, width, '/')
        case 'text' | 'code':
            return start(cell, width)
        case 'tree':
            text = cell.lstrip(' ')
            indent = len(cell) - len(text)
            return cell[:indent] + short_name('', text, width - indent)
    return cell


def _padded(text, role, width, kind, color):
    blanks = ' ' * (width - text_width(text))
    text = _painted(text, role, color)
    return text + blanks if kind in _TEXTS else blanks + text


def _role(column, cell, may_be_chance):
    kind = column.kind
    if column.heading == _CALLED:
        return ''
    if kind == 'share' and cell is not None and cell >= _LARGE_SHARE:
        return 'large'
    if kind == 'change' and cell and not may_be_chance:
        return 'more' if cell > 0 else 'less'
    return kind


def _painted(text, role, color):
    return (Style(depth(), is_dark())(text, _STYLES.get(role, ''))
            if color else text)
