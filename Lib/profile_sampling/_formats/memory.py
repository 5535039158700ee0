"""The report of memory: what is in use, was allocated, or was at the peak."""

from profile_sampling._data import (
    by_label, by_memory, growth, origins, resident)
from profile_sampling._data.allocations import (
    ALLOCATED, AMOUNTS, BEGUN, ENDED, FREED, IN_USE, PEAK, PEAK_NS, amount_of,
    has_memory, has_moments, limit_bytes, period_bytes, readings,
    resident as resident_of, space)
from profile_sampling._data.growth import CHURN, DERIVED, GREW, SURVIVED
from profile_sampling._data.by_site import called_name
from profile_sampling._data.values import NO_FRAMES, Value, printable
from profile_sampling._formats import tables_of_collections
from profile_sampling._formats.sites import place_cells, place_columns
from profile_sampling._formats.table import WIDTH, Column, Table, lines
from profile_sampling._formats.words import (
    clock, counted, date, share, wrapped)

# What --value takes, and what pprof files call it.
NAMES = {'in_use': IN_USE, 'allocated': ALLOCATED, 'peak': PEAK}
# These follow from the moments of others.
_OF = {GREW: IN_USE, SURVIVED: ALLOCATED, CHURN: ALLOCATED}
# Until which lifetimes blocks of a decade were freed.
_DECADES = '0.1 ms', '1 ms', '10 ms', '0.1 s', '1 s', '10 s', '100 s'
_HEADINGS = {IN_USE: 'in use', ALLOCATED: 'allocated', PEAK: 'at the peak',
             GREW: 'grew', SURVIVED: 'survived', CHURN: 'a second'}
# Sentences of a report.
_FINDINGS = 3
# Widths from which on a column is there; the others always are.
_WITH_SURVIVED, WITH_IN, _WITH_TYPES = 80, 100, 120
TOP = 15
# 1 KB is 1,024 bytes.
LESS = '\N{LESS-THAN OR EQUAL TO}'
_UNITS = ('B', 0), ('KB', 10), ('MB', 20), ('GB', 30)
# From so many of a unit on the next one is taken; of GB there are more digits.
_NEXT_UNIT = {'B': 1024, 'KB': 1024, 'MB': 10 * 1024}
_DIGITS = {'B': 0, 'GB': 2}
# Margins beyond that share of a figure are of few samples.
_FEW = 0.2
# Of what is as long the times of day are said.
_LONG_NS = 600_000_000_000
_SAMPLES_WANTED = 100


def kind_of(name):
    """Return the kind of values that --value names, or the name itself."""
    name = {kind: word for word, kind in NAMES.items()}.get(_OF.get(name), name)
    return space(NAMES[name]).kind if name in NAMES else name


def unit_of(value):
    """Return (name, bytes) of the unit in which a column with *value* is."""
    for name, bits in _UNITS:
        if name not in _NEXT_UNIT or value < _NEXT_UNIT[name] << bits:
            return name, 1 << bits


def figure(value, unit, gap=''):
    name, size = unit
    digits = _DIGITS.get(name, 1)
    least = 10 ** -digits
    if value < 0:
        return f'-{figure(-value, unit, gap)}'
    if 0 < value / size < least / 2:
        return f'<{least:.{digits}f}{gap}{name}'
    return f'{value / size:,.{digits}f}{gap}{name}'


def exactly(value):
    """Return bytes as in the first lines: as a table has them, GB from one
    on."""
    return figure(value, _unit_in_text(value), ' ')


def _unit_in_text(value):
    return ('GB', 1 << 30) if value >= 1 << 30 else unit_of(value)


def said(value):
    """Return bytes as in a sentence: in three digits."""
    name, bits = [its for its in _UNITS if abs(value) >= 0.9995 * (1 << its[1])
                  or not its[1]][-1]
    size = value / (1 << bits)
    digits = 0 if not bits or abs(size) >= 99.95 else (
        1 if abs(size) >= 9.995 else 2)
    return f'{size:,.{digits}f} {name}'


def round_figure(value):
    """The same of a number that somebody has chosen: 512 KB, 2 MB."""
    name, bits = max([its for its in _UNITS if value % (1 << its[1]) == 0],
                     key=lambda its: its[1])
    number = value >> bits
    if number < 10_000:
        return f'{number:,} {name}'
    return figure(value, unit_of(value), ' ')


def margin(value, unit):
    """Return a margin without its unit, or 'exact' if it rounds to none."""
    name, size = unit
    digits = _DIGITS.get(name, 1)
    if value / size < 10 ** -digits / 2:
        return 'exact'
    return f'{value / size:,.{digits}f}'


