"""The text report.

This file owns what the report says and how it is laid out, in 100 columns.
It must not compute what a profile means: that is _data's.
"""

from profile_sampling._data import (
    by_function, by_gil_holder, by_instruction, by_label)
from profile_sampling._data.losses import (
    lost_counts, missed_share, other_losses)
from profile_sampling._data.values import (
    OPCODES, STATES, own_clock, printable)

WIDTH = 100
TOP = 50
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
# Of ticks, from which on it is said.
_MISSED_SHARE = 0.01
_STATE_NAMES = {'gil wait': 'GIL wait', 'gc': 'GC',
                'asleep with gil': 'asleep with GIL'}


def render(tables, *, top=TOP):
    """Return the report: totals, losses, states, the *top* functions."""
    lines = _header(tables)
    if not tables.total_count:
        lines += ['', *_nothing(tables)]
    else:
        lines += ['', *_states(tables)]
        rows = by_function.functions(tables)
        clock = own_clock(tables.mode)
        total = _total(tables, clock)
        lines += ['', *_table(
            rows, top, 'self', clock, total,
            [(row.flat_ns(clock), row.flat_count) for row in rows])]
        lines += ['', *_table(
            rows, top, 'cumulative', clock, total,
            [(row.cum_ns(clock), row.cum_count) for row in rows])]
        lines += _gil_holders(tables)
        lines += _labels(tables, clock, total)
        if tables.names & OPCODES:
            lines += _instructions(by_instruction.rows(tables),
                                   min(top, _TOP_INSTRUCTIONS), clock, total)
    lines += _counters(tables)
    return '\n'.join(lines) + '\n'


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


def _total(tables, clock):
    return (tables.total_cpu_ns if clock == 'cpu'
            else tables.total_wall_ns)


def _header(tables):
    clock = own_clock(tables.mode)
    title = f'{_CLOCKS[clock]} profile'
    if tables.python_version:
        title += f' of Python {printable(tables.python_version)}'
    threads = len(tables.threads)
    facts = [
        ('Mode', tables.mode + (f', {tables.rate_hz:,} Hz'
                                 if tables.rate_hz else '')),
        ('Started', _date(tables.start_time_ns)),
        ('Duration', seconds(tables.duration_ns)),
        ('Threads', f'{threads:,}'),
        ('Wall time', f'{seconds(tables.total_wall_ns)} '
                      'in all threads together'),
        ('CPU time', f'{seconds(tables.total_cpu_ns)} '
                     'in all threads together'),
        ('Samples', f'{tables.total_count:,}'),
        ('Lost', _losses(tables)),
        *_findings(tables),
        *_asides(tables),
    ]
    title = title[0].upper() + title[1:]
    return [title, '', *[f'{name:<10} {text}' for name, text in facts]]


def _findings(tables):
    """What a reader has to know before he believes, or looks for, more."""
    missed = missed_share(tables.stats)
    if missed > _MISSED_SHARE:
        yield 'Missed', (f'{100 * missed:.1f} % of the ticks: the kernel let '
                         'the clock wait for a CPU while the program ran')
    asleep = STATES.index('asleep with gil')
    wall_ns = sum([row[6] for row in tables.row_tuples()
                   if row[3] == asleep])
    if wall_ns:
        yield 'Asleep', (f'{seconds(wall_ns)} with the GIL held, '
                         f'{share(wall_ns, tables.total_wall_ns)}: see '
                         '[asleep with GIL]')


def _asides(tables):
    """What is in the profile but no time, and time that is not in it."""
    custom = STATES.index('custom')
    count = sum([row[4] for row in tables.row_tuples()
                 if row[3] == custom])
    if count:
        yield 'Custom', (f'{count:,} of the samples by sample(), '
                         'which weigh no time')
    wall_ns, cpu_ns = [tables.stats.get(f'subscribers_{clock}_ns', 0)
                       for clock in ('wall', 'cpu')]
    if wall_ns or cpu_ns:
        yield 'Aside', (f'{seconds(wall_ns)} wall, {seconds(cpu_ns)} CPU '
                        'of serving subscribers, not in the times above')


