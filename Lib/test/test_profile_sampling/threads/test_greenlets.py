"""Greenlets: C code that changes a thread's stack and context.  PITFALLS L11.

They tell nobody.  A greenlet may switch between a capture and the safepoint at
which the sample is recorded: right after a long operator, for example.
"""

import unittest

from profile_sampling import label

from ..support.labelling import LabelTest
from ..support.sessions import Session, names, on_stack

try:
    from greenlet import getcurrent, greenlet
except ImportError as exc:
    raise unittest.SkipTest(f'needs a package from PyPI: {exc}') from None

ROUNDS = 1500
RATE_HZ = 10_000
CALLS = 1                   # of the bits of names
SWITCH = 'greenlet.greenlet.switch'
BIG = 3 ** 8000             # BIG * BIG takes some 30 us, without a safepoint


def multiply(switch):
    for _ in range(ROUNDS):
        BIG * BIG
        switch()


def python_names(sample):
    return tuple([frame.function.qualname for frame in reversed(sample.stack)
                  if frame.function.kind == 'python'])


# A function of its own for each greenlet: the stack tells who it was.

def red(switch):
    multiply(switch)


def green(switch):
    multiply(switch)


def plain(switch):
    multiply(switch)


def labelled(function, switch):
    with label(color=function.__name__):
        function(switch)


def take_turns(*targets):
    """Run them in greenlets, which switch to the next after each step."""
    hub = getcurrent()
    waiting = [greenlet(target) for target in targets]
    for current in waiting:
        current.switch(hub.switch)
    while waiting:
        for current in waiting:
            current.switch()
        waiting = [current for current in waiting if not current.dead]


class GreenletsTest(LabelTest):

    def run_all(self):
        """Samples of their work, not of the switch between two of them."""
        with Session(rate_hz=RATE_HZ, names=CALLS) as session:
            take_turns(lambda switch: labelled(red, switch),
                       lambda switch: labelled(green, switch), plain)
        # It may have waited for a CPU there.
        return [sample for sample in session.profile.samples
                if sample.stack and SWITCH not in [
                    frame.function.name for frame in sample.stack[:2]]]

    def test_labels(self):
        expected = {'red': {'color': 'red'}, 'green': {'color': 'green'},
                    'plain': {}}
        found = self.run_all()
        for name, labels in expected.items():
            with self.subTest(name=name):
                samples = [s for s in found if on_stack(s, name)]
                self.assertGreater(sum(s.count for s in samples), 50)
                for sample in samples:
                    self.assertEqual(sample.labels, labels, names(sample))

    def test_stacks(self):
        outer = f'{self.run_all.__qualname__}.<locals>.<lambda>', 'labelled'
        expected = {(*outer, 'red', 'multiply'),
                    (*outer, 'green', 'multiply'), ('plain', 'multiply')}
        found = {python_names(sample) for sample in self.run_all()
                 if on_stack(sample, 'multiply')}
        self.assertEqual(found, expected)
