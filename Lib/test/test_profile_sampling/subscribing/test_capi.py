"""The C API: a profiler in C that drops its own sampler.

The extension is compiled here, against the headers as they are installed.
"""

import asyncio
import tempfile
import time

from ..support.compiling import load_extension
from ..support.subscribers import SubscriberTest, running
from ..support.work import spin


class CAPITest(SubscriberTest):

    @classmethod
    def setUpClass(cls):
        directory = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.capi = load_extension('capi_subscriber', directory)

    def test_totals_and_shares(self):
        capi = self.capi
        started = time.perf_counter_ns()
        capi.start(1000, 65536)
        for _ in range(20):
            spin(0.02)
        life_ns = time.perf_counter_ns() - started
        totals, flat, _ = capi.stop()
        self.assertEqual(totals['errors'], 0)
        self.assertEqual(totals['lost_wall_ns'], 0)
        self.assertGreater(totals['batches'], 10)
        self.assertGreater(totals['samples'], 100)
        self.assertAlmostEqual(totals['wall_ns'], life_ns,
                               delta=5e6 + 0.02 * life_ns)
        self.assertGreater(flat['spin'], 0.9 * life_ns)

    def test_threads_and_rates(self):
        capi = self.capi
        capi.start(100, 65536)
        capi.set_rate(2000)
        with running(lambda: spin(0.1), lambda: spin(0.1)):
            spin(0.1)
        with self.assertRaises(ValueError):
            capi.set_rate(0)
        totals, flat, _ = capi.stop()
        self.assertEqual(totals['errors'], 0)
        self.assertGreater(totals['samples'], 50)
        self.assertGreater(flat['spin'], 0.2e9)

    def test_a_small_buffer(self):
        capi = self.capi
        capi.start(5000, 16)
        exec('\n'.join(['sum(range(20_000))'] * 200))
        totals, _, _ = capi.stop()
        self.assertEqual(totals['errors'], 0)
        self.assertGreater(totals['lost_wall_ns'], 0)
        self.assertGreater(totals['wall_ns'], totals['lost_wall_ns'])

    def test_moments(self):
        capi = self.capi
        for flags, name in (0, 'nobody'), (capi.WITH_MOMENTS, 'wall_ns'):
            capi.start(1000, 65536, flags)
            spin(0.1)
            totals, _, _ = capi.stop()
            self.assertEqual(totals['errors'], 0)
            self.assertEqual(totals['moments_wall_ns'], totals.get(name, 0))

    def test_who_held_the_gil(self):
        capi = self.capi
        capi.start(1000, 65536)
        with running(lambda: spin(0.3)):
            for _ in range(20):
                time.sleep(0.001)
        totals, _, held = capi.stop()
        self.assertEqual(totals['errors'], 0)
        self.assertGreater(totals['gil_wait_ns'], 0)
        self.assertEqual(totals['held_wall_ns'], totals['gil_wait_ns'])
        self.assertGreater(held['spin'], 0.8 * totals['gil_wait_ns'])

    def test_tasks(self):
        async def sleeps():
            await asyncio.sleep(0.02)

        async def works():
            spin(0.05)

        async def main():
            for _ in range(3):
                await asyncio.gather(sleeps(), sleeps(), works())
        capi = self.capi
        capi.start(1000, 65536, capi.WITH_TASKS)
        asyncio.run(main())
        totals, _, _ = capi.stop()
        tasks, running = capi.tasks()
        self.assertEqual(totals['errors'], 0)
        # All waits are on records, to the nanosecond.
        self.assertGreater(tasks['task_ns'], 6 * 0.02e9)
        self.assertEqual(tasks['task_ns'], tasks['class_waits_ns'])
        self.assertGreater(tasks['delay_ns'], 0)
        # And those of asyncio.run().
        self.assertGreaterEqual(tasks['finished'], 3 * 3 + 1)
        self.assertEqual(tasks['lives'], tasks['finished'])
        self.assertGreater(tasks['labels'], 0)
        name = works.__qualname__
        self.assertGreater(running[name], 3 * 0.05e9)
        self.assertLess(running[name], tasks['running_ns'])
        capi.start(1000, 65536)
        asyncio.run(main())
        capi.stop()
        tasks, running = capi.tasks()
        self.assertEqual((tasks['task_ns'], tasks['delay_ns'], running),
                         (0, 0, {}), 'nobody asked for them')

    def test_wrong_options(self):
        with self.assertRaisesRegex(ValueError, 'rate_hz'):
            self.capi.start(100_000, 65536)
        with self.assertRaisesRegex(ValueError, 'max_samples'):
            self.capi.start(100, 1)
        self.assert_idle()

    def check_numbers(self):
        capi = self.capi
        for field, name, right, wrong in (
                (capi.DEPTH_FRAMES, 'depth_frames', (0, 1, 512), (-1, -2)),
                (capi.NAMES, 'names', (-1, 0, 3), (-2, -99, 4)),
                # Interpreter 99 may come.
                (capi.INTERPRETER_ID, 'interpreter_id', (-1, 0, 99),
                 (-2, -99))):
            for value in right:
                capi.subscribe(capi.SIZE, field, value)
            for value in wrong:
                with (self.subTest(name, value=value),
                      self.assertRaisesRegex(ValueError, name)):
                    capi.subscribe(capi.SIZE, field, value)

    def test_numbers_that_stand_for_the_default(self):
        self.check_numbers()
        self.capi.start(100, 65536)
        try:
            self.check_numbers()
        finally:
            self.capi.stop()
        self.assert_idle()

    def test_options_of_another_version(self):
        # Of an older one: what is missing has the default.
        capi = self.capi
        for size in capi.RATE_HZ + 4, capi.MAX_SAMPLES, capi.MAX_SAMPLES + 2:
            capi.subscribe(size, capi.RATE_HZ, 100)
            capi.subscribe(size, capi.MAX_SAMPLES, 1)
        with self.assertRaisesRegex(ValueError, 'max_samples'):
            capi.subscribe(capi.SIZE, capi.MAX_SAMPLES, 1)
        # Of a later one: what is not known must not be asked for.
        for size in capi.SIZE + 4, capi.SIZE + 8, 4096:
            capi.subscribe(size, size, 1)
            with self.assertRaisesRegex(ValueError, 'rate_hz'):
                capi.subscribe(size, capi.RATE_HZ, 100_000)
            with self.assertRaisesRegex(ValueError, 'later version'):
                capi.subscribe(size, size - 4, 1)
        with self.assertRaisesRegex(ValueError, 'later version'):
            capi.subscribe(capi.SIZE, capi.FLAGS, 1 << 20)
        # No size at all.
        for size in 0, 1, capi.RATE_HZ, capi.RATE_HZ + 3, 4097, 2**31:
            with self.assertRaisesRegex(ValueError, f'of {size} bytes'):
                capi.subscribe(size, capi.RATE_HZ, 100)
        self.assert_idle()

    def test_beside_a_session(self):
        import profile_sampling
        profile_sampling.start()
        self.capi.start(1000, 65536)
        with running(lambda: spin(0.05)) as [thread]:
            pass
        totals, _, _ = self.capi.stop()
        profile = profile_sampling.stop()
        self.assertGreater(profile.total_wall_ns, 0.05e9)
        self.assertGreater(totals['wall_ns'], 0.05e9)
        self.assertLessEqual(totals['wall_ns'], profile.total_wall_ns)
