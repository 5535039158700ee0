"""What stands out in a profile: sentences made of cells of its tables.

A sentence is a row read aloud: each figure in it names the table, the row and
the column where it stands.  Rules look at one thing each, and say nothing
where that is small.

rule      says                                          from
cpu       how long threads got no CPU                   5 % of the time that
                                                        they wanted one, 50 ms
imports   how long imports took, and which packages     25 %, 0.1 s
loop      how long tasks waited for their event loop,   3 % of their lives
          and which line held it
pool      how long a line waited for a free connection  3 %
          or a worker thread
awaited   what requests waited for most                 25 % of what they took
gil       how long threads waited for the GIL, and      3 %
          which line held it
asleep    how long a line slept with the GIL while      1 %
          others waited for it
waited    what threads waited for                       25 %
native    how much CPU time threads without Python      3 % of the CPU time,
          took, and which line waited for them          or of the time, 0.1 s
gc        how long the collector took                   3 %
queries   which line made many queries for a request,   10 a request and 3 %
          or many at all                                of its time, or 100
                                                        and 3 % of all
often     which function of mine is called very often,  3 %, 2 us a call or
          and by which line mostly                      less
flat      that no line stands out                       first below 5 %
"""

from profile_sampling._data import (
    by_await, by_imports, by_task, by_wait, culprits, function_calls, origins,
    queries, watched)
from profile_sampling._data.by_gil_holder import ranked_by
from profile_sampling._data.by_site import called_name, is_outside
from profile_sampling._data.counts import place_key
from profile_sampling._data.values import (
    CPU, DELAY, STATES, WANT_CPU, Value, printable)
from profile_sampling._formats import tables_of_cost
from profile_sampling._formats.tables_of_waits import (
    ALL, OUTSIDE, holder_text, place_text)
from profile_sampling._formats.words import (
    brief, counted, said, share)

# Those that are said first; others follow in one line.
MOST = 3
_LEAST, _LEAST_ASLEEP, _LEAST_WAITED, _LEAST_IMPORTS = 0.03, 0.01, 0.25, 0.25
_LEAST_CPU_WAIT, _LEAST_CPU_WAIT_NS, _LEAST_IMPORTS_NS = 0.05, 5e7, 1e8
_LEAST_OWN_WAIT_NS, _LEAST_NATIVE_NS, _LEAST_NATIVE_WAIT = 5e7, 1e8, 0.25
# Those with this much of the largest keep the order of the rules.
_ALIKE = 2 / 3
_FLAT, _FLAT_ROWS, _FLAT_SHARE = 0.05, 15, 0.5
# For a request, or a call; of its time; and of a line without either.
_QUERIES, _QUERIES_SHARE, _MANY_QUERIES = 10, 0.03, 100
# A call; and of the calls, those by one line.
_OFTEN_NS, _OFTEN_BY = 2000, 2 / 3
_ASLEEP = f'Tasks waited for {by_wait.SLEEP}'


class Figure(Value):
    """A figure of a sentence, and the cell that it is.

    text    as it stands in the sentence
    value   of the cell: nanoseconds, or a share of 1
    table   the table's name in a report
    row     tuple of (column, value) by which the row is known
    column  of the cell
    """

    __slots__ = ('text', 'value', 'table', 'row', 'column')


class Name(Value):
    """A name in a sentence: of a line, if it has a function."""

    __slots__ = ('text', 'function', 'line')


class Finding(Value):
    """What one rule found.

    rule   its name
    title  what that is called
    parts  the sentence: texts, Figures and Names
    ns     how long
    share  of what the rule is about; the largest come first
    """

    # Where a click leads: 'loop', 'gil', 'waits', 'timeline' or a place.
    __slots__ = ('rule', 'title', 'parts', 'ns', 'share', 'go')

    def __init__(self, rule, title, parts, ns, share, go=''):
        super().__init__(rule, title, tuple(parts), ns, share, go)

    @property
    def text(self):
        """The sentence."""
        return ''.join([part if isinstance(part, str) else part.text
                        for part in self.parts])


