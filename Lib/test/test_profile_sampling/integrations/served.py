"""Work that requests and jobs do in tests, and what samples tell of it.

Each function works, or sleeps, in a function of its own, so that a sample's
stack tells the request that it belongs to; how long it worked is measured on
the spot.  Labels and shares are held against these two.
"""

import contextlib
import http.client
import math
import random
import threading
import time
from collections import Counter
from wsgiref.simple_server import WSGIRequestHandler

from profile_sampling import middleware, subscribe

from ..support.sessions import THOROUGH, names
from ..support.subscribers import Recorder, SubscriberTest

UNIT_STEPS = 150_000        # of a loop: two to five ms of CPU time
NAP_SECONDS = 0.01
RATE_HZ = 10_000
CLIENTS = 6
REQUESTS = 600 if THOROUGH else 30      # of each client
# Of a route in the work of all, in shares of 1; where there are too few
# samples for that, it is three standard deviations for as many as there are.
TOLERANCE = 0.02

_true_ns = Counter()
_lock = threading.Lock()


def spin(units):
    for _ in range(units * UNIT_STEPS):
        pass


@contextlib.contextmanager
def measured(name):
    begin = time.thread_time_ns()
    try:
        yield
    finally:
        used = time.thread_time_ns() - begin
        with _lock:
            _true_ns[name] += used


def work_one():
    with measured('work_one'):
        spin(1)


def work_three():
    with measured('work_three'):
        spin(3)


def work_stream():
    with measured('work_stream'):
        spin(1)


def work_later():
    with measured('work_later'):
        spin(1)


def nap():
    time.sleep(NAP_SECONDS)


def chunks():
    """A body of two chunks, each of them work."""
    for _ in range(2):
        work_stream()
        yield b'chunk\n'


WORK = {function.__qualname__
        for function in (work_one, work_three, work_stream, work_later)}


class Served:
    """What was sampled in a block: samples, and the work that was done."""

    def __init__(self, **options):
        self.options = {'rate_hz': RATE_HZ, 'names': 'off',
                        'batch_seconds': 0.1, 'max_samples': 1 << 20} | options

    def __enter__(self):
        _true_ns.clear()
        self._recorder = Recorder()
        self._subscription = subscribe(self._recorder, **self.options)
        return self

    def __exit__(self, *exc_info):
        self._subscription.close()
        self.samples = self._recorder.samples
        self.true_ns = Counter(_true_ns)
        self._on_stack = [
            frozenset([frame.function.qualname for frame in sample.stack])
            for sample in self.samples]

    def below(self, qualname):
        """Samples with a function of that qualified name on the stack."""
        return [sample for sample, there in zip(self.samples, self._on_stack)
                if qualname in there]

    def labels_below(self, qualname):
        """The different labels of those."""
        return {tuple(sample.labels.items())
                for sample in self.below(qualname)}

    def shares(self, key):
        """CPU time of all work by label: share of 1, and its tolerance."""
        sums = Counter()
        squares = 0
        for sample, there in zip(self.samples, self._on_stack):
            if not WORK.isdisjoint(there):
                sums[sample.labels.get(key)] += sample.cpu_ns
                squares += sample.cpu_ns ** 2
        total = sums.total()
        shares = {}
        for value in sums:
            share = sums[value] / total
            deviation = math.sqrt(share * (1 - share) * squares) / total
            shares[value] = share, max(TOLERANCE, 3 * deviation)
        return shares


class ServedTest(SubscriberTest):
    """What holds for every server; *key* is the label's name."""

    key = 'route'

    def check(self, served, labels):
        """*labels*: value of the label, by the function that works there."""
        total = served.true_ns.total()
        expected = Counter()
        for function, name in labels.items():
            expected[name] += served.true_ns[function] / total
            with self.subTest(function=function):
                self.assertEqual(served.labels_below(function),
                                 {((self.key, name),)})
        found = served.shares(self.key)
        self.assertEqual(found.keys(), expected.keys())
        for name, (share, tolerance) in found.items():
            with self.subTest(name=name):
                self.assertAlmostEqual(share, expected[name],
                                       delta=tolerance)

    def check_outside(self, served):
        """The clients, and the thread that accepts, have no labels."""
        for sample in (served.below('get_many.<locals>.client')
                       + served.below('BaseServer.serve_forever')):
            if not any((frame.function.module or '').startswith(
                           middleware.__name__) for frame in sample.stack):
                self.assertEqual(sample.labels, {}, names(sample))


def get(port, path):
    """Status and body of GET *path*."""
    connection = http.client.HTTPConnection('127.0.0.1', port, timeout=60)
    try:
        connection.request('GET', path)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def shuffled(items, count, seed):
    """The items in turn, *count* in all, in an order of no rhythm.

    If one kind of work always followed a sleep, when a busy machine wakes
    the clock late, it would always be another that is sampled for it.
    """
    chosen = [items[i % len(items)] for i in range(count)]
    random.Random(seed).shuffle(chosen)
    return chosen


def get_many(port, paths):
    """Ask for the paths, from several threads; return statuses.

    '{}' in a path becomes a number, another one each time.
    """
    statuses = Counter()

    def client(first):
        for i, path in enumerate(shuffled(paths, REQUESTS, first), first):
            status, _ = get(port, path.format(i))
            with _lock:
                statuses[path, status] += 1

    threads = [threading.Thread(target=client, args=[i * 1001])
               for i in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return statuses


class QuietHandler(WSGIRequestHandler):

    def log_message(self, *args):
        pass


@contextlib.contextmanager
def serving_wsgi(app, server_class):
    """A server of wsgiref's kind in a thread; gives its port."""
    with server_class(('127.0.0.1', 0), QuietHandler) as server:
        server.set_app(app)
        thread = threading.Thread(target=server.serve_forever, args=[0.01])
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()
