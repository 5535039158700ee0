"""Threads: short ones, pools, locks, queues, threads that C code starts."""

import ctypes
import queue
import threading
import time
from concurrent.futures import ThreadPoolExecutor

OPERATORS = {'_thread.lock.__enter__', '_thread.lock.__exit__',
             'dict.__getitem__', 'float.__lt__', 'float.__truediv__',
             'list.__iter__', 'list_iterator.__next__',
             'module.__getattribute__', 'range.__iter__',
             'range_iterator.__next__', 'tuple.__getitem__'}
ENTRIES = {'work', 'short', 'napping', 'put_all', 'get_all', 'pooled',
           'foreign', 'contend'}
CALLS = {
    'work': {'storm', 'produce', 'pool', 'call_from_c', 'fight', 'program.*',
             'random.*', '_random.*'},
    'storm': {'builtins.len', 'ledger.*', 'program.*', 'random.*', '_random.*',
              'threading.*', 'range', 'list.append', '_thread.*'},
    'short': {'spin'},
    'napping': {'time.sleep', 'spin'},
    'spin': {'builtins.sum', 'range'},
    'produce': {'ledger.*', 'random.*', '_random.*', 'threading.*',
                'queue.*', '_queue.*', '_thread.*'},
    'put_all': {'queue.*', '_queue.*', 'range', 'spin'},
    'get_all': {'queue.*', '_queue.*', 'spin'},
    'pool': {'concurrent.futures.*', 'random.*', '_random.*', 'range',
             'list', 'ThreadPoolExecutor'},
    'pooled': {'spin'},
    'call_from_c': {'builtins.len', 'ctypes.*', 'program.*', 'random.*',
                    '_random.*', '_ctypes.*', 'range', 'list.append',
                    'foreign', 'zip', '_CDLL.*', '_FuncPtr.*'},
    'foreign': {'spin'},
    'contend': {'_thread.lock.*', 'spin', 'range', 'time.sleep'},
    'fight': {'ledger.*', 'list.append', 'range', 'random.*', '_random.*',
              'threading.*', '_thread.*'},
}

FUNCTION = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
LIBRARY = ctypes.CDLL(None)
LIBRARY.pthread_create.argtypes = [
    ctypes.c_void_p, ctypes.c_void_p, FUNCTION, ctypes.c_void_p]
LIBRARY.pthread_join.argtypes = [ctypes.c_ulong, ctypes.c_void_p]


def spin(n):
    return sum(range(n))


def short(n):
    spin(n)


def napping(seconds):
    time.sleep(seconds)
    spin(500)


def storm(run, rng):
    threads = []
    for _ in range(rng.randrange(1, 40)):
        if rng.random() < 0.5:
            thread = run.ledger.thread(short, rng.randrange(20_000))
        else:
            thread = run.ledger.thread(napping, rng.random() / 500)
        thread.start()
        threads.append(thread)
    for thread in threads:
        thread.join()
    run.count('threads', len(threads))


def put_all(items, n):
    for i in range(n):
        items.put(i)
        spin(50)
    items.put(None)


def get_all(items):
    while items.get() is not None:
        spin(50)


def produce(run, rng):
    items = (queue.SimpleQueue() if rng.random() < 0.5
             else queue.Queue(maxsize=10))
    threads = [run.ledger.thread(put_all, items, rng.randrange(300)),
               run.ledger.thread(get_all, items)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def pooled(n):
    return spin(n)


def pool(run, rng):
    with ThreadPoolExecutor(rng.randrange(1, 6)) as executor:
        list(executor.map(pooled, range(rng.randrange(200))))


@FUNCTION
def foreign(argument):
    spin(1000)
    return None


def call_from_c(run, rng):
    threads = []
    for _ in range(rng.randrange(1, 20)):
        thread = ctypes.c_ulong()
        if LIBRARY.pthread_create(ctypes.byref(thread), None, foreign,
                                  None) == 0:
            threads.append(thread)
    for thread in threads:
        LIBRARY.pthread_join(thread, None)
    run.count('foreign_threads', len(threads))


def contend(lock, n):
    for _ in range(n):
        with lock:
            spin(200)


def fight(run, rng):
    lock = threading.Lock()
    threads = [run.ledger.thread(contend, lock, rng.randrange(400))
               for _ in range(rng.randrange(2, 6))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def work(run):
    rng = run.rng('threads')
    while not run.over():
        rng.choice((storm, produce, pool, call_from_c, fight))(run, rng)
