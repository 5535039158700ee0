"""What the profiler costs while two threads are busy and others idle.

    python idle_child.py IDLE_THREADS RATE_HZ SECONDS

Prints JSON: ticks, and the CPU time of the profiler per tick: that of the
sampler thread, which is what the process used beyond its own threads, and what
its counters say of the handler and the drain.
"""

import json
import sys
import threading
import time

import profile_sampling

BUSY_THREADS = 2
IDLE_STACK_BYTES = 64 * 1024


def compute(end, used_ns):
    begin_ns = time.thread_time_ns()
    while time.perf_counter() < end:
        for i in range(1000):
            str(i)
    used_ns.append(time.thread_time_ns() - begin_ns)


def start_idle(count):
    """Threads that sleep until the lock that is returned is released."""
    gate = threading.Lock()
    gate.acquire()

    def idle():
        with gate:
            pass
    threading.stack_size(IDLE_STACK_BYTES)
    threads = [threading.Thread(target=idle) for _ in range(count)]
    for thread in threads:
        thread.start()
    threading.stack_size(0)
    return gate, threads


def measure(rate_hz, seconds):
    used_ns = []
    profile_sampling.start(rate_hz=rate_hz)
    time.sleep(0.2)             # all threads have been seen once
    before = profile_sampling.stats()
    process_ns, own_ns = time.process_time_ns(), time.thread_time_ns()
    end = time.perf_counter() + seconds
    threads = [threading.Thread(target=compute, args=(end, used_ns))
               for _ in range(BUSY_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    process_ns = time.process_time_ns() - process_ns
    own_ns = time.thread_time_ns() - own_ns
    after = profile_sampling.stats()
    profile_sampling.stop()
    delta = {key: after[key] - before[key] for key in after}
    cost_ns = (process_ns - own_ns - sum(used_ns)
               + delta['overhead_capture_ns'] + delta['overhead_drain_ns'])
    return {'ticks': delta['ticks'], 'tick_us': cost_ns / delta['ticks'] / 1e3}


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