def findings(tables, sites):
    """Return a list of Finding, what is said first at first.

    Tasks that sleep, and belong to no request, want to: that comes last.
    """
    if tables.value_types[tables.own].unit != 'nanoseconds' or not sites.busy:
        return []
    found = [finding for rule in _RULES
             for finding in [rule(tables, sites)] if finding is not None]
    asleep = [finding for finding in found if finding.title == _ASLEEP]
    found = [finding for finding in found if finding.title != _ASLEEP]
    ordered = []
    while found:
        least = _ALIKE * max([finding.share for finding in found])
        ordered += [finding for finding in found if finding.share >= least]
        found = [finding for finding in found if finding.share < least]
    return ordered + asleep or [finding for finding in [_flat(sites)]
                       if finding is not None]


def _state(sites, state):
    return sites.whole.by_state[STATES.index(state)]


def _of_state(sites, state):
    """Return the figures of how long a state took, and of its share."""
    ns = _state(sites, state)
    row = ('value', state),
    return (Figure(said(ns), ns, 'by_state', row, 'self_ns'),
            Figure(share(ns, sites.busy), ns / sites.busy, 'by_state', row,
                   'self_share'))


def _cpu(tables, sites):
    ns = _state(sites, 'cpu_wait')
    wanted = sum([_state(sites, state) for state in WANT_CPU])
    if ns < max(_LEAST_CPU_WAIT * wanted, _LEAST_CPU_WAIT_NS) or (
            tables.value_types[tables.own].kind != 'wall'):
        return None
    row = ('had', 'no CPU'),
    return Finding('cpu', 'Too little CPU', [
        'Threads got no CPU for ',
        Figure(share(ns, wanted), ns / wanted, 'wanted_cpu', row, 'share'),
        ' of the time that they wanted one, ',
        Figure(said(ns), ns, 'wanted_cpu', row, 'ns'),
        '; --value cpu shows what they took'],
        ns, ns / wanted, 'timeline')


def _imports(tables, sites):
    rows = by_imports.rows(sites.tables, sites.mine)
    ns = sum([row.ns for row in rows])
    if ns < max(_LEAST_IMPORTS * sites.busy, _LEAST_IMPORTS_NS):
        return None
    whole = ('package', ALL),
    parts = ['Imports are ', Figure(
        share(ns, sites.busy), ns / sites.busy, 'imports', whole, 'of_all'),
        ' of the time, ', Figure(said(ns), ns, 'imports', whole, 'ns'), ': ']
    for number, row in enumerate(rows[:MOST]):
        parts += [', ' * bool(number), f'{printable(row.package)} ', Figure(
            said(row.ns), row.ns, 'imports', (('package', row.package),),
            'ns')]
    compiled = sum([row.compiled_ns for row in rows])
    if compiled >= _LEAST_IMPORTS * ns:
        parts += ['; ', Figure(said(compiled), compiled, 'imports', whole,
                               'compiled_ns'),
                  ' of it compiled modules without a .pyc']
    return Finding('imports', 'Imports', parts, ns, ns / sites.busy)


def _held(rows, table, does):
    """Iterate over what is said of who held something."""
    total = sum([row.ns for row in rows])
    named = culprits.named(rows)
    if not named:
        yield from [f'{counted(len(rows), "line")} held it, none for more '
                    'than ', _share_of(rows[0], total, table), ' of it']
    for number, row in enumerate(named):
        yield ', ' * bool(number)
        yield _share_of(row, total, table)
        yield ' of it' * (not number)
        if row.how == culprits.TIMERS:
            yield f' for {row.how}, which are due to the millisecond'
            continue
        if not row.is_known:
            yield ' while it was not seen who held it'
            continue
        yield ' while '
        yield from _who(row)
        yield f' {does(row)}'


