"""asyncio: tasks, long chains of awaits, labels, cancelling, threads."""

import asyncio
import sys

import profile_sampling

OPERATORS = {'FutureIter.__next__', 'Task.__await__',
             '_asyncio.FutureIter.send', 'async_generator.__aiter__',
             'async_generator.__anext__', 'async_generator_asend.send',
             'coroutine.__await__', 'dict.__getitem__', 'int.__add__',
             'int.__bool__', 'int.__eq__', 'int.__lt__', 'int.__mod__',
             'int.__sub__', 'list.__iter__', 'list_iterator.__next__',
             'module.__getattribute__', 'range.__iter__',
             'range_iterator.__next__'}
ENTRIES = {'work', 'main', 'task', 'in_a_thread', 'ticker', 'cancelled',
           'chained'}
CALLS = {
    'work': {'asyncio.*', 'program.*', 'random.*', '_random.*', 'main',
             'sys.setrecursionlimit'},
    'main': {'asyncio.*', 'task', 'ticker', 'cancelled', 'chained', 'range',
             'random.*', '_random.*', '_asyncio.*', 'list.append',
             'main.<locals>.<listcomp>'},
    'task': {'profile_sampling.*', 'step', 'asyncio.*', 'str.join', 'range',
             '_asyncio.*', 'builtins.format', 'in_a_thread'},
    'step': {'asyncio.*', '_asyncio.*', 'spin'},
    'spin': {'range', 'builtins.sum'},
    'in_a_thread': {'spin'},
    'chained': {'chained', 'asyncio.*', '_asyncio.*', 'spin'},
    'ticker': {'numbers', 'async_generator_asend.*', 'spin', 'asyncio.*',
               '_asyncio.*', 'async_generator.*'},
    'async_generator_asend.send': {'numbers'},
    'numbers': {'asyncio.*', '_asyncio.*', 'range'},
    'cancelled': {'asyncio.*', '_asyncio.*', 'spin'},
}


def spin(n):
    return sum(range(n))


def in_a_thread():
    spin(2000)


async def step(n):
    spin(n)
    await asyncio.sleep(0)
    spin(n)


async def task(number):
    with profile_sampling.label(number=number % 20):
        for _ in range(5):
            await step(300)
        if number % 7 == 0:
            await asyncio.to_thread(in_a_thread)


async def chained(depth):
    if depth:
        await chained(depth - 1)
    else:
        await asyncio.sleep(0)
        spin(200)


async def numbers(n):
    for i in range(n):
        yield i
        if i % 10 == 0:
            await asyncio.sleep(0)


async def ticker(n):
    async for i in numbers(n):
        spin(i)


async def cancelled():
    try:
        await asyncio.sleep(60)
    finally:
        spin(100)


async def main(run, rng):
    tasks = []
    for number in range(rng.randrange(5, 60)):
        tasks.append(asyncio.create_task(task(number)))
    tasks.append(asyncio.create_task(ticker(rng.randrange(100))))
    tasks.append(asyncio.create_task(
        chained(rng.choice((3, 100, 1000)))))
    endless = []
    for _ in range(5):
        endless.append(asyncio.create_task(cancelled()))
    await asyncio.gather(*tasks)
    for one in endless:
        one.cancel()
    await asyncio.gather(*endless, return_exceptions=True)
    run.count('tasks', len(tasks) + len(endless))


def work(run):
    rng = run.rng('coroutines')
    # A chain of 1,000 awaits is 1,000 frames.
    sys.setrecursionlimit(5000)
    while not run.over():
        asyncio.run(main(run, rng))
