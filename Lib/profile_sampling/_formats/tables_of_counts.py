"""Tables of exact calls, beside the time of samples.

This file owns what is in them.  It must not know how a table is laid out.  A
cell of calls is empty where they were not counted, and never 0.
"""

from profile_sampling._data import by_function, counts, queries, watched
from profile_sampling._data.by_site import OUTSIDE
from profile_sampling._data.queries import place_key
from profile_sampling._formats.sites import place_cells, place_columns
from profile_sampling._formats.table import Column, Table
from profile_sampling._formats.words import brief

_MARGIN = '\N{PLUS-MINUS SIGN}'
# Samples that a function would have had, were it slower.
_SAMPLES = 3
# Lines that --calls shows.
_LINES = 15


def calls(tables, sites, top):
    """Return the Tables of queries and of calls by line.

    Raise ValueError if there are neither.
    """
    rows = queries.rows(tables, sites)
    counted = tables.counts
    if not rows and (counted is None or not counted.has_calls):
        raise ValueError(
            'no calls were counted.  Count them:  python -X '
            'sampleprof=wall,calls=python ...')
    found = []
    if rows:
        found.append(_queries(tables, sites, rows, top))
    if counted.has_calls:
        found.append(_by_line(tables, min(top, _LINES)))
    return found


def _queries(tables, sites, rows, top):
    own = tables.value_types[tables.own]
    has_time = own.unit == 'nanoseconds'
    what = {row.kind for row in rows}
    is_of_requests = any([row.requests for row in rows])
    columns = [
        Column('calls', 'calls', 'count'),
        Column('per_request' if is_of_requests else 'per_call',
               'a request' if is_of_requests else 'a call', 'word',
               'both' if any([row.per for row in rows]) else 'data'),
        Column('waited_ns', 'waited', 'value', 'both' if has_time else 'data'),
        Column('time_ns', 'time', 'value', 'both' if has_time else 'data'),
        Column('each_ns', 'each', 'time', 'both' if has_time else 'data'),
        Column('each_margin_ns', _MARGIN, 'time',
               'both' if has_time and sites.precision.is_known else 'data'),
        *place_columns('line'),
        Column('what', 'what', 'text', 'wide' if len(what) == 1 else 'both'),
        Column('route', 'route', 'text')]
    cells = [(row.calls, f'{row.calls / row.per:,.1f}' if row.per else '',
              row.waited_ns, row.ns,
              *_each(row.ns, row.calls, sites,
                     row.sums.running_records if row.sums else 0),
              *place_cells(row.function or OUTSIDE, row.line),
              watched.KINDS[row.kind][0], row.route) for row in rows[:top]]
    cells.append((sum([row.calls for row in rows]), '',
                  sum([row.waited_ns for row in rows]),
                  sum([row.ns for row in rows]), None, None,
                  ('', 'all'), 'all', '', 0, '', '', ''))
    notes = ['calls are exact; time is of the line, by samples, with all that '
             'it calls; one function more: record --watch NAME']
    return Table('queries', 'Queries, requests, files and processes, by the '
                 'line of mine that asked', columns, cells,
                 value_type=own, notes=_of_whole(tables, notes),
                 more=(len(rows) - len(rows[:top]), 'line'))


def _each(ns, number, sites, records):
    """Return what one of a number of calls took, and its margin; or None."""
    if not ns or not number:
        return None, None
    margin_ns = sites.precision.margin_ns(records)
    return ns / number, None if margin_ns is None else margin_ns / number


def _by_line(tables, top):
    sums = {}
    for row in tables.counts.calls:
        key = row.caller, row.line, row.callee
        sums[key] = sums.get(key, 0) + row.calls
    rows = sorted(sums.items(), key=lambda item: (-item[1], item[0][1],
                                                  item[0][2].name))
    columns = [Column('calls', 'calls', 'count'), *place_columns('line'),
               Column('callee', 'called', 'name')]
    cells = [(number, *place_cells(caller or OUTSIDE, line), _name(callee))
             for (caller, line, callee), number in rows[:top]]
    cells.append((sum(sums.values()), ('', 'all'), 'all', '', 0, '',
                  ('', '')))
    return Table('calls', 'Calls by line', columns, cells,
                 value_type=tables.value_types[tables.own],
                 notes=_of_whole(tables, _not_counted(tables)),
                 more=(len(rows) - len(rows[:top]), 'line'))


def _name(function):
    return function.module or '', function.qualname


def _not_counted(tables):
    if tables.counts.mode == counts.PYTHON:
        return ['C functions are not counted: calls=all']
    return []


def _of_whole(tables, notes):
    if tables.whole_cpu_ns is not None:
        notes = [*notes, 'calls are those of the whole recording']
    return notes


