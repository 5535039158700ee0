"""Profiles that are hard to export, for all formats alike.

What they come to is known or is worked out in the tests.
"""

import random

from .builders import Builder

# What breaks lines, quotes, markup, UTF-8 and terminals.
NAMES = ('a\nb', 'a"b\'c', '<b>&amp;</b>', ']]>', 'a;b', '\udc80',
         '\x00\x1b[1m', 'a\\nb', '\u202eabc', '\ufffe', '(1) x', '{x}',
         'fn=y', '', ' ', '字' * 30, 'x' * 3000, '${x}', '</script>', '%s',
         'a\tb', '\r')


def recursive(**facts):
    """main -> f -> g -> f -> g, and f -> f: sums that are easily wrong."""
    b = Builder(**facts)
    b.sample('a.main a.f a.g a.f a.g', wall_ns=1_000, cpu_ns=100, count=1)
    b.sample('a.main a.f a.f', wall_ns=20_000, cpu_ns=2_000, count=2)
    b.sample('a.main a.f', wall_ns=300_000, cpu_ns=30_000, count=3)
    b.sample('a.main', wall_ns=4_000_000, cpu_ns=400_000, count=4)
    return b


# Of recursive(): {function: (self, cumulative)} of wall time.
RECURSIVE_NS = {'a.main': (4_000_000, 4_321_000), 'a.f': (320_000, 321_000),
                'a.g': (1_000, 1_000)}


def hostile():
    """Every name of NAMES as all that a profiled program can choose."""
    b = Builder(python_version='3.13<&"\n')
    for number, name in enumerate(NAMES, 1):
        thread = b.thread(name, ident=number, native_id=number)
        stack = [b.function(name, name, f'/{name}.py', number),
                 b.function(None, name, '', 0, kind=1),
                 b.function('', name, '', 0, kind=2),
                 b.function(None, f'[{name}]', '', 0, kind=3)]
        b.sample(stack, wall_ns=number * 1_000_000, cpu_ns=number,
                 thread=thread, state='waiting', task=(name, number),
                 labels={name or 'empty': name})
    return b


def deep(depth=50_000):
    """A stack that no function that calls itself can walk."""
    b = Builder()
    stack = ['a.main', *['a.f', 'a.g'] * (depth // 2)]
    b.sample(stack, wall_ns=7_000_000)
    b.sample(stack[:depth // 2], wall_ns=5_000_000)
    return b


def full(rows=140_000, depth=35):
    """As many rows as the tables of a session hold.

    Each of 500 functions calls eight others, from a line for each.
    """
    b = Builder()
    for number in range(4):
        b.thread(f'worker {number}')
    functions = [b.function('m', f'f{number}') for number in range(500)]
    rng = random.Random(7)
    nodes = [0] * depth
    numbers = [0] * (depth + 1)
    for row in range(rows):
        # The lower part of the stack changes, as in a real program.
        for level in range(depth - 1 - rng.randrange(12) if row else 0,
                           depth):
            call = rng.randrange(8)
            frame = functions[numbers[level]], call + 1, 0, -1, 0
            numbers[level + 1] = (numbers[level] * 8 + call) % 500
            number = b.frames.setdefault(frame, len(b.frames))
            key = nodes[level - 1] if level else 0, number
            nodes[level] = b.nodes.setdefault(key, len(b.nodes)) + 1
        key = nodes[-1], row % 4, 0, 0, 0, 0
        b.samples[key] = 1 + b.samples.get(key, (0,))[0], 500, 1000, 0, 0
    return b
