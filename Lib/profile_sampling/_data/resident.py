"""Of what the memory of a process consists: parts that add up to its RSS."""

from profile_sampling._data import growth
from profile_sampling._data.allocations import (
    IN_USE, VALUES, has_moments, margin_bytes, readings, resident)
from profile_sampling._data.values import Value, value_named


class Part(Value):
    """A part of the RSS.

    name      in words
    bytes     how much
    margin    how far that may be off, in bytes; None: it is no estimate
    is_most   whether it is that at most: not all of it is in memory
    known_by  how it is known, in words
    """

    __slots__ = ('name', 'bytes', 'margin', 'is_most', 'known_by')


def parts(tables):
    """Return a list of Part; the last is the RSS, which the others add up to.

    It is empty where RSS is not known.
    """
    its = resident(tables)
    if not its.get('rss'):
        return []
    totals = dict(zip(VALUES, [
        value_named(value.name, tables.value_types, tables.totals)
        for value in VALUES]))
    in_use, variance = [totals[value] for value in VALUES
                        if value.kind in (f'{IN_USE}_space',
                                          f'{IN_USE}_variance')]
    large, large_variance = its['large'], its['large_variance']
    small = in_use - large
    found = [
        ['Python, in use', in_use, margin_bytes(variance), 'samples'],
        ['Python, other blocks', max(0, its['arenas_used'] - small),
         margin_bytes(variance - large_variance),
         'counted: older than the recording'],
        ['C libraries', max(0, its['malloc_used'] - large),
         margin_bytes(large_variance),
         "malloc in use, less Python's part"],
        ['files', its['files'], None,
         'measured: programs, libraries, mmap'],
        ['Python, free', its['arenas'] - its['arenas_used'], None,
         "counted: kept by Python's allocator"],
        ['malloc, free', its['malloc_free'], None,
         "counted: kept by C's malloc"]]
    if not its['has_malloc']:
        found = [part for part in found if part[0] != 'malloc, free'
                 and part[0] != 'C libraries']
    rest = its['rss']
    result = []
    for name, size, margin, known_by in found:
        # What was asked for and never written is not in memory.
        is_most = size > rest
        size = min(size, rest)
        rest -= size
        result.append(Part(name, size, margin, is_most, known_by))
    return [*result,
            Part('rest', rest, None, False, 'stacks, and what is left'),
            Part('RSS', its['rss'], None, False, 'measured')]


def changes(tables):
    """Return {name of a part: by how many bytes it grew from the first quarter
    of the time to the end}; {} if that is not known.

    What is in use by malloc or in arenas and is not Python's is the libraries'.
    """
    its = readings(tables)
    if len(its) < 2 or not has_moments(tables):
        return {}
    steps = growth.steps(tables)
    [levels] = growth.in_use(tables, [0] * len(tables), 1)
    first = next((one for one in its
                  if one.time_ns >= growth.quarter(tables)), its[-1])
    last = its[-1]
    in_use = levels[-1] - levels[steps.of(first.time_ns)]
    found = {
        'Python, in use': in_use,
        'C libraries': (last.malloc_used + last.arenas_used
                        - first.malloc_used - first.arenas_used - in_use),
        'files': last.files - first.files,
        'Python, free': (last.arenas - last.arenas_used
                         - first.arenas + first.arenas_used),
        'malloc, free': last.malloc_free - first.malloc_free}
    rss = last.rss - first.rss
    return found | {'rest': rss - sum(found.values()), 'RSS': rss}
