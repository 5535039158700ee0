"""What a report says of the whole: totals, states, and how good it is."""

from profile_sampling._data import allocations, by_task
from profile_sampling._data.counts import ALL
from profile_sampling._data.losses import (
    RATE_LOWERED, rate_came_to, lost_counts, other_losses, overhead_ns)
from profile_sampling._data.values import (
    COUNT, LEVEL, OF_TASKS, SHOWN_STATES, STATES, WANT_CPU, printable)
from profile_sampling._formats import memory, tables_of_cost
from profile_sampling._formats.words import (
    brief, brief_amount, counted, date, seconds, share, shown_order,
    state_name, title)

_RUNNING = STATES.index('running')
_WALL = 'wall_ns'
# Of the rate that was asked for.
_ACHIEVED = 0.75
# Of the CPU time.
_COUNTING_SHARE = 0.1
# Without a CPU, of the time that threads wanted one; and so much of it.
_STARVED, _LEAST_WAIT_NS = 0.05, 50_000_000
# What faults() are in short.
LOST, BUSY, COSTLY, FEW, INCOMPLETE = (
    'samples lost', 'machine was busy', 'high cost', 'few samples',
    'incomplete')
# Running samples; unless hardly anything ran.
_FEW, _HARDLY_RAN = 100, 0.05
# What quality() may say, in short, the share from which on it does harm, and
# what helps.
_FAULTS = (
    ('unsampled', 'low rate', 0.01,
     '{} of the time met no tick: a higher rate meets more'),
    ('overhead', COSTLY, 0.05,
     'the profiler took {} of the CPU time: a lower rate takes less'),
    ('biased', 'late samples', 0.05,
     '{} of the samples came late: single lines are less certain'),
)


def quality(tables, sites):
    """Return what says how far a profile can be trusted; None: not known.

    rate_hz         that was asked for
    achieved_hz     running records per second of running time on the wall
                    clock, by which ticks come in each mode
    lost_count      samples
    biased_share    of the captures: at the next safe point, not at the tick
    unsampled_share of the time: too short to meet any tick
    overhead_share  of the CPU time of the whole session: the profiler's own
                    in sampled threads; of a part by time it is not known
    """
    stats = tables.stats
    biased = stats.get('captures_biased', 0)
    captures = (stats.get('captures', 0) + stats.get('captures_merged', 0)
                + biased)
    cpu_ns = tables.whole_cpu_ns
    if cpu_ns is None:
        cpu_ns = _total(tables, 'cpu_ns')
    return {
        'rate_hz': tables.rate_hz or None,
        'achieved_hz': _achieved_hz(tables, sites),
        'lost_count': sum(lost_counts(stats).values()),
        'biased_share': biased / captures if captures else None,
        'unsampled_share': (_state(sites, 'unsampled') / sites.busy
                            if sites.busy else None),
        'overhead_share': (overhead_ns(stats) / cpu_ns
                           if cpu_ns and captures
                           and tables.span_ns is None else None),
    }


def _achieved_hz(tables, sites):
    own = tables.value_types[tables.own]
    if (own.unit != 'nanoseconds' or own in OF_TASKS or not tables.rate_hz
            or COUNT not in tables.value_types):
        return None
    running_ns = _running_ns(tables, sites)
    if not running_ns:
        return None
    # In a short time more ticks may come, but never at a higher rate.
    return min(tables.rate_hz,
               round(sites.whole.running_records * 1e9 / running_ns))


def _running_ns(tables, sites):
    """The running time, on the wall clock if there is one."""
    own = tables.value_types[tables.own]
    if own.name == _WALL or _WALL not in [
            one.name for one in tables.value_types]:
        return sites.whole.by_state[_RUNNING]
    return sum([ns for ns, state in zip(
        tables.value(_WALL), tables.column('state'))
        if state == _RUNNING])


def lines(tables, sites, wrap):
    """Return the lines above the tables; *wrap* joins parts to lines."""
    result = wrap(_what(tables))
    result += wrap(_totals(tables, sites), '; ')
    by_state = dict(zip(STATES, sites.whole.by_state))
    states = [f'{state_name(state)} {share(by_state[state], sites.busy)}'
              for state in SHOWN_STATES
              if by_state[state] and tables.schema.has_states]
    if states:
        result += wrap(states)
    if by_task.has_tasks(tables):
        result += wrap(_tasks(tables))
    if tables.counts is not None and tables.counts.has_calls:
        result += wrap(counted_calls(tables), ' ')
    if tables.schema.has_states:
        found = ('; '.join([text for _, text in faults(tables, sites)])
                 or 'good')
        result += wrap(f'Quality: {found}'.split(' '), ' ')
    if tables.stats.get(RATE_LOWERED):
        result += wrap(_rate(tables).split(' '), ' ')
    for more in asides(tables):
        result += wrap([more])
    if allocations.has_memory(tables) and tables.schema.has_states:
        result += wrap(memory.one_line(tables))
    return result


