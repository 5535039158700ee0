"""Tables of exact calls, beside the time of samples.

A cell of calls is empty where they were not counted, and never 0.
"""

from profile_sampling._data import (
    call_sites, counts, function_calls, queries, watched)
from profile_sampling._data.by_site import OUTSIDE
from profile_sampling._data.function_calls import SAMPLES, each
from profile_sampling._formats.sites import place_cells, place_columns
from profile_sampling._formats.table import Column, Table
from profile_sampling._formats.words import brief, brief_amount, counted

_MARGIN = '\N{PLUS-MINUS SIGN}'
_NO_CALLER = '[no caller]'
# Lines that --calls shows.
_LINES = 15


def calls(tables, sites, top):
    """Return the Tables of queries and of calls by line.

    Raise ValueError if there are neither.
    """
    rows = queries.rows(tables, sites)
    has_calls = tables.counts is not None and tables.counts.has_calls
    if not rows and not has_calls:
        raise ValueError(
            'no calls were counted.  Count them:  python -X '
            'sampleprof=wall,calls=python ...')
    found = []
    if rows:
        found.append(_queries(tables, sites, rows, top))
    if has_calls:
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
              *each(row.ns, row.calls, sites.precision,
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
    rows = function_calls.rows(tables, sites.precision)
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
    cells = [(_calls_text(row), row.calls, row.outermost, row.resumes,
              row.deepest, _each_text(row), row.each_ns, row.margin_ns,
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
    if any([row.least_ns for row in shown]):
        notes.append(f'<: no sample, so less than {SAMPLES} periods in all')
    if any([row.is_rough for row in shown]):
        notes.append('~: counting took more than a quarter of its time')
    return Table('functions', f'Functions by {_TITLES[sort]}', columns, cells,
                 value_type=value_type, notes=_of_whole(tables, notes),
                 more=(len(rows) - len(shown), 'function'))


def _calls_text(row):
    if row.calls is None or row.calls == row.outermost:
        return '' if row.calls is None else f'{row.calls:,}'
    return f'{row.calls:,}/{row.outermost:,}'


def _each_text(row):
    if row.each_ns is None:
        return f'< {brief(row.least_ns)}' if row.least_ns else ''
    return '~' * row.is_rough + brief(row.each_ns)


_TITLES = {'self': 'self time', 'cum': 'total time', 'calls': 'calls',
           'per-call': 'time per call'}
_RANKS = {
    'self': lambda row: (-row.self, -row.cum, *row.rank),
    'cum': lambda row: (-row.cum, -row.self, *row.rank),
    'calls': lambda row: (-(row.calls or 0), -row.cum, *row.rank),
    'per-call': lambda row: (-(row.each_ns or 0), -row.cum, *row.rank)}


def neighbours(tables, sites, top, names, wanted, are_callers):
    """The Table of lines that call functions that match, or are called by."""
    rows = call_sites.rows(tables, wanted, are_callers)
    own = tables.own
    value_type = tables.value_types[own]
    suffix = '_ns' if value_type.unit == 'nanoseconds' else ''
    total = sum([row.value for row in rows])
    all_calls = sum([row.calls or 0 for row in rows])
    outermost = sum([its.calls for its in counts.by_function(
        tables.counts).values() if wanted.search(its.callee.name)])
    margin = 'both' if suffix and sites.precision.is_known else 'data'
    of_calls = (
        [Column('of_calls', 'of calls', 'share')] if are_callers
        else [Column('a_call', 'a call', 'word')])
    columns = [
        Column('calls', 'calls', 'count'), *of_calls,
        Column(f'cum{suffix}', 'time', 'value'),
        Column('share', 'of time', 'share', 'both' if are_callers else 'data'),
        Column('per_call_ns', 'per call', 'time',
               'both' if suffix else 'data'),
        Column('per_call_ns_margin', _MARGIN, 'time', margin),
        *([] if are_callers else [Column('callee', 'callee', 'name')]),
        *place_columns('called at')]
    cells = []
    for row in rows[:top]:
        each_ns, margin_ns = each(
            row.value if suffix and not tables.counts.uncounted else 0,
            row.calls, sites.precision, row.records)
        part = None
        if row.calls is not None:
            part = (row.calls / (all_calls or 1) if are_callers
                    else f'{row.calls / (outermost or 1):,.1f}')
        cells.append((
            row.calls, part, row.value, row.value / (total or 1), each_ns,
            margin_ns, *([] if are_callers else [_name(row.callee)]),
            *(place_cells(row.caller, row.line) if row.caller is not None
              else (('', _NO_CALLER), _NO_CALLER, '', 0, ''))))
    of_all = names[0] if len(names) == 1 else counted(len(names), 'function')
    what = 'Callers' if are_callers else 'Callees'
    notes = ['calls are counted, time is sampled: neither is computed from '
             'the other', *_not_counted(tables)]
    return Table(what.lower(), f'{what} of {of_all}: {all_calls:,} calls, '
                 f'{brief_amount(total, value_type)}', columns, cells,
                 value_type=value_type, notes=_of_whole(tables, notes),
                 more=(len(rows) - len(cells), 'line'))
