"""Four threads that query SQLite in small steps, as an ORM's N+1 does.

    python contended_child.py STEPS RATE_HZ

Waits for a line, so that a profiler can attach, and prints JSON: the CPU time
and the context switches of the process meanwhile.  It profiles itself if
RATE_HZ is not 0.
"""

import json
import os
import resource
import sqlite3
import sys
import tempfile
import threading

NUM_THREADS, CUSTOMERS, ORDERS = 4, 50, 2000


def make_shop(path):
    with sqlite3.connect(path) as db:
        db.execute('create table orders '
                   '(id integer primary key, customer int, amount real)')
        db.executemany('insert into orders (customer, amount) values (?, ?)',
                       [(i % 200, i * 1.5) for i in range(ORDERS)])
        db.execute('create index by_customer on orders (customer)')


def ask(path, steps):
    db = sqlite3.connect(path)
    for _ in range(steps):
        for customer in range(CUSTOMERS):
            rows = db.execute(
                'select id, amount from orders where customer = ?',
                (customer,)).fetchall()
            sum([amount * 1.19 for _, amount in rows])


def fight(path, steps):
    threads = [threading.Thread(target=ask, args=(path, steps))
               for _ in range(NUM_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main():
    steps, rate_hz = map(int, sys.argv[1:])
    with tempfile.TemporaryDirectory(prefix='bench') as directory:
        path = os.path.join(directory, 'shop.db')
        make_shop(path)
        print('ready', flush=True)
        sys.stdin.readline()
        before = resource.getrusage(resource.RUSAGE_SELF)
        if rate_hz:
            import profile_sampling
            profile_sampling.start(rate_hz=rate_hz)
        fight(path, steps)
        if rate_hz:
            profile_sampling.stop()
        after = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({
        'cpu_s': (after.ru_utime + after.ru_stime
                  - before.ru_utime - before.ru_stime),
        'switches': (after.ru_nvcsw + after.ru_nivcsw
                     - before.ru_nvcsw - before.ru_nivcsw)}), flush=True)


main()
