"""Servers that load an application and then fork their workers."""

import http.client
import os
import signal
import socket
import subprocess
import sys
import time
import unittest

from ..support.packages import optional
from ..support.sessions import environment, on_stack
from ..support.work import BUSY
from .children import NO_THREADS, OPTION, ChildrenTest

gunicorn = optional('gunicorn')
celery = optional('celery')

TIMEOUT_S = 120
WORK = BUSY + '''
import os
def load_application():
    busy(0.05)
def serve_request():
    busy(0.01)
    return str(os.getpid())
load_application()
'''
GUNICORN = WORK + '''
def app(environ, start_response):
    body = serve_request().encode()
    start_response('200 OK', [('Content-Length', str(len(body)))])
    return [body]
'''
CELERY = WORK + '''
import celery
from profile_sampling.middleware import label_celery_tasks
app = celery.Celery('work', broker='filesystem://')
label_celery_tasks()
app.conf.broker_transport_options = {
    'data_folder_in': 'queue', 'data_folder_out': 'queue',
    'control_folder': 'control', 'polling_interval': 0.01}
@app.task
def job(number):
    with open(f'{number}.done.new', 'w') as file:
        file.write(serve_request())
    os.rename(f'{number}.done.new', f'{number}.done')
'''


@NO_THREADS
class PreforkingTest(ChildrenTest):

    def start(self, *arguments):
        command = [sys.executable, OPTION, *arguments]
        with open(os.path.join(self.directory, 'log'), 'wb') as log:
            program = subprocess.Popen(command, cwd=self.directory,
                                       env=environment(), stdout=log,
                                       stderr=log)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        return program

    def log(self):
        with open(os.path.join(self.directory, 'log')) as file:
            return file.read()

    def wait_for(self, program, condition):
        end = time.monotonic() + TIMEOUT_S
        while not condition():
            self.assertIsNone(program.poll(), self.log())
            self.assertLess(time.monotonic(), end, self.log())
            time.sleep(0.02)

    def check_end(self, program, workers, labels={}):
        """After SIGTERM: a profile of each process, with its own work, which
        has these labels."""
        program.send_signal(signal.SIGTERM)
        self.assertEqual(program.wait(TIMEOUT_S), 0, self.log())
        profiles = self.profiles()
        self.assertLessEqual({program.pid, *workers}, set(profiles),
                             self.log())
        for pid, profile in profiles.items():
            with self.subTest(pid=pid):
                for function, expected in (
                        ('load_application', pid == program.pid),
                        ('serve_request', pid in workers)):
                    found = [sample for sample in profile.samples
                             if on_stack(sample, function)]
                    self.assertEqual(bool(found), expected, function)
                    if function == 'serve_request':
                        for sample in found:
                            self.assertEqual(sample.labels, labels)
        said = [line for line in self.log().splitlines()
                if line.startswith('sampleprof: ')]
        self.assertEqual(len(said), 1, said)

    @unittest.skipUnless(gunicorn, 'the gunicorn package is not installed')
    def test_gunicorn_preload(self):
        self.file('work.py', GUNICORN)
        program = self.start('-m', 'gunicorn', '--preload', '--workers', '2',
                             '--bind', 'unix:socket', 'work:app')
        address = os.path.join(self.directory, 'socket')
        self.wait_for(program, lambda: os.path.exists(address))
        workers = set()

        def both_have_worked():
            workers.add(self.get(address))
            return len(workers) == 2
        self.wait_for(program, both_have_worked)
        self.check_end(program, workers)

    def get(self, address):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(address)
            connection.sendall(b'GET / HTTP/1.0\r\n\r\n')
            response = http.client.HTTPResponse(connection)
            response.begin()
            return int(response.read())

    @unittest.skipUnless(celery, 'the celery package is not installed')
    def test_celery_prefork(self):
        self.file('work.py', CELERY)
        for name in 'queue', 'control':
            os.mkdir(os.path.join(self.directory, name))
        subprocess.run(
            [sys.executable, '-c', 'import work\n'
             'for number in range(20): work.job.delay(number)'],
            cwd=self.directory, env=environment(), check=True)
        program = self.start('-m', 'celery', '-A', 'work', 'worker', '-P',
                             'prefork', '-c', '2', '--without-gossip',
                             '--without-mingle', '--without-heartbeat')
        done = [os.path.join(self.directory, f'{number}.done')
                for number in range(20)]
        self.wait_for(program, lambda: all(map(os.path.exists, done)))
        workers = set()
        for path in done:
            with open(path) as file:
                workers.add(int(file.read()))
        self.assertNotIn(program.pid, workers)
        self.check_end(program, workers, {'job': 'work.job'})
