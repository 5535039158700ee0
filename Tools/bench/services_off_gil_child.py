"""Sites that are off the GIL for 5 us to 10 ms, and time themselves.

    python services_off_gil_child.py RATE_HZ SUBSCRIBER_RATE_HZ SECONDS SEED

Each site is a function of its own in which the call stands alone on a line,
between two readings of the clock.  They are called in random order, so
often that all of them take about the same time.  Prints JSON: for each site
calls, true_ns, session_ns and subscriber_ns; and subscriber_samples.
"""

import hashlib
import json
import os
import random
import statistics
import sys
import time
import zlib

import profile_sampling

# The call is on this line of each site.
LINE = 2
TEMPLATE = '''\
def {name}():
    begin_ns, _ = clock(), call(argument)
    end_ns = clock()
    truth[0] += end_ns - begin_ns
    truth[1] += 1
'''
# Microseconds; a cycle has every site for as long as the longest takes.
SITES = {'hash_5us': 5, 'hash_30us': 30, 'compress_150us': 150,
         'read_1ms': 1000, 'sleep_10ms': 10_000}
CYCLES_IN_A_SHUFFLE = 3
PLAN_CALLS = 300


def _sized(function, wanted_us, start_bytes):
    """The argument with which a function takes so long."""
    data = random.Random(3).randbytes(start_bytes)
    took_ns = []
    for _ in range(PLAN_CALLS):
        begin_ns = time.perf_counter_ns()
        function(data)
        took_ns.append(time.perf_counter_ns() - begin_ns)
    size = start_bytes * wanted_us * 1000 / statistics.median(took_ns)
    return random.Random(3).randbytes(int(size))


class _Timer:
    """A file that can be read when a time has passed."""

    def __init__(self):
        self._file = os.timerfd_create(time.CLOCK_MONOTONIC)

    def arm(self, us):
        os.timerfd_settime(self._file, initial=us / 1e6)
        return self._file

    @staticmethod
    def read(file):
        os.read(file, 8)


def _calls():
    """{site: (call, argument)}; hashes of short texts keep the GIL, these
    do not."""
    return {
        'hash_5us': (hashlib.sha256, _sized(hashlib.sha256, 5, 8192)),
        'hash_30us': (hashlib.sha256, _sized(hashlib.sha256, 30, 65536)),
        'compress_150us': (zlib.compress, _sized(zlib.compress, 150, 8192)),
        'read_1ms': (_Timer.read, None),
        'sleep_10ms': (time.sleep, 0.01)}


class Site:
    def __init__(self, name, call, argument):
        self.truth = [0, 0]     # ns, calls
        self.filename = f'<{name}>'
        space = {'clock': time.perf_counter_ns, 'truth': self.truth,
                 'call': call, 'argument': argument}
        exec(compile(TEMPLATE.format(name=name), self.filename, 'exec'),
             space)
        self.run = space[name]
        if name.startswith('read'):
            self.run = _armed(space, self.run)


def _armed(space, run):
    """The site, with a timer that is armed before the clock is read."""
    timer = _Timer()

    def run_armed():
        space['argument'] = timer.arm(SITES['read_1ms'])
        run()

    return run_armed


def sampled_run(sites, rate_hz, subscriber_rate_hz, seconds, rng):
    """The profile, and of the subscriber {file of a site: ns} and how many
    samples it got."""
    thinned, samples = {}, 0

    def add(batch):
        nonlocal samples
        for sample in batch:
            samples += sample.count > 0
            for frame in sample.stack:
                filename = frame.function.filename
                if filename in filenames and frame.line == LINE:
                    thinned[filename] = (thinned.get(filename, 0)
                                         + sample.wall_ns)

    filenames = {site.filename for site in sites}
    longest_us = max(SITES.values())
    order = [site.run for site, us in zip(sites, SITES.values())
             for _ in range(CYCLES_IN_A_SHUFFLE * longest_us // us)]
    profile_sampling.start('wall', rate_hz=rate_hz)
    subscription = profile_sampling.subscribe(
        add, rate_hz=subscriber_rate_hz)
    end_s = time.perf_counter() + seconds
    while time.perf_counter() < end_s:
        rng.shuffle(order)
        for run in order:
            run()
    subscription.flush()
    subscription.close()
    return profile_sampling.stop(), thinned, samples


def main():
    rate_hz, subscriber_rate_hz, seconds, seed = map(int, sys.argv[1:])
    sites = [Site(name, *call) for name, call in _calls().items()]
    profile, thinned, samples = sampled_run(
        sites, rate_hz, subscriber_rate_hz, seconds, random.Random(seed))
    told = {row.function.filename: row.cum_wall_ns for row in profile.lines()
            if row.line == LINE}
    json.dump({
        'true_ns': [site.truth[0] for site in sites],
        'calls': [site.truth[1] for site in sites],
        'session_ns': [told.get(site.filename, 0) for site in sites],
        'subscriber_ns': [thinned.get(site.filename, 0) for site in sites],
        'subscriber_samples': samples, 'stats': profile.stats}, sys.stdout)


if __name__ == '__main__':
    main()
