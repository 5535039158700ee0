"""Blocks of known sizes, and what a profile says of them."""

import contextlib
import random
from array import array

import profile_sampling
from profile_sampling._data import allocations

from . import validator

# What a bytes object has beside its content.
BYTES_OVERHEAD = bytes.__basicsize__
AMOUNTS = allocations.AMOUNTS[:3]


@contextlib.contextmanager
def sampled(alloc_bytes, mode='alloc'):
    """Sample allocations; yield a list that gets the Profile."""
    taken = []
    profile_sampling.start(mode, alloc_bytes=alloc_bytes)
    try:
        yield taken
    finally:
        profile = profile_sampling.stop()
        validator.check_profile(profile)
        taken.append(profile)


def amounts(profile, function=None):
    """Return {amount: (objects, bytes, standard error)} of the stacks that
    have a function, or of all."""
    tables = profile._tables
    names = [function is None
             or any([frame.function.qualname.endswith(function)
                     for frame in tables.stack(node)])
             for node in tables.column('stack')]
    found = {}
    for amount in AMOUNTS:
        objects, size, variance = [
            sum([value for value, its in zip(tables.value(
                f'{amount}_{what}'), names) if its])
            for what in ('objects', 'space_bytes',
                         f'variance_{allocations._VARIANCE}')]
        found[amount] = objects, size, (
            variance * allocations._VARIANCE_UNIT) ** 0.5
    return found


def block(size):
    """Return a bytes object that requests *size* bytes."""
    return bytes(size - BYTES_OVERHEAD)


def mixed_sizes(seed, number):
    """Return sizes from 64 B to 4 MiB, the same of each power of four."""
    found = [64 * 4 ** (place % 9) for place in range(number)]
    random.Random(seed).shuffle(found)
    return found


def add_rows(builder, rows, *, period=512 * 1024, peak_ns=0, resident=None,
             moments=(), readings=(), collections=(), longest_ns=(0, 0, 0)):
    """Give a Builder what the core says of allocations: rows of (stack,
    thread, labels, allocated, in use, at the peak), each of the last three
    (objects, bytes, variance in 256 bytes squared).

    *moments* has (when it was allocated, when it was freed, decade of the
    lifetime) of each, the first two in seconds from the start, or None; the
    allocated of one that was freed is what was.  *collections* has (stack,
    thread, labels, when, how many, their pauses in ns, freed, uncollectable),
    and *longest_ns* the longest pause of each generation.
    """
    start_ns = builder.facts['start_time_ns']
    data = array('q')
    for place, (stack, thread, labels, *values) in enumerate(rows):
        begun, ended, lifetime = moments[place] if moments else (0, None, 0)
        data.extend([builder.node(stack), thread, builder._labels(
            labels, None, 0), start_ns + round(begun * 1e9),
            0 if ended is None else start_ns + round(ended * 1e9), lifetime,
            *[number for its in values for number in its]])
    ended = array('q')
    for stack, thread, labels, when, *values in collections:
        ended.extend([builder.node(stack), thread, builder._labels(
            labels, None, 0), start_ns + round(when * 1e9), *values])
    builder.facts['allocations'] = {
        'period_bytes': period, 'peak_ns': peak_ns,
        'variance_unit': allocations._VARIANCE_UNIT,
        'blocks': data.tobytes(), 'collections': ended.tobytes(),
        'readings': array('q', [number for reading in readings
                                for number in reading]).tobytes(),
        **{f'longest_gen{number}_ns': ns
           for number, ns in enumerate(longest_ns)}, **(resident or {})}
