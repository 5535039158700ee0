"""What tasks are known by: the function that they run."""

import asyncio
import functools

from profile_sampling import label, profile, request

from ..support.lives import lives, spend
from ..support.manual import manual
from ..support.sessions import SessionTest


def tearDownModule():
    asyncio.set_event_loop_policy(None)     # as it was


def run_main(main):
    with manual() as session:
        asyncio.run(main())
    return session.profile


class ClassesTest(SessionTest):

    def test_decorated_coroutines_are_what_was_decorated(self):
        """As asyncio calls the tasks: a class for each, not the wrapper's."""
        def passes_on(function):
            @functools.wraps(function)
            async def wrapper(*args):
                return await function(*args)
            return wrapper

        @label(kind='a')
        async def labelled():
            spend(1)

        @request(job='b')
        async def requested():
            spend(10)

        @passes_on
        @passes_on
        async def twice():
            spend(100)

        async def main():
            await asyncio.gather(labelled(), requested(), twice())
        found = run_main(main)
        self.assertEqual({name: running for name, (running, *_)
                          in lives(found).items() if running},
                         {'labelled': 1, 'requested': 10, 'twice': 100})
        [row] = [row for row in found.tasks()
                 if row.name.endswith('labelled')]
        self.assertEqual(row.name, f'{__name__}.{labelled.__qualname__}')
        self.assertEqual(row.function.first_line,
                         labelled.__wrapped__.__code__.co_firstlineno)

    def test_requests_are_in_tasks_of_that_name(self):
        @request(job='b')
        async def requested():
            await asyncio.sleep(0.005)

        async def main():
            await asyncio.gather(requested(), requested())
        with profile() as run:
            asyncio.run(main())
        [row] = [row for row in run.profile.tasks_by('job')
                 if row.value == 'b']
        self.assertEqual((row.count, row.spawned_ns), (2, 0))
        self.assertGreater(row.awaiting_ns, 0)

    def test_what_claims_to_be_wrapped(self):
        """Whatever a program puts there."""
        async def work():
            spend(1)

        class Odd(str):
            def __eq__(self, other):
                raise AssertionError
            __hash__ = str.__hash__

        async def main():
            work.__wrapped__ = work
            await asyncio.create_task(work())
            work.__wrapped__ = 5
            await asyncio.create_task(work())
            work.__dict__.clear()
            work.__dict__[Odd('__wrapped__')] = main
            await asyncio.create_task(work())
        self.assertEqual(lives(run_main(main))['work'], (3, 0, 0))
