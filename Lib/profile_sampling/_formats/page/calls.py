"""Exact calls and queries, for a page."""

from profile_sampling._data import by_site, counts, queries, watched
from profile_sampling._data.counts import place_key
from profile_sampling._formats import header

# Of a line, and of all queries.
_CALLEES, _QUERIES = 4, 8


def calls(tables, sites, columns):
    """Return what the document says of them, or None: nothing was counted."""
    counted = tables.counts
    if counted is None or not counted.rows:
        return None
    return {'mode': counted.mode,
            'text': (' '.join(header.counted_calls(tables)) + '.'
                     if counted.has_calls else ''),
            'lines': _lines(tables) if counted.has_calls else [],
            'functions': (_functions(tables) if counted.has_calls
                          else []),
            'queries': _queries(tables, sites, columns)}


def _lines(tables):
    """Return a list of [function, line, calls, calls of the function, [callee,
    calls, calls of all lines]...] of functions that were sampled."""
    numbers = {place_key(function): number for number, function
               in enumerate(tables.functions) if function.kind == 'python'}
    of_callee = {place_key(function): row.calls for function, row
                 in counts.by_function(tables.counts).items()}
    found = {}
    for row in tables.counts.calls:
        number = numbers.get(place_key(row.caller))
        if number is not None:
            its = found.setdefault((number, row.line), {})
            key = row.callee.name, of_callee[place_key(row.callee)]
            its[key] = its.get(key, 0) + row.calls
    return [[number, line, sum(its.values()),
             of_callee.get(place_key(tables.functions[number]), 0),
             [[name, calls, of_all] for (name, of_all), calls in sorted(
                 its.items(), key=lambda item: (-item[1], item[0]))
                 [:_CALLEES]]]
            for (number, line), its in found.items()]


def _functions(tables):
    """Return a list of [function, calls] of functions that were sampled."""
    calls = {place_key(function): row.calls for function, row
             in counts.by_function(tables.counts).items()}
    return [[number, calls[key]] for number, key
            in enumerate(map(place_key, tables.functions)) if key in calls]


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
