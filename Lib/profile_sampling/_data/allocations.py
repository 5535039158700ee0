"""Sampled allocations and collections: values of samples, and how far these
may be off.

A sampled block is in the values of the stack that allocated it.  Beside the
bytes of each amount there is their variance: so margins follow from sums, of
whatever part of a profile.
"""

from itertools import compress

from profile_sampling import _cgroup
from profile_sampling._data.schema import Key
from profile_sampling._data.values import (
    NOBODY, RUNNING, STATES, Value, value_type)

# Of these blocks are sampled, unless something else is asked for.
DEFAULT_BYTES = 512 * 1024
# What -X sampleprof and start() call a profile of memory.
MODE = 'alloc'
# In meta: bytes per sample, and the moment of the peak since the start.
PERIOD, PEAK_NS = 'alloc_bytes', 'alloc_peak_ns'
# And of what the memory of the process consists, in bytes.
_RESIDENT = 'memory_'
# And of what it consisted before, and the limit of its container.
_READINGS, LIMIT = 'memory_readings', 'memory_limit'
IN_USE, ALLOCATED, PEAK, FREED = 'inuse', 'alloc', 'peak', 'freed'
AMOUNTS = ALLOCATED, IN_USE, PEAK, FREED
# Keys: when blocks were allocated, and freed, since the epoch, or 0; and how
# long they lived, in decades: under 100 us, 1 ms, ... 100 s, and longer.
BEGUN, ENDED, LIFETIME = 'allocated_ns', 'freed_ns', 'lifetime'
MOMENTS = Key(BEGUN), Key(ENDED), Key(LIFETIME)
# Of collections: how many, their pauses, and the objects that they freed, and
# could not free.  None is left out, so these are counts.
COLLECTIONS = tuple([value_type(f'gc_{what}', unit) for what, unit in (
    ('collections', 'count'), ('pause', 'nanoseconds'), ('freed', 'count'),
    ('uncollectable', 'count'))])
# In meta: the longest pause of each generation.
_LONGEST = 'memory_gc_longest_ns'
# Bytes, squared: the unit of variances.
_VARIANCE_UNIT = 256
_VARIANCE = f'bytes^2/{_VARIANCE_UNIT}'
# What values are called in pprof files; as Go's, where Go has any.
_TYPES = {
    amount: tuple([
        value_type(f'{amount}_{what}', unit)
        for what, unit in (('objects', 'count'), ('space', 'bytes'),
                           ('variance', _VARIANCE))])
    for amount in AMOUNTS}
VALUES = tuple([its for amount in AMOUNTS for its in _TYPES[amount]])
VARIANCES = frozenset([types[2] for types in _TYPES.values()])
# Of the normal distribution, for 95 %.
_Z = 1.96
_OF_BLOCKS, _OF_COLLECTIONS = 6 + 3 * 3, 4 + 4
# What the core says beyond rows, and the meta says as memory_.
_RESIDENT_FACTS = 'large', 'large_variance', 'peak_rss', 'has_malloc'


class Reading(Value):
    """What allocators and the kernel said at a moment, in bytes.

    time_ns           since the epoch
    allocated         of all allocators, since the first session
    full_collections  a number
    """

    __slots__ = ('time_ns', 'allocated', 'full_collections', 'rss', 'files',
                 'arenas', 'arenas_used', 'malloc_used', 'malloc_free')


# Of a reading, what the process consists of.
_PARTS = Reading.__slots__[3:]


def space(amount):
    """Return the ValueType of an amount in bytes."""
    return _TYPES[amount][1]


def amount_of(type_):
    """Return which amount a type of values is of, if it is in bytes."""
    return next((amount for amount in AMOUNTS if type_ == space(amount)),
                None)


def variance_column(tables):
    """Return the variances of what the tables are about, or None: that is no
    amount of memory in bytes."""
    amount = amount_of(tables.value_types[tables.own])
    return next((column for its, column in zip(
        tables.value_types, tables.value_columns)
        if amount and its == _TYPES[amount][2]), None)


