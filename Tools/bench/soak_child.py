"""Uses memory as a long-lived server does: code, labels, threads and tasks
that are new each time.  Prints readings of its memory as JSON.

    soak_child.py KIND SECONDS
"""

import asyncio
import contextlib
import gc
import itertools
import json
import random
import sys
import threading
import time
import types

import profile_sampling

RATE_HZ = 10_000
READINGS = 240
# Leaves the machine some time for others.
PAUSE_SECONDS = 0.02
# As a server does that writes a profile now and then.
CLEAR_SECONDS = 10
# At once, how long they live, and how few of them have a name.
MANY_TASKS = 100_000
LIVES_SECONDS = 20, 180
NAMED = 1000

numbers = itertools.count()


def caller(n, callee):
    return callee(n) + callee(n)


def callee(n):
    return sum(range(n))


def new_code():
    # Another first line is another function to the profiler.  A new name
    # would be kept for ever by the interpreter itself, which interns it.
    parts = [types.FunctionType(function.__code__.replace(
        co_firstlineno=next(numbers) + 1000), {}) for function in (
            caller, callee)]
    parts[0](3000, parts[1])


def fill_tables(are_full):
    """Make stacks that share nothing."""
    space = {}
    for i in range(300):
        exec(f'def f{i}(path):\n'
             f'    return path.pop()(path) if path else sum(range(3000))',
             space)
    functions = [space[f'f{i}'] for i in range(300)]
    sys.setrecursionlimit(2000)
    while not are_full():
        for _ in range(100):
            path = random.choices(functions, k=400)
            path.pop()(path)


def work(n):
    return sum(range(n))


def new_threads(n):
    threads = [threading.Thread(target=work, args=(5000,),
                                name=f'thread {next(numbers)}')
               for _ in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


async def task():
    work(2000)
    await asyncio.sleep(0)
    work(2000)


async def new_tasks(n):
    await asyncio.gather(*[
        asyncio.create_task(task(), name=f'task {next(numbers)}')
        for _ in range(n)])


def new_labels(n):
    for _ in range(n):
        with profile_sampling.label(request=next(numbers)):
            work(2000)


class Churn:
    """So many tasks at once; for each that ends there is a new one."""

    def __init__(self):
        self.runner = asyncio.Runner()
        self.tasks = set()

    async def waits(self, seconds):
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.Event().wait()

    async def step(self):
        while len(self.tasks) < MANY_TASKS:
            number = next(numbers)
            seconds = random.uniform(*LIVES_SECONDS)
            waits = (asyncio.sleep(seconds) if number % 2
                     else self.waits(seconds))
            name = None if number % NAMED else f'task {number}'
            task = asyncio.create_task(waits, name=name)
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)
        await asyncio.sleep(PAUSE_SECONDS)

    def round(self):
        self.runner.run(self.step())


churn = Churn()


def one_round(kind):
    if kind == 'tasks':
        churn.round()
        return
    for _ in range(10):
        new_code()
    new_threads(2)
    asyncio.run(new_tasks(5))
    if kind == 'labels':
        new_labels(20)


def resident_bytes():
    with open('/proc/self/status') as lines:
        for line in lines:
            if line.startswith('VmRSS:'):
                return int(line.split()[1]) << 10


def begin(kind):
    """Start what samples; return what has to be kept alive."""
    if kind == 'subscriber':
        serials = set()

        def add(batch):
            serials.add(batch.rows.serial)
            if len(serials) > 1:
                for sample in batch:
                    sample.stack
        subscription = profile_sampling.subscribe(add, rate_hz=RATE_HZ)
        # The tables begin anew when they are large: see FIRST_RENEWAL_BYTES
        # in Python/sampling/session/session.c.
        fill_tables(lambda: len(serials) > 1)
        return subscription
    if kind != 'off':
        profile_sampling.start(rate_hz=RATE_HZ)
    if kind == 'full':
        fill_tables(
            lambda: profile_sampling.stats()['lost_table_full'])
    return None


def main():
    kind, seconds = sys.argv[1], float(sys.argv[2])
    subscription = begin(kind)
    began = cleared = time.monotonic()
    readings = []
    rounds = 0
    while (now := time.monotonic() - began) < seconds:
        one_round(kind)
        rounds += 1
        if (kind in ('alone', 'labels', 'tasks')
                and time.monotonic() - cleared > CLEAR_SECONDS):
            profile_sampling.snapshot(clear=True)
            cleared = time.monotonic()
        if now >= len(readings) * seconds / READINGS:
            gc.collect()
            stats = profile_sampling.stats()
            readings.append((now, resident_bytes(), stats['memory_bytes'],
                             rounds))
        time.sleep(PAUSE_SECONDS)
    stats = profile_sampling.stats()
    if subscription is not None:
        subscription.close()
    elif kind != 'off':
        profile_sampling.stop()
    # What still waits is cancelled, without a word.
    churn.runner.close()
    json.dump({'readings': readings, 'stats': stats, 'rounds': rounds,
               'made': next(numbers)}, sys.stdout)


if __name__ == '__main__':
    main()
