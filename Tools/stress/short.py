"""Short programs, one after the other, each sampled and held against clocks.

A thread that lives as long as the session weighs what the session lasted, to
the nanosecond.  One that begins and ends inside weighs what lies between its
own readings of the clocks, inside, and its creator's, around; and the same to
a session and to subscribers.  Functions and tasks weigh about what they have
measured.  A line of JSON for each program goes to the standard output.
"""

import _interpreters
import asyncio
import hashlib
import json
import os
import random
import sys
import threading
import time
import types
import warnings
from collections import Counter

import profile_sampling
from ledger import Ledger

PROGRAMS = 6
RATE_HZ = 1000          # of the command line's session
# Of a share.  A sample takes the time since the one before it, so each end of
# what a function does is off by up to a period; the machine does the rest.
SLACK_PERIODS = 4
KINDS = 'nested', 'threads', 'sleeps', 'forks', 'interpreters', 'churn'
DATA = bytes(100_000)
INSIDE = ('import time\nwhile time.thread_time_ns() < {}:\n    pass\n')


def spin():
    for _ in range(100):
        pass


HOW = {'python': spin, 'c': lambda: sum(range(5000)),
       'released': lambda: hashlib.sha256(DATA).digest(),
       'naps': lambda: (time.sleep(0.0002), sum(range(20_000)))}


def spend(how, ms):
    """Spend so much CPU time; return it and the wall time it took."""
    wall_ns, cpu_ns = time.monotonic_ns(), time.thread_time_ns()
    while (spent_ns := time.thread_time_ns() - cpu_ns) < ms * 1e6:
        HOW[how]()
    return spent_ns, time.monotonic_ns() - wall_ns


SPEND = {name: types.FunctionType(
    spend.__code__.replace(co_name=name, co_qualname=name), globals())
    for name in ('outer', 'inner', 'first', 'second', 'third', 'burst')}


def sums(samples):
    """[wall_ns, cpu_ns] by thread, over all interpreters it was in."""
    result = {}
    for sample in samples:
        row = result.setdefault(
            (sample.thread.ident, sample.thread.native_id), [0, 0])
        row[:] = row[0] + sample.wall_ns, row[1] + sample.cpu_ns
    return result


class Edge:
    """What begins or ends sampling, with the clocks before and after."""

    def __init__(self, keys, action):
        def read():
            return [time.monotonic_ns()] + [time.clock_gettime_ns(
                time.pthread_getcpuclockid(ident)) for ident, _ in keys]
        self.before, self.result, self.after = read(), action(), read()


class Subscriber:

    def __init__(self, rate_hz):
        self.sums = {}
        self.opened = Edge([], lambda: profile_sampling.subscribe(
            self, rate_hz=rate_hz, batch_seconds=0.05, all_interpreters=True))

    def __call__(self, batch):
        for key, found in sums(batch).items():
            self.sums[key] = [old + new for old, new in zip(
                self.sums.get(key, [0, 0]), found)]

    def close(self):
        self.closed = Edge([], self.opened.result.close)