def amount(row, which):
    """Return a figure with its margin, as in a sentence."""
    _, value, off = row.amounts[which]
    unit = _unit_in_text(value)
    its_margin = margin(off, unit)
    text = figure(value, unit, ' ')
    if its_margin == 'exact':
        return text
    number, name = text.split(' ')
    return f'{number} \N{PLUS-MINUS SIGN} {its_margin} {name}'


def signed(value, off, unit):
    """Return a change, without its unit; '~' says that it may be chance."""
    if not value and not off:
        return '-'
    text = figure(abs(value), unit).removesuffix(unit[0])
    sign = '<' if text.startswith('<') else '+-'[value < 0]
    return f'{sign}{text.removeprefix("<")}' + (' ~' if abs(value) < off
                                                else '')


def part_of(size, whole):
    """Return a share of what was there, however small."""
    if size <= 0 or whole <= 0:
        return '-'
    if size >= 0.9995 * whole:
        return '100 %'
    return '<0.1 %' if size < 0.0005 * whole else share(size, whole)


def table(memory, width, key=None, *, seconds=0, has_grown=False,
          types=None):
    """Return the Table of a Memory, by line or by *key*."""
    which = memory.amount
    parts = seconds if which == CHURN and seconds else 1
    unit = unit_of(abs(memory.whole.bytes(which)) / parts)
    columns = [
        _text(_HEADINGS[which],
              lambda row: figure(row.bytes(which) / parts, unit)),
        _text('\N{PLUS-MINUS SIGN}',
              lambda row: margin(row.amounts[which][2] / parts, unit))]
    if which == GREW:
        columns.append(_text('before', lambda row: figure(
            row.bytes(IN_USE) - row.bytes(GREW),
            unit_of(memory.whole.bytes(IN_USE)))))
    if which not in (IN_USE, CHURN):
        columns.append(_amount('at the end', IN_USE, memory))
    if which == CHURN:
        columns.append((Column('lifetime', 'lifetime', 'text', 'text'),
                        lambda row: _lifetime(memory, row)))
    if which == IN_USE and has_grown:
        columns.append(_text('grew', lambda row: signed(
            *row.amounts[GREW][1:], unit)))
    if which not in (PEAK, CHURN, SURVIVED) and width >= _WITH_SURVIVED:
        columns.append(_text('survived', lambda row: part_of(
            row.bytes(SURVIVED if has_grown or memory.since_ns else IN_USE),
            row.bytes(ALLOCATED))))
    if which == IN_USE and not has_grown and width >= WITH_IN:
        columns.append(_amount('allocated', ALLOCATED, memory))
    if which == IN_USE and has_grown and width >= _WITH_TYPES:
        a_second = unit_of(memory.whole.bytes(ALLOCATED) / seconds)
        columns.append(_text('allocated', lambda row: figure(
            row.bytes(ALLOCATED) / seconds, a_second) + '/s'))
    for name in (*AMOUNTS, *DERIVED):
        for number, what in enumerate(('objects', 'bytes', 'margin_bytes')):
            columns.append((
                Column(f'{name}_{what}', '', 'count', 'data'),
                lambda row, name=name, number=number:
                    row.amounts[name][number]))
    if key is None:
        columns += [
            (column, lambda row, number=number: _place(row, memory)[number])
            for number, column in enumerate(place_columns('line'))]
        columns.append((Column(
            'in', 'in', 'name', 'both' if width >= WITH_IN else 'data'),
            by_memory.called_by))
        if types and width >= _WITH_TYPES:
            columns.append((Column('types', 'types', 'text', 'text'),
                            lambda row: _types(types, row)))
    else:
        columns.append((Column(key, key, 'text'),
                        lambda row: _words(row, memory, key)))
    shown = [*memory.rows, *([memory.small] if memory.small else []),
             *memory.outside, memory.whole]
    return Table('memory' if key is None else f'memory_by_{key}', '',
                 [column for column, _ in columns],
                 [tuple([cell(row) for _, cell in columns]) for row in shown],
                 value_type=space(_OF.get(which, which)))


def _text(heading, cell):
    return Column('', heading, 'word', 'text'), cell


def _types(types, row):
    return '' if isinstance(row.of, str | None) else ', '.join(
        map(printable, types.get((row.of.function, row.of.line), ())))


def _lifetime(memory, row):
    """Say within what time half of the bytes were freed."""
    counts = memory.lifetimes.get(row.of, ()) if row is not memory.whole else ()
    half, seen = sum(counts) / 2, 0
    for decade, size in enumerate(counts):
        seen += size
        if half and seen >= half:
            return (f'under {_DECADES[0]}' if not decade else
                    f'{_DECADES[decade - 1]} to {_DECADES[decade]}')
    return ''


