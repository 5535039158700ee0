"""Profiles made up at random, for what has to hold for all of them."""

from profile_sampling._data.values import STATES

from .builders import Builder

_PYTHON = 'a.f', 'a.g', 'a.C.f', 'b.f', 'b.h'
_LEAVES = 'C:time.sleep', 'op:int.__mul__', 'C:builtins.sorted', '[blocked]'
_ROUTES = None, '/', '/x', 'ü'


def random_profile(random, *, samples=30, **facts):
    """Return a profile with all that a sample may have."""
    b = Builder(**{'pid': random.randrange(1, 4), 'names': 3,
                   'mode': random.choice(['wall', 'cpu']),
                   'stats': {'ticks': random.randrange(1, 99)}} | facts)
    threads = [b.thread(name, interpreter=random.randrange(2))
               for name in ('MainThread', 'worker', 'worker', None)]
    for _ in range(samples):
        state = random.choice(STATES)
        holder = None
        if state == 'gil_wait':
            holder = random.choice([-1, *threads]), 'a.g:7 C:time.sleep'
        b.sample(random_stack(random), count=random.randrange(1, 9),
                 cpu_ns=random.randrange(10_000),
                 wall_ns=random.randrange(10_000),
                 thread=random.choice(threads), state=state, holder=holder,
                 labels=_random_labels(random),
                 task=random.choice([None, ('T1', 11), ('T2', 12)]))
    return b.profile()


def random_stack(random):
    stack = [f'{random.choice(_PYTHON)}:{random.randrange(1, 4)}'
             for _ in range(random.randrange(8))]
    # Callbacks: C code in the middle of a stack.
    stack = [random.choice(_LEAVES) if not random.randrange(9) else word
             for word in stack]
    if random.randrange(2):
        stack.append(random.choice(_LEAVES))
    return ' '.join(stack)


def _random_labels(random):
    labels = {}
    route = random.choice(_ROUTES)
    if route is not None:
        labels['route'] = route
    if random.randrange(3):
        labels['shard'] = str(random.randrange(3))
    return labels


def contents(profile):
    """What the samples say, as a comparable value: {key: values}.

    Worked out sample by sample, with nothing that the package has for it.
    """
    rows = {}
    for sample in profile.samples:
        key = (sample.stack, sample.thread, sample.state,
               tuple(sorted(sample.labels.items())), sample.task_name,
               sample.task_id, sample.gil_holder)
        known = rows.get(key, (0,) * len(sample.values))
        rows[key] = tuple([a + b for a, b in zip(known, sample.values)])
    return rows


def sum_of(contents):
    """The sum of several contents()."""
    rows = {}
    for content in contents:
        for key, values in content.items():
            known = rows.get(key, (0,) * len(values))
            rows[key] = tuple([a + b for a, b in zip(known, values)])
    return rows
