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


# In the order in which they are shown; and in which they are cut where they
# are more than the RSS: what malloc keeps was never counted as resident.
NAMES = (IN_PYTHON, OTHER_BLOCKS, PYTHON_FREE, LIBRARIES, MALLOC_FREE, FILES,
         REST) = (
    'Python, in use', 'Python, other blocks', 'Python, free', 'C libraries',
    'malloc, free', 'files', 'rest')
RSS = 'RSS'
_CUT = (IN_PYTHON, OTHER_BLOCKS, LIBRARIES, FILES, PYTHON_FREE, MALLOC_FREE)
_KNOWN_BY = {
    IN_PYTHON: 'samples', OTHER_BLOCKS: 'counted: older than the recording',
    PYTHON_FREE: "counted: kept by Python's allocator",
    LIBRARIES: "malloc in use, less Python's part",
    MALLOC_FREE: "counted: kept by C's malloc",
    FILES: 'measured: programs, libraries, mmap',
    REST: 'stacks, and what is left', RSS: 'measured'}


def parts(tables):
    """Return a list of Part; the last is the RSS, which the others add up to.

    It is empty where RSS is not known.
    """
    its = resident(tables)
    if not its.get('rss'):
        return []
    in_use, variance = [value_named(
        value.name, tables.value_types, tables.totals) for value in VALUES
        if value.kind in (f'{IN_USE}_space', f'{IN_USE}_variance')]
    large = its['large_variance']
    margins = {IN_PYTHON: variance, OTHER_BLOCKS: variance - large,
               LIBRARIES: large}
    sizes = _sizes(its, in_use)
    cut = _cut(sizes, its['rss'])
    return [Part(name, size, margin_bytes(max(margins[name], 0))
                 if name in margins else None, sizes.get(name, 0) > size,
                 _KNOWN_BY[name])
            for name, size in [*cut.items(), (RSS, its['rss'])]]


def _sizes(its, in_use):
    """Return {name: bytes} of the parts that are known, but the rest."""
    large = its['large']
    found = {IN_PYTHON: in_use,
             OTHER_BLOCKS: max(0, its['arenas_used'] - (in_use - large)),
             PYTHON_FREE: its['arenas'] - its['arenas_used'],
             LIBRARIES: max(0, its['malloc_used'] - large),
             MALLOC_FREE: its['malloc_free'], FILES: its['files']}
    if not its['has_malloc']:
        del found[LIBRARIES], found[MALLOC_FREE]
    return found


def _cut(sizes, rss):
    """Return the same in the order of NAMES, as parts that add up.

    What was asked for and never written is not in memory.
    """
    left, found = rss, {}
    for name in _CUT:
        if name in sizes:
            found[name] = min(max(sizes[name], 0), left)
            left -= found[name]
    found[REST] = left
    return {name: found[name] for name in NAMES if name in found}


def facts_at(tables, reading, in_use):
    """Return what resident() would say at a Reading, when *in_use* bytes were.

    How much of malloc's Python had then is not known: it is what is in use and
    not in arenas, if what is older than the recording stays.
    """
    end = resident(tables)
    at_end = sum([value_named(value.name, tables.value_types, tables.totals)
                  for value in VALUES if value.kind == f'{IN_USE}_space'])
    small = at_end - end['large'] + reading.arenas_used - end['arenas_used']
    return end | {name: getattr(reading, name) for name in (
        'rss', 'files', 'arenas', 'arenas_used', 'malloc_used',
        'malloc_free')} | {'large': min(max(0, in_use - small), in_use)}


def history(tables):
    """Return a list of (time_ns, {name: bytes}), oldest first: the parts of
    the RSS, which is the last, at each reading; [] if they are not known."""
    its = readings(tables)
    if not resident(tables).get('rss') or not has_moments(tables):
        return []
    steps = growth.steps(tables)
    [levels] = growth.in_use(tables, [0] * len(tables), 1)
    found = []
    for reading in its:
        in_use = max(0, levels[steps.of(reading.time_ns)])
        sizes = _sizes(facts_at(tables, reading, in_use), in_use)
        found.append((reading.time_ns, _cut(sizes, reading.rss)
                      | {RSS: reading.rss}))
    return found


def changes(tables):
    """Return {name of a part: by how many bytes it grew from the first quarter
    of the time to the end}; {} if that is not known."""
    its = history(tables)
    if len(its) < 2:
        return {}
    first = next((parts for time_ns, parts in its
                  if time_ns >= growth.quarter(tables)), its[-1][1])
    return {name: size - first[name] for name, size in its[-1][1].items()}
