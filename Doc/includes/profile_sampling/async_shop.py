"""An asyncio program, profiled by task and by label."""

import asyncio

import profile_sampling


async def order(kind):
    with profile_sampling.label(kind=kind):
        await asyncio.sleep(0.05)           # a database, say
        items = 900_000 if kind == 'large' else 300_000
        return sum(i * i for i in range(items))


async def main():
    async with asyncio.TaskGroup() as group:
        for _ in range(5):
            group.create_task(order('large'), name='checkout')
            group.create_task(order('small'), name='checkout')
            group.create_task(order('small'), name='preview')


with profile_sampling.profile() as session:
    asyncio.run(main())

for key in 'kind', 'task':
    print(f'by {key}:')
    for row in session.profile.label_values(key):
        print(f'{row.cpu_ns / 1e6:8.1f} ms CPU {row.wall_ns / 1e6:8.1f} ms '
              f'wall  {row.value}')
