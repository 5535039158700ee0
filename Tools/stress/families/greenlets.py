"""Switches between greenlets, which exchange whole chains of frames."""

from greenlet import greenlet

OPERATORS = {'int.__bool__', 'int.__sub__', 'list.__getitem__',
             'range.__iter__', 'range_iterator.__next__'}
ENTRIES = {'work', 'left', 'right'}
CALLS = {
    'work': {'switch', 'program.*', 'random.*', '_random.*'},
    'switch': {'greenlet.*', 'left', 'right'},
    'left': {'left_deep'},
    'left_deep': {'left_deep', 'greenlet.*', 'spin'},
    'right': {'right_deep'},
    'right_deep': {'right_deep', 'greenlet.*', 'spin'},
    'spin': {'builtins.sum', 'range'},
}


def spin(n):
    return sum(range(n))


def left_deep(other, depth, n):
    if depth:
        left_deep(other, depth - 1, n)
    while not depth and n:
        spin(30)
        other[0].switch(other, 20, n)   # its arguments, the first time
        n -= 1


def left(other, depth, n):
    left_deep(other, depth, n)


def right_deep(other, depth, n):
    if depth:
        right_deep(other, depth - 1, n)
    while not depth and n:
        spin(30)
        other[1].switch()
        n -= 1


def right(other, depth, n):
    right_deep(other, depth, n)


def switch(depth, n):
    pair = []
    pair.append(greenlet(right))
    pair.append(greenlet(left))
    pair[1].switch(pair, depth, n)


def work(run):
    rng = run.rng('greenlets')
    while not run.over():
        switch(rng.randrange(100), rng.randrange(300))
