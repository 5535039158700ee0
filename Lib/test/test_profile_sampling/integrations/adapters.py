"""The examples of Doc/includes/profile_sampling, fed with real samples.

Importing this file skips the importing test file where the examples are not
there, as in an installed Python.
"""

import importlib
import os
import sys
import threading
import time
import unittest

import profile_sampling
from profile_sampling import label
from profile_sampling._subscribing.batch import Rows, SampleRecord
from profile_sampling._data.values import STATES

# There is nothing to run without a core that samples.
from ..support import sessions  # noqa: F401
from ..support.packages import contained
from ..support.work import busy

DIRECTORY = os.path.normpath(os.path.join(
    os.path.realpath(__file__),
    '../../../../../Doc/includes/profile_sampling'))
if not os.path.isdir(DIRECTORY):
    raise unittest.SkipTest('the examples of the documentation are not here')

RATE_HZ = 1000
SECOND_NS = 1_000_000_000
SPAN_ID = 2 ** 63 + 5


def example(name):
    """Import an example; None if it needs a package that is not there."""
    sys.path.insert(0, DIRECTORY)
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        with contained():
            return importlib.import_module(name)
    except ModuleNotFoundError as exc:
        if exc.name == name:
            raise
        return None
    finally:
        sys.dont_write_bytecode = writes
        sys.path.remove(DIRECTORY)


# The work.

def heavy():
    busy(0.45)


def light():
    busy(0.15)


def sorts():
    numbers = list(range(300_000))
    for _ in range(20):
        sorted(numbers, key=int.__neg__)


def naps():
    time.sleep(0.3)


def serve():
    with label(route='/a', span_id=SPAN_ID):
        light()
        naps()
    with label(route='/b,{c}=d'):
        heavy()


def work():
    threads = [threading.Thread(target=serve, name='server'),
               threading.Thread(target=naps)]
    for thread in threads:
        thread.start()
    sorts()
    for thread in threads:
        thread.join()


class Recording:
    """What adapters made of a run of work().

    samples    all samples, as SampleRecord
    """

    def __init__(self, *adapters):
        self.samples = []
        self._adapters = adapters
        # What is imported for the first subscription is not to be measured.
        profile_sampling.subscribe(lambda batch: None).close()
        with profile_sampling.subscribe(self._deliver, rate_hz=RATE_HZ,
                                        batch_seconds=0.1):
            work()

    def _deliver(self, batch):
        self.samples.extend(batch)
        for adapter in self._adapters:
            adapter(batch)

    def total(self, what='wall_ns', **labels):
        """Sum over the samples that have these labels."""
        return sum([getattr(sample, what) for sample in self.samples
                    if labels.items() <= sample.labels.items()])

    def cumulative(self, what='wall_ns'):
        """{function: sum over the samples with it on the stack}."""
        sums = {}
        for sample in self.samples:
            for function in {frame.function for frame in sample.stack}:
                sums[function] = (sums.get(function, 0)
                                  + getattr(sample, what))
        return sums

    def of(self, name, what='wall_ns'):
        """Sum over the samples with that function on the stack."""
        return sum([ns for function, ns in self.cumulative(what).items()
                    if function.name in (name, f'{__name__}.{name}')])


def odd_samples():
    """Samples of names that formats must escape, and of an empty stack."""
    samples = []
    code = heavy.__code__.replace(
        co_name='odd; \udc80', co_qualname='odd; \udc80',
        co_filename='/\udc80')
    odd = type(heavy)(code, {'busy': busy, '__name__': 'a;\n\udc81'})
    with profile_sampling.subscribe(samples.extend):
        with label(**{'odd \udc82': ' \udc83\n'}):
            odd()
    rows = Rows(0)
    rows.threads[0] = 1, 2, None, 0
    rows.labels[0] = 0, None, None, 0, None, 0
    samples.append(SampleRecord(rows, (0, 0, 0, STATES.index('unsampled'), 0,
                                       0), 0, 1, 5, 7, False))
    return samples


# What the run is long enough to show, whatever the machine is doing.
NAMES = ('heavy', 'light', 'sorts', 'naps', 'builtins.sorted', 'time.sleep')
