"""The text report.

This file owns what the report says and how it is laid out.
It must not compute what a profile means: that is _data's.
"""

import time

from profile_sampling._data import (
    by_function, by_gil_holder, by_instruction, by_label)
from profile_sampling._data.label_names import TASKS
from profile_sampling._data.losses import (
    lost_counts, missed_share, other_losses)
from profile_sampling._data.sums import added, sums_by
from profile_sampling._data.tables import STATE
from profile_sampling._data.values import (
    COUNT, OPCODES, STATES, WALL, printable)

WIDTH, MIN_WIDTH = 100, 80
TOP = 50
# What functions are ranked by, and how that is called.
SORTS = {'self': 'self', 'cum': 'cumulative'}
_PLACE = 28
# Where other functions have their place in a file.
_KINDS = {'C': 'C function', 'operator': 'operator',
          'pseudo': 'pseudo-frame'}
# Instructions are many and alike: those below the first few say little.
_TOP_INSTRUCTIONS = 10
_OPNAME, _SITE = 17, 19
# Labels, values of each, and characters of a label's name.
_TOP_LABELS, _TOP_VALUES, _KEY = 5, 10, 40
_TOP_HOLDERS, _THREAD = 10, 20
_CLOCKS = {'wall': 'wall', 'cpu': 'CPU'}
# Units that are not written out, and characters of other tools' kinds.
_UNITS = {'count': '', 'bytes': ' B'}
_KIND = 16
# Of ticks, from which on it is said.
_MISSED_SHARE = 0.01
_STATE_NAMES = {'gil_wait': 'GIL wait', 'gc': 'GC',
                'asleep_with_gil': 'asleep with GIL'}


def encode(tables, **options):
    """Return what render() does as bytes."""
    return render(tables, **options).encode()


def render(tables, *, top=TOP, sort=None, width=WIDTH, bold=False):
    """Return the report: totals, losses, states, the *top* functions.

    These are ranked by self and by cumulative values, or by one of them:
    *sort*.  With *bold*, headings are bold on a terminal.

    Raise ValueError for an option that cannot be.
    """
    if sort is not None and sort not in SORTS:
        raise ValueError(f'sort must be {" or ".join(SORTS)}, not {sort!r}')
    if top < 1:
        raise ValueError(f'limit must be positive, but is {top}')
    if width < MIN_WIDTH:
        raise ValueError(f'width must be at least {MIN_WIDTH}, but is '
                         f'{width}')
    lines = _header(tables)
    if not any(map(any, tables.value_columns())):
        lines += ['', *_nothing(tables)]
    else:
        lines += ['', *_states(tables, width)]
        rows = by_function.functions(tables)
        for one, what in SORTS.items():
            if sort in (one, None):
                lines += ['', *_table(
                    tables, rows, top, what,
                    [getattr(row, f'{one}_values') for row in rows], width)]
        lines += _gil_holders(tables, width)
        lines += _labels(tables, width)
        if tables.names & OPCODES:
            lines += _instructions(tables, min(top, _TOP_INSTRUCTIONS),
                                   width)
    lines += _counters(tables, width)
    if bold:
        lines = _with_bold_headings(lines)
    return '\n'.join(lines) + '\n'


def _with_bold_headings(lines):
    """Make what follows an empty line bold, but the facts on top."""
    above = ['', 'no heading', 'no heading', *lines[2:]]
    return [line if its_above or not line else f'\x1b[1m{line}\x1b[0m'
            for its_above, line in zip(above, lines)]


def seconds(ns, scale=None):
    """A time as text: '12.345 s', or in ms below a second.

    With *scale*, a time in ns, in the unit that is right for that one:
    the figures of a column are to be comparable at a glance.
    """
    if abs(ns if scale is None else scale) < 1_000_000_000:
        return f'{ns / 1e6:.3f} ms'
    return f'{ns / 1e9:,.3f} s'


def share(part, total):
    return f'{100 * part / total:.1f} %' if total else '-'


def amount(value, value_type, scale=None):
    """A value as text, with its unit; *scale* as for seconds()."""
    if value_type.unit == 'nanoseconds':
        return seconds(value, scale)
    unit = _UNITS.get(value_type.unit)
    if unit is None:
        unit = f' {_start(printable(value_type.unit), _KIND)}'
    return f'{value:,}{unit}'


def state_name(state):
    """What a state is called in the report."""
    return _STATE_NAMES.get(state, state)


def title(value_type):
    """What a type of values is called in the report."""
    return _CLOCKS.get(value_type.kind,
                       _start(printable(value_type.kind), _KIND))


