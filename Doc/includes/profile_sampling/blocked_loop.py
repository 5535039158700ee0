"""Find what keeps an event loop from going on."""

import asyncio
import time

import profile_sampling


async def polite():
    for _ in range(20):
        await asyncio.sleep(0.01)


async def rude():
    await asyncio.sleep(0.05)
    time.sleep(0.2)                         # no other task runs meanwhile


async def main():
    await asyncio.gather(polite(), rude())


with profile_sampling.profile() as session:
    asyncio.run(main(), debug=False)

for sample in session.profile.samples:
    # A wait of the loop, or of another thread, is in no task's life.
    if sample.state == 'waiting' and sample.task_ns:
        frame = next(frame for frame in sample.stack
                     if frame.function.kind == 'python')
        print(f'{sample.wall_ns / 1e6:8.1f} ms blocked in '
              f'{frame.function.name}:{frame.line}')
