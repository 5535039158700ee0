"""Sessions whose clock the test itself ticks: everything is exact.

tick(wall_ns, cpu_ns) moves the clocks and asks the calling thread at once, so
a sample stands at the line and column of the call of tick, and its weights
are the arguments.
"""

from .sessions import Session, _profile, names

tick = _profile.tick


def manual(**options):
    return Session(manual=True, **options)


def rows(profile):
    """{(names root first, state): (count, cpu_ns, wall_ns)}, cut at here.

    Frames of the test's callers are left out.
    """
    result = {}
    for sample in profile.samples:
        stack = names(sample)
        for i, name in reversed(list(enumerate(stack))):
            if '.test_' in name:
                stack = stack[i + 1:]
                break
        key = stack, sample.state
        assert key not in result, key
        result[key] = sample.count, sample.cpu_ns, sample.wall_ns
    return result


def line_of(function, offset):
    return function.__code__.co_firstlineno + offset


def leaf(wall_ns, cpu_ns=0):
    tick(wall_ns, cpu_ns)


# Two functions that can be told apart, by their names and what they spend.
def first():
    tick(3000, 4000)


def second():
    tick(5000, 6000)
