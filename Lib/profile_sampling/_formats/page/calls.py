"""Exact calls and queries, for a page."""

from profile_sampling._data import (
    by_site, call_sites, counts, function_calls, idle, queries, watched)
from profile_sampling._data.counts import place_key
from profile_sampling._data.function_calls import each
from profile_sampling._formats import header
from profile_sampling._formats.words import said

# Of a line, and of all queries.
_CALLEES, _QUERIES = 4, 8


def calls(tables, sites, columns):
    """Return what the document says of them, or None: nothing was counted."""
    counted = tables.counts
    if counted is None or not counted.rows:
        return None
    has_calls = counted.has_calls
    busy = idle.shown(sites.tables)
    return {'mode': counted.mode,
            'text': (' '.join(header.counted_calls(tables)) + '.'
                     if has_calls else ''),
            'lines': _lines(busy, sites.precision) if has_calls else [],
            'functions': (_functions(busy, sites.precision) if has_calls
                          else []),
            'queries': _queries(tables, sites, columns)}


def _lines(tables, precision):
    """Return a list of [function, line, calls, calls of the function, [callee,
    calls, calls of all lines, what one took]...] of functions that were
    sampled."""
    numbers = {place_key(function): number for number, function
               in enumerate(tables.functions) if function.kind == 'python'}
    of_callee = {place_key(function): row.calls for function, row
                 in counts.by_function(tables.counts).items()}
    times = ({} if not precision.is_known or tables.counts.uncounted
             else call_sites.times(tables))
    found = {}
    for row in tables.counts.calls:
        number = numbers.get(place_key(row.caller))
        if number is not None:
            callee = place_key(row.callee)
            ns, records = times.get(
                (place_key(row.caller), row.line, callee), (0, 0))
            found.setdefault((number, row.line), []).append(
                [row.callee.name, row.calls, of_callee[callee],
                 _each_text(*each(ns, row.outermost, precision, records))])
    return [[number, line, sum([calls for _, calls, *_ in its]),
             of_callee.get(place_key(tables.functions[number]), 0),
             sorted(its, key=lambda callee: (-callee[1], callee[0]))
             [:_CALLEES]]
            for (number, line), its in found.items()]


def _functions(tables, precision):
    """Return a list of [function, calls, what one took] of functions that
    were sampled."""
    rows = {place_key(row.function): row
            for row in function_calls.rows(tables, precision)
            if row.calls is not None}
    return [[number, rows[key].calls,
             '~' * rows[key].is_rough
             + _each_text(rows[key].each_ns, rows[key].margin_ns)]
            for number, key in enumerate(map(place_key, tables.functions))
            if key in rows]


def _each_text(ns, margin_ns):
    """Return what one call took and its margin; '': it is not known."""
    if ns is None:
        return ''
    margin = f' \N{PLUS-MINUS SIGN} {said(margin_ns)}' if margin_ns else ''
    return f'{said(ns)}{margin}'.replace(' ', '\N{NO-BREAK SPACE}')


def _queries(tables, sites, columns):
    found = []
    for row in queries.rows(tables, sites)[:_QUERIES]:
        what, _, _ = watched.KINDS[row.kind]
        name = (by_site.OUTSIDE.name if row.function is None
                else f'{row.function.name}:{row.line}')
        found.append({
            'route': row.route, 'name': name, 'what': what,
            'place': columns.places.get((row.function, row.line), -1),
            'calls': row.calls, 'per': row.per and row.calls / row.per,
            'waited_ns': row.waited_ns, 'ns': row.ns,
            'text': queries.in_words(row)})
    return found
