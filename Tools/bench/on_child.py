"""Times slices of one program: not sampled, interrupted by an empty handler,
and sampled, in a new random order each round.

    python on_child.py PROGRAM BARE_TICKER.SO SLICE_MS ROUNDS

Prints JSON: {configuration: [[cpu_ns, wall_ns, other_cpu_ns, ticks], ...]},
one item per round: the mean of its slices in that round.  cpu_ns is of the
whole process, other_cpu_ns of its other threads.
"""

import gc
import json
import random
import sys
import time

from programs import BY_NAME
from steady import BareTicker, start_steady, stop_steady

RATES_HZ = (100, 1000, 10000)
CONFIGURATIONS = [('off', 0)] + [(kind, rate_hz) for rate_hz in RATES_HZ
                                 for kind in ('empty', 'sampled')]
# What a bar rests on is measured more often.
SLICES = {('off', 0): 3, ('empty', 1000): 2, ('sampled', 1000): 2}
WARM_UP_SHARE = 4   # a quarter of a slice runs untimed first


class Bench:
    def __init__(self, program, ticker_path, slice_ms):
        self.run = BY_NAME[program]()
        self.ticker = BareTicker(ticker_path)
        self.portions = self._portions(slice_ms / 1000)

    def _portions(self, seconds):
        self.run(2)
        portions = 1
        while True:
            start = time.thread_time()
            self.run(portions)
            spent = time.thread_time() - start
            if spent > seconds / 4:
                return max(1, round(portions * seconds / spent))
            portions *= 2

    def _start(self, kind, rate_hz):
        if kind == 'empty':
            self.ticker.start('timer', rate_hz)
        elif kind == 'sampled':
            self.before = start_steady(lambda: self.run(1), rate_hz=rate_hz)

    def _stop(self, kind):
        """Return how often the program was interrupted."""
        if kind == 'empty':
            return self.ticker.stop()
        if kind == 'sampled':
            return stop_steady(self.before)
        return 0

    def slice(self, kind, rate_hz):
        gc.collect()
        self.run(self.portions // WARM_UP_SHARE + 1)
        self._start(kind, rate_hz)
        process_ns = time.process_time_ns()
        wall_ns = time.perf_counter_ns()
        cpu_ns = time.thread_time_ns()
        self.run(self.portions)
        cpu_ns = time.thread_time_ns() - cpu_ns
        wall_ns = time.perf_counter_ns() - wall_ns
        process_ns = time.process_time_ns() - process_ns
        ticks = self._stop(kind)
        return process_ns, wall_ns, max(process_ns - cpu_ns, 0), ticks


def one_round(bench, rng):
    """{configuration: its slices}, in a new random order."""
    order = [configuration for configuration in CONFIGURATIONS
             for _ in range(SLICES.get(configuration, 1))]
    rng.shuffle(order)
    found = {}
    for configuration in order:
        found.setdefault(configuration, []).append(
            bench.slice(*configuration))
    return found


def main():
    program, ticker_path, slice_ms, rounds = sys.argv[1:]
    bench = Bench(program, ticker_path, float(slice_ms))
    rng = random.Random(program)
    results = {f'{kind} {rate_hz}': [] for kind, rate_hz in CONFIGURATIONS}
    for kind, rate_hz in CONFIGURATIONS:
        bench.slice(kind, rate_hz)
    for _ in range(int(rounds)):
        for (kind, rate_hz), slices in one_round(bench, rng).items():
            results[f'{kind} {rate_hz}'].append(
                [sum(column) / len(slices) for column in zip(*slices)])
    json.dump(results, sys.stdout)


if __name__ == '__main__':
    main()