def shown_order(tables):
    """Return the numbers of the values: the clocks and what the profile is
    about come first, counts last."""
    types = tables.value_types
    return sorted(reversed(range(len(types))), key=lambda number: (
        number != tables.own and types[number].kind not in _CLOCKS))


def long_title(value_type):
    """What the report ranks by, in words."""
    text = title(value_type)
    return f'{text} time' if value_type.kind in _CLOCKS else text


def _header(tables):
    own = tables.value_types[tables.own]
    heading = f'{title(own)} profile'
    if tables.python_version:
        heading += f' of Python {printable(tables.python_version)}'
    threads = len(tables.threads)
    facts = [
        ('Mode', printable(tables.mode) + (
            f', {tables.rate_hz:,} Hz' if tables.rate_hz else '')),
        ('Started', _date(tables.start_time_ns)),
        ('Duration', seconds(tables.duration_ns)),
        ('Threads', f'{threads:,}'),
        *_totals(tables),
        ('Lost', _losses(tables)),
        *_findings(tables),
        *_asides(tables),
    ]
    width = max([10, *[len(name) for name, _ in facts]])
    return [_capitalized(heading), '',
            *[f'{name:<{width}} {text}' for name, text in facts]]


def _totals(tables):
    """The sum of each value."""
    for number in shown_order(tables):
        value_type, total = tables.value_types[number], tables.totals[number]
        text = amount(total, value_type)
        if value_type.kind in _CLOCKS:
            text += ' in all threads together'
        yield _capitalized(long_title(value_type)), text


def _capitalized(text):
    return text[:1].upper() + text[1:]


def _findings(tables):
    """What a reader has to know before he believes, or looks for, more."""
    missed = missed_share(tables.stats)
    if missed > _MISSED_SHARE:
        yield 'Missed', (f'{100 * missed:.1f} % of the ticks: the kernel let '
                         'the clock wait for a CPU while the program ran')
    wall_ns = _in_state(tables, 'asleep_with_gil', WALL)
    if wall_ns:
        yield 'Asleep', (f'{seconds(wall_ns)} with the GIL held, '
                         f'{share(wall_ns, tables.total(WALL.name))}: see '
                         '[asleep with GIL]')


def _asides(tables):
    """What is in the profile but no time, and time that is not in it."""
    count = _in_state(tables, 'custom', COUNT)
    if count:
        yield 'Custom', (f'{count:,} counted by sample(), which weigh no '
                         'time and are not in the samples above')
    wall_ns, cpu_ns = [tables.stats.get(f'subscribers_{clock}_ns', 0)
                       for clock in ('wall', 'cpu')]
    if wall_ns or cpu_ns:
        yield 'Aside', (f'{seconds(wall_ns)} wall, {seconds(cpu_ns)} CPU '
                        'of serving subscribers, not in the times above')


def _in_state(tables, state, value_type):
    """Return the sum of a value over the samples in a state."""
    if value_type not in tables.value_types:
        return 0
    number = STATES.index(state)
    values = tables.column(tables.value_column(value_type.name))
    return sum([value for its_state, value
                in zip(tables.column(STATE), values) if its_state == number])


