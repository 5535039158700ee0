"""Labels of Celery tasks, in real workers with a broker in memory."""

import unittest

from profile_sampling import labels as held
from profile_sampling.middleware import label_celery_tasks

from ..support.packages import contained
from ..support.sessions import names as stack_names, on_stack
from .served import (
    REQUESTS, Served, ServedTest, nap, shuffled, work_later, work_one,
    work_three)

with contained():
    try:
        import celery
        import celery.worker.state
        from celery.contrib.testing.worker import start_worker
    except ImportError:
        celery = None

TRACER = 'build_tracer.<locals>.trace_task'     # calls a task
NAMES = {'work_one': 'shop.one', 'work_three': 'shop.three',
         'work_later': 'shop.inner'}

SOON = {'timeout': 60, 'interval': 0.01}


def setUpModule():
    unittest.enterModuleContext(contained())


def make_app():
    app = celery.Celery('shop', broker='memory://', backend='cache+memory://',
                        set_as_current=False)
    app.conf.broker_transport_options = {'polling_interval': 0.01}
    app.conf.worker_hijack_root_logger = False
    app.conf.worker_redirect_stdouts = False

    @app.task(name='shop.one', shared=False)
    def one():
        work_one()

    @app.task(name='shop.three', shared=False)
    def three():
        work_three()

    @app.task(name='shop.nap', shared=False)
    def sleep():
        nap()

    @app.task(name='shop.inner', shared=False)
    def inner():
        work_later()
        return held()

    @app.task(name='shop.outer', shared=False)
    def outer():
        return [held(), inner.apply().get(disable_sync_subtasks=False),
                held()]

    @app.task(name='shop.fail', shared=False)
    def fail():
        raise KeyError('on purpose')

    @app.task(name='shop.retry', bind=True, max_retries=1, shared=False)
    def retry(self):
        if not self.request.retries:
            raise self.retry(countdown=0)
        return held()

    @app.task(name='shop.ignore', shared=False)
    def ignore():
        raise celery.exceptions.Ignore

    @app.task(name='shop.revoked', shared=False)
    def revoked():
        raise AssertionError('it was revoked')
    return app


@unittest.skipUnless(celery, 'the celery package is not installed')
class CeleryTest(ServedTest):

    key = 'job'

    def setUp(self):
        super().setUp()
        self.app = make_app()
        self.tasks = self.app.tasks
        label_celery_tasks()
        self.addCleanup(self.disconnect)

    def disconnect(self):
        for signal in (celery.signals.task_prerun,
                       celery.signals.task_postrun):
            signal.disconnect(dispatch_uid=label_celery_tasks.__module__)

    def check_under_load(self):
        names = ['shop.one', 'shop.three', 'shop.nap', 'shop.outer']
        with Served() as served:
            results = [self.tasks[name].delay()
                       for name in shuffled(names, 4 * REQUESTS, 0)]
            for result in results:
                result.get(**SOON)
        self.check(served, NAMES)
        self.assertEqual(served.labels_below('nap'), {(('job', 'shop.nap'),)})
        for sample in served.samples:
            if not on_stack(sample, TRACER):
                self.assertEqual(sample.labels, {}, stack_names(sample))

    def check_ends(self):
        """However tasks end, the next one has its own label only."""
        def run(name):
            return self.tasks[name].delay().get(**SOON)
        celery.worker.state.revoked.add('unwanted')
        revoked = self.tasks['shop.revoked'].apply_async(task_id='unwanted')
        outer, inner = {'job': 'shop.outer'}, {'job': 'shop.inner'}
        for _ in range(5):
            with self.assertRaises(KeyError):
                run('shop.fail')
            self.tasks['shop.ignore'].delay()
            self.assertEqual(run('shop.retry'), {'job': 'shop.retry'})
            self.assertEqual(run('shop.outer'), [outer, inner, outer])
        with self.assertRaises(celery.exceptions.TaskRevokedError):
            revoked.get(**SOON)

    def check_pool(self, pool, concurrency):
        with start_worker(self.app, pool=pool, concurrency=concurrency,
                          perform_ping_check=False, loglevel='CRITICAL'):
            self.check_under_load()
            self.check_ends()

    def test_solo(self):
        self.check_pool('solo', 1)

    def test_threads(self):
        self.check_pool('threads', 4)

    def test_connecting_again_changes_nothing(self):
        label_celery_tasks()
        self.assertEqual(self.tasks['shop.inner'].apply().get(),
                         {'job': 'shop.inner'})
        self.assertEqual(held(), {})

    def test_connecting_in_a_task(self):
        @self.app.task(name='shop.connect', shared=False)
        def connect():
            label_celery_tasks('name')
            return held()
        self.disconnect()
        self.assertEqual(connect.apply().get(), {})
        self.assertEqual(held(), {})
        self.assertEqual(self.tasks['shop.inner'].apply().get(),
                         {'name': 'shop.inner'})
        self.assertEqual(held(), {})

    def test_name_of_the_label(self):
        with self.assertRaises(ValueError):
            label_celery_tasks('thread id')