def _rate(tables):
    """Say that the rate gave way."""
    rate_hz = rate_came_to(tables)
    if rate_hz is None:
        what = 'was lowered in some processes'
    elif rate_hz == tables.rate_hz:
        what = 'was lower for some time'
    else:
        what = f'came to {rate_hz:,}'
    return (f'Rate: {tables.rate_hz:,} Hz was asked for, and {what}, as the '
            'profiler took too much of the CPU time (overhead=0: it does not)')


def _what(tables):
    own = tables.value_types[tables.own]
    text = f'{title(own)} profile'
    if tables.python_version:
        text += f' of Python {printable(tables.python_version)}'
    processes = len(tables.processes)
    several = [f'{processes:,} processes'] if processes > 1 else []
    return [text[:1].upper() + text[1:], brief(tables.duration_ns), *several,
            counted(tables.n_sampled_threads, 'thread'),
            date(tables.start_time_ns)]


def _totals(tables, sites):
    """The sum of each value, what the profile is about first."""
    order = shown_order(tables)
    order.sort(key=lambda number: number != tables.own)
    for number in order:
        value_type, total = tables.value_types[number], tables.totals[number]
        if (value_type in (*OF_TASKS, *allocations.VALUES)
                and number != tables.own):
            # They have lines of their own.
            continue
        if value_type == COUNT:
            yield counted(total, 'sample')
            continue
        if not (total or tables.schema.has_states):
            continue
        text = f'{title(value_type)} {brief_amount(total, value_type)}'
        if number == tables.own:
            text += (' of all tasks' if value_type in OF_TASKS
                     else ' in use' if value_type.adds == LEVEL
                     else ' in all threads')
            if sites.idle:
                yield text
                text = (f'{brief_amount(sites.idle, value_type)} of it idle '
                        'and left out (--idle)')
        yield text


def counted_calls(tables):
    """How much was counted, and what that took, in words."""
    counts = tables.counts
    of_c = sum([row.calls for row in counts.calls
                if row.callee.kind != 'python'])
    of_python = sum([row.calls for row in counts.calls]) - of_c
    text = f'{counted(of_python, "call")} of Python functions'
    if counts.mode == ALL:
        text += f' and {of_c:,} of C functions'
    text += ' counted'
    if counts.cost_ns:
        text += f'; counting took {brief(counts.cost_ns)}'
        cost = counting_share(tables)
        if cost is not None:
            text += f', {100 * cost:.1f} % of the CPU time'
    if counts.uncounted:
        text += f'; {counted(counts.uncounted, "more profile")} without calls'
    if counts.lost:
        text += f'; {counts.lost:,} events lost, for lack of memory'
    return text.split(' ')


def counting_share(tables):
    """Return what counting calls took of the CPU time; None: not known."""
    cpu_ns = tables.whole_cpu_ns or _total(tables, 'cpu_ns')
    if tables.counts is None or not cpu_ns:
        return None
    return tables.counts.cost_ns / cpu_ns


def _tasks(tables):
    """What tasks spent their lives in, which is no thread's time."""
    count = by_task.finished(tables)
    text = 'Tasks: ' + ('' if count is None else f'{count:,} ended, ')
    states = by_task.life(tables)
    parts = [f'{name} {share(ns, sum(states))}' for name, ns
             in zip(('running', 'loop wait', 'awaiting'), states)]
    return [text + parts[0], *parts[1:-1], parts[-1] + ': --tasks']


