"""What tasks wait in and for, and known answers on the real clock."""

import asyncio
import concurrent.futures
import contextlib
import sys
import threading
import time
import types
import unittest
from collections import Counter

import profile_sampling
from profile_sampling import label

from ..support.lives import spend
from ..support.manual import manual
from ..support.packages import optional
from ..support.sessions import SessionTest
from ..support.work import spin

uvloop = optional('uvloop')

WAIT_S = 0.02


def tearDownModule():
    asyncio.set_event_loop_policy(None)     # as it was


def awaiting(profile):
    """{names of the frames below the loop, root first: ns}, of waits."""
    found = Counter()
    for row in profile.samples:
        if row.state == 'awaiting':
            names = [frame.function.name for frame in reversed(row.stack)]
            place = max((i for i, name in enumerate(names)
                         if name.endswith(('Context.run', 'Handle._run'))),
                        default=-1)
            path = tuple(name.replace(f'{__name__}.', '').rpartition('>.')[2]
                         for name in names[place + 1:-1])
            found[path] += row.task_ns
    return found


class StacksTest(SessionTest):

    def paths_of(self, main):
        with profile_sampling.profile() as run:
            asyncio.run(main())
        self.profile = run.profile
        return {' > '.join(path) for path, ns in
                awaiting(run.profile).items() if ns > WAIT_S * 1e9 / 4}

    def check(self, coroutine, *paths):
        async def main():
            await asyncio.create_task(coroutine())
        found = self.paths_of(main)
        for path in paths:
            self.assertIn(path, found)

    def test_asend_and_aclose(self):
        async def numbers():
            try:
                yield 1
                await asyncio.sleep(WAIT_S)
                yield 2
            finally:
                await asyncio.sleep(WAIT_S)

        async def sends():
            generator = numbers()
            await generator.asend(None)
            await generator.asend(None)
            await generator.aclose()
        self.check(sends, 'sends > numbers > asyncio.tasks.sleep')

    def test_asynchronous_context_manager(self):
        class Manager:
            async def __aenter__(self):
                await asyncio.sleep(WAIT_S)

            async def __aexit__(self, *exc_info):
                await asyncio.sleep(WAIT_S)

        async def enters():
            async with Manager():
                pass
        self.check(
            enters,
            'enters > Manager.__aenter__ > asyncio.tasks.sleep',
            'enters > Manager.__aexit__ > asyncio.tasks.sleep')

    def test_await_method_of_a_coroutine(self):
        async def inner():
            await asyncio.sleep(WAIT_S)

        class Awaitable:
            def __await__(self):
                return (yield from inner().__await__())

        async def awaits():
            await Awaitable()
        self.check(awaits, 'awaits > Awaitable.__await__ > inner > '
                           'asyncio.tasks.sleep')

    def test_generator_based_coroutine(self):
        @types.coroutine
        def old():
            yield from asyncio.sleep(WAIT_S)

        async def awaits():
            await old()
        self.check(awaits, 'awaits > old > asyncio.tasks.sleep')

    def test_another_task(self):
        async def child():
            await asyncio.sleep(WAIT_S)

        async def awaits():
            await asyncio.create_task(child())
        self.check(awaits, 'awaits > child')

    def test_gather_wait_and_shield(self):
        async def child():
            await asyncio.sleep(WAIT_S)

        async def awaits():
            await asyncio.gather(child(), child())
            await asyncio.wait([asyncio.create_task(child())])
            await asyncio.shield(child())
        self.check(awaits, 'awaits > asyncio.tasks._GatheringFuture',
                   'awaits > asyncio.tasks.wait > asyncio.tasks._wait',
                   'awaits')

    def test_task_group(self):
        async def child():
            await asyncio.sleep(WAIT_S)

        async def groups():
            async with asyncio.TaskGroup() as group:
                group.create_task(child())
        self.check(groups, 'groups > asyncio.taskgroups.TaskGroup.__aexit__'
                           ' > asyncio.taskgroups.TaskGroup._aexit')

    def test_timeouts(self):
        async def slow():
            await asyncio.sleep(60)

        async def waits():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(slow(), WAIT_S)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(WAIT_S):
                    await slow()
        self.check(waits, 'waits > asyncio.tasks.wait_for > slow > '
                          'asyncio.tasks.sleep',
                   'waits > slow > asyncio.tasks.sleep')

    def test_locks_and_queues(self):
        async def acquires():
            lock = asyncio.Lock()
            await lock.acquire()
            asyncio.get_running_loop().call_later(WAIT_S, lock.release)
            async with lock:
                pass
            queue = asyncio.Queue()
            asyncio.get_running_loop().call_later(
                WAIT_S, queue.put_nowait, 1)
            await queue.get()
            event = asyncio.Event()
            asyncio.get_running_loop().call_later(WAIT_S, event.set)
            await event.wait()
        self.check(acquires, 'acquires > asyncio.locks._ContextManagerMixin.'
                   '__aenter__ > asyncio.locks.Lock.acquire',
                   'acquires > asyncio.queues.Queue.get',
                   'acquires > asyncio.locks.Event.wait')

    def test_executors(self):
        async def uses():
            await asyncio.to_thread(time.sleep, WAIT_S)
            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                await asyncio.get_running_loop().run_in_executor(
                    pool, time.sleep, WAIT_S)
        self.check(uses, 'uses > asyncio.threads.to_thread', 'uses')

    def test_class_of_future(self):
        class Answer(asyncio.Future):
            pass

        async def awaits():
            answer = Answer()
            asyncio.get_running_loop().call_later(
                WAIT_S, answer.set_result, None)
            await answer
        self.check(awaits, 'awaits > Answer')

    def test_lines_are_those_of_running_samples(self):
        async def work():
            for _ in range(10):
                spin(0.005)
                await asyncio.sleep(0.002)      # the line
        profile_sampling.start()
        asyncio.run(work())
        profile = profile_sampling.stop()
        line = work.__code__.co_firstlineno + 3
        lines = {(row.state, frame.line, frame.instruction_offset)
                 for row in profile.samples for i, frame
                 in enumerate(row.stack) if i > 0
                 and frame.function.qualname.endswith('.work')
                 and row.stack[i - 1].function.qualname == 'sleep'}
        [offset] = {offset for state, _, offset in lines}
        self.assertEqual({number for _, number, _ in lines}, {line})