def has_moments(tables):
    return MOMENTS[0] in tables.schema.keys


def readings(tables):
    """Return a list of Reading, oldest first; none of several processes."""
    if len(tables.processes) > 1:
        return []
    try:
        return [Reading(*map(int, item.split(',')))
                for item in tables.meta.get(_READINGS, '').split(';') if item]
    except (TypeError, ValueError):
        return []       # whoever wrote the file is not us


def with_readings(meta, its, resident):
    """Return the facts of a file with other Readings, and another answer of
    resident()."""
    found = {name: text for name, text in meta.items()
             if not name.startswith(_RESIDENT) or name == LIMIT}
    return found | {
        _READINGS: ';'.join([','.join(map(str, one._fields()))
                             for one in its])} | {
        f'{_RESIDENT}{name}': str(size) for name, size in resident.items()}


def has_memory(tables):
    return space(IN_USE) in tables.value_types


def own_kind(mode):
    """Return the kind of values that a profile of a mode is about."""
    return space(IN_USE).kind if mode == MODE else mode


def period_bytes(tables):
    """Return how many bytes a sample stands for; 0: it is not known."""
    text = tables.meta.get(PERIOD, '')
    return int(text) if text.isascii() and text.isdigit() else 0


def resident(tables):
    """Return what is known of the memory of the process at the end, {name:
    bytes}; of several it is not known."""
    if len(tables.processes) > 1:
        return {}
    return {name.removeprefix(_RESIDENT): int(text)
            for name, text in tables.meta.items()
            if name.startswith(_RESIDENT) and text.isascii()
            and text.isdigit() and name != LIMIT}


def part_of_process(tables):
    """Return tables that no longer say what is true of the whole process: its
    RSS, and what was counted."""
    return tables.with_facts(whole_cpu_ns=0, meta={
        name: text for name, text in tables.meta.items()
        if not name.startswith(_RESIDENT)})


def longest_pauses_ns(tables):
    """Return the longest pause of each generation, or (): it is not known, as
    of several processes, or of a part of a profile."""
    text = tables.meta.get(_LONGEST, '')
    return (() if len(tables.processes) > 1 or tables.whole_cpu_ns is not None
            else _numbers(text))


def _numbers(text):
    parts = text.split(',')
    return tuple([int(part) for part in parts
                  if part.isascii() and part.isdigit()])


def limit_bytes(tables):
    """Return how much the container may have, or None."""
    text = tables.meta.get(LIMIT, '')
    return int(text) if text.isascii() and text.isdigit() else None


def united_meta(parts):
    """Return what several profiles of one process say of its memory, in the
    order of their time: what it had last, all readings, and the longest
    pauses of all."""
    longest = [_numbers(meta[_LONGEST]) for _, meta in parts
               if _LONGEST in meta]
    return {name: text for _, meta in sorted(parts, key=lambda its: its[0])
            for name, text in meta.items() if name.startswith(_RESIDENT)} | {
        _READINGS: ';'.join(sorted(dict.fromkeys(
            [item for _, meta in parts
             for item in meta.get(_READINGS, '').split(';') if item])))} | (
        {_LONGEST: ','.join([str(max(its)) for its in zip(*longest)])}
        if longest else {})


def margin_bytes(variance):
    """Return how far a sum of bytes may be off: an interval of 95 %."""
    return round(_Z * (variance * _VARIANCE_UNIT) ** 0.5)


def margin_unit():
    """Return what the square root of a variance is times, for a margin."""
    return _Z * _VARIANCE_UNIT ** 0.5


