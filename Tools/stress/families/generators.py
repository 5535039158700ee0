"""Generators: many yields, delegation, exceptions thrown in, early ends."""

OPERATORS = {'generator.__iter__', 'int.__add__', 'int.__bool__',
             'int.__eq__', 'int.__lt__', 'int.__mod__', 'int.__mul__',
             'int.__sub__', 'range.__iter__', 'range_iterator.__next__',
             'tuple.__iter__', 'tuple_iterator.__next__'}
ENTRIES = {'work'}
CALLS = {
    'work': {'count_up', 'delegate', 'throw_in', 'leave_early', 'pipeline',
             'program.*', 'random.*', '_random.*'},
    'count_up': {'upward'},
    'delegate': {'chain'},
    'chain': {'chain', 'chain_end'},
    'throw_in': {'range', 'catcher', 'thrower', 'generator.throw',
                 'builtins.next', 'generator.close'},
    'generator.throw': {'catcher', 'thrower', 'inner_thrower'},
    'generator.close': {'catcher', 'thrower', 'early', 'inner_thrower'},
    'builtins.next': {'catcher', 'thrower', 'early', 'inner_thrower'},
    'thrower': {'inner_thrower'},
    'leave_early': {'range', 'early', 'generator.close', 'builtins.next'},
    'early': {'close_down'},
    'pipeline': {'builtins.sum', 'squares', 'odd'},
    'builtins.sum': {'odd'},
    'odd': {'squares'},
    'squares': {'range'},
}


class Thrown(Exception):
    pass


def upward(n):
    i = 0
    while i < n:
        yield i
        i = i + 1


def count_up(n):
    for _ in upward(n):
        pass


def chain(depth, n):
    if depth == 0:
        yield from chain_end(n)
    else:
        yield from chain(depth - 1, n)


def chain_end(n):
    while n:
        yield n
        n -= 1


def delegate(depth, n):
    for _ in chain(depth, n):
        pass


def catcher():
    while True:
        try:
            yield
        except Thrown:
            pass


def inner_thrower():
    while True:
        yield


def thrower():
    while True:
        try:
            yield from inner_thrower()
        except Thrown:
            pass


def throw_in(n):
    for make in catcher, thrower:
        generator = make()
        next(generator)
        for _ in range(n):
            generator.throw(Thrown)
        generator.close()


def close_down():
    return None


def early():
    try:
        yield 1
        yield 2
    finally:
        close_down()


def leave_early(n):
    for _ in range(n):
        for _ in early():
            break
        generator = early()
        next(generator)
        generator.close()


def squares(n):
    for i in range(n):
        yield i * i


def odd(n):
    for i in squares(n):
        if i % 2:
            yield i


def pipeline(n):
    return sum(odd(n))


def work(run):
    rng = run.rng('generators')
    while not run.over():
        n = rng.randrange(1, 20_000)
        count_up(n)
        delegate(rng.randrange(1, 60), 200)
        throw_in(rng.randrange(1, 300))
        leave_early(rng.randrange(1, 200))
        pipeline(rng.randrange(1, 5000))
        run.count('yields', n)