class Program:

    def __init__(self, seed, always, slack_ms):
        self.rng = rng = random.Random(seed)
        self.always = always
        self.faults = []
        self.ledger = Ledger()
        self.spans_inside = []
        self.truth = Counter()
        self.kinds = rng.sample(KINDS, rng.choice([1, 1, 2]))
        if {'forks', 'interpreters'} <= set(self.kinds):
            self.kinds.remove('forks')      # such a child aborts, unprofiled
        self.rate_hz = RATE_HZ if always else rng.choice([100, 1000, 10_000])
        self.slack_ns = SLACK_PERIODS * 1e9 / self.rate_hz + slack_ms * 1e6

    def run(self):
        done = threading.Event()

        def nap():
            while not done.is_set():
                time.sleep(0.001)
        lifelong = [self.ledger.thread(work) for work in (done.wait, nap)
                    if self.rng.random() < 0.5]
        for thread in lifelong:
            thread.start()
            while thread.span.begin_ns is None:
                time.sleep(0.0001)
        keys = [self.ledger.main_key] + [t.span.key for t in lifelong]
        subscribers = [Subscriber(self.rng.choice([100, 1000, 10_000]))
                       for _ in range(self.rng.choice([0, 0, 1, 2]))]
        begun = Edge(keys, self.begin)
        others = [self.thread(getattr(self, kind)) for kind in self.kinds[1:]]
        getattr(self, self.kinds[0])()
        for thread in others:
            thread.join()
        ended = Edge(keys, self.end)
        for subscriber in subscribers:
            subscriber.close()
        done.set()
        for thread in lifelong:
            thread.join()
        self.judge_session(begun, ended, keys)
        by_key = sums(ended.result.samples)
        self.judge_inside(by_key, by_key)
        for subscriber in subscribers:
            self.judge_subscriber(subscriber, keys)
            self.judge_inside(subscriber.sums, by_key)
        self.judge_shares(ended.result)
        if self.always:
            # What subscribers took would be missing in the file.
            profile_sampling.snapshot(clear=True)

    def begin(self):
        if self.always:
            profile_sampling.snapshot(clear=True)
        else:
            profile_sampling.start(self.rng.choice(['wall', 'cpu']),
                                   rate_hz=self.rate_hz)

    def end(self):
        if self.always:
            return profile_sampling.snapshot(clear=True)
        return profile_sampling.stop()

    # Kinds.

    def thread(self, work):
        thread = self.ledger.thread(work)
        thread.start()
        self.spans_inside.append(thread.span)
        return thread

    def spend(self, name, ms, how=None):
        cpu_ns, wall_ns = SPEND[name](how or self.rng.choice(list(HOW)), ms)
        self.truth['cpu', name] += cpu_ns
        self.truth['wall', name] += wall_ns
        if how is not None:
            self.truth['task', name] += wall_ns

    def nested(self):
        async def inner():
            asyncio.current_task().set_name('inner')
            for _ in range(3):
                self.spend('inner', self.rng.uniform(1, 30), 'python')
                await asyncio.sleep(self.rng.choice([0, 0.002]))

        async def outer():
            asyncio.current_task().set_name('outer')
            with profile_sampling.label(kind='nested'):
                for _ in range(self.rng.randrange(1, 3)):
                    await asyncio.sleep(0.001)
                    self.spend('outer', self.rng.uniform(1, 50), 'python')
                    loop = asyncio.get_running_loop()
                    asyncio._set_running_loop(None)
                    asyncio.run(inner())
                    asyncio._set_running_loop(loop)
                    self.spend('outer', self.rng.uniform(1, 50), 'python')
        asyncio.run(outer())

    def threads(self):
        names = ['first', 'second', 'third'][:self.rng.randrange(2, 4)]
        for thread in [self.thread(lambda name=name: self.spend(name, 40))
                       for name in names]:
            thread.join()

    def sleeps(self):
        for _ in range(self.rng.randrange(3, 30)):
            self.spend('burst', self.rng.uniform(0.05, 2))
            time.sleep(self.rng.expovariate(500))

    def forks(self):
        for _ in range(self.rng.randrange(1, 4)):
            with warnings.catch_warnings(action='ignore'):
                pid = os.fork()
            if not pid:
                status = 9
                try:
                    status = self.in_child()
                finally:
                    os._exit(status)
            if status := os.waitpid(pid, 0)[1]:
                self.faults.append(f'a child ended with status {status}')

    def in_child(self):
        if self.always:
            spend('python', 5)      # os._exit() writes its profile
            return 0
        before_ns = time.monotonic_ns()
        profile_sampling.start()
        _, least_ns = spend('python', 5)
        profile = profile_sampling.stop()
        key = threading.get_ident(), threading.get_native_id()
        wall_ns, _ = sums(profile.samples)[key]
        return not (least_ns <= wall_ns == profile.duration_ns
                    <= time.monotonic_ns() - before_ns)

    def interpreters(self):
        def work():
            number = _interpreters.create(
                self.rng.choice(['isolated', 'legacy']))
            _interpreters.exec(number, INSIDE.format(
                time.thread_time_ns() + 10_000_000))
            _interpreters.destroy(number)
        for thread in [self.thread(work) for _ in range(2)]:
            thread.join()

    def churn(self):
        for _ in range(20):
            self.thread(HOW['c']).join()

    # Verdicts.

    def hold(self, what, least, found, most):
        if not least <= found <= most:
            self.faults.append(
                f'{what}: {found:,} is not from {least:,.0f} to {most:,.0f}')

    def judge_session(self, begun, ended, keys):
        profile = ended.result
        self.hold('duration', ended.before[0] - begun.after[0],
                  profile.duration_ns, ended.after[0] - begun.before[0])
        by_key = sums(profile.samples)
        for i, key in enumerate(keys, start=1):
            wall_ns, cpu_ns = by_key.get(key, (0, 0))
            self.hold('time of a thread', profile.duration_ns, wall_ns,
                      profile.duration_ns)
            self.hold('CPU time of a thread', ended.before[i] - begun.after[i],
                      cpu_ns, ended.after[i] - begun.before[i])

    def judge_subscriber(self, subscriber, keys):
        opened, closed = subscriber.opened, subscriber.closed
        for key in keys:
            self.hold("a subscriber's time of a thread",
                      closed.before[0] - opened.after[0],
                      subscriber.sums.get(key, [0])[0],
                      closed.after[0] - opened.before[0])

    def judge_inside(self, by_key, as_session):
        for span in self.spans_inside:
            wall_ns, cpu_ns = found = by_key.get(span.key, [0, 0])
            inner_ns = span.end_ns - span.begin_ns
            outer_ns = span.joined_ns - span.created_ns
            self.hold('time of a thread inside', inner_ns, wall_ns, outer_ns)
            self.hold('CPU time of a thread inside',
                      span.end_cpu_ns - span.begin_cpu_ns, cpu_ns,
                      span.end_cpu_ns + outer_ns - inner_ns)
            if found != as_session.get(span.key):
                self.faults.append(f'{found} of a subscriber, '
                                   f'{as_session.get(span.key)} of a session')

    def judge_shares(self, profile):
        found = Counter()
        for sample in profile.samples:
            names = {frame.function.qualname for frame in sample.stack}
            for name in names & SPEND.keys():
                found['cpu', name] += sample.cpu_ns
                found['wall', name] += sample.wall_ns
                found['task', sample.task_name] += sample.wall_ns
        for key, ns in self.truth.items():
            self.hold(f'{key}', ns - self.slack_ns, found[key],
                      ns + self.slack_ns)


def main(seed, whole, slack_ms):
    for number in range(PROGRAMS):
        program = Program(f'{seed}/{number}', whole == 'whole',
                          float(slack_ms))
        program.run()
        print(json.dumps([program.kinds, program.faults]), flush=True)


if __name__ == '__main__':
    main(*sys.argv[1:])
