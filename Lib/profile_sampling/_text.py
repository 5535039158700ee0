"""The text report.

This file owns what the report says and how it is laid out, in 100 columns.
It must not compute what a profile means: that is the model's.
"""

from profile_sampling._values import (
    LOST_THREADS, STATES, lost_counts, own_clock, printable)

WIDTH = 100
TOP = 50
_PLACE = 28
_CLOCKS = {'wall': 'wall', 'cpu': 'CPU'}
_STATE_NAMES = {'gil wait': 'GIL wait', 'gc': 'GC'}


def render(profile, *, top=TOP):
    """Return the report: totals, losses, states, the *top* functions."""
    lines = _header(profile)
    if not profile.total_count:
        lines += ['', *_nothing(profile)]
    else:
        lines += ['', *_states(profile)]
        rows = profile.functions()
        clock = own_clock(profile.mode)
        total = _total(profile, clock)
        lines += ['', *_table(
            rows, top, 'self', clock, total,
            [(row.flat_ns(clock), row.flat_count) for row in rows])]
        lines += ['', *_table(
            rows, top, 'cumulative', clock, total,
            [(row.cum_ns(clock), row.cum_count) for row in rows])]
    lines += _counters(profile)
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


def _total(profile, clock):
    return (profile.total_cpu_ns if clock == 'cpu'
            else profile.total_wall_ns)


def _header(profile):
    clock = own_clock(profile.mode)
    title = f'{_CLOCKS[clock]} profile'
    if profile.python_version:
        title += f' of Python {printable(profile.python_version)}'
    threads = len(profile.threads)
    facts = [
        ('Mode', profile.mode + (f', {profile.rate_hz:,} Hz'
                                 if profile.rate_hz else '')),
        ('Started', _date(profile.start_time_ns)),
        ('Duration', seconds(profile.duration_ns)),
        ('Threads', f'{threads:,}'),
        ('Wall time', f'{seconds(profile.total_wall_ns)} '
                      'in all threads together'),
        ('CPU time', f'{seconds(profile.total_cpu_ns)} '
                     'in all threads together'),
        ('Samples', f'{profile.total_count:,}'),
        ('Lost', _losses(profile)),
    ]
    title = title[0].upper() + title[1:]
    return [title, '', *[f'{name:<10} {text}' for name, text in facts]]


def _date(ns):
    import time
    if not ns:
        return 'not known'
    try:
        moment = time.gmtime(ns // 1_000_000_000)
    except (OverflowError, OSError, ValueError):
        return 'not known'
    return time.strftime('%Y-%m-%d %H:%M:%S UTC', moment)


def _losses(profile):
    """Every nonzero counter of something lost, in words."""
    counts = lost_counts(profile.stats)
    times = {key.removeprefix('lost_').removesuffix('_ns'): value
             for key, value in profile.stats.items()
             if key.startswith('lost_') and key.endswith('_ns') and value}
    total = sum(counts.values())
    threads = profile.stats.get(LOST_THREADS)
    if not (total or times or threads):
        return 'nothing'
    text = f'{total:,} {"sample" if total == 1 else "samples"}'
    reasons = [f'{_words(reason)} {count:,}'
               for reason, count in counts.items() if reason]
    if reasons:
        text += f' ({", ".join(reasons)})'
    for clock, ns in times.items():
        text += f'; {seconds(ns)} {_CLOCKS.get(clock, _words(clock))}'
    if threads:
        text += f'; {threads:,} threads not profiled'
    return text


def _words(identifier):
    return printable(identifier.replace('_', ' '))


def _states(profile):
    """Where the threads' time went, by what they were doing."""
    sums = {state: [0, 0, 0] for state in STATES}
    for _, _, state, count, cpu_ns, wall_ns in profile._row_tuples():
        row = sums[STATES[state]]
        row[0] += count
        row[1] += cpu_ns
        row[2] += wall_ns
    lines = [f'{"State":<10} {"wall":>12} {"share":>8} '
             f'{"CPU":>12} {"share":>8} {"count":>10}']
    for state, (count, cpu_ns, wall_ns) in sums.items():
        if count or cpu_ns or wall_ns:
            lines.append(
                f'{_STATE_NAMES.get(state, state):<10} '
                f'{seconds(wall_ns, profile.total_wall_ns):>12} '
                f'{share(wall_ns, profile.total_wall_ns):>8} '
                f'{seconds(cpu_ns, profile.total_cpu_ns):>12} '
                f'{share(cpu_ns, profile.total_cpu_ns):>8} {count:>10,}')
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
             f'{numbers[0]}  {"function":<{width}}  place']
    for (_, _, number), cell in zip(ranked, numbers[1:]):
        function = rows[number].function
        name = _end(printable(function.name), width, '.')
        lines.append(
            f'{cell}  {name:<{width}}  {_place(function)}'.rstrip())
    return lines


def _columns(rows):
    """Return the rows as lines, the cells of a column one under another."""
    widths = [max(8, *map(len, column)) for column in zip(*rows)]
    return [' '.join([f'{cell:>{width}}' for cell, width
                      in zip(row, widths)]) for row in rows]


def _place(function):
    if function.kind != 'python':
        return '' if function.kind == 'pseudo' else f'<{function.kind}>'
    place = f'{printable(function.filename)}:{function.first_line}'
    return _end(place, _PLACE, '/')


def _end(text, width, separator):
    """Return the end of a text, from a separator on if that is near."""
    if len(text) <= width:
        return text
    end = text[3 - width:]
    end = end[max(end.find(separator, 0, width // 3), 0):]
    return '...' + end.removeprefix('.')


def _nothing(profile):
    """Say that there are no samples, and the likeliest reason."""
    lost = sum(lost_counts(profile.stats).values())
    period_ns = 1_000_000_000 // (profile.rate_hz or 1)
    if lost:
        why = f'all {lost:,} samples were lost (see above)'
    elif profile.duration_ns < period_ns:
        why = (f'the session was shorter ({seconds(profile.duration_ns)}) '
               f'than one period ({seconds(period_ns)}); '
               'raise the rate or profile more work')
    elif profile.stats.get('ticks') == 0:
        why = ('the clock never ticked; the machine was too busy or the '
               'session too short')
    elif own_clock(profile.mode) == 'cpu':
        why = ('no thread used CPU time; the mode wall also shows where '
               'they wait')
    else:
        why = 'no thread ran Python code in the session'
    return [f'Nothing was sampled: {why}.']


def _counters(profile):
    """All counters of the session, as they are."""
    items = [f'{printable(name)} {value:,}'
             for name, value in profile.stats.items() if value]
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