def add(raw, moved):
    """Return *raw*, which is converted, with what the core says of
    allocations; *moved* are the numbers of rows of labels now."""
    from array import array

    its = raw['allocations']
    unit = its['variance_unit']
    if unit != _VARIANCE_UNIT:
        raise ValueError(f'unknown unit of variances: {unit}')
    longest = [its[f'longest_gen{number}_ns'] for number in range(3)]
    were = [list(row) for row in _chunks(its['readings'],
                                         len(Reading.__slots__))]
    resident = {name: its[name] for name in (*_PARTS, *_RESIDENT_FACTS)
                if name in its}
    if were:
        # The last one is of the end.
        resident = dict(zip(_PARTS, were[-1][-len(_PARTS):])) | resident
    added_types = VALUES + (COLLECTIONS if any(longest) else ())
    names = [key.name for key in (*raw['keys'], *MOMENTS)]
    own = [array('q', column) for column in raw['columns']]
    n_own = len(own[0])
    place = len(raw['keys'])
    own[place:place] = [array('q', bytes(8 * n_own)) for _ in MOMENTS]
    numbers = {key: number for number, key in enumerate(zip(*own[:len(names)]))}
    memory = [array('q', bytes(8 * n_own)) for _ in added_types]
    for row, values in _rows(its, moved):
        key = tuple([row[name] for name in names])
        number = numbers.setdefault(key, len(numbers))
        if number == len(own[0]):
            for column, item in zip(own, key):
                column.append(item)
            for column in (*own[len(names):], *memory):
                column.append(0)
        for column, value in zip(memory, values):
            column[number] += value
    types = raw['value_types']
    if raw['mode'] == MODE:
        # Of time it has nothing.
        weighs = list(map(any, zip(*memory)))
        types = []
        own, memory = [[array('q', compress(column, weighs))
                        for column in columns]
                       for columns in (own[:len(names)], memory)]
        raw = raw | {'timeline': None}
    return raw | {
        'mode': own_kind(raw['mode']), 'value_types': [*types, *added_types],
        'keys': (*raw['keys'], *MOMENTS),
        'columns': own + memory,
        'meta': raw.get('meta', {}) | {
            PERIOD: str(its['period_bytes']), PEAK_NS: str(its['peak_ns']),
            **_limit(), _READINGS: ';'.join([
                ','.join(map(str, its)) for its in were]),
            **({_LONGEST: ','.join(map(str, longest))} if any(longest)
               else {}),
            **{f'{_RESIDENT}{name}': str(number)
               for name, number in resident.items()}}}


def changes(allocations):
    """Iterate over what was allocated and freed: numbers of the stack, thread
    and labels, when it was allocated, and freed, or 0, then objects, bytes and
    variance."""
    for *key, _, objects, size, variance, _, _, _, _, _, _ in _chunks(
            allocations['blocks'], _OF_BLOCKS):
        if size:
            yield *key, objects, size, variance


def _rows(allocations, moved):
    """Iterate over ({name of a key: number}, values) of blocks and
    collections."""
    for node, thread, labels, begun, ended, lifetime, *values in _chunks(
            allocations['blocks'], _OF_BLOCKS):
        if any(values):
            values += [0] * 3
            if ended:
                # What the core has of these was freed.
                values = values[3:] + values[:3]
            yield _key(node, thread, moved[labels], RUNNING, begun, ended,
                       lifetime), values
    for node, thread, labels, begun, *values in _chunks(
            allocations['collections'], _OF_COLLECTIONS):
        yield (_key(node, thread, moved[labels], STATES.index('gc'), begun),
               [0] * len(VALUES) + values)


def _chunks(data, width):
    view = memoryview(data).cast('q')
    for at in range(0, len(view), width):
        yield view[at:at + width]


def _key(node, thread, labels, state, begun, ended=0, lifetime=0):
    holder_thread, holder = NOBODY
    return {BEGUN: begun, ENDED: ended, LIFETIME: lifetime, 'stack': node,
            'thread': thread, 'labels': labels, 'state': state,
            'holder_thread': holder_thread, 'holder': holder}


def _limit():
    limit = _cgroup.limit_bytes()
    return {} if limit is None else {LIMIT: str(limit)}
