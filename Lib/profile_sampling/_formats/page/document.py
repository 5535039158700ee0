"""The document of a page: all that its script draws, as JSON and columns.

It is compressed by gzip: the length of the JSON in four bytes, the JSON,
padded with spaces until what follows it is at a multiple of eight, and the
columns, each at a multiple of eight after that; all little endian.
"""

from profile_sampling._data import by_imports, by_task, keys, origins
from profile_sampling._data.by_site import (
    COUNTING_CALLS, HARDLY, IMPORTS, MOSTLY, OUTSIDE, sites_of)
from profile_sampling._data.on_clocks import on_clocks
from profile_sampling._data.values import COUNT, NOWHERE, STATES
from profile_sampling._formats import header, json_text, memory_changes
from profile_sampling._formats.findings import findings
from profile_sampling._formats.page import (
    calls, cards, compared, memory, requests, words)
from profile_sampling._formats.page.columns import Columns
from profile_sampling._formats.pprof import writer

SCHEMA = 'profile_sampling.page/1'
# Three times as fast as 6, for a twentieth more.
_LEVEL = 3
_LENGTH_BYTES, _ALIGNED = 4, 8
_KINDS = {'python': 0, 'C': 1}
_OTHER_KIND = 2
# What stands for the function of a place that has none.
_NO_FUNCTION = {OUTSIDE: -1, None: -1, IMPORTS: -2, COUNTING_CALLS: -3}
_ORIGINS = (origins.MINE, origins.PACKAGES, origins.STDLIB, None)


def document(tables, mine=(), all=False, *, changes=None,
             sources=None, base=None, more=None):
    """Return the bytes of the document of some Tables.

    *mine* and *all* say whose lines are shown; see by_site.sites_of().
    *changes* is the Difference to another profile, *base*, whose lines are
    shown as far as *sources* has them; see sources.found().  *more* is called
    with the Columns, and returns what takes the place of these facts.
    """
    sites = sites_of(on_clocks(tables, with_memory=True), mine, all)
    columns = Columns(sites)
    found = findings(tables, sites)
    facts = (_facts(tables, sites) | _functions(tables, mine)
             | _lists(tables, sites, columns) | {
                 'options': _options(mine, all),
                 'quality': words.quality(tables, sites),
                 **cards.cards(sites, found, columns),
                 'requests': requests.requests(tables, sites, columns.places),
                 'awaited': requests.awaited(tables, sites, columns.places),
                 'calls': calls.calls(tables, sites, columns),
                 'imports': [(row.package, row.ns) for row in
                             by_imports.rows(sites.tables, sites.mine)],
                 'changes': None if changes is None else compared.changes(
                     changes, columns, sources, _growth(
                         base, tables, mine, all)),
                 'notes': list(header.asides(tables, is_brief=True)),
                 'memory': memory.memory(tables, sites, columns, mine, all),
                 'columns': columns.packed.index}
             | ({} if more is None else more(columns)))
    text = json_text.data(facts)
    text += b' ' * (-(_LENGTH_BYTES + len(text)) % _ALIGNED)
    return writer.gzipped(b''.join([
        len(text).to_bytes(_LENGTH_BYTES, 'little'), text,
        columns.packed.data]), _LEVEL)


def _growth(base, tables, mine, all):
    if base is None or not memory_changes.fit(base, tables):
        return None
    return memory_changes.for_page(base, tables, mine=mine, all=all)


def _facts(tables, sites):
    own = tables.value_types[tables.own]
    return {
        'schema': SCHEMA, 'title': words.title(tables),
        'command': words.command(tables), 'mode': tables.mode,
        'value': {'name': own.name, 'kind': own.kind, 'unit': own.unit},
        'duration_ns': tables.end_ns, 'length_ns': tables.length_ns,
        'start_time_ns': tables.start_time_ns,
        'start': words.start(tables), 'rate_hz': tables.rate_hz,
        'python': tables.python_version, 'pid': tables.pid,
        'n_threads': tables.n_sampled_threads,
        'n_samples': _n_samples(tables), 'margin': words.margin(sites),
        'states': STATES, 'rules': _rules()}


def _rules():
    """Return what the page decides by, since it depends on what is chosen."""
    return {'nowhere': [STATES[state] for state in sorted(NOWHERE)],
            'hardly': HARDLY, 'mostly': MOSTLY, 'slowest': by_task.SLOWEST}


def _n_samples(tables):
    if COUNT in tables.value_types:
        return tables.total(COUNT.name)
    return len(tables.column('holder'))


def _options(mine, all):
    """Return what a command has that shows the same lines."""
    return (['--all'] if all else
            [word for pattern in mine for word in ('--mine', pattern)])


def _functions(tables, mine):
    functions = tables.functions
    files, packages = {}, {'': 0}
    return {
        'functions': {
            'module': [function.module or '' for function in functions],
            'qualname': [function.qualname for function in functions],
            'file': [files.setdefault(function.filename, len(files))
                     if function.kind == 'python' else -1
                     for function in functions],
            'first_line': [function.first_line for function in functions],
            'kind': [_KINDS.get(function.kind, _OTHER_KIND)
                     for function in functions],
            'origin': [
                _ORIGINS.index(origins.MINE if is_mine else origin)
                for origin, is_mine in zip(origins.of_functions(tables),
                                           origins.mine(tables, mine))],
            'package': [packages.setdefault(_package(function), len(packages))
                        for function in functions]},
        'files': list(files), 'packages': list(packages)}


def _package(function):
    if function.kind == 'python':
        return origins.library(function)
    return (function.module or '').partition('.')[0]


def _lists(tables, sites, columns):
    numbers = {function: number for number, function
               in enumerate(tables.functions)} | _NO_FUNCTION
    return {
        'threads': _thread_names(tables), 'label_keys': columns.label_keys,
        'route': requests.route(tables, columns.label_keys),
        'label_sets': columns.label_sets, 'is_mine': sites.is_mine,
        'places': {'function': [numbers[function] for function, _
                                in columns.places],
                   'line': [line for _, line in columns.places]},
        'libraries': columns.libraries,
        'holders': [row and dict(zip(('name', 'place', 'how'), row))
                    for row in columns.holders],
        'waits': [row and dict(zip(('name', 'kind'), row))
                  for row in columns.waits],
        'timeline': columns.timeline}


def _thread_names(tables):
    texts = keys.texts(tables.threads)
    return [texts[thread] for thread in tables.threads]
