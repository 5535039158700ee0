"""The report of memory: what is in use, was allocated, or was at the peak.

This file owns its sentences, columns and units.  It must not compute what a
profile means, which is _data's.
"""

from profile_sampling._data import by_memory, growth, resident
from profile_sampling._data.allocations import (
    ALLOCATED, AMOUNTS, IN_USE, PEAK, PEAK_NS, amount_of, has_memory,
    has_moments, limit_bytes, period_bytes, readings,
    resident as resident_of, space)
from profile_sampling._data.growth import CHURN, DERIVED, GREW, SURVIVED
from profile_sampling._data.by_site import called_name
from profile_sampling._data.values import NO_FRAMES, printable
from profile_sampling._formats import tables_of_collections
from profile_sampling._formats.sites import place_cells, place_columns
from profile_sampling._formats.table import WIDTH, Column, Table, lines
from profile_sampling._formats.words import clock, counted, share, wrapped

# What --value takes, and what pprof files call it.
NAMES = {'in_use': IN_USE, 'allocated': ALLOCATED, 'peak': PEAK}
# These follow from the moments of others.
_OF = {GREW: IN_USE, SURVIVED: ALLOCATED, CHURN: ALLOCATED}
_HEADINGS = {IN_USE: 'in use', ALLOCATED: 'allocated', PEAK: 'at the peak',
             GREW: 'grew', SURVIVED: 'survived', CHURN: 'a second'}
_FINDINGS = 3
# Widths from which on a column is there; the others always are.
_WITH_SURVIVED, WITH_IN, _WITH_ALLOCATED = 80, 100, 100
TOP = 15
# 1 KB is 1,024 bytes.
LESS = '\N{LESS-THAN OR EQUAL TO}'
_UNITS = ('B', 0), ('KB', 10), ('MB', 20), ('GB', 30)
# From so many of a unit on the next one is taken; of GB there are more digits.
_NEXT_UNIT = {'B': 1024, 'KB': 1024, 'MB': 10 * 1024}
_DIGITS = {'B': 0, 'GB': 2}
# Margins beyond that share of a figure are of few samples.
_FEW = 0.2
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
    unit = unit_of(value)
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


def table(memory, width, key=None, *, seconds=0, has_grown=False):
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
    if which == IN_USE and has_grown:
        columns.append(_text('grew', lambda row: signed(
            *row.amounts[GREW][1:], unit)))
    if which not in (PEAK, CHURN, SURVIVED) and width >= _WITH_SURVIVED:
        columns.append(_text('survived', lambda row: share(
            max(row.bytes(SURVIVED if has_grown else IN_USE), 0),
            row.bytes(ALLOCATED))))
    if which == IN_USE and width >= _WITH_ALLOCATED:
        columns.append(_amount('allocated', ALLOCATED, memory))
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
                f'{round_figure(least)}')
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
              collections=False, derived=None):
    """Return a list of Table: by the lines of *sites*, or by keys; or what RSS
    consists of, and what the collector did.

    Raise ValueError for what the profile does not have.
    """
    found, grown = _computed(tables, sites, top, by, derived)
    return (_others(tables, sites, top, rss, collections)
            or _shown(tables, found, grown, width, by))


def _others(tables, sites, top, rss, collections):
    """Return the Tables that are not by amounts, of those that are wanted."""
    return ([rss_table(tables)] if rss else []) + (
        tables_of_collections.tables_of(tables, sites, top or TOP)
        if collections else [])


def _computed(tables, sites, top, by, derived):
    """Return a list of Memory, and the Growth of the first one or None."""
    _check_processes(tables)
    _check_moments(tables, derived)
    top = top or TOP
    found = [by_memory.by_key(tables, key, top, derived) for key in by] or [
        by_memory.by_line(tables, sites, top, derived)]
    return found, _grown(tables, found[0].amount)


def _shown(tables, found, grown, width, by):
    return [table(its, width, key, seconds=tables.duration_ns / 1e9,
                  has_grown=grown is not None)
            for its, key in zip(found, by or [None])]