class PointsTest(SessionTest):

    def test_points_come_near_again(self):
        """Many tasks move the points apart at which waits are recorded.  When
        there is one left, whose waits are all short, a period lies between
        two, also at a low rate."""
        round_ns, period_ns, rounds = 20_000_000, 100_000_000, 1000

        async def waits(name, times):
            for i in range(times):
                with label(**{name: i}):
                    await asyncio.sleep(0)

        async def pass_rounds(times):
            for _ in range(times):
                spend(round_ns)
                await asyncio.sleep(0)

        async def main():
            await asyncio.gather(
                pass_rounds(50), *[waits('crowd', 50) for _ in range(100)])
            await asyncio.gather(pass_rounds(rounds), waits('alone', rounds))

        with manual(rate_hz=10) as session:
            asyncio.run(main())
        recorded = Counter()
        for row in session.profile.samples:
            if row.state == 'loop_wait':
                recorded.update(row.labels.keys())
        # Some seconds are over until then.
        points = rounds * round_ns / period_ns
        self.assertGreater(recorded['alone'], points / 2)
        self.assertLess(recorded['alone'], points * 1.1)
        self.assertLess(recorded['crowd'], 100)


class KnownAnswersTest(SessionTest):

    def test_hog(self):
        self.check_hog(asyncio.run)

    @unittest.skipUnless(uvloop, 'needs uvloop')
    def test_hog_of_another_loop(self):
        self.check_hog(uvloop.run)

    @unittest.skipUnless(uvloop, 'needs uvloop')
    def test_hog_and_snapshots(self):
        self.check_hog(uvloop.run, profile_sampling.snapshot)

    def check_hog(self, run, disturb=int):
        """Who sleeps knows when it was to be woken, and when it was."""
        known = Counter()

        async def sleeper():
            loop = asyncio.get_running_loop()
            for _ in range(40):
                began = loop.time()
                await asyncio.sleep(0.003)
                known['loop_wait'] += loop.time() - (began + 0.003)
                known['awaiting'] += 0.003

        async def hog():
            for _ in range(20):
                disturb()
                spin(0.006)
                await asyncio.sleep(0.004)

        async def main():
            await asyncio.gather(sleeper(), sleeper(), sleeper(), hog())
        profile_sampling.start()
        run(main())
        profile = profile_sampling.stop()
        [row] = [row for row in profile.tasks()
                 if row.name.endswith('sleeper')]
        self.assertAlmostEqual(row.awaiting_ns / 1e9 / known['awaiting'], 1,
                               delta=0.02)
        self.assertAlmostEqual(row.loop_wait_ns / 1e9 / known['loop_wait'],
                               1, delta=0.02)
        self.assertEqual(profile.total('delay_ns'), sum(
            row.loop_wait_ns for row in profile.tasks()))
        held = Counter()
        for holder in profile.loop_holders():
            held[holder.function.qualname] += holder.delay_ns
        self.assertEqual(max(held, key=held.get), 'spin', held)

    def test_wait_for_the_gil_after_one_for_a_timer(self):
        """The loop waited for the timer until it was due, and then for the
        GIL: only that kept the task waiting."""
        async def sleeper():
            for _ in range(20):
                await asyncio.sleep(0.03)

        self.addCleanup(sys.setswitchinterval, sys.getswitchinterval())
        sys.setswitchinterval(0.02)
        ends = threading.Event()
        neighbour = threading.Thread(
            target=lambda: [spin(0.001) for _ in iter(ends.is_set, True)])
        neighbour.start()
        profile_sampling.start()
        asyncio.run(sleeper())
        profile = profile_sampling.stop()
        ends.set()
        neighbour.join()
        by_gil = sum(sample.delay_ns for sample in profile.samples
                     if sample.state == 'gil_wait')
        self.assertGreater(by_gil / profile.total('delay_ns'), 0.7)

    def test_timers_that_a_loop_finds_late(self):
        row = self.of_late_timers(asyncio.run)
        self.assertGreater(row.loop_wait_ns, 2 * 0.08e9)

    @unittest.skipUnless(uvloop, 'needs uvloop')
    def test_timers_that_another_loop_finds_late(self):
        """Nothing says when they were due: it is part of what is awaited."""
        row = self.of_late_timers(uvloop.run)
        self.assertGreater(row.awaiting_ns, 2 * 0.1e9)

    def of_late_timers(self, run):
        """A timeout and a timer of the task's own, of 20 ms each, in a loop
        that is held for 100 ms; only a sleep says how long it is."""
        async def waits():
            loop = asyncio.get_running_loop()
            future = loop.create_future()
            loop.call_later(0.02, future.set_result, None)
            loop.call_soon(time.sleep, 0.1)
            await future
            loop.call_soon(time.sleep, 0.1)
            with self.assertRaises(TimeoutError):
                await asyncio.wait_for(loop.create_future(), 0.02)

        async def main():
            await asyncio.create_task(waits())
        profile_sampling.start()
        run(main())
        [row] = [row for row in profile_sampling.stop().tasks()
                 if row.name.endswith('waits')]
        self.assertGreater(row.awaiting_ns + row.loop_wait_ns, 2 * 0.1e9)
        return row

    def test_short_and_long_waits(self):
        """Waits of three lengths, each of its share of what is awaited.

        Some thousand points say which of the shorter ones are recorded: a
        standard deviation of 1.5 percentage points.
        """
        known = Counter()

        def waits(name, seconds):
            space = {'asyncio': asyncio, 'time': time, 'known': known,
                     'seconds': seconds}
            exec(f'async def {name}():\n'
                 '    began = time.perf_counter_ns()\n'
                 '    await asyncio.to_thread(time.sleep, seconds)\n'
                 f'    known[{name!r}] += time.perf_counter_ns() - began\n',
                 space)
            return space[name]
        functions = [waits('short', 2e-5), waits('longer', 2e-4),
                     waits('longest', 2e-3)]

        async def main():
            for i in range(2000):
                for function in functions[:1 if i % 10 else 3]:
                    await function()
        profile_sampling.start()
        asyncio.run(main())
        profile = profile_sampling.stop()
        found = Counter()
        for row in profile.samples:
            for frame in row.stack:
                if frame.function.qualname in known:
                    found[frame.function.qualname] += row.task_ns
        self.assertEqual(set(found), set(known))
        for name, ns in known.items():
            self.assertAlmostEqual(
                found[name] / found.total(), ns / known.total(), delta=0.06)
