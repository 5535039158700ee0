"""Labels: nested, many, by decorators, and samples of the program's own."""

import profile_sampling

OPERATORS = {'dict.__getitem__', 'int.__bool__', 'int.__mod__',
             'int.__sub__', 'module.__getattribute__', 'range.__iter__',
             'range_iterator.__next__'}
ENTRIES = {'work', 'decorated', 'generate', 'nested'}
CALLS = {
    'work': {'nested', 'many', 'decorated', 'drain', 'events', 'program.*',
             'random.*', '_random.*', 'profile_sampling.*', 'functools.*'},
    'nested': {'profile_sampling.*', 'spin', 'nested', '_profile.*', 'label'},
    'many': {'builtins.next', 'profile_sampling.*', 'spin', 'range',
             '_profile.*', 'label'},
    'decorated': {'spin', 'profile_sampling.*'},
    'drain': {'generate', 'profile_sampling.*'},
    'generate': {'spin', 'range'},
    'events': {'profile_sampling.*', 'range', '_profile.*'},
    'spin': {'builtins.sum', 'range'},
}


def spin(n):
    return sum(range(n))


def nested(depth):
    with profile_sampling.label(depth=depth, parity=depth % 2):
        spin(100)
        if depth:
            nested(depth - 1)
        spin(100)


def many(numbers, n):
    for _ in range(n):
        with profile_sampling.label(unique=next(numbers)):
            spin(20)


@profile_sampling.label(decorated='yes')
def decorated():
    spin(500)


@profile_sampling.label(generated='yes')
def generate(n):
    for i in range(n):
        spin(20)
        yield i


def drain(n):
    for _ in generate(n):
        pass


def events(n):
    for _ in range(n):
        profile_sampling.sample(2, event='stress')


def work(run):
    rng = run.rng('labelling')
    numbers = run.numbers()
    while not run.over():
        nested(rng.randrange(30))
        many(numbers, rng.randrange(200))
        decorated()
        drain(rng.randrange(50))
        events(rng.randrange(20))
        run.count('labels', 1)
