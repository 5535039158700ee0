"""Collapsed stacks: the weights, and names that readers would misread."""

import re
import unittest

from profile_sampling._formats import collapsed as _collapsed

from ..support.builders import Builder, example

# How a popular reader takes a line apart, and what it tries once more on
# the rest, as if it were a difference of two profiles.
LINE = re.compile(r'^(.*)\s+?(\d+(?:\.\d*)?)$')


def parse(text):
    """{stack as a tuple: weight}; every line must be plain."""
    stacks = {}
    for line in text.splitlines():
        stack, weight = LINE.match(line).groups()
        assert not LINE.match(stack), line
        stack = tuple(stack.split(';'))
        assert stack not in stacks, line
        stacks[stack] = int(weight)
    return stacks


class RenderTest(unittest.TestCase):

    def test_known_answer(self):
        b = Builder()
        b.sample('a.main:1 a.f:2', wall_ns=5_000, cpu_ns=3_000)
        b.sample('a.main:1 C:time.sleep [waiting]', wall_ns=7_000,
                 state='waiting')
        self.assertEqual(_collapsed.render(b.profile()._tables),
                         'a.main;a.f 5\n'
                         'a.main;time.sleep;[waiting] 7\n')

    def test_the_modes_own_clock(self):
        b = Builder(mode='cpu')
        b.sample('a.f', wall_ns=5_000, cpu_ns=3_000)
        self.assertEqual(_collapsed.render(b.profile()._tables), 'a.f 3\n')

    def test_lines_of_a_stack_are_one(self):
        b = Builder()
        one, two = b.thread(), b.thread()
        b.sample('a.f:1', wall_ns=1_000, thread=one)
        b.sample('a.f:2', wall_ns=2_000, thread=two)
        b.sample('a.f:2', wall_ns=4_000, thread=two, state='gc')
        self.assertEqual(_collapsed.render(b.profile()._tables), 'a.f 7\n')

    def test_threads(self):
        b = Builder()
        one = b.thread('worker 1', ident=5)
        two = b.thread(None, ident=6)
        b.sample('a.f', wall_ns=1_000, thread=one)
        b.sample('a.f', wall_ns=2_000, thread=two)
        self.assertEqual(_collapsed.render(b.profile()._tables, threads=True),
                         'thread (5): worker_1;a.f 1\n'
                         'thread (6);a.f 2\n')

    def test_remainders_are_carried(self):
        b = Builder()
        for number in range(10):
            b.sample(f'a.f{number}', wall_ns=999)
        stacks = parse(_collapsed.render(b.profile()._tables))
        self.assertEqual(sum(stacks.values()), 9)
        # 999 + 999 is the first to make a whole one, and so on.
        self.assertEqual([stack[0] for stack in stacks],
                         [f'a.f{number}' for number in range(1, 10)])

    def test_the_total_is_kept(self):
        profile = example().profile()
        stacks = parse(_collapsed.render(profile._tables))
        self.assertEqual(sum(stacks.values()),
                         profile.total_wall_ns // 1000)


class FrameTextTest(unittest.TestCase):

    def test_spelling(self):
        kept = ('a.f', 'a.<locals>.<lambda>', 'a{b', 'a1', '12', '1 x',
                '[truncated 9 frames]', 'naïve Ελλάδα 字')
        changed = {
            'a;b': 'a:b', 'a\nb': r'a\nb', 'a\r\tb': r'a\r\tb',
            'a\x00b\x7f': r'a\x00b\x7f', 'a\u2028b\x85': r'a\u2028b\x85',
            'a\xa0b': r'a\xa0b', '\udc80': r'\udc80', '{json': '(json',
            'worker 1': 'worker_1', 'v 1.5': 'v_1.5', 'v 1.': 'v_1.',
            'a 1 2': 'a 1_2', ' a ': 'a', '': '[no name]', '  ': '[no name]'}
        for name, text in ({name: name for name in kept} | changed).items():
            with self.subTest(name=name):
                b = Builder()
                b.sample([b.function(None, name)], wall_ns=1_000)
                self.assertEqual(_collapsed.render(b.profile()._tables),
                                 f'{text} 1\n')