def _date(ns):
    import time
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


def _states(tables):
    """Where the threads' time went, by what they were doing."""
    sums = {state: [0, 0, 0] for state in STATES}
    for _, _, _, state, count, cpu_ns, wall_ns in tables.row_tuples():
        row = sums[STATES[state]]
        row[0] += count
        row[1] += cpu_ns
        row[2] += wall_ns
    rows = {_STATE_NAMES.get(state, state): row
            for state, row in sums.items() if any(row)}
    width = max(10, *map(len, rows))
    lines = [f'{"State":<{width}} {"wall":>12} {"share":>8} '
             f'{"CPU":>12} {"share":>8} {"count":>10}']
    for name, (count, cpu_ns, wall_ns) in rows.items():
        lines.append(
            f'{name:<{width}} '
            f'{seconds(wall_ns, tables.total_wall_ns):>12} '
            f'{share(wall_ns, tables.total_wall_ns):>8} '
            f'{seconds(cpu_ns, tables.total_cpu_ns):>12} '
            f'{share(cpu_ns, tables.total_cpu_ns):>8} {count:>10,}')
    return lines


def _table(rows, top, what, clock, total, weights):
    """One ranking: time, share, count, name and place per function."""
    ranked = sorted(
        [(-ns, -count, number) for number, (ns, count) in enumerate(weights)
         if ns or count])
    cells = [('time', 'share', 'count')]
    for ns, count, _ in ranked[:top]:
        cells.append((seconds(-ns, total), share(-ns, total), f'{-count:,}'))
    numbers = _columns(cells)
    width = WIDTH - len(numbers[0]) - 2 - 2 - _PLACE
    lines = [f'Functions by {what} {_CLOCKS[clock]} time'
             + (f', {top:,} of {len(ranked):,}'
                if top < len(ranked) else ''),
             f'{numbers[0]}  {"function":<{width}}  place or kind']
    for (_, _, number), cell in zip(ranked, numbers[1:]):
        function = rows[number].function
        name = _end(printable(function.name), width, '.')
        lines.append(
            f'{cell}  {name:<{width}}  {_place(function)}'.rstrip())
    return lines


def _gil_holders(tables):
    """The places for which threads waited longest, whoever waited."""
    sums = {}
    for row in by_gil_holder.rows(tables):
        thread = row.holder.thread
        key = row.holder.name, '' if thread is None else (
            thread.name or str(thread.ident))
        known = sums.get(key, (0, 0))
        sums[key] = known[0] - row.wall_ns, known[1] - row.count
    if not sums:
        return []
    total = -sum([ns for ns, _ in sums.values()])
    ranked = sorted([(*weights, key) for key, weights in sums.items()])
    shown = ranked[:_TOP_HOLDERS]
    numbers = _columns([('time', 'share', 'count'), *[
        (seconds(-ns, total), share(-ns, total), f'{-count:,}')
        for ns, count, _ in shown]])
    width = WIDTH - len(numbers[0]) - 2 - 2 - _THREAD
    lines = ['', 'Holders of the GIL by the wall time that threads waited for '
             'them' + (f', {_TOP_HOLDERS:,} of {len(ranked):,}'
                       if _TOP_HOLDERS < len(ranked) else ''),
             f'{numbers[0]}  {"function (callee)":<{width}}  thread']
    for (_, _, (name, thread)), cell in zip(shown, numbers[1:]):
        name = _end(printable(name), width, '.')
        thread = _start(printable(thread), _THREAD)
        lines.append(f'{cell}  {name:<{width}}  {thread}'.rstrip())
    return lines


