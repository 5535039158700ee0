"""The table by call site, and columns that other tables share with it."""

from profile_sampling._data import by_imports, confidence, states
from profile_sampling._data.by_site import (
    IMPORTS, called, called_name, is_outside)
from profile_sampling._data.counts import PYTHON, by_line, place_key
from profile_sampling._data.values import (
    COUNT, NO_FRAMES, STATES, TASK, printable)
from profile_sampling._formats.table import Column, Table
from profile_sampling._formats.words import brief_amount, counted, title

# What stands above a state; all but the first only where there is no less of
# it than a share.
_HEADINGS = {state.name: state.heading for state in states.SHOWN
             if state.heading}
# The same where the time is that of tasks.
_OF_TASKS = {'awaiting': 'awaiting', 'loop_wait': 'loop wait'}
# The same where samples are counted.
_OF_COUNTS = {'custom': 'custom'}
_LEAST_SHARE = 0.005
# Packages that the row of imports names.
_IMPORTS = 3


def site_table(tables, sites, top):
    """Return the Table of the first *top* call sites.

    What is on no line of mine is at the end, however many rows there are.
    """
    own = tables.value_types[tables.own]
    ranked = [row for row in sites.rows
              if not is_outside(row.function)]
    others = sites.rows[len(ranked):]
    shared = TimeColumns(tables, sites, [row.sums for row in ranked],
                         [row.sums for row in others])
    made = calls_by_line(tables)
    columns = [*shared.columns,
               Column('calls', 'calls', 'count', 'both' if made else 'data'),
               *place_columns('line'),
               Column('in', 'in', 'name')]
    imports = _imports(sites) if any(
        [row.function is IMPORTS for row in others]) else ''
    rows = [(*cells, made.get((place_key(row.function), row.line)),
             *_place(row), ('', imports) if row.function is IMPORTS and imports
             else called(row, with_share=True))
            for cells, row in zip(shared.cells(top), [*ranked[:top], *others])]
    notes = [] if not made else [
        'calls: made by the line itself, counted' + (
            '; of C functions: calls=all' if tables.counts.mode == PYTHON
            else '')]
    notes += [f'[{state}] {brief_amount(value, own)}: on no line'
              for state, value in sites.nowhere]
    if sites.idle:
        notes.append(_idle(sites, own))
    return Table('my_code' if sites.is_mine else 'sites', _title(sites),
                 columns, rows, value_type=own, notes=notes,
                 more=(len(ranked) - len(ranked[:top]), 'line'),
                 more_share=shared.share_from(top))


def _imports(sites):
    """Name the packages whose imports took most."""
    tables = sites.tables
    own = tables.value_types[tables.own]
    return ', '.join([
        f'{row.package} {brief_amount(row.ns, own)}'
        for row in by_imports.rows(tables, sites.mine)[:_IMPORTS]])


def calls_by_line(tables):
    """Return {(place_key(function), line): calls that it made}."""
    found = {}
    if tables.counts is not None and tables.counts.has_calls:
        for (function, line), number in by_line(tables.counts).items():
            key = place_key(function), line
            found[key] = found.get(key, 0) + number
    return found


def _title(sites):
    if not sites.rows:
        return ''
    if sites.is_mine is None:
        return ('Hardly any of the time is in code of yours.  These are the '
                'library lines.  If some of it is yours: --mine PATTERN')
    if sites.is_mine and is_outside(sites.rows[0].function):
        return ('None of this is in code of yours.  The library lines: --all; '
                'if some of it is yours: --mine PATTERN')
    return ''


class TimeColumns:
    """The columns that say what threads did, for rows of StateSums.

    Rows are ranked; those that chance may have put in this order share a
    rank and are marked.  *unranked* are of rows at the end.
    """

    def __init__(self, tables, sites, sums, unranked=()):
        self._sums = sums
        self._unranked = unranked
        self._whole = sites.busy
        self._precision = sites.precision
        own = tables.value_types[tables.own]
        suffix = '_ns' if own.unit == 'nanoseconds' else ''
        headings = _HEADINGS | (_OF_TASKS if own == TASK else
                                _OF_COUNTS if own == COUNT else {})
        if not tables.schema.has_states:
            headings = {}
        self._states = [STATES.index(state) for state in headings]
        columns = [Column('rank', '#', 'count'),
                   Column('is_tied', '', 'flag'),
                   Column('self_share', 'self', 'share'),
                   Column(f'self{suffix}', title(own), 'value',
                          'data' if headings else 'both')]
        for state, heading in headings.items():
            number = STATES.index(state)
            most = sum([row.by_state[number] for row in [*sums, *unranked]])
            shown = state == 'running' or most > _LEAST_SHARE * sites.busy
            if not suffix and state == 'running':
                heading = title(own)
            columns.append(Column(f'{state}{suffix}', heading, 'value',
                                  'both' if shown else 'data'))
            if state == 'running':
                columns.append(Column(
                    f'{state}_margin{suffix}', '\N{PLUS-MINUS SIGN}',
                    'margin', 'both' if sites.precision.is_known else 'data'))
        self.columns = columns

    def share_from(self, top):
        """Return the share of what has a rank, but of the first *top*."""
        return (sum([row.total for row in self._sums[top:]]) / self._whole
                if self._whole else 0.0)

    def cells(self, top):
        """Iterate over the cells of each of the first *top* rows, and of
        those without a rank."""
        # The next one may share the rank of the last.
        ranks = confidence.ranks(
            [(row.total, row.running_records)
             for row in self._sums[:top + 1]], self._precision)
        for (rank, is_tied), row in [
                *zip(ranks, self._sums[:top]),
                *[((None, False), row) for row in self._unranked]]:
            cells = [row.by_state[number] for number in self._states]
            cells[1:1] = [self._precision.margin_ns(row.running_records)
                          ] if cells else []
            yield (rank, is_tied,
                   row.total / self._whole if self._whole else 0.0,
                   row.total, *cells)


def place_columns(heading, whose=''):
    """Return the columns of place_cells(); *whose* begins their names."""
    return (Column(f'{whose}site', heading, 'name', 'text'),
            Column(f'{whose}function', '', 'text', 'data'),
            Column(f'{whose}file', '', 'text', 'data'),
            Column(f'{whose}line', '', 'count', 'data'),
            Column(f'{whose}kind', '', 'text', 'data'))


def place_cells(function, line):
    """Return the cells site, function, file, line and kind."""
    if function is None:
        return ('', NO_FRAMES), '', '', 0, ''
    name = function.qualname + (f':{line}' if line else '')
    return ((function.module or '', name), function.name, function.filename,
            line, function.kind)


def _place(row):
    return place_cells(row.function, row.line)


def site_text(row):
    """Return the line of a SiteRow, and what it called, in a text."""
    text = NO_FRAMES if row.function is None else row.function.name
    text = f'{text}:{row.line}' if row.line else text
    name = called_name(row)
    if name:
        text += f' ({name})'
    return printable(text)


def _idle(sites, own):
    names = [(NO_FRAMES if row.function is None else row.function.name)
             + (f':{row.line}' if row.line else '')
             for row in sites.idle_rows[:2]]
    more = ', ...' if len(sites.idle_rows) > len(names) else ''
    return (f'[idle] {brief_amount(sites.idle, own)} in '
            f'{counted(sites.idle_threads, "thread")} that had nothing to '
            f'do: {", ".join(names)}{more}')
