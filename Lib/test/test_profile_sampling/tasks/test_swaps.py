"""Eager tasks, for which a loop goes over from one task to another and back,
where the thread is not in the task that is left, or nobody profiles."""

import asyncio
import threading

from ..support.lives import lives, spend
from ..support.manual import manual
from ..support.sessions import SessionTest, _profile, checked


def tearDownModule():
    asyncio.set_event_loop_policy(None)     # as it was


def start():
    """Start a session in another thread: nobody enters this one's task."""
    thread = threading.Thread(
        target=lambda: _profile.start(manual=True, names=0))
    thread.start()
    thread.join()


def run_eagerly(coro):
    return asyncio.eager_task_factory(asyncio.get_running_loop(), coro)


class SwapsTest(SessionTest):

    def test_a_session_begins_in_an_eager_step(self):
        async def eager(future):
            start()
            spend(10)
            await future

        async def main(is_woken):
            future = asyncio.get_running_loop().create_future()
            task = run_eagerly(eager(future))
            spend(1000)
            if is_woken:
                future.set_result(None)
                await task
            profile = checked(_profile.stop())
            if not is_woken:
                future.set_result(None)
            await task
            return lives(profile)['eager']
        for is_woken in False, True:
            with self.subTest(is_woken=is_woken):
                self.assertEqual(asyncio.run(main(is_woken)), (0, 0, 1000))

    def test_an_eager_task_ends_inside_another(self):
        # As where greenlets switch in its step.
        other = object()

        async def eager():
            spend(10)
            asyncio.tasks._enter_task('another loop', other)
            spend(5)

        async def main():
            task = run_eagerly(eager())
            spend(1000)
            self.assertTrue(task.done())
            asyncio.tasks._leave_task('another loop', other)
        with manual() as session:
            asyncio.run(main())
        # Done, and destroyed much later.
        self.assertEqual(lives(session.profile)['eager'], (10, 0, 5))

    def test_an_eager_task_between_sessions(self):
        async def eager():
            pass

        async def main(starts_one):
            await asyncio.sleep(0)
            _profile.stop()
            if starts_one:
                run_eagerly(eager())
            start()
            spend(10)
            return [bool(sample.task_id)
                    for sample in checked(_profile.stop()).samples
                    if sample.wall_ns]
        for starts_one in False, True:
            with self.subTest(starts_one=starts_one):
                _profile.start(manual=True, names=0)
                self.assertEqual(asyncio.run(main(starts_one)), [True])
