"""Recursion, chains that share nothing, exceptions, C functions with keys."""

import functools
import re

OPERATORS = {'int.__add__', 'int.__eq__', 'int.__lshift__', 'int.__mod__',
             'int.__mul__', 'int.__rshift__', 'int.__sub__', 'int.__xor__',
             'module.__getattribute__', 'range.__iter__',
             'range_iterator.__next__'}
ENTRIES = {'work'}
CALLS = {
    'work': {'range', 'left', 'right', 'recurse', 'unwind', 'keys',
             'fail_set_up', 'program.*', 'random.*', '_random.*'},
    'left': {'left_deep'},
    'left_deep': {'left_deeper'},
    'left_deeper': {'left_leaf'},
    'right': {'right_deep'},
    'right_deep': {'right_deeper'},
    'right_deeper': {'right_leaf'},
    'recurse': {'recurse', 'recursion_leaf'},
    'recursion_leaf': {'builtins.sum', 'range'},
    'unwind': {'climb'},
    'climb': {'climb', 'families.calls.Fallen'},
    'keys': {'builtins.sorted', 'map', 'list', '_functools.reduce',
             're.Pattern.sub', 'builtins.max', 'list.sort', 'range'},
    'builtins.sorted': {'sort_key'},
    'list.sort': {'sort_key'},
    'builtins.max': {'sort_key'},
    'list': {'doubled'},
    '_functools.reduce': {'add'},
    're.Pattern.sub': {'replaced'},
    'replaced': {'re.Match.group', 'str.upper'},
    'fail_set_up': {'never', 'range'},
}

PATTERN = re.compile('[aeiou]')
TEXT = 'the quick brown fox jumps over the lazy dog ' * 5


class Fallen(Exception):
    pass


def left(n):
    return left_deep(n)


def left_deep(n):
    return left_deeper(n)


def left_deeper(n):
    return left_leaf(n)


def left_leaf(n):
    return (n * n + 1) % 7


def right(n):
    return right_deep(n)


def right_deep(n):
    return right_deeper(n)


def right_deeper(n):
    return right_leaf(n)


def right_leaf(n):
    return (n ^ 5) >> 1 << 1


def recurse(n):
    if n == 0:
        return recursion_leaf()
    return recurse(n - 1)


def recursion_leaf():
    return sum(range(50))


def climb(n):
    if n == 0:
        raise Fallen
    try:
        climb(n - 1)
    finally:
        n = None


def unwind(n):
    try:
        climb(n)
    except Fallen:
        return


def sort_key(n):
    return n * 7919 % 101


def doubled(n):
    return n * 2


def add(a, b):
    return a + b


def replaced(match):
    return match.group().upper()


def keys(n):
    numbers = list(range(n))
    sorted(numbers, key=sort_key)
    numbers.sort(key=sort_key)
    max(numbers, key=sort_key)
    list(map(doubled, numbers))
    functools.reduce(add, numbers)
    PATTERN.sub(replaced, TEXT)


def never(one, *, two):
    raise AssertionError('called with the wrong arguments')


def fail_set_up(n):
    for _ in range(n):
        try:
            never(1, 2, 3)
        except TypeError:
            pass


def work(run):
    rng = run.rng('calls')
    while not run.over():
        for n in range(rng.randrange(300)):
            left(n)
            right(n)
        recurse(rng.choice((5, 50, 500, 900)))
        unwind(rng.randrange(300))
        keys(rng.randrange(1, 100))
        fail_set_up(rng.randrange(50))
