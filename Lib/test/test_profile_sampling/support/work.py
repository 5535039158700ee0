"""Work for tests to sample: as functions, and as text for their programs."""

import inspect
import threading
import time


def busy(seconds):
    """Hold the GIL, in Python code, until that much CPU time is used."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def spin(seconds):
    """Want the GIL, in Python code, until that much time has passed."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def hand_over(times):
    """Two threads wake each other in turn; wall time in ns."""
    locks = threading.Lock(), threading.Lock()

    def member(own, other):
        for _ in range(times // 2):
            own.acquire()
            other.release()

    for lock in locks:
        lock.acquire()
    threads = [threading.Thread(target=member, args=pair)
               for pair in (locks, locks[::-1])]
    for thread in threads:
        thread.start()
    begin_ns = time.perf_counter_ns()
    locks[0].release()
    for thread in threads:
        thread.join()
    return time.perf_counter_ns() - begin_ns


BUSY = f'import time\n{inspect.getsource(busy)}'
SPIN = f'import time\n{inspect.getsource(spin)}'
