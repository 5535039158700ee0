"""Profiles with a time line, made up: each sample is cut into records."""

from profile_sampling import Profile
from profile_sampling._data import timeline


def cut(random, value, pieces):
    """Cut a number into as many that add up to it."""
    at = sorted([random.randrange(value + 1) for _ in range(pieces - 1)])
    return [b - a for a, b in zip([0, *at], [*at, value])]


def records_of(profile, random, most=4):
    """Return (time_ns, sample, count, cpu_ns, wall_ns) for all samples."""
    tables = profile._tables
    numbers = timeline.value_numbers(tables)
    records = []
    for row, values in enumerate(tables.values()):
        pieces = random.randrange(1, most + 1)
        for piece in zip(*[cut(random, values[number], pieces)
                           for number in numbers]):
            records.append((1 + random.randrange(profile.duration_ns), row,
                            *piece))
    return records


def with_records(profile, records, resolution_ns=0):
    return Profile._from_tables(profile._tables.with_timeline(
        timeline.of_records(records, resolution_ns)))


def timed(profile, random, most=4):
    """Return the profile with a time line that has all of it."""
    return with_records(profile, records_of(profile, random, most))
