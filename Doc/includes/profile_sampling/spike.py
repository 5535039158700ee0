"""Watch a program all the time, and look closer when it is busy."""

import collections
import time

import profile_sampling

LOW_HZ, HIGH_HZ = 20, 1000


class Watcher:
    """A callback for subscribe() that changes its own rate."""

    def __init__(self):
        self.spent = collections.Counter()
        self.rates = []

    def __call__(self, batch):
        cpu_ns = 0
        for sample in batch:
            cpu_ns += sample.cpu_ns
            if sample.stack:
                self.spent[sample.stack[0].function.name] += sample.wall_ns
        rate_hz = HIGH_HZ if cpu_ns > 50_000_000 else LOW_HZ
        if rate_hz != batch.subscription.rate_hz:
            batch.subscription.set_rate(rate_hz)
            self.rates.append(rate_hz)


def work():
    time.sleep(0.5)
    end = time.monotonic() + 1.0
    while time.monotonic() < end:
        sorted(range(10_000), key=str)
    time.sleep(0.5)


watcher = Watcher()
with profile_sampling.subscribe(watcher, rate_hz=LOW_HZ, batch_seconds=0.2):
    work()
print('changed to', watcher.rates)
