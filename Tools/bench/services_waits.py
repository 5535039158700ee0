"""The services: ways to wait between bursts, and to be woken.

Each takes work(), which runs a burst, wait_s(), which draws the length of a
wait, and enough(), which tells when to end.  Two bursts never overlap, so
that none waits for the GIL and the time of a line is its own.
"""

import asyncio
import concurrent.futures
import http.server
import os
import pathlib
import select
import subprocess
import sys
import threading
import time

WORKERS = 4
# A task waits so much longer than a lone thread; the loop is as busy then.
TASK_WAITS = 7
CLIENT = pathlib.Path(__file__).with_name('services_client.py')
REQUESTS_AT_A_TIME = 25


def poll(work, wait_s, enough):
    """epoll.poll() until a timer is due, as in an event loop.  The time-out
    of poll() itself is in whole milliseconds."""
    timer = os.timerfd_create(time.CLOCK_MONOTONIC)
    with select.epoll() as epoll:
        epoll.register(timer, select.EPOLLIN)
        while not enough():
            os.timerfd_settime(timer, initial=wait_s())
            epoll.poll()
            os.read(timer, 8)
            work()
    os.close(timer)


def sleep(work, wait_s, enough):
    while not enough():
        time.sleep(wait_s())
        work()


def hand_over(work, wait_s, enough):
    """A turn that goes round among threads: who has it works, waits for a
    condition that nobody fulfils, and wakes the next one."""
    lock = threading.Lock()
    turns = [threading.Condition(lock) for _ in range(WORKERS)]
    nobody = threading.Condition()
    whose = 0

    def member(number):
        nonlocal whose
        following = (number + 1) % WORKERS
        while True:
            with lock:
                turns[number].wait_for(lambda: whose == number)
            ended = enough()
            if not ended:
                work()
                with nobody:
                    nobody.wait(wait_s())
            with lock:
                whose = following
                turns[following].notify()
            if ended:
                return

    threads = [threading.Thread(target=member, args=(number,))
               for number in range(WORKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def tasks(work, wait_s, enough):
    async def task():
        while not enough():
            await asyncio.sleep(wait_s() * TASK_WAITS)
            work()

    async def all_tasks():
        async with asyncio.TaskGroup() as group:
            for _ in range(WORKERS):
                group.create_task(task())

    asyncio.run(all_tasks())


def pool(work, wait_s, enough):
    """The main thread feeds the workers of a pool, which take turns."""
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as executor:
        # The pool starts its threads when it finds none idle.
        barrier = threading.Barrier(WORKERS)
        list(executor.map(lambda _: barrier.wait(), range(WORKERS)))
        while not enough():
            time.sleep(wait_s())
            executor.submit(work).result()


def http_server(work, wait_s, enough):
    """A server with a thread for each connection of a client, which is a
    process of its own.  Between requests it is the client who waits."""
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = 'HTTP/1.1'
        disable_nagle_algorithm = True

        def do_GET(self):
            work()
            self.send_response(200)
            self.send_header('Content-Length', '3')
            self.end_headers()
            self.wfile.write(b'ok\n')

        def log_message(self, *args):
            pass

    address = '127.0.0.1', 0
    with http.server.ThreadingHTTPServer(address, Handler) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        with subprocess.Popen(
                [sys.executable, '-E', '-s', CLIENT,
                 str(server.server_address[1]), str(WORKERS)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                text=True) as client:
            while not enough():
                waits = [str(wait_s()) for _ in range(REQUESTS_AT_A_TIME)]
                print(*waits, file=client.stdin, flush=True)
                if client.stdout.readline() != 'done\n':
                    raise RuntimeError('the HTTP client has ended')
            client.stdin.close()
        server.shutdown()
        serving.join()


SERVICES = {'poll': poll, 'sleep': sleep, 'hand_over': hand_over,
            'tasks': tasks, 'pool': pool, 'http': http_server}
