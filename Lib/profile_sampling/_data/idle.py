"""Which samples are of threads that had nothing to do.

That is decided here, once, where a profile comes from: of all that the core
or another tool's file has.  From then on it is the state of a sample, IDLE,
which parts, sums and files keep; nothing asks again.

A thread that waits for work is not slow: its time would bury what requests
wait for.  A sample of a thread that waits is idle if

- the wait is that of a loop for more work: the function that waits, the
  innermost outside of the modules in _WAITING, is one of _LOOPS, or one of
  _WORKERS that fetches work; or there is none, as for a thread that runs
  queue.get(); or the call is an accept();
- or it is in a function of _FETCHERS, whatever that calls: a job queue's, for
  the next job;
- or the thread is not the main one, was there for nearly all of a session of a
  second or more, and spent nearly all of its time in waiting at one and the
  same line.

A C function may wait for the program's sake, as for the answer of a database.
So only what is known to wait for work can be idle, and a thread that computed
meanwhile is not.
"""

from profile_sampling._data import origins
from profile_sampling._data.tables import FRAME_COLUMNS, NODE_COLUMNS
from profile_sampling._data.values import CPU, IDLE, NATIVE, WAITING, WALL

# Off the GIL.
_OFF = frozenset({WAITING, NATIVE})
# Modules whose functions wait on behalf of their callers.
_WAITING = frozenset({
    'billiard.connection', 'billiard.queues', 'kombu.utils.eventio',
    'multiprocessing.connection', 'multiprocessing.queues',
    'multiprocessing.synchronize', 'queue', 'selectors', 'socket', 'ssl',
    'threading'})
_LOOPS = frozenset({
    'asyncio.base_events.BaseEventLoop._run_once',
    'asyncio.runners.Runner.run',
    'billiard.pool.Worker._do_exit',
    'billiard.pool.Worker._make_recv_method.<locals>._recv',
    'celery.concurrency.prefork.TaskPool.on_stop.<locals>.fire_timers_loop',
    'concurrent.futures.process._ExecutorManagerThread.'
    'wait_result_broken_or_wakeup',
    'concurrent.futures.thread._worker',
    'dramatiq.worker._WorkerThread.run',
    'gevent.hub.Hub.run',
    'gunicorn.arbiter.Arbiter.sleep',
    'gunicorn.arbiter.Arbiter.wait_for_signals',
    'gunicorn.workers.gthread.ThreadWorker.wait_for_and_dispatch_events',
    'gunicorn.workers.sync.SyncWorker.wait',
    'kombu.asynchronous.hub.Hub.create_loop',
    'kombu.transport.redis.MultiChannelPoller.get',
    'logging.handlers.QueueListener.dequeue',
    'multiprocessing.pool.Pool._handle_results',
    'multiprocessing.pool.Pool._handle_tasks',
    'multiprocessing.pool.Pool._wait_for_updates',
    'socketserver.BaseServer.serve_forever',
    'uvicorn.supervisors.multiprocess.Multiprocess.run',
    'uvicorn.supervisors.multiprocess.Process.pong',
})
# Loops that call what they are given themselves.  If that is a C function, it
# waits in no function of Python's own, and what fetches work tells the two
# apart: a function of _WAITING, or one of C.
_WORKERS = frozenset({
    'aiosqlite.core._connection_worker_thread',
    'anyio._backends._asyncio.WorkerThread.run',
    'concurrent.futures.process._process_worker',
    'multiprocessing.pool.worker',
})
# Functions of job queues that return with the next job, or wait for the process
# that runs one: what that does is in its own profile.
_FETCHERS = frozenset({
    'dramatiq.brokers.redis._RedisConsumer.__next__',
    'huey.consumer.BaseProcess.sleep_for_interval',
    'huey.storage.RedisStorage.dequeue',
    'redis.client.PubSubWorkerThread.run', 'rq.queue.Queue.lpop',
    'rq.worker.base.BaseWorker.dequeue_job_and_maintain_ttl',
    'rq.worker.worker_classes.Worker.monitor_work_horse'})
_FETCHES = '_queue.SimpleQueue.get'
# Modules of C whose functions let go of the GIL for nothing but to wait.
_WAITING_IN_C = frozenset({
    '_multiprocessing', '_queue', '_socket', '_ssl', 'select', 'signal',
    'time'})
_CALLS = frozenset({'_socket.socket._accept', '_socket.socket.accept'})
# It runs what a thread is for, and waits for nothing itself.
_RUN = 'threading.Thread.run'
_MAIN = 'MainThread'
# Of the session, and of the thread's own time.
_PRESENT, _WAITED = 0.9, 0.99
# In less nothing tells a thread that waits for work from one whose work waits.
_LEAST_NS, _LEAST_SLICE_NS = 1_000_000_000, 500_000_000
# CPU time, of the time in which a thread was off the GIL.  To wake up and wait
# again takes 10 to 70 us: with a thousand times a second that is less.  What
# computes all the time has more, even if ten threads share a CPU.
_COMPUTED = 0.1


def decide(tables, *, is_slice=False):
    """Give samples that are idle that state, in tables that are new.

    A slice is too short to tell a thread that waits for work from one whose
    work waits: it is one of the latter if it is in code of mine.
    """
    states = tables.column('state')
    if WAITING not in states:
        return
    loops = _Loops(tables)
    nodes = tables.column('stack')
    threads = tables.column('thread')
    bored = _bored_threads(tables, states, nodes, threads,
                           _LEAST_SLICE_NS if is_slice else _LEAST_NS)
    if is_slice and bored:
        bored -= _threads_of_mine(tables, nodes, threads)
    for row, (state, thread, node) in enumerate(zip(states, threads, nodes)):
        if state == WAITING and (thread in bored or loops.wait_at(node)):
            states[row] = IDLE