def _share_of(row, total, table):
    return Figure(share(row.ns, total), row.ns / total, table,
                  (('held_by', holder_text(row)), ('how', row.how)), 'share')


def _who(row):
    if row.function is None:
        yield Name(printable(row.inside), None, 0)
        yield f', {OUTSIDE},'
        return
    yield _line(row.function, row.line)
    if row.inside:
        yield f' ({printable(row.inside)})'


def _line(function, line):
    return Name(printable(f'{function.name}:{line}'), function, line)


def _at(row):
    """Iterate over where a WaitRow is."""
    yield ' at '
    yield _place(row)


def _place(row):
    return (_line(row.function, row.line) if row.function is not None
            else Name(printable(place_text(row)), None, 0))


def _loop(tables, sites):
    if not by_task.has_tasks(tables) or DELAY not in tables.value_types:
        return None
    rows = culprits.of_loop(tables, sites.mine)
    ns = sum([row.ns for row in rows])
    took_ns = by_await.Lives(tables, sites.mine).took_ns
    held_ns = sum([row.ns for row in rows if row.how != culprits.TIMERS])
    if not held_ns or held_ns < _LEAST * took_ns:
        return None
    parts = ['Tasks that could go on waited ', Figure(
        said(ns), ns, 'loop_held', (('held_by', ALL),), 'waited_ns'),
        ' for the event loop: ', *_held(rows, 'loop_held',
                                        lambda row: row.how)]
    first = rows[0]
    row = next((row for row in sites.rows if first.how == culprits.RAN
                and (row.function, row.line) == (first.function, first.line)),
               None)
    waited_ns = row.sums.by_state[STATES.index('waiting')] if row else 0
    if waited_ns >= _LEAST_OWN_WAIT_NS:
        parts += ['. It waited there itself for ', Figure(
            said(waited_ns), waited_ns, _name_of(sites),
            _row_of(row), 'waiting_ns')]
    return Finding('loop', 'Tasks waited for the event loop', parts, ns,
                   min(ns / took_ns, 1.0), 'loop')


def _name_of(sites):
    return 'my_code' if sites.is_mine else 'sites'


def _row_of(row):
    return (('function', '' if row.function is None else row.function.name),
            ('line', row.line))


_FOR_A_FREE_ONE = {by_wait.POOL: 'a free connection', by_wait.LOCK: 'a lock'}


def _what(row):
    """Return what one waits for in words; None: no rule is about it."""
    if row.kind == by_wait.WORKER:
        return 'a worker thread' if row.what == by_wait.FREE_WORKER else None
    return _FOR_A_FREE_ONE.get(row.kind)


def _pool(tables, sites):
    if by_task.has_tasks(tables):
        lives = by_await.Lives(tables, sites.mine)
        row = next((row for row in lives.awaited if _what(row)), None)
        if row is not None and row.ns >= _LEAST * lives.took_ns:
            return _awaits('pool', lives, row, _what(row))
    rows = by_wait.of_threads(sites.tables, sites.mine)
    row = next((row for row in rows if row.kind == by_wait.POOL), None)
    if row is None or row.ns < _LEAST * sites.busy:
        return None
    return Finding('pool', 'Threads waited for a pool', [
        'Threads waited ', Figure(said(row.ns), row.ns, 'waits', _wait_row(
            row), 'waited_ns'), f' for {_FOR_A_FREE_ONE[row.kind]}', *_at(row),
        ': ', Figure(share(row.ns, sites.busy), row.ns / sites.busy, 'waits',
                     _wait_row(row), 'of_all'), ' of the time'],
        row.ns, row.ns / sites.busy, 'waits')


def _awaited(tables, sites):
    if not by_task.has_tasks(tables):
        return None
    lives = by_await.Lives(tables, sites.mine)
    row = next((row for row in lives.awaited
                if row.kind != by_wait.WORKER and not _what(row)), None)
    if row is None or row.ns < _LEAST_WAITED * lives.took_ns:
        return None
    return _awaits('awaited', lives, row, _waited_for(row))