def _labels(tables, clock, total):
    """Per label its most expensive values, a line each."""
    keys = by_label.keys(tables)
    lines = []
    for key in keys[:_TOP_LABELS]:
        rows = by_label.rows(tables, key)
        numbers = _columns([('time', 'share', 'count'), *[
            (seconds(row.ns(clock), total), share(row.ns(clock), total),
             f'{row.count:,}') for row in rows[:_TOP_VALUES]]])
        width = WIDTH - len(numbers[0]) - 2
        what = ('Tasks' if key == by_label.TASK_NAME else
                f'Values of label {_start(printable(key), _KEY)}')
        lines += ['', f'{what} by {_CLOCKS[clock]} time'
                  + (f', {_TOP_VALUES:,} of {len(rows):,}'
                     if _TOP_VALUES < len(rows) else ''),
                  f'{numbers[0]}  value']
        for row, cell in zip(rows, numbers[1:]):
            value = ('[without]' if row.value is None
                     else _start(printable(row.value), width))
            lines.append(f'{cell}  {value}'.rstrip())
    if len(keys) > _TOP_LABELS:
        lines += ['', _start('Other labels: ' + ', '.join(
            [printable(key) for key in keys[_TOP_LABELS:]]), WIDTH)]
    return lines


def _start(text, width):
    return text if len(text) <= width else text[:width - 3] + '...'


def _columns(rows):
    """Return the rows as lines, the cells of a column one under another."""
    widths = [max(8, *map(len, column)) for column in zip(*rows)]
    return [' '.join([f'{cell:>{width}}' for cell, width
                      in zip(row, widths)]) for row in rows]


def _instructions(rows, top, clock, total):
    """The first rows of instructions(), a line each."""
    if not rows:
        return []
    shown = rows[:top]
    numbers = _columns([('time', 'share', 'count', 'spec/un/deopt'), *[
        (seconds(row.flat_ns(clock), total), share(row.flat_ns(clock), total),
         f'{row.flat_count:,}', _specialisation(row)) for row in shown]])
    width = WIDTH - len(numbers[0]) - 2 - _OPNAME - 2 - 2 - _SITE
    lines = ['', f'Top instructions by self {_CLOCKS[clock]} time, C '
                 'functions and operators included'
                 + (f', {top:,} of {len(rows):,}' if top < len(rows) else ''),
             f'{numbers[0]}  {"instruction":<{_OPNAME}}  '
             f'{"mostly in":<{width}}  place']
    for row, cell in zip(shown, numbers[1:]):
        name = _end(row.base_opname or '?', _OPNAME, '_')
        callee = _end(_main_callee(row, clock), width, '.')
        place = _end(f'{printable(row.function.filename)}:{row.line}',
                     _SITE, '/')
        lines.append(f'{cell}  {name:<{_OPNAME}}  {callee:<{width}}  '
                     f'{place}')
    lines += [
        '  spec: % of samples that saw the instruction specialised; '
        'un: that did not;',
        '  deopt: that did not, although others did']
    return lines


def _specialisation(row):
    """Shares of specialised, unspecialised and deoptimised executions."""
    total = row.specialised_count + row.unspecialised_count
    if not total:
        return '-'
    return '/'.join([f'{100 * count / total:.0f}' for count in (
        row.specialised_count, row.unspecialised_count,
        row.deoptimised_count)])


def _main_callee(row, clock):
    """What most of the time was spent in, if not in the bytecode itself."""
    if not row.callees:
        return ''
    times = [callee.ns(clock) for callee in row.callees]
    if times[0] <= row.flat_ns(clock) - sum(times):
        return ''
    return printable(row.callees[0].function.name)


def _place(function):
    if function.kind != 'python':
        return _KINDS[function.kind]
    place = f'{printable(function.filename)}:{function.first_line}'
    return _end(place, _PLACE, '/')


def _end(text, width, separator):
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
    elif own_clock(tables.mode) == 'cpu':
        why = ('no thread used CPU time; the mode wall also shows where '
               'they wait')
    else:
        why = 'no thread ran Python code in the session'
    return [f'Nothing was sampled: {why}.']


def _counters(tables):
    """All counters of the session, as they are."""
    items = [f'{printable(name)} {value:,}'
             for name, value in tables.stats.items() if value]
    if not items:
        return []
    lines = ['', 'Counters']
    line = ' '
    for item in items:
        if len(line) + len(item) + 2 > WIDTH and line != ' ':
            lines.append(line)
            line = ' '
        line += f' {item},'
    lines.append(line.rstrip(','))
    return lines