def _date(ns):
    if not ns:
        return 'not known'
    try:
        moment = time.gmtime(ns // 1_000_000_000)
    except (OverflowError, OSError, ValueError):
        return 'not known'
    return time.strftime('%Y-%m-%d %H:%M:%S UTC', moment)


def _losses(tables):
    """Every nonzero counter of something lost, in words."""
    counts = lost_counts(tables.stats)
    times = {key.removeprefix('lost_').removesuffix('_ns'): value
             for key, value in tables.stats.items()
             if key.startswith('lost_') and key.endswith('_ns') and value}
    total = sum(counts.values())
    others = other_losses(tables.stats)
    if not (total or times or others):
        return 'nothing'
    text = f'{total:,} {"sample" if total == 1 else "samples"}'
    reasons = [f'{_words(reason)} {count:,}'
               for reason, count in counts.items() if reason]
    if reasons:
        text += f' ({", ".join(reasons)})'
    for clock, ns in times.items():
        text += f'; {seconds(ns)} {_CLOCKS.get(clock, _words(clock))}'
    return '; '.join([text, *others])


def _words(identifier):
    return printable(identifier.replace('_', ' '))


def _states(tables, columns):
    """Where the threads' time went, by what they were doing."""
    rows = [['State']]
    used = [(state, values) for state, *values in zip(
        STATES, *sums_by(tables, tables.column(STATE), len(STATES)))
        if any(values)]
    rows += [[state_name(state)] for state, _ in used]
    widths = [max(10, *[len(row[0]) for row in rows])]
    # Other tools' files may have more than fits.
    for column in shown_order(tables):
        value_type = tables.value_types[column]
        total = tables.totals[column]
        values = [values[column] for _, values in used]
        is_count = value_type == COUNT
        cells = ['count' if is_count else title(value_type),
                 *[amount(value, value_type, total) for value in values]]
        width = max([10 if is_count else 12, *map(len, cells)])
        shares = [] if is_count else [
            'share', *[share(value, total) for value in values]]
        if sum(widths) + len(widths) + width + 9 * bool(shares) > columns:
            break
        widths += [width, 8] if shares else [width]
        for row, *more in zip(rows, cells, *[shares] * bool(shares)):
            row += more
    return [f'{row[0]:<{widths[0]}} ' + ' '.join(
        [f'{cell:>{width}}' for cell, width in zip(row[1:], widths[1:])])
        for row in rows]


def _numbers(tables, rows, own=None, total=None, more=()):
    """Return a head and a line for each of *rows*, tuples of values.

    These are the value that the profile is about, its share and the count.
    *own* is the number of another value, *total* its sum, and *more* has a
    cell for each line.
    """
    if own is None:
        own, total = tables.own, tables.totals[tables.own]
    types = tables.value_types
    value_type = types[own]
    counts = types.index(COUNT) if COUNT in types else own
    cells = [['time' if value_type.unit == 'nanoseconds' else 'value',
              'share']]
    cells += [[amount(values[own], value_type, total),
               share(values[own], total)] for values in rows]
    if counts != own:
        cells[0].append('count')
        for cell, values in zip(cells[1:], rows):
            cell.append(f'{values[counts]:,}')
    for cell, last in zip(cells, more):
        cell.append(last)
    return _columns(cells)


def _table(tables, rows, top, what, values, columns):
    """One ranking: time, share, count, name and place per function."""
    own = tables.own
    ranked = sorted(
        [number for number, its_values in enumerate(values)
         if any(its_values)], key=lambda number: (
             -values[number][own], *[-value for value in values[number]]))
    shown = ranked[:top]
    lines = _numbers(tables, [values[number] for number in shown])
    place = min(_PLACE, _PLACE * columns // WIDTH)
    width = columns - len(lines[0]) - 2 - 2 - place
    result = [f'Functions by {what} {long_title(tables.value_types[own])}'
              + (f', {top:,} of {len(ranked):,}'
                 if top < len(ranked) else ''),
              f'{lines[0]}  {"function":<{width}}  place or kind']
    for number, line in zip(shown, lines[1:]):
        function = rows[number].function
        name = short_end(printable(function.name), width, '.')
        result.append(
            f'{line}  {name:<{width}}  {_place(function, place)}'.rstrip())
    return result


def _gil_holders(tables, columns):
    """The places for which threads waited longest, whoever waited."""
    sums = {}
    for row in by_gil_holder.rows(tables):
        thread = row.holder.thread
        key = row.holder.name, '' if thread is None else (
            thread.name or str(thread.ident))
        known = sums.get(key)
        sums[key] = row.values if known is None else added(known, row.values)
    if not sums:
        return []
    own = by_gil_holder.ranked_by(tables)
    ranked = sorted(sums, key=lambda key: (
        -sums[key][own], *[-value for value in sums[key]], key))
    shown = ranked[:_TOP_HOLDERS]
    total = sum([values[own] for values in sums.values()])
    numbers = _numbers(tables, [sums[key] for key in shown], own, total)
    width = columns - len(numbers[0]) - 2 - 2 - _THREAD
    what = long_title(tables.value_types[own])
    lines = ['', f'Holders of the GIL by the {what} that threads waited for '
             'them' + (f', {_TOP_HOLDERS:,} of {len(ranked):,}'
                       if _TOP_HOLDERS < len(ranked) else ''),
             f'{numbers[0]}  {"function (callee)":<{width}}  thread']
    for (name, thread), cell in zip(shown, numbers[1:]):
        name = short_end(printable(name), width, '.')
        thread = _start(printable(thread), _THREAD)
        lines.append(f'{cell}  {name:<{width}}  {thread}'.rstrip())
    return lines


def _labels(tables, columns):
    """Per label its most expensive values, a line each."""
    keys = by_label.keys(tables)
    own = long_title(tables.value_types[tables.own])
    lines = []
    for key in keys[:_TOP_LABELS]:
        rows = by_label.rows(tables, key)
        numbers = _numbers(tables, [row.values for row
                                    in rows[:_TOP_VALUES]])
        width = columns - len(numbers[0]) - 2
        what = ('Tasks' if key == TASKS else
                f'Values of label {_start(printable(key), _KEY)}')
        lines += ['', f'{what} by {own}'
                  + (f', {_TOP_VALUES:,} of {len(rows):,}'
                     if _TOP_VALUES < len(rows) else ''),
                  f'{numbers[0]}  value']
        for row, cell in zip(rows, numbers[1:]):
            value = ('[without]' if row.value is None
                     else _start(printable(row.value), width))
            lines.append(f'{cell}  {value}'.rstrip())
    if len(keys) > _TOP_LABELS:
        lines += ['', _start('Other labels: ' + ', '.join(
            [printable(key) for key in keys[_TOP_LABELS:]]), columns)]
    return lines


def _start(text, width):
    return text if len(text) <= width else text[:width - 3] + '...'


def _columns(rows):
    """Return the rows as lines, the cells of a column one under another."""
    widths = [max(8, *map(len, column)) for column in zip(*rows)]
    return [' '.join([f'{cell:>{width}}' for cell, width
                      in zip(row, widths)]) for row in rows]


def _instructions(tables, top, columns):
    """The first rows of instructions(), a line each."""
    rows = by_instruction.rows(tables)
    if not rows:
        return []
    shown = rows[:top]
    numbers = _numbers(
        tables, [row.self_values for row in shown],
        more=['spec/un/deopt', *map(_specialization, shown)])
    width = columns - len(numbers[0]) - 2 - _OPNAME - 2
    # Where there is no room, places are worth more than callees.
    site, mostly = min(width, _SITE), width - 2 - _SITE
    callees = columns >= WIDTH
    own = long_title(tables.value_types[tables.own])
    lines = ['', f'Top instructions by self {own}, C '
                 'functions and operators included'
                 + (f', {top:,} of {len(rows):,}' if top < len(rows) else ''),
             f'{numbers[0]}  {"instruction":<{_OPNAME}}  '
             + (f'{"mostly in":<{mostly}}  ' if callees else '') + 'place']
    for row, cell in zip(shown, numbers[1:]):
        name = short_end(row.base_opname or '?', _OPNAME, '_')
        place = short_end(
            f'{printable(row.function.filename)}:{row.line}', site, '/')
        if callees:
            callee = short_end(_main_callee(row, tables.own), mostly, '.')
            place = f'{callee:<{mostly}}  {place}'
        lines.append(f'{cell}  {name:<{_OPNAME}}  {place}')
    lines += [
        '  spec: % of samples that saw the instruction specialized; '
        'un: that did not;',
        '  deopt: that did not, although others did']
    return lines


def _specialization(row):
    """Shares of specialized, unspecialized and deoptimized executions."""
    total = row.specialized_count + row.unspecialized_count
    if not total:
        return '-'
    return '/'.join([f'{100 * count / total:.0f}' for count in (
        row.specialized_count, row.unspecialized_count,
        row.deoptimized_count)])


def _main_callee(row, own):
    """What most of the time was spent in, if not in the bytecode itself."""
    if not row.callees:
        return ''
    times = [callee.values[own] for callee in row.callees]
    if times[0] <= row.self_values[own] - sum(times):
        return ''
    return printable(row.callees[0].function.name)


def _place(function, width):
    if function.kind != 'python':
        return _KINDS[function.kind]
    place = f'{printable(function.filename)}:{function.first_line}'
    return short_end(place, width, '/')


def short_end(text, width, separator):
    """Return the end of a text, from a separator on if that is near."""
    if len(text) <= width:
        return text
    end = text[3 - width:]
    end = end[max(end.find(separator, 0, width // 3), 0):]
    return '...' + end.removeprefix('.')


def _nothing(tables):
    """Say that there are no samples, and the likeliest reason."""
    lost = sum(lost_counts(tables.stats).values())
    period_ns = 1_000_000_000 // (tables.rate_hz or 1)
    if lost:
        why = f'all {lost:,} samples were lost (see above)'
    elif tables.duration_ns < period_ns:
        why = (f'the session was shorter ({seconds(tables.duration_ns)}) '
               f'than one period ({seconds(period_ns)}); '
               'raise the rate or profile more work')
    elif tables.stats.get('ticks') == 0:
        why = ('the clock never ticked; the machine was too busy or the '
               'session too short')
    elif tables.mode == 'cpu':
        why = ('no thread used CPU time; the mode wall also shows where '
               'they wait')
    else:
        why = 'no thread ran Python code in the session'
    return [f'Nothing was sampled: {why}.']


def _counters(tables, columns):
    """All counters of the session, as they are."""
    items = [f'{printable(name)} {value:,}'
             for name, value in tables.stats.items() if value]
    if not items:
        return []
    lines = ['', 'Counters']
    line = ' '
    for item in items:
        if len(line) + len(item) + 2 > columns and line != ' ':
            lines.append(line)
            line = ' '
        line += f' {item},'
    lines.append(line.rstrip(','))
    return lines