def faults(tables, sites):
    """Iterate over (what is not good, the same in a sentence and what helps).
    """
    facts = quality(tables, sites)
    records = sites.whole.running_records
    if sites.precision.is_known and 0 < records < _FEW and _state(
            sites, 'running') >= _HARDLY_RAN * sites.busy:
        yield FEW, (f'only {counted(records, "running sample")}: shares of '
                    'running time are rough; a longer run or a higher rate '
                    'has more')
    lost = losses(tables)
    if sum(lost_counts(tables.stats).values()):
        lost[-1] += ': a lower rate or a smaller --depth loses less'
    if lost:
        yield LOST, ', '.join(lost)
    achieved = facts['achieved_hz']
    starved = _starved(tables, sites)
    if starved >= _STARVED:
        yield BUSY, (f'the machine was busy: threads got no CPU for '
                     f'{100 * starved:.1f} % of the time that they wanted '
                     'one; CPU time does not depend on that: --value cpu')
    elif (achieved and achieved < _ACHIEVED * tables.rate_hz
          and not tables.stats.get(RATE_LOWERED)):
        yield BUSY, (f'the machine was busy, with {achieved:,} of '
                      f'{tables.rate_hz:,} samples a second: profile again '
                      'when it is not')
    for name, word, least, says in _FAULTS:
        value = facts[f'{name}_share']
        if value is not None and value > least:
            yield word, says.format(f'{100 * value:.1f} %')
    ended_ns = tables.counts.ended_ns if tables.counts is not None else 0
    if ended_ns:
        yield INCOMPLETE, (f'calls were counted until {brief(ended_ns)}: then '
                           'another tool took the id of sys.monitoring')
    cost = counting_share(tables)
    if cost is not None and cost > _COUNTING_SHARE:
        yield COSTLY, (f'counting calls took {100 * cost:.1f} % of the CPU '
                       'time, of functions that are called often: without '
                       'calls= it takes none')


def _starved(tables, sites):
    """Return for what share of the time that threads wanted a CPU they got
    none: those of Python, or those without if it is more of them."""
    if tables.value_types[tables.own].unit != 'nanoseconds':
        return 0.0
    _, native_ns, native_wait_ns = tables_of_cost.native(tables)
    return max([wait / wanted for wait, wanted in (
        (_state(sites, 'cpu_wait'),
         sum([_state(sites, state) for state in WANT_CPU])),
        (native_wait_ns, native_ns + native_wait_ns))
        if wait >= _LEAST_WAIT_NS], default=0.0)


def losses(tables):
    """Return every nonzero counter of something lost, in words: a list."""
    counts = lost_counts(tables.stats)
    times = {key.removeprefix('lost_').removesuffix('_ns'): value
             for key, value in tables.stats.items()
             if key.startswith('lost_') and key.endswith('_ns') and value}
    others = other_losses(tables.stats)
    if not (counts or times or others):
        return []
    text = counted(sum(counts.values()), 'sample') + ' lost'
    reasons = [f'{_words(reason)} {count:,}'
               for reason, count in counts.items()]
    if reasons:
        reasons[0] = f'{text} ({reasons[0]}'
        reasons[-1] += ')'
    return [*reasons,
            *[f'{seconds(ns)} {"CPU" if clock == "cpu" else clock} lost'
              for clock, ns in times.items()], *others]


def _words(identifier):
    return printable(identifier.replace('_', ' '))


def asides(tables, *, is_brief=False):
    """What readers have to know that is in no table; *is_brief*: only what
    they would misread the tables without."""
    count = _custom(tables)
    if count:
        weigh = 'weighs no time and is' if count == 1 else (
            'weigh no time and are')
        yield (f'Custom: {count:,} counted by sample(), which {weigh} not in '
               'the samples above')
    if tables.has_timeline and (not is_brief or tables.timeline.is_stale
                                or tables.span_ns is not None):
        yield ', '.join(_timeline(tables))
    wall_ns, cpu_ns = [tables.stats.get(f'subscribers_{clock}_ns', 0)
                       for clock in ('wall', 'cpu')]
    if (wall_ns or cpu_ns) and not is_brief:
        yield (f'Aside: {seconds(wall_ns)} wall, {seconds(cpu_ns)} CPU of '
               'serving subscribers, not in the times above')


def _timeline(tables):
    """How far the moments of samples are known."""
    line = tables.timeline
    text = 'Time line: '
    if line.is_stale:
        yield text + ('left out, as another tool has changed the samples that '
                      'it was of')
        return
    if tables.span_ns is not None:
        begin_ns, end_ns = tables.span_ns
        yield (f'{text}from {seconds(begin_ns)} to {seconds(end_ns)} of '
               f'{seconds(tables.end_ns)}')
        text = ''
    yield text + counted(len(line), 'record')
    if line.resolution_ns:
        yield f'those within {seconds(line.resolution_ns)} are one'
    *_, wall_ns = line.untimed(tables)
    if wall_ns:
        yield f'{seconds(wall_ns)} at no moment'


def _custom(tables):
    if COUNT not in tables.value_types:
        return 0
    number = STATES.index('custom')
    counts = tables.value(COUNT.name)
    return sum([count for state, count in zip(tables.column('state'), counts)
                if state == number])


def _state(sites, state):
    return sites.whole.by_state[STATES.index(state)]


def _total(tables, name):
    try:
        return tables.total(name)
    except AttributeError:
        # Another tool's file need not have this clock.
        return None
