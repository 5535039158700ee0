"""Equal profiles are equal files, in every format that sorts."""

import io
import unittest

from ..support.builders import Builder

FORMATS = ('collapsed', 'speedscope', 'svg', 'pstats', 'callgrind', 'dot',
           'gecko')
SAMPLES = [('a.main:1 a.f:1', 1_700), ('a.main:2 a.g:2', 2_700),
           ('a.main:1 a.f:1 a.h', 3_700), ('b.g:9 a.f', 4_700),
           ('b.g:9', 1_700)]


class EqualTest(unittest.TestCase):

    def written(self, samples, format):
        b = Builder()
        threads = [b.thread('one', ident=1), b.thread('two', ident=2)]
        for stack, ns in samples:
            b.sample(stack, wall_ns=ns, thread=threads[len(stack) % 2],
                     state='waiting')
        file = io.BytesIO()
        b.profile().save(file, format)
        return file.getvalue()

    def test_the_order_of_samples_says_nothing(self):
        for format in FORMATS:
            with self.subTest(format):
                self.assertEqual(self.written(SAMPLES, format),
                                 self.written(SAMPLES[::-1], format))