def _amount(heading, which, memory):
    unit = unit_of(memory.whole.bytes(which))
    return _text(heading, lambda row: (
        figure(row.bytes(which), unit) if row.bytes(which) else '-'))


def _words(row, memory, noun='line'):
    """What a row is of; of a line None."""
    if row is memory.whole:
        return 'all'
    if row is memory.small:
        least = memory.least_bytes
        return (f'{counted(row.n_rows, f"more {noun}")} under '
                + (round_figure(least) if least == memory.least_samples_bytes
                   else share(by_memory.LEAST_SHARE, 1)))
    return row.of if isinstance(row.of, str) else None


def _place(row, memory):
    words = _words(row, memory)
    if words is None:
        return place_cells(row.of.function, row.of.line)
    return ('', words), words, '', 0, ''


def is_about(tables):
    """Return whether the profile is about an amount of sampled memory."""
    return (has_memory(tables)
            and amount_of(tables.value_types[tables.own]) is not None)


def tables_of(tables, sites, *, top=None, width=WIDTH, by=(), rss=False,
              collections=False, derived=None, window=None):
    """Return a list of Table: by the lines of *sites*, or by keys; or what RSS
    consists of, and what the collector did.  *tables* are those of a
    moments.Window.

    Raise ValueError for what the profile does not have.
    """
    found, grown = _computed(tables, sites, top, by, derived, window)
    return (_others(tables, sites, top, rss, collections)
            or _shown(tables, sites, found, grown, width, by, window))


def _others(tables, sites, top, rss, collections):
    """Return the Tables that are not by amounts, of those that are wanted."""
    return ([rss_table(tables)] if rss else []) + (
        tables_of_collections.tables_of(tables, sites, top or TOP)
        if collections else [])


def _computed(tables, sites, top, by, derived, window=None):
    """Return a list of Memory, and the Growth of the first one or None."""
    _check_processes(tables)
    _check_moments(tables, derived)
    top = top or TOP
    since_ns = window and window.begin_ns
    found = [by_memory.by_key(tables, key, top, derived, since_ns)
             for key in by] or [
        by_memory.by_line(tables, sites, top, derived, since_ns)]
    # Of a moment that was asked for no more is said.
    return found, None if window else _grown(tables, found[0].amount)


def _shown(tables, sites, found, grown, width, by, window):
    routes = by and window is None and found[0].amount in (IN_USE, ALLOCATED)
    return [routes and routes_table(tables, sites, key, width)
            or table(its, width, key, seconds=_length_ns(tables, window) / 1e9,
                  has_grown=grown is not None,
                  types=None if key else by_memory.types_of_lines(
                      tables, sites, _OF.get(its.amount, its.amount)))
            for its, key in zip(found, by or [None])]


def render(tables, sites, *, top=None, width=WIDTH, color=False, name=None,
           by=(), rss=False, collections=False, derived=None, window=None):
    """Return the report as text; *derived* is what of growth.DERIVED it is
    about, if it is.  *tables* are those of a moments.Window."""
    def wrap(parts, separator=', '):
        return wrapped(list(parts), width, separator)
    found, grown = _computed(tables, sites, top, by, derived, window)
    others = _others(tables, sites, top, rss, collections)
    result = _head(tables, sites, found[0], grown, wrap, name, window, rss)
    shown = others or _shown(tables, sites, found, grown, width, by, window)
    for its in shown:
        result += ['', *lines(its, width, color)]
    result += ['', *_signs([] if others else found, wrap,
                           None if others else grown, any(
                               column.heading == 'survived'
                               for its in shown for column in its.columns))]
    return '\n'.join(result) + '\n'


def _head(tables, sites, memory, grown, wrap, name, window, rss):
    """Return the lines above the table."""
    period = period_bytes(tables)
    result = wrap([
        f'Memory of {printable(name)}' if name else 'Memory',
        _length(tables),
        f'Python {printable(tables.python_version)}',
        f'a sample per {round_figure(period)}'])
    result += wrap((_of_rss(tables, memory, window) if rss else
                    _totals(tables, memory, window)).split(' '), ' ')
    first = _growth(grown, memory, memory.amount == GREW) if grown else ''
    if not first and memory.rows:
        first = _first(memory)
    if first:
        result += wrap(first.split(' '), ' ')
    if (tables.whole_cpu_ns is None and window is None
            and 'allocated_bytes' in tables.stats):
        # Of a part nothing is counted.
        result += wrap(_exact(tables, memory).split(' '), ' ')
    quality = _quality(tables, memory, period)
    if quality:
        result += wrap(quality.split(' '), ' ')
    found = [] if window else [
        its.text for its in findings(tables, sites, memory, grown, where)]
    found += [] if window else tables_of_collections.findings(tables, sites)
    if found:
        result.append('')
    for text in found[:_FINDINGS]:
        result += wrap(f'* {text}'.replace('`', '').split(' '), ' ')
    return result


