"""Profiles made up at random, for what has to hold for all of them."""

from profile_sampling._data.values import STATES

from .builders import Builder

_PYTHON = 'a.f', 'a.g', 'a.C.f', 'b.f', 'b.h'
_LEAVES = 'C:time.sleep', 'op:int.__mul__', 'C:builtins.sorted', '[waiting]'
_ROUTES = None, '/', '/x', 'ü'


_OF_THREADS = [state for state in STATES
               if state not in ('awaiting', 'loop_wait')]


def random_profile(random, *, samples=30, tasks=False, **facts):
    """Return a profile with all that a sample may have."""
    b = Builder(**{'pid': random.randrange(1, 4), 'names': 3,
                   'mode': random.choice(['wall', 'cpu']),
                   'stats': {'ticks': random.randrange(1, 99)}} | facts)
    threads = [b.thread(name, interpreter=random.randrange(2))
               for name in ('MainThread', 'worker', 'worker', None)]
    for _ in range(samples):
        state = random.choice(_OF_THREADS)
        holder = None
        if state == 'gil_wait':
            holder = random.choice([-1, *threads]), 'a.g:7 C:time.sleep'
        b.sample(random_stack(random), count=random.randrange(1, 9),
                 cpu_ns=random.randrange(10_000),
                 wall_ns=random.randrange(10_000),
                 thread=random.choice(threads), state=state, holder=holder,
                 labels=_random_labels(random),
                 task=random.choice([None, ('T1', 11), ('T2', 12)]))
    if tasks:
        _add_tasks(b, random, threads, samples)
    return b.profile()


def _add_tasks(b, random, threads, samples):
    classes = [b.task_class(
        name, finished=random.randrange(9), steps=random.randrange(99),
        longest_step_ns=random.randrange(999),
        lives=[random.randrange(1 << 40) for _ in range(9)])
        for name in _PYTHON[:3]]
    for _ in range(samples):
        state = random.choice(['running', 'awaiting', 'loop_wait'])
        ns = random.randrange(1, 10_000)
        is_running = state == 'running'
        b.sample(random_stack(random), count=random.randrange(1, 9),
                 cpu_ns=ns * is_running, wall_ns=ns * is_running, task_ns=ns,
                 delay_ns=random.randrange(9) * is_running,
                 thread=random.choice(threads), state=state,
                 labels=_random_labels(random),
                 task=random.choice([None, ('T1', 11)]),
                 task_class=random.choice([0, *classes]))


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
