"""A program of asyncio tasks, for tasks.py; prints what it measured as JSON.

    tasks_child.py cycle LOOP ROUNDS    what profiling adds to a cycle of
                                        suspend, wake and resume
    tasks_child.py many ON              100,000 tasks at once, several times
"""

import asyncio
import importlib.util
import json
import sys
import time

import profile_sampling

TASKS, CYCLES = 100, 20_000
MANY, TIMES = 100_000, 4
RATE_HZ = 100


async def sleeper(cycles):
    for _ in range(cycles):
        await asyncio.sleep(0)


async def hands_over(queues, i, cycles):
    for _ in range(cycles):
        await queues[i].get()
        queues[i ^ 1].put_nowait(None)


async def sleep():
    await asyncio.gather(*[sleeper(CYCLES // TASKS) for _ in range(TASKS)])


async def queue():
    queues = [asyncio.Queue() for _ in range(TASKS)]
    for waiting in queues[::2]:
        waiting.put_nowait(None)
    await asyncio.gather(*[hands_over(queues, i, CYCLES // TASKS)
                           for i in range(TASKS)])


def runner(loop):
    """What runs a coroutine; None: the loop is not installed."""
    if loop != 'uvloop':
        return asyncio.run
    if importlib.util.find_spec('uvloop') is None:
        return None
    import uvloop
    return uvloop.run


def timed(run, work):
    async def main():
        before = time.thread_time_ns()
        await work()
        return (time.thread_time_ns() - before) / CYCLES
    return run(main())


def cycle(loop, rounds):
    """{program: [[ns off, ns on], ...]}, in turns."""
    run = runner(loop)
    found = {}
    for work in () if run is None else (sleep, queue):
        pairs = found[work.__name__] = []
        for i in range(rounds):
            pair = [None, None]
            for is_on in (False, True) if i % 2 else (True, False):
                if is_on:
                    profile_sampling.start(rate_hz=RATE_HZ)
                pair[is_on] = timed(run, work)
                if is_on:
                    profile_sampling.stop()
            pairs.append(pair)
    return found


def resident_mb():
    with open('/proc/self/statm') as file:
        return int(file.read().split()[1]) * 4096 / 1e6


async def job(i):
    await asyncio.sleep(0.5 + i % 100 / 100)


def many(is_on):
    """Resident memory at the most tasks of each time, and CPU time."""
    resident = []

    async def main():
        for _ in range(TIMES):
            await asyncio.gather(*[job(i) for i in range(MANY)])
            resident.append(resident_mb())
    if is_on:
        profile_sampling.start()
    before = time.process_time()
    asyncio.run(main())
    cpu_s = time.process_time() - before
    found = {'resident_mb': resident, 'cpu_s': cpu_s}
    if is_on:
        profile = profile_sampling.stop()
        found['finished'] = sum(row.finished for row in profile.tasks()
                                if row.name.endswith('job'))
        found['lost'] = sum(profile.stats[name] for name in (
            'lost_table_full', 'lost_tasks', 'lost_task_ns'))
    return found


def main(kind, *args):
    if kind == 'cycle':
        loop, rounds = args
        found = cycle(loop, int(rounds))
    else:
        found = many(args[0] == '1')
    print(json.dumps(found))


if __name__ == '__main__':
    main(*sys.argv[1:])