def _check_processes(tables):
    """Raise ValueError for what cannot be said of several processes."""
    if (amount_of(tables.value_types[tables.own]) == PEAK
            and len(tables.processes) > 1):
        raise ValueError(
            f'the peaks of {len(tables.processes)} processes were at as many '
            'moments and are not added: report each file on its own')


def _check_moments(tables, derived):
    """Raise ValueError for what takes moments, where there are none."""
    if derived and not has_moments(tables):
        raise ValueError(f'{derived} needs moments, which the profile does '
                         'not have: it is of an earlier version, or of '
                         'another tool')
    if derived == GREW and len(tables.processes) > 1:
        raise ValueError(
            f'{len(tables.processes)} processes: nothing grew from the one to '
            'the other; report each file on its own')


def _at(tables):
    text = tables.meta.get(PEAK_NS, '')
    if not text.isdigit():
        return ''
    if _is_long(tables):
        return f' ({clock(tables.start_time_ns + int(text))})'
    return f' (at {int(text) / 1e9:,.1f} s)'


def _moment(tables, ns):
    """Return a moment since the epoch as the report calls it."""
    return (clock(ns) if _is_long(tables)
            else f'{(ns - tables.start_time_ns) / 1e9:,.1f} s')


def _is_long(tables):
    """Return whether moments of a recording are times of day."""
    return tables.start_time_ns and tables.end_ns >= _LONG_NS


def _length(tables):
    """Return how long it was, and until when."""
    if not _is_long(tables):
        return f'{tables.duration_ns / 1e9:,.1f} s'
    end_ns = tables.start_time_ns + tables.end_ns
    return f'{tables.duration_ns / 60e9:,.0f} min to {date(end_ns)}'


def _totals(tables, memory, window=None):
    whole = memory.whole
    end, span = _when(window)
    if window and window.age_ns:
        return (f'{amount(whole, IN_USE)} of what was in use {end} had been '
                f'allocated {window.age_ns / 1e9:,.0f} s before, or earlier')
    match memory.amount:
        case 'churn':
            size, all_ = whole.bytes(CHURN), whole.bytes(ALLOCATED)
            size_a_second = round(size * 1e9 / _length_ns(tables, window))
            return (f'{said(size_a_second)} a '
                    f'second were allocated and freed again within a second{span}: '
                    f'{share(size, all_)} of all that was allocated')
        case 'survived':
            return (f'{amount(whole, SURVIVED)} of '
                    f'{amount(whole, ALLOCATED)} that were allocated{span} are '
                    'in use at the end')
        case 'peak':
            return (f'In use {amount(whole, PEAK)} at the peak{span}{_at(tables)}; '
                    f'{amount(whole, IN_USE)} {end}')
        case 'alloc':
            return (f'{amount(whole, ALLOCATED)} were allocated{span}; '
                    f'{amount(whole, SURVIVED if span else IN_USE)} of it is '
                    f'in use {end}')
        case 'grew' if span:
            return (f'It grew by {amount(whole, GREW)}{span}, to '
                    f'{amount(whole, IN_USE)} in use')
    peak = whole.bytes(PEAK)
    rss = resident_of(tables).get('rss')
    limit = limit_bytes(tables)
    return (f'In use {amount(whole, IN_USE)} {end}'
            + (f', {exactly(peak)} at the peak{_at(tables)}'
               if len(tables.processes) < 2 else '')
            + (f'; RSS {exactly(rss)}' if rss else '')
            + (f' of {said(limit)}'
               if rss and limit else ''))


def _of_rss(tables, memory, window):
    size, limit = resident_of(tables)['rss'], limit_bytes(tables)
    return (f'RSS {exactly(size)}' + (f' of {said(limit)}' if limit else '')
            + f' {_when(window)[0]}; Python has '
            f'{amount(memory.whole, IN_USE)} of it in use')


def _length_ns(tables, window):
    """Return how long the time is that a report is of; never 0."""
    return max(1, tables.duration_ns if window is None or
               window.begin_ns is None else window.end_ns - window.begin_ns)


def _when(window):
    """Return how a report calls the end, and the time that it is of."""
    if window is None:
        return 'at the end', ''
    end = clock(window.end_ns)
    if window.begin_ns is None:
        return f'at {end}', ''
    return f'at {end}', f' from {clock(window.begin_ns)} to {end}'


