"""What a program used, in a few lines."""

from profile_sampling._data import by_instruction
from profile_sampling._data.losses import (
    lost_counts, other_losses, overhead_ns)
from profile_sampling._data.sums import sums_by
from profile_sampling._data.values import (
    CPU, OPCODES, SHOWN_STATES, STATES, WALL, printable)
from profile_sampling._formats.table import WIDTH
from profile_sampling._formats.words import (
    counted, state_name, text_width, wrapped)

_NS_PER_S = 1_000_000_000
_BYTES_PER_KB, _BYTES_PER_MB = 1024, 1 << 20
# Of getrusage() on Linux, whatever the disk's are.
_BYTES_PER_BLOCK = 512
_COLLECTIONS = 'collections_gen0', 'collections_gen1', 'collections_gen2'


def used(usage, real_s, least_kb):
    """Return, by name, what a program used: of resource.struct_rusage, in the
    units that the names end in.

    Peak memory of no more than *least_kb* may be less than the kernel says.

    Context switches are left out.  The profiler's thread, which the kernel
    counts with the program's, waits for each tick, and on a single CPU takes
    it from the program each time: the figures are those of the profiler.
    """
    return {
        'real_s': real_s,
        'user_s': usage.ru_utime,
        'sys_s': usage.ru_stime,
        'peak_memory_bytes': usage.ru_maxrss * _BYTES_PER_KB,
        'peak_memory_is_bound': usage.ru_maxrss <= least_kb,
        'page_faults_minor': usage.ru_minflt,
        'page_faults_major': usage.ru_majflt,
        'disk_read_bytes': usage.ru_inblock * _BYTES_PER_BLOCK,
        'disk_written_bytes': usage.ru_oublock * _BYTES_PER_BLOCK,
    }


def as_json(name, status, used, tables):
    """Return all that render() says, as it is: for machines.

    profile is None if there is none; times end in _ns or _s, sizes in _bytes.
    """
    return {'program': name, 'status': status, **used,
            'profile': None if tables is None else _profile(tables)}


def _profile(tables):
    facts = {
        'mode': tables.mode, 'rate_hz': tables.rate_hz,
        'duration_ns': tables.duration_ns, 'threads': _threads(tables),
        'samples': tables.total('count'),
        'states': states(tables),
        'specialized_count': None, 'unspecialized_count': None,
        'overhead_ns': overhead_ns(tables.stats),
        'counters': dict(tables.stats),
    }
    if tables.names & OPCODES:
        facts['specialized_count'], facts['unspecialized_count'] = (
            specialization(tables))
    return facts


def _threads(tables):
    # The profiler's own have no samples.
    return len(set(tables.column('thread')))


def states(tables):
    """Return {state: {'wall_ns': …, 'cpu_ns': …}} of the states that were."""
    columns = sums_by(tables, tables.column('state'), len(STATES))
    numbers = {kind: tables.value_types.index(kind)
               for kind in (WALL, CPU) if kind in tables.value_types}
    found = {}
    for state in SHOWN_STATES:
        row = STATES.index(state)
        values = {f'{kind.kind}_ns': columns[number][row]
                  for kind, number in numbers.items()}
        if state != 'custom' and any(values.values()):
            found[state] = values
    return found


def specialization(tables):
    """Return how many records saw a specialized instruction, and how many a
    generic one that could have been specialized."""
    rows = by_instruction.rows(tables)
    return (sum([row.specialized_count for row in rows]),
            sum([row.unspecialized_count for row in rows]))


def render(name, used, tables, width=WIDTH):
    """Return the text of stat in *width* columns."""
    lines = [f'What {printable(name)} used', '',
             _line(_seconds(used['real_s']), 'real'),
             _line(_seconds(used['user_s']), 'user'),
             _line(_seconds(used['sys_s']), 'sys')]
    if tables is not None:
        lines += ['', *_states(tables)]
    lines += ['', *_system(used)]
    if tables is not None:
        lines += _interpreter(tables)
    indent = _line('', '')
    return ''.join([line + '\n' for long in lines for line in (
        wrapped(long.split(' '), width, ' ', indent)
        if text_width(long) > width else [long])])


def _line(amount, text):
    return f'{amount:>15}  {text}'


def _counted(number, one, rest):
    amount, _, noun = counted(number, one).partition(' ')
    return _line(amount, noun + rest)


def _seconds(seconds):
    if seconds < 1:
        return f'{seconds * 1000:.1f} ms'
    return f'{seconds:,.2f} s'


def _states(tables):
    """What threads did all the time."""
    total_ns = tables.total('wall_ns')
    yield _line(_seconds(total_ns / _NS_PER_S),
                f'of {counted(_threads(tables), "thread")}:')
    for state, values in states(tables).items():
        ns = values['wall_ns']
        share = 100 * ns / total_ns if total_ns else 0
        yield _line(_seconds(ns / _NS_PER_S),
                    f'{share:5.1f} %  {state_name(state)}')


def _system(used):
    yield _line(f'{used["peak_memory_bytes"] / _BYTES_PER_MB:,.1f} MB',
                'peak memory of the largest process'
                + (', at most' if used['peak_memory_is_bound'] else ''))
    major = used['page_faults_major']
    yield _counted(used['page_faults_minor'] + major, 'page fault',
                   f' ({major:,} from disk)')
    read, written = used['disk_read_bytes'], used['disk_written_bytes']
    yield _line(f'{(read + written) / _BYTES_PER_MB:,.1f} MB',
                f'from and to disks ({read / _BYTES_PER_MB:,.1f} MB read, '
                f'{written / _BYTES_PER_MB:,.1f} MB written)')


def _interpreter(tables):
    if tables.names & OPCODES:
        specialized, generic = specialization(tables)
        if specialized + generic:
            share = 100 * specialized / (specialized + generic)
            yield _line(f'{share:.1f} %', 'of instructions that can be '
                                          'specialized were')
    yield from _collections(tables.stats)
    yield _counted(tables.total('count'), 'sample', f', {_losses(tables)}')
    cpu_ns = tables.total('cpu_ns')
    cost_ns = overhead_ns(tables.stats)
    share = f' ({100 * cost_ns / cpu_ns:.2f} % of CPU time)' if cpu_ns else ''
    yield _line(_seconds(cost_ns / _NS_PER_S),
                f'taken by the profiler on the threads it sampled{share}')


def _collections(stats):
    # A file of an older interpreter, or of another tool, does not know.
    if _COLLECTIONS[0] in stats:
        numbers = [stats[name] for name in _COLLECTIONS]
        of_each = ', '.join([f'{number:,} of generation {generation}'
                             for generation, number in enumerate(numbers)])
        yield _counted(sum(numbers), 'garbage collection', f' ({of_each})')


def _losses(tables):
    lost = sum(lost_counts(tables.stats).values())
    return ', '.join([f'{lost:,} lost', *other_losses(tables.stats)])