def render(tables, sites, *, top=None, width=WIDTH, color=False, name=None,
           by=(), rss=False, collections=False, derived=None):
    """Return the report as text; *derived* is what of growth.DERIVED it is
    about, if it is."""
    def wrap(parts, separator=', '):
        return wrapped(list(parts), width, separator)
    found, grown = _computed(tables, sites, top, by, derived)
    others = _others(tables, sites, top, rss, collections)
    result = _head(tables, sites, found[0], grown, wrap, name)
    for its in others or _shown(tables, found, grown, width, by):
        result += ['', *lines(its, width, color)]
    result += ['', *_signs([] if others else found, wrap,
                            None if others else grown)]
    return '\n'.join(result) + '\n'


def _head(tables, sites, memory, grown, wrap, name):
    """Return the lines above the table."""
    period = period_bytes(tables)
    result = wrap([
        f'Memory of {printable(name)}' if name else 'Memory',
        f'{tables.duration_ns / 1e9:,.1f} s',
        f'Python {printable(tables.python_version)}',
        f'a sample per {round_figure(period)}'])
    result += wrap(_totals(tables, memory).split(' '), ' ')
    first = _growth(grown, memory, memory.amount == GREW) if grown else ''
    if not first and memory.rows:
        first = _first(memory)
    if first:
        result += wrap(first.split(' '), ' ')
    if tables.whole_cpu_ns is None:
        # Of a part nothing is counted.
        result += wrap(_exact(tables, memory).split(' '), ' ')
    quality = _quality(tables, memory, period)
    if quality:
        result += wrap(quality.split(' '), ' ')
    findings = [*_findings(tables, memory, grown),
                *tables_of_collections.findings(tables, sites)][:_FINDINGS]
    if findings:
        result.append('')
    for text in findings:
        result += wrap(f'* {text}'.split(' '), ' ')
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
    return f' (at {int(text) / 1e9:,.1f} s)' if text.isdigit() else ''


def _totals(tables, memory):
    whole = memory.whole
    match memory.amount:
        case 'churn':
            size, all_ = whole.bytes(CHURN), whole.bytes(ALLOCATED)
            size_a_second = round(size / max(tables.duration_ns / 1e9, 1e-9))
            return (f'{figure(size_a_second, unit_of(size_a_second), " ")} a '
                    'second were allocated and freed again within a second: '
                    f'{share(size, all_)} of all that was allocated')
        case 'survived':
            return (f'{amount(whole, SURVIVED)} of '
                    f'{amount(whole, ALLOCATED)} that were allocated are in '
                    'use at the end')
        case 'peak':
            return (f'In use {amount(whole, PEAK)} at the peak{_at(tables)}; '
                    f'{amount(whole, IN_USE)} at the end')
        case 'alloc':
            return (f'{amount(whole, ALLOCATED)} were allocated; '
                    f'{amount(whole, IN_USE)} of it is in use at the end')
    peak = whole.bytes(PEAK)
    rss = resident_of(tables).get('rss')
    limit = limit_bytes(tables)
    return (f'In use {amount(whole, IN_USE)} at the end, '
            f'{figure(peak, unit_of(peak), " ")} at the peak{_at(tables)}'
            + (f'; RSS {figure(rss, unit_of(rss), " ")}' if rss else '')
            + (f' of {figure(limit, unit_of(limit), " ")}'
               if rss and limit else ''))


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
    if isinstance(row.of, str):
        return printable(row.of)
    function = row.of.function
    name = printable(NO_FRAMES if function is None else function.name)
    return f'{name}:{row.of.line}' if row.of.line else name


