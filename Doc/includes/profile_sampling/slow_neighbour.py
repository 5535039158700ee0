"""A loop that has little to do, and a thread that takes the GIL."""

import asyncio
import threading
import time

import profile_sampling


def crunch():
    until = time.perf_counter() + 1
    while time.perf_counter() < until:
        sum(range(2000))


async def tick():
    for _ in range(40):
        await asyncio.sleep(0.01)


with profile_sampling.profile(out='neighbour.pb.gz'):
    thread = threading.Thread(target=crunch)
    thread.start()
    asyncio.run(tick())
    thread.join()
