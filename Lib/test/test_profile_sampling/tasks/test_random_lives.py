"""Programs of random steps that know the states of their tasks.

The clock is the tests' own, so all numbers are exact.
"""

import asyncio
import random
from collections import Counter

from ..support.lives import lives
from ..support.manual import manual, tick
from ..support.sessions import SessionTest

WAITS = ('awaiting', 'loop_wait')


def tearDownModule():
    asyncio.set_event_loop_policy(None)     # as it was


class Model:
    """A program of random steps that knows what its tasks' states are."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.now_ns = 0
        self.expected = {}

    def spend(self):
        ns = self.random.choice((0, 1, 10, 300_000, 3_000_000))
        tick(ns, 0)
        self.now_ns += ns
        return ns

    async def worker(self, name, peers):
        """Waits for futures that others set, sets those of others."""
        state = self.expected[name]
        state['loop_wait'] += self.now_ns - state.pop('created')
        for _ in range(self.random.randrange(1, 12)):
            state['running'] += self.spend()
            for peer in self.random.sample(sorted(peers), len(peers)):
                if self.random.random() < 0.4:
                    self.wake(peers, peer)
            state['running'] += self.spend()
            future = asyncio.get_running_loop().create_future()
            peers[name] = future, self.now_ns
            await future
            state['loop_wait'] += self.now_ns - state.pop('woken')
        state['running'] += self.spend()

    def wake(self, peers, peer):
        future, since_ns = peers.pop(peer)
        future.set_result(None)
        self.expected[peer]['awaiting'] += self.now_ns - since_ns
        self.expected[peer]['woken'] = self.now_ns

    async def main(self, functions):
        peers, tasks = {}, []
        for name, function in functions.items():
            self.expected[name] = Counter(created=self.now_ns)
            tasks.append(asyncio.create_task(function(self, name, peers)))
            self.spend()
        while not all(task.done() for task in tasks):
            await asyncio.sleep(0)
            self.spend()
            for peer in sorted(peers):
                if self.random.random() < 0.5:
                    self.wake(peers, peer)


def worker_called(name):
    """A coroutine function of its own code."""
    space = {}
    exec(f'async def {name}(model, name, peers):\n'
         '    await model.worker(name, peers)\n', space)
    return space[name]


class RandomTest(SessionTest):

    def test_random_programs(self):
        for seed in range(25):
            with self.subTest(seed=seed):
                self.check(seed)

    def check(self, seed):
        model = Model(seed)
        functions = {f'worker_{i}': worker_called(f'worker_{i}')
                     for i in range(8)}
        with manual(rate_hz=random.Random(seed).choice((100, 10_000))
                    ) as session:
            asyncio.run(model.main(functions))
        found = lives(session.profile)
        for name, state in model.expected.items():
            self.assertEqual(found[name], (
                state['running'], state['loop_wait'], state['awaiting']),
                name)
        by_class = Counter()
        for row in session.profile.samples:
            if row.task_ns:
                name = row.task_class.rpartition('.')[2]
                by_class[name, row.state in WAITS] += row.task_ns
        for name, (running, loop_wait, awaiting) in found.items():
            self.assertEqual(by_class[name, False], running)
            self.assertEqual(by_class[name, True], loop_wait + awaiting)
