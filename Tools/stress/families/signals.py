"""The program's own signals, timers and tracing tools."""

import os
import select
import signal
import sys
import threading
import time
import tracemalloc

# On the main thread, because only that one takes signals.
ON_MAIN_THREAD = True
OPERATORS = {'dict.__getitem__', 'float.__truediv__', 'int.__or__',
             'module.__getattribute__', 'range.__iter__',
             'range_iterator.__next__'}
ENTRIES = {'work', 'handler', 'trace', 'monitored'}
INTERRUPTS = {'handler', 'trace', 'monitored'}
CALLS = {
    'work': {'wait', 'take_profilers_signal', 'tracing', 'memory',
             'monitoring', 'compute', 'program.*', 'random.*', '_random.*',
             'signal.*', '_signal.*', 'threading.*'},
    'handler': {'spin'},
    'trace': {'spin'},
    'monitored': {'spin'},
    'wait': {'time.sleep', 'select.*', 'posix.*'},
    'take_profilers_signal': {'signal.*', '_signal.*', 'compute', 'posix.*'},
    'tracing': {'sys.*', 'compute', 'trace'},
    'memory': {'tracemalloc.*', '_tracemalloc.*', 'compute', 'range', 'list'},
    'monitoring': {'sys.*', 'compute'},
    'compute': {'spin', 'range'},
    'spin': {'builtins.sum', 'range', 'trace'},
}


def spin(n):
    return sum(range(n))


def compute(n):
    for _ in range(n):
        spin(50)


def handler(signum, frame):
    spin(20)


def trace(*event):
    return None


def monitored(*event):
    return None


def wait(seconds):
    time.sleep(seconds)
    reader, writer = os.pipe()
    select.select([reader], [], [], seconds)
    os.close(reader)
    os.close(writer)


def take_profilers_signal():
    """Use the signal that the profiler would, for a while."""
    before = signal.signal(signal.SIGURG, handler)
    os.kill(os.getpid(), signal.SIGURG)
    compute(100)
    signal.signal(signal.SIGURG, before)


def tracing():
    sys.settrace(trace)
    compute(10)
    sys.settrace(None)
    sys.setprofile(trace)
    compute(10)
    sys.setprofile(None)


def memory():
    tracemalloc.start()
    list(range(2000))
    compute(10)
    tracemalloc.stop()


def monitoring():
    tool = sys.monitoring.DEBUGGER_ID
    sys.monitoring.use_tool_id(tool, 'stress')
    event = sys.monitoring.events.PY_START
    sys.monitoring.register_callback(tool, event, monitored)
    sys.monitoring.set_events(tool, event)
    compute(10)
    sys.monitoring.set_events(tool, 0)
    sys.monitoring.free_tool_id(tool)


def work(run):
    assert threading.current_thread() is threading.main_thread()
    rng = run.rng('signals')
    signal.signal(signal.SIGALRM, handler)
    signal.signal(signal.SIGVTALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.003, 0.003)
    signal.setitimer(signal.ITIMER_VIRTUAL, 0.007, 0.007)
    while not run.over():
        wait(rng.random() / 200)
        rng.choice((take_profilers_signal, tracing, memory, monitoring))()
        compute(rng.randrange(200))
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    # One that is under way must find a handler still.
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    signal.signal(signal.SIGVTALRM, signal.SIG_IGN)