def shown(tables, idle=False):
    """Return the tables that sums are made of: without what is idle, unless
    that is to be shown."""
    if idle:
        return tables
    states = tables.column('state')
    if IDLE not in states:
        return tables
    return tables.with_samples([number for number, state in enumerate(states)
                                if state != IDLE])


def is_all(tables):
    """Return whether nothing but what is idle is there."""
    return set(tables.column('state')) == {IDLE}


class _Loops:
    """Which stacks are those of a loop that waits."""

    def __init__(self, tables):
        self._functions = tables.functions
        self._function_of_frame = tables.frames_view()[
            0::FRAME_COLUMNS].tolist()
        self._parents, self._frames = [
            column.tolist() for column in tables.node_columns()]
        self._may_fetch = any(function.name in _FETCHERS
                              for function in tables.functions)
        self._known = {}

    def wait_at(self, node):
        known = self._known.get(node)
        if known is None:
            known = self._known[node] = self._is_loop(node)
        return known

    def _is_loop(self, node):
        return waits_for_work(self._stack(node), self._may_fetch)

    def _stack(self, node):
        while node:
            yield self._functions[self._function_of_frame[self._frames[node]]]
            node = self._parents[node]


def waits_for_work(functions, may_fetch=True):
    """Return whether a thread that waits in *functions*, the innermost first,
    has nothing to do; unless it *may_fetch*, none of them is of _FETCHERS."""
    called = None
    functions = iter(functions)
    for function in functions:
        if function.kind != 'python':
            if function.name in _CALLS:
                return True
        elif function.name == _RUN:
            return _is_wait(called)
        elif function.module not in _WAITING:
            return (function.name in _LOOPS
                    or function.name in _WORKERS and _fetches(called)
                    or may_fetch and (
                        function.name in _FETCHERS
                        or any(its.name in _FETCHERS for its in functions)))
        called = function
    return called is not None and called.kind == 'python'


def _is_wait(function):
    """Return whether a function is known to be there for waiting."""
    if function is None:
        return False
    if function.kind == 'python':
        return function.module in _WAITING and function.name != _RUN
    return function.module in _WAITING_IN_C


def _fetches(function):
    return function is not None and (
        function.kind == 'python' or function.name == _FETCHES)


def _threads_of_mine(tables, nodes, threads):
    """Return the numbers of threads that were in code of mine."""
    mine = origins.mine(tables)
    functions = tables.frames_view()[0::FRAME_COLUMNS].tolist()
    view = tables.nodes_view()
    # Parents come first.
    in_mine = [False]
    for place in range(NODE_COLUMNS, len(view), NODE_COLUMNS):
        in_mine.append(in_mine[view[place]]
                       or mine[functions[view[place + 1]]])
    return {thread for node, thread in zip(nodes, threads) if in_mine[node]}


def _bored_threads(tables, states, nodes, threads, least_ns):
    """Return the numbers of threads that did nothing but wait."""
    values, cpu_values = _clocks(tables)
    candidates = _candidates(tables, states, threads, values, least_ns)
    if not candidates:
        return set()
    waits = _Waits(tables)
    waited, computed = {}, dict.fromkeys(candidates, 0)
    for state, node, thread, ns, cpu_ns in zip(
            states, nodes, threads, values, cpu_values):
        if state in _OFF and thread in candidates:
            computed[thread] += cpu_ns
            place = waits.place(node)
            if place is not None:
                key = thread, place
                waited[key] = waited.get(key, 0) + ns
    return {thread for (thread, _), ns in waited.items()
            if ns >= _WAITED * candidates[thread]
            and computed[thread] < _COMPUTED * ns}


def _candidates(tables, states, threads, values, least_ns):
    """Return {thread: its time} of those that were always there, and hardly
    ever on the GIL."""
    present_ns = _PRESENT * tables.length_ns
    if tables.length_ns < least_ns:
        return {}
    totals = [0] * len(tables.threads)
    off = totals[:]
    for state, thread, ns in zip(states, threads, values):
        totals[thread] += ns
        if state in _OFF:
            off[thread] += ns
    return {
        number: total for number, (thread, total)
        in enumerate(zip(tables.threads, totals))
        if total >= present_ns > 0 and off[number] >= _WAITED * total
        and thread.name != _MAIN
        and thread.native_id != tables.pid}


class _Waits:
    """The lines at which stacks are in a wait."""

    def __init__(self, tables):
        self._functions = tables.functions
        self._frames = tables.frames_view()
        self._innermost, self._called = tables.innermost_python()

    def place(self, node):
        """Return (function, line), or None if it is known to be no wait."""
        frame, called = self._innermost[node], self._called[node]
        if frame < 0:
            return None
        start = FRAME_COLUMNS * frame
        function, line = self._frames[start:start + 2]
        if not _is_wait(self._functions[function]) and called >= 0:
            callee = self._functions[self._frames[FRAME_COLUMNS * called]]
            # Without names of C functions nothing tells what it is in.
            if callee.kind != 'pseudo' and not _is_wait(callee):
                return None
        return function, line


def _clocks(tables):
    """Return the columns of wall time and of CPU time.

    If they are missing: what the profile is about, and zeros.
    """
    types = tables.value_types
    values = (tables.value(WALL.name) if WALL in types
              else tables.own_column)
    return values, (tables.value(CPU.name) if CPU in types
                    else [0] * len(values))
