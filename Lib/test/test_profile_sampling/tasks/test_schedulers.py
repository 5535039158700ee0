"""Tasks of schedulers that asyncio knows nothing of."""

import contextvars
import gc
import threading
import types
import unittest
import weakref

import profile_sampling
from profile_sampling import Task, label, schedulers

from ..support.lives import lives, spend
from ..support.manual import manual
from ..support.packages import optional
from ..support.sessions import SessionTest
from ..support.work import spin

trio = optional('trio')
gevent = optional('gevent')
greenlet = optional('greenlet')


@types.coroutine
def park():
    yield


class TaskTest(SessionTest):

    def test_states(self):
        async def work():
            await park()
        coroutine = work()
        with manual() as session:
            task = Task(coroutine)
            task.woken()
            spend(1)
            task.resume()
            spend(10)
            coroutine.send(None)
            task.suspend()
            spend(100)
            task.woken()
            spend(1000)
            task.resume()
            with self.assertRaises(StopIteration):
                coroutine.send(None)
            spend(10_000)
            task.end()
        self.assertEqual(lives(session.profile)['work'],
                         (10_010, 1001, 100))
        [row] = session.profile.tasks()
        self.assertEqual((row.finished, row.steps), (1, 2))
        [awaiting] = [sample for sample in session.profile.samples
                      if sample.state == 'awaiting']
        self.assertEqual([frame.function.qualname.rpartition('.')[2]
                          for frame in awaiting.stack[:3]],
                         ['[awaiting]', 'park', 'work'])

    def test_ends_while_it_waits(self):
        def function():
            pass
        with manual() as session:
            task = Task(function)
            task.resume()
            task.suspend()
            spend(7)
            task.end(cancelled=True)
            task.end()
            task.suspend()
        self.assertEqual(lives(session.profile)['function'], (0, 0, 7))
        [row] = session.profile.tasks()
        self.assertEqual(row.cancelled, 1)
        with self.assertRaisesRegex(RuntimeError, 'has ended'):
            task.resume()
        with self.assertRaisesRegex(RuntimeError, 'has ended'):
            task.woken()

    def test_forgotten(self):
        class Work:
            pass
        with manual() as session:
            task = Task(Work())
            task.resume()
            task.suspend()
            spend(7)
            del task
            gc.collect()
            spend(70)
        self.assertEqual(lives(session.profile)['Work'], (0, 0, 7))

    def test_class_that_has_its_task(self):
        def make():
            class Work:
                pass
            Work.task = Task(Work())
            Work.task.woken()
            return weakref.ref(Work)
        with manual() as session:
            work = make()
            spend(7)
            gc.collect()
            self.assertIsNone(work())
        self.assertEqual(lives(session.profile)['Work'], (0, 7, 0))

    def test_names_and_labels(self):
        context = contextvars.copy_context()
        with manual() as session, label(kind='outside'):
            task = Task(park(), name='mine', context=context)
            context.run(label(kind='own').__enter__)
            task.woken()
            spend(5)
            task.resume()
            task.end()
        [row] = [row for row in session.profile.samples if row.task_ns]
        self.assertEqual((row.task_name, row.labels),
                         ('mine', {'kind': 'own'}))

    def test_frames_that_are_left_out(self):
        def tells(task, skip_frames):
            task.resume(skip_frames=skip_frames)
        for skip_frames in 0, 1, 2, 1_000_000:
            with manual() as session:
                task = Task(park())
                task.woken()
                spend(5)
                tells(task, skip_frames)
                task.end()
            [row] = [row for row in session.profile.samples if row.task_ns]
            stack = [frame.function.qualname.rpartition('.')[2]
                     for frame in row.stack]
            self.assertEqual('tells' in stack, skip_frames < 1)
            self.assertEqual('test_frames_that_are_left_out' in stack,
                             skip_frames < 2)

    def test_steps_that_failed(self):
        # Nobody says that they are left, and nobody knows them any more.
        def failing():
            pass

        def good():
            pass
        with manual() as session:
            task = Task(failing)
            task.resume()
            spend(1)
            died = weakref.ref(failing)
            del task, failing
            task = Task(good)
            task.resume()
            self.assertIsNone(died())
            spend(10)
            task.suspend()
            task.end()
            spend(100)
        self.assertEqual(lives(session.profile)['good'], (10, 0, 0))
        self.assertEqual({row.value and row.value.rpartition('.')[2]:
                          row.wall_ns for row
                          in session.profile.label_values('task_class')},
                         {'failing': 1, 'good': 10, None: 100})

    def test_step_that_failed_in_a_session_before(self):
        def failing():
            pass
        with manual():
            Task(failing).resume()
        with manual() as session:
            spend(1)
        self.assertEqual(session.profile.tasks(), [])
        self.assertNotIn('task_class', session.profile.label_keys)

    def test_in_another_thread(self):
        def work():
            pass

        def in_a_thread(function):
            thread = threading.Thread(target=function)
            thread.start()
            thread.join()

        def end():
            with self.assertRaisesRegex(RuntimeError, 'another thread'):
                task.end()
        with manual() as session:
            task = Task(work)
            task.resume()
            spend(1)
            in_a_thread(task.suspend)
            spend(10)
            in_a_thread(end)
            spend(100)
            task.end()
            spend(1000)
        self.assertEqual(lives(session.profile)['work'], (111, 0, 0))

    def test_whose_thread_has_ended(self):
        def work():
            pass
        with manual() as session:
            for finish in Task.resume, Task.end:
                task = Task(work)
                thread = threading.Thread(target=task.resume)
                thread.start()
                thread.join()
                finish(task)
                task.end()
        [row] = session.profile.tasks()
        self.assertEqual(row.finished, 2)

    def test_while_nobody_profiles(self):
        task = Task(park())
        task.woken()
        task.resume()
        task.suspend()
        task.end()

    def test_wrong_arguments(self):
        with self.assertRaises(TypeError):
            Task()
        with self.assertRaisesRegex(TypeError, "'name' must be str"):
            Task(park(), name=1)
        with self.assertRaisesRegex(TypeError, "'context' must be"):
            Task(park(), context={})
        task = Task(park())
        with self.assertRaisesRegex(ValueError, 'negative'):
            task.resume(skip_frames=-1)
        task.resume()
        self.addCleanup(task.end)
        with self.assertRaisesRegex(RuntimeError, 'runs already'):
            task.resume()