_WAITED_FOR = {by_wait.DATABASE:
               'a database', by_wait.QUEUE: 'a queue', by_wait.SLEEP:
               'a sleep', by_wait.SOCKET: 'a socket', by_wait.FILE:
               'a file or pipe', by_wait.CHILD: 'a child process',
               by_wait.LOCK: 'a lock', by_wait.LOOP: 'an event loop'}


def _waited_for(row):
    """Return what a WaitRow is about in words."""
    what = printable(row.what)
    if row.kind == by_wait.OTHER:
        return what or 'something not known'
    kind = _WAITED_FOR.get(row.kind, row.kind)
    return kind if row.kind == by_wait.SLEEP or not what else (
        f'{kind} ({what})')


def _wait_row(row):
    return (('for', row.kind), ('at', place_text(row)), ('what', row.what))


def _awaits(rule, lives, row, what):
    who, took = (('Requests', 'that they took') if lives.are_requests
                 else ('Tasks', 'of their lives'))
    title = f'{who} waited for ' + (
        'a pool' if row.kind == by_wait.POOL else row.kind)
    return Finding(rule, title, [
        f'{who} waited ', Figure(said(row.ns), row.ns, 'awaited',
                                 _wait_row(row), 'awaited_ns'),
        f' for {what}', *_at(row), ': ', Figure(
            share(row.ns, lives.took_ns), row.ns / lives.took_ns, 'awaited',
            _wait_row(row), 'of_all'), ' of the ', Figure(
            said(lives.took_ns), lives.took_ns, 'lives', (('part', ALL),),
            'ns'), f' {took}'], row.ns, row.ns / lives.took_ns, 'tasks')


def _gil(tables, sites):
    ns = _state(sites, 'gil_wait')
    if ns < _LEAST * sites.busy or ranked_by(tables) != tables.own:
        return None
    took, of_all = _of_state(sites, 'gil_wait')
    rows = culprits.of_gil(sites.tables, sites.mine)
    return Finding('gil', 'Threads waited for the GIL', [
        'Threads waited ', took, ' for the GIL, ', of_all, ' of the time: ',
        *_held(rows, 'gil_held', lambda row: (
            'held it' if row == rows[0] else 'did'))],
        ns, ns / sites.busy, 'gil')


def _asleep(tables, sites):
    held = {(row.function, row.line): row for row
            in culprits.of_gil(sites.tables, sites.mine)
            if row.function is not None}
    number = STATES.index('asleep_with_gil')
    row = max(sites.rows, key=lambda row: row.sums.by_state[number],
              default=None)
    if row is None or is_outside(row.function):
        return None
    ns = row.sums.by_state[number]
    its = held.get((row.function, row.line))
    if its is None or min(ns, its.ns) < _LEAST_ASLEEP * sites.busy:
        return None
    callee = called_name(row)
    return Finding('asleep', 'A C function slept with the GIL', [
        *([Name(printable(callee), None, 0), ' slept'] if callee
          else ['It slept']), ' with the GIL for ', Figure(
            said(ns), ns, _name_of(sites), _row_of(row),
            'asleep_with_gil_ns'), ' at ', _line(row.function, row.line),
        '; others waited ', Figure(
            said(its.ns), its.ns, 'gil_held', (
                ('held_by', holder_text(its)), ('how', its.how)),
            'waited_ns'), ' while that line held the GIL'],
        ns, ns / sites.busy, 'place')


