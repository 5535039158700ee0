"""A service whose requests are slow for three reasons, and its clients."""

import asyncio
import time

import profile_sampling

database = asyncio.Semaphore(2)         # two connections


async def query():
    async with database:
        await asyncio.sleep(0.01)       # what the database takes


def render():
    until = time.perf_counter() + 0.02  # computes, and gives way to nobody
    while time.perf_counter() < until:
        pass


async def send_mail():
    await asyncio.sleep(0.1)


async def handle(route):
    with profile_sampling.request(route=route) as request:
        if route == '/report':
            render()
        else:
            await query()
        request.answered()
        await send_mail()


async def client(route):
    for _ in range(10):
        await asyncio.create_task(handle(route))


async def main():
    await asyncio.gather(client('/report'),
                         *[client('/users') for _ in range(4)])


with profile_sampling.profile(out='service.pb.gz'):
    asyncio.run(main())