def awaited(profile, name):
    """{what is on the stack below the function of that name}, of waits."""
    found = set()
    for row in profile.samples:
        stack = [frame.function.name for frame in reversed(row.stack)]
        for i, function in enumerate(stack):
            if row.state == 'awaiting' and function.endswith(f'.{name}'):
                found |= {*stack[i + 1:-1]}
    return found


@unittest.skipUnless(trio, 'needs trio')
class TrioTest(SessionTest):

    def test_lives(self):
        async def sleeper():
            for _ in range(20):
                await trio.sleep(0.005)

        async def hog():
            for _ in range(5):
                spin(0.02)
                await trio.lowlevel.checkpoint()

        async def main():
            async with trio.open_nursery() as nursery:
                nursery.start_soon(sleeper)
                nursery.start_soon(hog)
        profile_sampling.start()
        trio.run(main, instruments=[schedulers.TrioInstrument()])
        profile = profile_sampling.stop()
        found = {row.name.rpartition('.')[2]: row for row in profile.tasks()}
        # A loaded machine makes it longer.
        self.assertGreater(found['hog'].running_ns, 99_000_000)
        self.assertLess(found['sleeper'].running_ns,
                        found['hog'].running_ns / 4)
        self.assertEqual((found['hog'].finished, found['sleeper'].finished),
                         (1, 1))
        self.assertGreater(found['sleeper'].awaiting_ns, 50_000_000)
        self.assertIn('trio.sleep', {name.replace('_timeouts.', '') for name
                                     in awaited(profile, 'sleeper')})
        for row in profile.samples:
            self.assertNotIn('before_task_step', {
                frame.function.qualname.rpartition('.')[2]
                for frame in row.stack} if row.state == 'awaiting' else ())


@unittest.skipUnless(greenlet, 'needs greenlet')
class GreenletTest(SessionTest):

    def test_switches(self):
        def work():
            spend(10)
            main.switch()
            spend(20)
        main = greenlet.getcurrent()
        with manual() as session, schedulers.trace_greenlets():
            child = greenlet.greenlet(work)
            child.switch()
            spend(500)
            child.switch()
        [states] = lives(session.profile).values()
        self.assertEqual(states, (30, 0, 500))
        [row] = session.profile.tasks()
        self.assertEqual(row.finished, 1)

    def test_another_tracer_goes_on(self):
        events = []
        greenlet.settrace(lambda event, args: events.append(event))
        self.addCleanup(greenlet.settrace, None)
        with schedulers.trace_greenlets():
            greenlet.greenlet(lambda: None).switch()
        self.assertEqual(events, ['switch', 'switch'])
        self.assertIsNotNone(greenlet.gettrace())

    @unittest.skipUnless(gevent, 'needs gevent')
    def test_gevent(self):
        def sleeper():
            gevent.sleep(0.05)

        def worker():
            spin(0.05)
        profile_sampling.start()
        with schedulers.trace_greenlets():
            gevent.joinall([gevent.spawn(sleeper), gevent.spawn(worker)])
        profile = profile_sampling.stop()
        found = {row.name.rpartition('.')[2]: row for row in profile.tasks()}
        self.assertGreater(found['worker'].running_ns, 49_000_000)
        self.assertLess(found['sleeper'].running_ns,
                        found['worker'].running_ns / 4)
        self.assertGreater(found['sleeper'].awaiting_ns, 45_000_000)
        self.assertIn('gevent.hub.sleep', awaited(profile, 'sleeper')
                      | {frame.function.name for row in profile.samples
                         if row.state == 'awaiting' for frame in row.stack})
