"""What the profiler costs while two threads are busy and others idle.

    python idle_child.py IDLE_THREADS RATE_HZ SECONDS

Prints JSON: ticks, and the CPU time of the profiler per tick: that of the
sampler thread, by the kernel, and that of handler and drain, by its counters.
"""

import json
import pathlib
import sys
import threading
import time

import profile_sampling

BUSY_THREADS = 2
IDLE_STACK_BYTES = 64 * 1024


def compute(end):
    while time.perf_counter() < end:
        for i in range(1000):
            str(i)


def start_idle(count):
    """Threads that sleep until the lock that is returned is released."""
    gate = threading.Lock()
    gate.acquire()
    begun = []

    def idle():
        begun.append(None)
        with gate:
            pass
    threading.stack_size(IDLE_STACK_BYTES)
    threads = [threading.Thread(target=idle) for _ in range(count)]
    for thread in threads:
        thread.start()
    threading.stack_size(0)
    while len(begun) < count:
        time.sleep(0.01)
    time.sleep(0.2)             # the last of them come to the lock
    return gate, threads


def sampler_ns():
    """CPU time of the sampler thread."""
    for task in pathlib.Path('/proc/self/task').iterdir():
        if (task / 'comm').read_text() == 'sampleprof\n':
            return int((task / 'schedstat').read_text().split()[0])
    raise RuntimeError('there is no sampler thread')


def measure(rate_hz, seconds):
    profile_sampling.start(rate_hz=rate_hz)
    time.sleep(0.2)             # all threads have been seen once
    cpu_ns = sampler_ns()
    before = profile_sampling.stats()
    end = time.perf_counter() + seconds
    threads = [threading.Thread(target=compute, args=(end,))
               for _ in range(BUSY_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    after = profile_sampling.stats()
    cpu_ns = sampler_ns() - cpu_ns
    profile_sampling.stop()
    delta = {key: after[key] - before[key] for key in after}
    cpu_ns += delta['overhead_capture_ns'] + delta['overhead_drain_ns']
    return {'ticks': delta['ticks'], 'tick_us': cpu_ns / delta['ticks'] / 1e3}


def main():
    idle_threads, rate_hz, seconds = (
        int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
    gate, threads = start_idle(idle_threads)
    try:
        print(json.dumps(measure(rate_hz, seconds)))
    finally:
        gate.release()
        for thread in threads:
            thread.join()


if __name__ == '__main__':
    main()
