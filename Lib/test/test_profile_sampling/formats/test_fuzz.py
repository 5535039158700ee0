"""Every reader of what comes from outside: files and the option's text.

Short runs of what Tools/fuzz does for hours.  PITFALLS F5.
"""

import os
import random
import unittest

try:
    import hypothesis
    from hypothesis import strategies
except ImportError:
    hypothesis = None

from ..support import fuzzing, option_texts
from ..support.sessions import THOROUGH
from .test_pprof_read import FilesTest

FILES = 5000 if THOROUGH else 300
TEXTS = 1000 if THOROUGH else 60


class MutationTest(FilesTest):
    """Damage by our own mutations: no package is needed, any seed repeats."""

    def judge(self, data):
        with open(self.path, 'wb') as file:
            file.write(data)
        try:
            return fuzzing.judge(self.path)
        except fuzzing.Refused:
            return None
        finally:
            os.unlink(self.path)

    def test_files(self):
        messages = fuzzing.seeds()
        outcomes = set()
        for seed in range(FILES):
            data = fuzzing.file_content(random.Random(seed), messages,
                                        bombs=THOROUGH)
            with self.subTest(seed=seed):
                outcomes.add(self.judge(data) is None)
        self.assertEqual(outcomes, {True, False})

    def test_options(self):
        outcomes = set()
        for seed in range(TEXTS):
            rng = random.Random(seed)
            text = option_texts.text(rng)
            with self.subTest(text=text):
                outcomes.add(option_texts.judge(
                    text, by_variable=bool(text) and rng.random() < 0.3))
        self.assertEqual(outcomes, {0, 2})


@unittest.skipIf(hypothesis is None, 'needs the package hypothesis')
class HypothesisTest(FilesTest):
    """Messages that hypothesis makes up, and makes small when they fail."""

    def check(self, strategy, examples):
        settings = hypothesis.settings(
            max_examples=examples * (10 if THOROUGH else 1), deadline=None,
            database=None, derandomize=not THOROUGH,
            suppress_health_check=list(hypothesis.HealthCheck))

        @settings
        @hypothesis.given(strategy)
        def judge(data):
            with open(self.path, 'wb') as file:
                file.write(data)
            try:
                fuzzing.judge(self.path)
            except fuzzing.Refused as exc:
                hypothesis.event(str(exc).partition(': ')[2])
            finally:
                os.unlink(self.path)
        judge()

    def test_messages(self):
        self.check(messages(), 200)

    def test_bytes(self):
        self.check(strategies.binary(max_size=200), 100)


def messages():
    """Encoded profiles, mostly of things that belong together."""
    number = strategies.one_of(strategies.integers(0, 5),
                               strategies.sampled_from(fuzzing.EDGES))
    text = strategies.one_of(
        strategies.sampled_from((
            '', 'cpu', 'wall', 'samples', 'nanoseconds', 'count', 'seconds',
            '# cpython profile_sampling', 'state', 'thread id', 'task id',
            'task name', 'opcode', 'instruction offset', 'BINARY_OP',
            'waiting', '[waiting]', '<C>', 'a.b', '# module a',
            '# names all', '# stat x 1')),
        strategies.text(max_size=8)).map(
            lambda text: text.encode('utf-8', 'surrogatepass'))

    def of(*fields):
        """Messages of some of these fields: (number, wire type, values)."""
        field = strategies.one_of([
            strategies.tuples(strategies.just(field),
                              strategies.just(wire_type), values).map(list)
            for field, wire_type, values in fields])
        return strategies.lists(field, max_size=5)
    packed = strategies.lists(number, max_size=4).map(
        lambda numbers: b''.join(map(fuzzing.varint, numbers)))
    line = of((1, 0, number), (2, 0, number), (3, 0, number))
    label = of((1, 0, number), (2, 0, number), (3, 0, number))
    profile = strategies.lists(strategies.one_of([
        strategies.tuples(strategies.just(field), strategies.just(2),
                          values).map(list)
        for field, values in (
            (1, of((1, 0, number), (2, 0, number))),
            (2, of((1, 2, packed), (2, 2, packed), (1, 0, number),
                   (2, 0, number), (3, 2, label))),
            (4, of((1, 0, number), (3, 0, number), (4, 2, line))),
            (5, of((1, 0, number), (2, 0, number), (4, 0, number),
                   (5, 0, number))),
            (6, text))] + [
        strategies.tuples(
            strategies.sampled_from((9, 10, 12, 13, 14)),
            strategies.just(0), number).map(list)]), max_size=30)
    head = [[6, 2, text] for text in (b'', b'cpu', b'nanoseconds')]
    head += [[1, 2, [[1, 0, 1], [2, 0, 2]]]]
    return profile.map(lambda fields: fuzzing.serialize(head + fields))
