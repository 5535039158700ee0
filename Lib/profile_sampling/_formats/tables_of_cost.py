"""Tables of CPU time: who had it, and what the profiler took."""

from profile_sampling._data.losses import OVERHEAD_CLOCK, overhead_ns
from profile_sampling._data.values import CPU, STATES, WALL
from profile_sampling._formats.table import Column, Table
from profile_sampling._formats.tables_of_waits import ALL

HAD_ONE, HAD_NONE, NATIVE = 'a CPU', 'no CPU', 'threads without Python'
NATIVE_COUNTERS = ('native_threads', 'native_threads_cpu_ns',
                   'native_threads_wait_ns')
_HAD = 'running', 'native', 'gc'


def cost(tables, sites):
    """The Tables of the CPU time of the profile, and of its lack."""
    return [*_cpu(tables), *_wanted(tables, sites)]


def _cpu(tables):
    if CPU not in tables.value_types or not tables.total(CPU.name):
        return
    in_samples = tables.whole_cpu_ns or tables.total(CPU.name)
    _, native_ns, wait_ns = native(tables)
    clock_ns = tables.stats.get(OVERHEAD_CLOCK, 0)
    total = in_samples + native_ns + clock_ns
    rows = [('in samples', in_samples),
            ('of that the profiler, by its own account',
             overhead_ns(tables.stats) - clock_ns), *_counting(tables),
            (NATIVE, native_ns), ("the profiler's own thread", clock_ns),
            (ALL, total)]
    yield Table('cost', 'CPU time', [
        Column('ns', 'CPU', 'value'), Column('share', 'share', 'share'),
        Column('part', '', 'text')],
        [(ns, ns / total, name) for name, ns in rows if ns],
        value_type=CPU)
    if native_ns:
        yield Table('native_cpu', 'The time that threads without Python '
                    'wanted a CPU', [
                        Column('ns', 'time', 'value'),
                        Column('share', 'share', 'share'),
                        Column('had', 'had', 'text')],
                    [(ns, ns / (native_ns + wait_ns), name) for name, ns in (
                        (HAD_ONE, native_ns), (HAD_NONE, wait_ns),
                        (ALL, native_ns + wait_ns))], value_type=CPU)


def native(tables):
    """Return how many threads without Python there were, their CPU time, and
    how long they waited for a CPU."""
    return [tables.stats.get(name, 0) for name in NATIVE_COUNTERS]


def _counting(tables):
    """Iterate over what counting took: as measured when it began."""
    counts = tables.counts
    if counts is None or not counts.cost_ns:
        return
    for what, number, ns in zip(('Python', 'C'), counts.entered(), (
            counts.python_cost_ns, counts.c_cost_ns)):
        if number and ns:
            text = (f'of that counting {number:,} calls of {what}, '
                    f'{ns / number:.0f} ns each')
            if what == 'Python' and counts.most_call_ns:
                text += (f' (at the start {counts.least_call_ns} to '
                         f'{counts.most_call_ns})')
            yield text, ns


def _wanted(tables, sites):
    own = tables.value_types[tables.own]
    if own != WALL:
        return
    had, had_none = [sum([sites.whole.by_state[STATES.index(state)]
                          for state in states])
                     for states in (_HAD, ('cpu_wait',))]
    total = had + had_none
    if total:
        yield Table('wanted_cpu', 'The time that threads wanted a CPU', [
            Column('ns', 'time', 'value'), Column('share', 'share', 'share'),
            Column('had', 'had', 'text')],
            [(had, had / total, HAD_ONE), (had_none, had_none / total,
                                           HAD_NONE), (total, 1.0, ALL)],
            value_type=own)