def functions(tables, sites, top, sort='self'):
    """The Table of functions with their calls, beside their time."""
    own = tables.own
    rows = _function_rows(tables, sites)
    rows.sort(key=_RANKS[sort])
    value_type = tables.value_types[own]
    suffix = '_ns' if value_type.unit == 'nanoseconds' else ''
    shown = rows[:top]
    columns = [
        Column('calls_text', 'calls', 'word', 'text'),
        Column('calls', '', 'count', 'data'),
        Column('outermost_calls', '', 'count', 'data'),
        Column('resumes', 'resumes', 'count',
               'both' if any([row.resumes for row in shown]) else 'data'),
        Column('deepest', 'deepest', 'count',
               'both' if any([(row.deepest or 0) > 1 for row in shown])
               else 'data'),
        Column('per_call_text', 'per call', 'word', 'text'),
        Column('per_call_ns', '', 'count', 'data'),
        Column('per_call_ns_margin', _MARGIN, 'time',
               'both' if sites.precision.is_known else 'data'),
        Column(f'self{suffix}', 'self', 'value'),
        Column(f'cum{suffix}', 'total', 'value'),
        Column('total_share', 'share', 'share'),
        *place_columns('function'), Column('first_line', '', 'count', 'data')]
    total = tables.totals[own] or 1
    cells = [(row.calls_text, row.calls, row.outermost, row.resumes,
              row.deepest, row.per_call_text, row.per_call_ns, row.margin_ns,
              row.self, row.cum, row.cum / total,
              *place_cells(row.function, 0), row.function.first_line)
             for row in shown]
    all_calls = sum([row.calls or 0 for row in rows])
    cells.append((f'{all_calls:,}', all_calls, None, None, None, '', None,
                  None, tables.totals[own], 0, None, ('', 'all'), 'all', '',
                  0, '', 0))
    notes = ['calls, and outermost calls where they differ; per call: total / '
             'outermost calls', *_not_counted(tables)]
    if any([row.resumes for row in shown]):
        notes.append('resumes: went on after a yield or an await')
    if any([(row.deepest or 0) > 1 for row in shown]):
        notes.append('deepest: most calls of it on one stack at a time')
    if any([row.per_call_text[:1] == '<' for row in shown]):
        notes.append(f'<: no sample, so less than {_SAMPLES} periods in all')
    return Table('functions', f'Functions by {_TITLES[sort]}', columns, cells,
                 value_type=value_type, notes=_of_whole(tables, notes),
                 more=(len(rows) - len(shown), 'function'))


_TITLES = {'self': 'self time', 'cum': 'total time', 'calls': 'calls',
           'per-call': 'time per call'}
_RANKS = {
    'self': lambda row: (-row.self, -row.cum, *row.rank),
    'cum': lambda row: (-row.cum, -row.self, *row.rank),
    'calls': lambda row: (-(row.calls or 0), -row.cum, *row.rank),
    'per-call': lambda row: (-(row.per_call_ns or 0), -row.cum, *row.rank)}


class _Row:
    """A function that was sampled, counted or both."""

    def __init__(self, function):
        self.function = function
        self.calls = self.outermost = self.resumes = self.deepest = None
        self.self = self.cum = 0
        self.calls_text = self.per_call_text = ''
        self.per_call_ns = self.margin_ns = None
        self.rank = function.name, function.filename, function.first_line

    def count(self, counted):
        self.calls, self.outermost = counted.calls, counted.outermost
        self.resumes = counted.resumes or None
        self.deepest = counted.deepest or None
        self.calls_text = f'{self.calls:,}' + (
            '' if self.calls == self.outermost else f'/{self.outermost:,}')

    def measure(self, period_ns, sites, records):
        """Work out what a call takes; *period_ns* is None if it is no time."""
        if period_ns is None or not self.outermost:
            return
        self.per_call_ns, self.margin_ns = _each(self.cum, self.outermost,
                                                 sites, records)
        if self.per_call_ns is not None:
            self.per_call_text = brief(self.per_call_ns)
        elif period_ns:
            least_ns = _SAMPLES * period_ns / self.outermost
            self.per_call_text = f'< {brief(least_ns)}'


def _function_rows(tables, sites):
    own = tables.own
    rows = {}
    records = {}
    for function, its in by_function.running_records(tables).items():
        records[place_key(function)] = its[1]
    for sampled in by_function.functions(tables):
        row = rows.setdefault(place_key(sampled.function),
                              _Row(sampled.function))
        row.self += sampled.self_values[own]
        row.cum += sampled.cum_values[own]
    for function, counted in counts.by_function(tables.counts).items():
        rows.setdefault(place_key(function), _Row(function)).count(counted)
    period_ns = None
    if tables.value_types[own].unit == 'nanoseconds':
        period_ns = 1e9 / tables.rate_hz if tables.rate_hz else 0
    for key, row in rows.items():
        row.measure(period_ns, sites, records.get(key, 0))
    return list(rows.values())


def of_callers(tables, wanted, are_callers):
    """Return {function of the other end, by place_key(): (calls, Function)}
    of the calls of, or by, functions that *wanted*() holds for; None: calls
    were not counted."""
    if tables.counts is None or not tables.counts.has_calls:
        return None
    found = {}
    for row in tables.counts.calls:
        its, other = row.callee, row.caller
        if not are_callers:
            its, other = row.caller, row.callee
        if its is not None and wanted(its):
            key = place_key(other)
            found[key] = found.get(key, (0, other))[0] + row.calls, other
    return found