# Samples of a line from which on it may be said that none was freed.
_SAMPLES_OF_NONE = 30
# Of the RSS, and bytes: what malloc keeps is spoken of from there on.
_MUCH_FREE, _MUCH_FREE_BYTES = 0.15, 64 << 20
# A limit is no prediction for longer than that many times the recording.
_FAR = 24


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
                f'within {figure(span, unit_of(span), " ")}')
    if grown.stopped_ns is not None:
        if not is_asked and grown.bytes < 0.1 * memory.whole.bytes(IN_USE):
            return ''
        return (f'It grew by {figure(grown.bytes, unit_of(grown.bytes), " ")} '
                f'until {clock(grown.stopped_ns)} and has not since')
    hour = grown.an_hour
    text = f'It grows by {figure(hour, unit_of(hour), " ")} an hour'
    most = _most_grown(memory)
    if most is not None:
        text += (f', {share(min(most.bytes(GREW), grown.bytes), grown.bytes)} of it at '
                 f'{where(most)}')
    return f'{text}, and has not stopped'


def _most_grown(memory):
    rows = [row for row in memory.rows if row.bytes(GREW) > 0]
    return max(rows, key=lambda row: row.bytes(GREW), default=None)


def _findings(tables, memory, grown):
    """Iterate over what is worth saying beside the table; three at most."""
    most = _most_grown(memory) if grown else None
    if grown and grown.is_growth and grown.stopped_ns is None:
        text = (f'From {clock(grown.begin_ns)} to {clock(grown.end_ns)} it '
                f'grew by {amount(memory.whole, GREW)}')
        if most is not None:
            text += _what_survived(tables, most)
        yield text + _limit(tables, grown)
    parts = {part.name: part for part in resident.parts(tables)}
    if not parts:
        return
    rss, python = parts['RSS'].bytes, parts['Python, in use'].bytes
    free, libraries = [parts[name].bytes if name in parts else 0
                       for name in ('malloc, free', 'C libraries')]
    if libraries > python:
        yield ('No line of Python explains the rest: '
               f'{share(libraries, rss)} of RSS is in use by C libraries'
               + _libraries_grew(tables) + ': --rss')
    if free >= max(_MUCH_FREE * rss, _MUCH_FREE_BYTES):
        yield (f'{figure(free, unit_of(free), " ")} of RSS is free in C\'s '
               'malloc: --rss')


def _what_survived(tables, row):
    samples = row.bytes(ALLOCATED) / max(period_bytes(tables), 1)
    if samples < _SAMPLES_OF_NONE:
        return ''
    its = readings(tables)
    collections = (its[-1].full_collections - its[0].full_collections
                   if its else 0)
    survived, allocated = row.bytes(SURVIVED), row.bytes(ALLOCATED)
    text = (f'. Of what {where(row)} allocated '
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
            f'{figure(limit, unit_of(limit), " ")} in about '
            + (f'{hours:.0f} hours' if hours >= 2
               else f'{hours * 60:.0f} minutes'))


def _libraries_grew(tables):
    parts = resident.changes(tables)
    grew = parts.get('C libraries', 0)
    return (f'; that grew by {figure(grew, unit_of(grew), " ")}'
            if grew >= _MUCH_FREE_BYTES else '')


def _exact(tables, memory):
    """The exact total beside the estimate of it."""
    exact = tables.stats.get('allocated_bytes', 0)
    return (f'Allocated: {figure(exact, unit_of(exact), " ")}, counted; '
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


def one_line(tables):
    """Return the line of a report of time, as words."""
    sums = {its: total for its, total
            in zip(tables.value_types, tables.totals)}
    in_use, peak = sums[space(IN_USE)], sums[space(PEAK)]
    return [f'Memory: in use {figure(in_use, unit_of(in_use), " ")} at the '
            f'end, {figure(peak, unit_of(peak), " ")} at the peak'
            f'{_at(tables)}: --memory']


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
             _change(grown.get(part.name), unit), part.name, part.known_by, part.bytes, part.margin)
            for part in parts]
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


def _signs(found, wrap, has_grown):
    """Return lines that say what signs mean, and what else there is."""
    texts = ['\N{PLUS-MINUS SIGN}: 95 %']
    if has_grown:
        texts.append(f'grew: since {clock(has_grown.begin_ns)}; ~: less than '
                     'its \N{PLUS-MINUS SIGN}')
    if found and found[0].amount not in (PEAK, CHURN):
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