def _first(memory):
    """Say what has most of it."""
    row = max(memory.rows, key=lambda row: row.bytes(memory.amount))
    text = share(row.bytes(memory.amount), memory.whole.bytes(memory.amount))
    text += f' of it, {amount(row, memory.amount)}, '
    if isinstance(row.of, str):
        return f'{text}has {printable(row.of)}'
    text += f'at {where(row)}'
    callee = called_name(row.of)
    return f'{text} ({printable(callee)})' if callee else text


def where(row):
    return printable(row.of) if isinstance(row.of, str) else where_of(row.of)


def where_of(site):
    function = site.function
    name = printable(NO_FRAMES if function is None else function.name)
    return f'{name}:{site.line}' if site.line else name


# Samples of a line from which on it may be said that none was freed.
_SAMPLES_OF_NONE = 30
# Of the RSS, and bytes: what malloc keeps is spoken of from there on.
_MUCH_FREE, _MUCH_FREE_BYTES = 0.15, 64 << 20
# And objects that were there before the recording began.
_MUCH_OLDER, _MUCH_OLDER_BYTES = 0.25, 32 << 20
# A limit is no prediction for longer than that many times the recording.
_FAR = 24
# Of an amount: what has as much made it.
_MOSTLY = 0.6
# A line with less of its function's is not named.
_HARDLY = 0.05
# Times the median of what is in use: a peak is higher.
_HIGH = 1.25
_ROUTE = 'route'
# Bytes for one request, and requests of which it is said.
_MUCH_BY_ONE, _FEW_REQUESTS = 32 << 20, 3
# Lines of a function that are named.
_LINES = 4


def _grown(tables, amount):
    """Return the Growth that a report by *amount* has, or None: of a short
    time, only if it is asked for."""
    if amount not in (IN_USE, GREW):
        return None
    return growth.growth(
        tables, least_ns=0 if amount == GREW else growth.SHORTEST_NS)


def _growth(grown, memory, is_asked):
    """Say how it grew, or nothing."""
    if not grown.is_growth:
        if not is_asked:
            return ''
        span = max(grown.lowest) - min(grown.lowest)
        return ('It does not grow: the lowest in use of each eighth stays '
                f'within {said(span)}')
    if grown.stopped_ns is not None:
        if not is_asked and grown.bytes < 0.1 * memory.whole.bytes(IN_USE):
            return ''
        return (f'It grew by {said(grown.bytes)} '
                f'until {clock(grown.stopped_ns)} and has not since')
    hour = grown.an_hour
    most = _most(memory, lambda row: row.bytes(GREW), grown.bytes)
    return (f'It grows by {said(hour)} an hour'
            + (f', {most[1]} of it at {most[0]}' if most else '')
            + ', and has not stopped')


def _most(memory, size, whole, place=None):
    """Return what most of an amount belongs to, in words, and its share: a
    function of mine if that has most of it at several lines, else the line."""
    of_functions = {}
    for row in memory.rows:
        if size(row) > 0 and not isinstance(row.of, str):
            of_functions.setdefault(row.of.function, []).append(row)
    lines = [row for row in memory.rows if size(row) > 0]
    if not lines or whole <= 0:
        return None
    for rows in of_functions.values():
        together = sum(map(size, rows))
        rows = [row for row in rows if size(row) >= _HARDLY * together]
        if len(rows) > 1 and rows[0].of.line and together >= _MOSTLY * whole:
            name = printable(rows[0].of.function.name)
            named = ', '.join([str(row.of.line) for row in sorted(
                rows, key=size, reverse=True)[:_LINES]])
            return (f'`{name}` (lines {named})' if place
                    else f'{name} (lines {named})',
                    share(min(together, whole), whole))
    row = max(lines, key=size)
    return (place or where)(row), share(min(size(row), whole), whole)


class Said(Value):
    """A sentence of a report of memory, which a page has on a card.

    title   what the card is called
    bytes   its figure
    a       'hour', if that is by the hour
    text    the sentence; names are between backquotes, on a page
    amount  what a click shows: GREW, PEAK or, if '', the parts of the RSS
    """

    __slots__ = ('title', 'bytes', 'a', 'text', 'amount')


def findings(tables, sites, memory, grown, place):
    """Iterate over what is worth saying beside the table; *place* names the
    line of a Row."""
    if grown and grown.is_growth and grown.stopped_ns is None:
        text = (f'From {clock(grown.begin_ns)} to {clock(grown.end_ns)} it '
                f'grew by {amount(memory.whole, GREW)}')
        rows = [row for row in memory.rows if row.bytes(GREW) > 0]
        if rows:
            text += _what_survived(tables, max(
                rows, key=lambda row: row.bytes(GREW)), place)
        yield Said('It grows, and has not stopped', grown.an_hour, 'hour',
                   text + _limit(tables, grown), GREW)
    yield from _peak(tables, memory, place)
    yield from _parts(tables, memory)
    yield from _route(tables, sites, place)