def _waited(tables, sites):
    ns = _state(sites, 'waiting')
    if ns < _LEAST_WAITED * sites.busy:
        return None
    rows = [row for row in by_wait.of_threads(sites.tables, sites.mine)
            if row.kind != by_wait.OTHER_THREADS]
    if rows and rows[0].kind == by_wait.NATIVE:
        return None         # _native() says it
    if sum([row.ns for row in rows]) < _LEAST_WAITED * sites.busy:
        return None         # they waited for other threads, which say more
    took, of_all = _of_state(sites, 'waiting')
    parts = ['Threads waited ', took, ', ', of_all, ' of the time: ']
    named = culprits.named(rows)
    if not named:
        parts += [f'at {counted(len(rows), "line")}, none for more than ',
                  _of_waits(rows[0], ns), ' of it']
    for number, row in enumerate(named):
        parts += [', ' * bool(number), _of_waits(row, ns),
                  ' of it' * (not number), ' for ',
                  _waited_for(row), *_at(row)]
    return Finding('waited', 'What threads waited for', parts, ns,
                   ns / sites.busy, 'waits')


def _of_waits(row, ns):
    return Figure(share(row.ns, ns), row.ns / ns, 'waits', _wait_row(row),
                  'share')


def _native(tables, sites):
    threads, ns, wait_ns = tables_of_cost.native(tables)
    total = ns + (tables.whole_cpu_ns or (
        tables.total(CPU.name) if CPU in tables.value_types else 0))
    row = next((row for row in by_wait.of_threads(sites.tables, sites.mine)
                if row.kind == by_wait.NATIVE), None)
    parts = []
    if row is not None and row.ns >= max(_LEAST * sites.busy,
                                         _LEAST_NATIVE_NS):
        called = f' ({printable(row.what)})' * bool(row.what)
        parts += ['While ', _place(row), f'{called} waited ', Figure(
            said(row.ns), row.ns, 'waits', _wait_row(row), 'waited_ns'),
            ', threads without Python computed']
    if ns >= max(_LEAST * total, _LEAST_NATIVE_NS):
        parts += _took_natively(threads, ns, wait_ns, total, bool(parts))
    elif not parts:
        return None
    took = ns or row.ns
    return Finding('native', 'Threads without Python compute', parts, took,
                   ns / total if ns else took / sites.busy,
                   'waits' * (row is not None))


def _took_natively(threads, ns, wait_ns, total, is_second):
    row = ('part', tables_of_cost.NATIVE),
    parts = [f': {threads} of them took ' if is_second
             else f'{counted(threads, "thread")} without Python computed ',
             Figure(said(ns), ns, 'cost', row, 'ns'),
             ' in all, ' if is_second else ', ', Figure(
                 share(ns, total), ns / total, 'cost', row, 'share'),
             ' of the CPU time']
    if wait_ns >= _LEAST_NATIVE_WAIT * (ns + wait_ns):
        parts += [', and waited ', Figure(
            said(wait_ns), wait_ns, 'native_cpu', (
                ('had', tables_of_cost.HAD_NONE),), 'ns'), ' for a CPU']
    return [*parts, '; it is in no sample']


def _gc(tables, sites):
    ns = _state(sites, 'gc')
    if ns < _LEAST * sites.busy:
        return None
    number = STATES.index('gc')
    row = max(sites.rows, key=lambda row: row.sums.by_state[number])
    its_ns = row.sums.by_state[number]
    took, of_all = _of_state(sites, 'gc')
    return Finding('gc', 'The garbage collector', [
        'The garbage collector took ', took, ', ', of_all, ' of the time: ',
        Figure(said(its_ns), its_ns, _name_of(sites), _row_of(row), 'gc_ns'),
        ' of it at ', _site(row)], ns, ns / sites.busy, 'place')


def _site(row):
    if row.function is None:
        return Name('[no frames]', None, 0)
    if not row.line:
        return Name(printable(row.function.name), None, 0)
    return _line(row.function, row.line)


