"""What the workloads of an episode share: time, chance, counts, faults."""

import itertools
import random
import sys
import time
from collections import Counter

import ledger

MAX_FAULTS_SHOWN = 40


class Run:
    """What an episode's workloads share."""

    def __init__(self, seed, seconds, plan):
        self._seed = seed
        self._end_ns = time.monotonic_ns() + int(seconds * 1e9)
        self._counts = Counter()
        self._faults = []
        self._unique = itertools.count()
        self.ledger = ledger.Ledger()
        self.deferred = plan.deferred
        self.alloc_bytes = plan.alloc_bytes
        self.profiled_inside = plan.profiled_inside
        self.interpreters_at_once = 8 * ('interpreters' in plan.names)

    def rng(self, *names):
        """Random numbers of one workload's own, the same in each run."""
        return random.Random(f'{self._seed} {names}')

    def over(self):
        return time.monotonic_ns() >= self._end_ns

    def numbers(self):
        """Numbers that no other workload of the episode gets."""
        return self._unique

    def count(self, name, n=1):
        self._counts[name] += n

    def fault(self, text):
        self._faults.append(text)
        if len(self._faults) <= MAX_FAULTS_SHOWN:
            print(f'fault: {text}', file=sys.stderr, flush=True)

    def result(self):
        return {'counts': dict(self._counts), 'faults': len(self._faults)}