def _parts(tables, memory):
    """Iterate over what is said of RSS that is not in use by Python."""
    parts = {part.name: part for part in resident.parts(tables)}
    if not parts:
        return
    rss, python = [parts[name].bytes for name in (
        resident.RSS, resident.IN_PYTHON)]
    free, libraries = [parts[name].bytes if name in parts else 0 for name in (
        resident.MALLOC_FREE, resident.LIBRARIES)]
    if free >= max(_MUCH_FREE * rss, _MUCH_FREE_BYTES):
        yield Said('Freed memory is kept by malloc', free, '',
                   f'{said(free)} of RSS is free in '
                   f'C\'s malloc{_when_kept(tables, memory)}: --rss', '')
    older = parts[resident.OTHER_BLOCKS].bytes
    if older >= max(_MUCH_OLDER * rss, _MUCH_OLDER_BYTES):
        yield Said('Older than the recording', older, '',
                   f'{said(older)} of small objects are older than the '
                   'recording, without a line: --rss', '')
    if libraries > python:
        yield Said('Most of it is not in Python', libraries, '',
                   'No line of Python explains the rest: '
                   f'{share(libraries, rss)} of RSS is in use by C libraries'
                   + _libraries_grew(tables) + ': --rss', '')


def _route(tables, sites, place):
    """Iterate over what is said of the route whose requests allocate most."""
    rows = [its for its in by_memory.by_route(tables, sites, _ROUTE)
            if its[1] >= _FEW_REQUESTS and its[0].bytes(ALLOCATED)]
    by_one = sorted([row.bytes(ALLOCATED) / number for row, number, _ in rows])
    if not rows or by_one[-1] < _MUCH_BY_ONE and (
            by_one[-1] < 10 * by_one[len(by_one) // 2]):
        return
    row, number, most = rows[0]
    size = round(by_one[-1])
    yield Said('One request allocates much', size, '',
               f'{said(size)} for one request of `{printable(row.of)}`'
               + (f', most at {place(by_memory.Row(most, []))}' if most
                  else ''), ALLOCATED)


def _peak(tables, memory, place):
    """Iterate over what is said of the peak, if there is one."""
    whole = memory.whole
    peak, more = whole.bytes(PEAK), whole.bytes(PEAK) - whole.bytes(IN_USE)
    if (memory.amount not in (IN_USE, PEAK) or not has_moments(tables)
            or PEAK_NS not in tables.meta):
        return
    [levels] = growth.in_use(tables, [0] * len(tables), 1)
    middle = sorted(levels)[len(levels) // 2]
    if peak < _HIGH * middle or peak < _MUCH_FREE_BYTES / 8 or more <= 0:
        return
    title, text = 'The peak', f'The peak is {said(peak)}'
    by_route = (by_memory.by_key(tables, _ROUTE, TOP, PEAK).rows
                if _ROUTE in by_label.labels(tables) else [])
    row = next((row for row in by_route if row.bytes(PEAK)
                - row.bytes(IN_USE) >= _MOSTLY * more), None)
    at = growth.steps(tables)
    peak_ns = tables.start_time_ns + int(tables.meta[PEAK_NS])
    if row is not None:
        title = 'One route made the peak'
        size, surplus = row.bytes(PEAK), row.bytes(PEAK) - row.bytes(IN_USE)
        text = (f'The peak: at {_moment(tables, peak_ns)} `{printable(row.of)}` had '
                f'{said(size)} in use, '
                f'{said(surplus)} more than at the '
                'end')
    else:
        most = _most(memory, lambda row: row.bytes(PEAK), peak, place)
        text += f', at {_moment(tables, peak_ns)}'
        if most:
            text += f'; {most[1]} of it is from {most[0]}'
    rest = _outside(levels, at.of(peak_ns), peak)
    if rest is not None:
        text += ('. Without that moment the highest is '
                 + said(rest))
    yield Said(title, peak, '', text, PEAK)


def _outside(levels, step, peak):
    """Return the highest in use outside of the peak, which ends where it has
    fallen halfway to the lowest; None: it never has."""
    half = (peak + min(levels)) / 2
    begin, end = step, step + 1
    while begin > 0 and levels[begin - 1] > half:
        begin -= 1
    while end < len(levels) and levels[end] > half:
        end += 1
    return (max([*levels[:begin], *levels[end:]])
            if end < len(levels) else None)


def _when_kept(tables, memory):
    """Say when what malloc keeps rose, if one function freed as much then."""
    its = [(time_ns, parts.get(resident.MALLOC_FREE, 0))
           for time_ns, parts in resident.history(tables)]
    steps = [(after - before, begin_ns, end_ns) for (begin_ns, before),
             (end_ns, after) in zip(its, its[1:])]
    rise, begin_ns, end_ns = max(steps, default=(0, 0, 0))
    if rise <= 0 or rise < _MOSTLY * (its[-1][1] - min(
            [size for _, size in its])):
        return ''
    freed = {}
    innermost, _ = tables.innermost(bytes(map(origins.mine(
        tables).__getitem__, tables.frame_functions())))
    functions = tables.frame_functions()
    for node, begun, ended, allocated, size in zip(*map(
            tables.column, ('stack', BEGUN, ENDED)), *[
                tables.value(space(its).name) for its in (ALLOCATED, FREED)]):
        if innermost[node] >= 0:
            its_function = functions[innermost[node]]
            freed[its_function] = (
                freed.get(its_function, 0) + size * (begin_ns < ended <= end_ns)
                - allocated * (begin_ns < begun <= end_ns))
    number = max(freed, key=freed.get, default=None)
    if number is None or freed[number] < _MOSTLY * rise:
        return f'; it rose at {clock(end_ns)}'
    return (f'; it rose at {clock(end_ns)}, when what `'
            f'{printable(tables.functions[number].name)}` had allocated was freed')


def _what_survived(tables, row, place):
    samples = row.bytes(ALLOCATED) / max(period_bytes(tables), 1)
    if samples < _SAMPLES_OF_NONE:
        return ''
    its = readings(tables)
    collections = (its[-1].full_collections - its[0].full_collections
                   if its else 0)
    survived, allocated = row.bytes(SURVIVED), row.bytes(ALLOCATED)
    text = (f'. Of what {place(row)} allocated '
            + ('nothing was freed' if survived >= allocated else
               f'{share(max(survived, 0), allocated)} is still in use'))
    if collections:
        text += f', while {counted(collections, "full collection")} ran'
    return text


def _limit(tables, grown):
    its, limit = readings(tables), limit_bytes(tables)
    if not its or not limit or 2 * grown.margin > grown.bytes:
        return ''
    left = limit - its[-1].rss
    hours = left / grown.an_hour
    if not 0 < hours < _FAR * (grown.end_ns - grown.begin_ns) / 3600e9:
        return ''
    return (f'. At this pace RSS reaches the limit of '
            f'{said(limit)} in about '
            + (f'{hours:.0f} hours' if hours >= 2
               else f'{hours * 60:.0f} minutes'))


def _libraries_grew(tables):
    parts = resident.changes(tables)
    grew = parts.get(resident.LIBRARIES, 0)
    return (f'; that grew by {said(grew)}'
            if grew >= _MUCH_FREE_BYTES else '')


def _exact(tables, memory):
    """The exact total beside the estimate of it."""
    exact, own = [tables.stats.get(f'{whose}allocated_bytes', 0)
                  for whose in ('', 'subscribers_')]
    return (f'Allocated: {exactly(max(exact - own, 0))}, counted; '
            f'{amount(memory.whole, ALLOCATED)} by samples')


def _quality(tables, memory, period):
    lost = tables.stats.get('lost_allocations', 0)
    if lost:
        return f'Quality: {counted(lost, "sample")} lost'
    _, value, off = memory.whole.amounts[memory.amount]
    if not value or off <= _FEW * value or not period:
        return ''
    samples = max(1, round((off / 1.96 / period) ** 2))
    better = period
    while better > 1024 and samples * period / better < _SAMPLES_WANTED:
        better //= 2
    text = f'Quality: few samples ({samples})'
    least = 4 * period
    text += f': only what is {round_figure(least)} or more can be named'
    if better != period:
        text += (f'. alloc={better >> 10}K makes it \N{PLUS-MINUS SIGN} '
                 + figure(round(off * (better / period) ** 0.5),
                          unit_of(value), ' '))
    return text


def routes_table(tables, sites, key, width):
    """Return the Table of what requests allocate, or None: nobody counted
    them."""
    rows = by_memory.by_route(tables, sites, key)
    if not rows:
        return None
    period = period_bytes(tables)

    def by_one(its, number=1):
        row, requests, _ = its
        if not requests:
            return ''
        size = row.amounts[ALLOCATED][number] / requests
        if not row.bytes(ALLOCATED):
            # As much may have been missed.
            size = 3 * period / requests
            return '' if number > 1 else (
                f'<{figure(round(size), unit_of(size))}')
        unit = unit_of(row.bytes(ALLOCATED) / requests)
        return (figure if number == 1 else margin)(size, unit)

    def grew_by_one(its):
        # All that is in use was allocated in the recording.
        row, requests, _ = its
        if not requests:
            return ''
        _, size, off = row.amounts[IN_USE]
        its = round(size / requests)
        return ('-' if not size else '~' if size < off
                else f'+{figure(its, unit_of(its))}')

    def of(amount):
        unit = unit_of(max([its.bytes(amount) for its, *_ in rows]))
        return lambda its: (figure(its[0].bytes(amount), unit)
                            if its[0].bytes(amount) else '-')

    columns = [
        _text('by one', by_one),
        _text('\N{PLUS-MINUS SIGN}', lambda its: by_one(its, 2)),
        _text('requests', lambda its: f'{its[1]:,}' if its[1] else ''),
        _text('allocated', of(ALLOCATED)), _text('at peak', of(PEAK))]
    if width >= WITH_IN:
        columns.append(_text('grew by one', grew_by_one))
    columns += [(Column(f'{name}_{what}', '', 'count', 'data'),
                 lambda its, name=name, place=place:
                     its[0].amounts[name][place])
                for name in (*AMOUNTS, *DERIVED) for place, what
                in enumerate(('objects', 'bytes', 'margin_bytes'))]
    columns += [
        (Column('requests', '', 'count', 'data'), lambda its: its[1]),
        (Column(key, key, 'text'), lambda its: its[0].of or 'no request'),
        (Column('most_at', 'most at', 'text',
                'both' if width >= _WITH_SURVIVED else 'data'),
         lambda its: '' if its[2] is None else where_of(its[2]))]
    return Table(f'memory_by_{key}', '', [column for column, _ in columns],
                 [tuple([cell(its) for _, cell in columns]) for its in rows],
                 value_type=space(ALLOCATED))


def one_line(tables):
    """Return the line of a report of time, as words."""
    sums = {its: total for its, total
            in zip(tables.value_types, tables.totals)}
    in_use, peak, allocated = [sums[space(its)]
                               for its in (IN_USE, PEAK, ALLOCATED)]
    a_second = round(allocated / max(tables.duration_ns / 1e9, 1e-9))
    return [f'Memory: in use {exactly(in_use)} at the end',
            f'{exactly(peak)} at the peak{_at(tables)}; {said(a_second)} a '
            'second allocated: --memory']


def rss_table(tables):
    """Return the Table of what the memory of the process consists of.

    Raise ValueError where that is not known.
    """
    parts = resident.parts(tables)
    if not parts:
        raise ValueError('RSS is not known: it is of one process, on Linux')
    whole = parts[-1]
    unit = unit_of(whole.bytes)
    grown = resident.changes(tables)
    rows = [((LESS if part.is_most else '') + figure(part.bytes, unit),
             share(part.bytes, whole.bytes),
             '' if part.margin is None else margin(part.margin, unit),
             _change(grown.get(part.name), unit), part.name, part.known_by,
             part.bytes, part.margin)
            for part in parts if part.bytes]
    columns = [Column('', 'of RSS', 'word', 'text'),
               Column('', 'share', 'word', 'text'),
               Column('', '\N{PLUS-MINUS SIGN}', 'word', 'text'),
               Column('', 'grew', 'word', 'text' if grown else 'data'),
               Column('part', 'part', 'text'),
               Column('known_by', 'known by', 'text'),
               Column('bytes', '', 'count', 'data'),
               Column('margin_bytes', '', 'count', 'data')]
    return Table('rss', '', columns, rows, value_type=space(IN_USE))


def _change(size, unit):
    if not size:
        return ''
    return '+-'[size < 0] + figure(abs(size), unit).lstrip('<')


def _signs(found, wrap, has_grown, has_survived):
    """Return lines that say what signs mean, and what else there is."""
    texts = ['\N{PLUS-MINUS SIGN}: 95 %']
    if has_grown:
        texts.append(f'grew: since {clock(has_grown.begin_ns)}; ~: less than '
                     'its \N{PLUS-MINUS SIGN}')
    if has_survived:
        texts.append('survived: of all that was allocated there')
    if any([row.amounts[memory.amount][2] == 0 for memory in found
            for row in memory.rows]):
        texts.append('exact: each of these blocks is so large that it was '
                     'sampled for certain')
    return [*wrap(' '.join([f'{text}.' for text in texts]).split(' '), ' '),
            *wrap(_also(has_grown).split(' '), ' ')]


def _also(has_grown):
    more = ' | grew | survived | churn' if has_grown else ''
    return (f'Also: --value in_use | allocated | peak{more}, --by type | '
            'thread | route, --rss, --collections, --html')