def _flat(sites):
    rows = [row for row in sites.rows if not is_outside(row.function)]
    if (len(rows) <= _FLAT_ROWS
            or rows[0].sums.total >= _FLAT * sites.busy
            or sum([row.sums.total for row in rows[:_FLAT_ROWS]])
            >= _FLAT_SHARE * sites.busy
            or sum([row.sums.total for row in rows]) < sites.busy / 2):
        return None
    first = rows[0]
    return Finding('flat', 'No line stands out', [
        'No line stands out: the first has ', Figure(
            share(first.sums.total, sites.busy),
            first.sums.total / sites.busy, _name_of(sites), _row_of(first),
            'self_share'), ' of the time'], first.sums.total,
        first.sums.total / sites.busy)


def _queries(tables, sites):
    found = [finding for row in queries.rows(tables, sites)
             if row.function is not None
             and (finding := _many_queries(row, sites)) is not None]
    return max(found, key=lambda finding: finding.ns, default=None)


def _many_queries(row, sites):
    place = _line(row.function, row.line)
    known = (('line', row.line), ('route', row.route or ''))
    _, several, does = watched.KINDS[row.kind]
    took = Figure(said(row.ns), row.ns, 'queries', known, 'time_ns')
    if row.requests:
        each, whole_ns = row.calls / row.requests, row.requests_ns
        if each < _QUERIES or row.ns < _QUERIES_SHARE * whole_ns:
            return None
        return _of_queries([
            f'{queries.in_words(row)} at ', place,
            f': {row.calls:,} in {counted(row.requests, "request")}, ', took,
            f', {share(row.ns, whole_ns)} of the {said(whole_ns)} that they '
            'took'], row, row.ns / whole_ns)
    if row.ns < _QUERIES_SHARE * sites.busy:
        return None
    each = row.calls / row.callers if row.callers > 1 else 0
    if each >= _QUERIES:
        parts = [f'{queries.in_words(row)} at ', place,
                 f': {row.calls:,} in {row.callers:,} calls']
    elif row.calls >= _MANY_QUERIES:
        parts = [place, f' {does} {row.calls:,} {several}']
    else:
        return None
    return _of_queries([*parts, ', ', took,
                        f', {share(row.ns, sites.busy)} of the time'], row,
                       row.ns / sites.busy)


def _of_queries(parts, row, its_share):
    return Finding('queries', 'Many queries for one request', parts, row.ns,
                   its_share, 'place')


def _often(tables, sites):
    if tables.counts is None or not tables.counts.has_calls:
        return None
    mine = {place_key(function) for function, is_mine
            in zip(tables.functions, origins.mine(tables)) if is_mine}
    callers = {}
    for row in tables.counts.calls:
        of_callee = callers.setdefault(place_key(row.callee), {})
        key = row.caller, row.line
        of_callee[key] = of_callee.get(key, 0) + row.calls
    found = []
    for row in function_calls.rows(sites.tables, sites.precision):
        key = place_key(row.function)
        if (key not in mine or row.each_ns is None
                or row.each_ns + (row.margin_ns or 0) > _OFTEN_NS
                or row.cum < _LEAST * sites.busy):
            continue
        (caller, line), calls = max(callers[key].items(),
                                    key=lambda item: item[1])
        if caller is not None and calls >= _OFTEN_BY * row.calls:
            found.append((row, caller, line, calls))
    if not found:
        return None
    row, caller, line, calls = max(found, key=lambda its: its[0].cum)
    known = ('function', row.function.name),
    return Finding('often', 'Called very often', [
        f'{printable(row.function.name)} is called {row.calls:,} times, '
        f'{share(calls, row.calls)} by ', _line(caller, line),
        f'; one takes {brief(row.each_ns)}, all ', Figure(
            share(row.cum, sites.busy), row.cum / sites.busy, 'functions',
            known, 'total_share'), ' of the time'],
        row.cum, row.cum / sites.busy, 'place')


_RULES = (_cpu, _imports, _queries, _loop, _pool, _awaited, _gil, _asleep,
          _waited, _native, _gc, _often)
