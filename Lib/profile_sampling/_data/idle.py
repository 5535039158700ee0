"""Which samples are of threads that had nothing to do.

This file owns what counts as idle.  It must not know how it is shown.

A thread that waits for work is not slow: its time would bury what requests
wait for.  A sample of a blocked thread is idle if

- the wait is that of a loop for more work: the function that waits, the
  innermost outside of the modules in _WAITING, is one of _LOOPS; or there
  is none, as for a thread that runs queue.get(); or the call is an accept();
- or the thread is not the main one, was there for nearly all of the session
  and spent nearly all of its time in waiting at one and the same line.
"""

from profile_sampling._data.tables import (
    FRAME_COLUMNS, KEY_COLUMNS, NODE, NODE_COLUMNS, STATE, THREAD)
from profile_sampling._data.values import STATES

_BLOCKED = STATES.index('blocked')
# Modules whose functions wait on behalf of their callers.
_WAITING = frozenset({
    'multiprocessing.connection', 'multiprocessing.queues',
    'multiprocessing.synchronize', 'queue', 'selectors', 'socket', 'ssl',
    'threading'})
_LOOPS = frozenset({
    'asyncio.base_events.BaseEventLoop._run_once',
    'asyncio.runners.Runner.run',
    'concurrent.futures.process._ExecutorManagerThread.'
    'wait_result_broken_or_wakeup',
    'concurrent.futures.process._process_worker',
    'concurrent.futures.thread._worker',
    'gevent.hub.Hub.run',
    'gunicorn.arbiter.Arbiter.sleep',
    'gunicorn.workers.sync.SyncWorker.wait',
    'logging.handlers.QueueListener.dequeue',
    'multiprocessing.pool.Pool._handle_results',
    'multiprocessing.pool.Pool._handle_tasks',
    'multiprocessing.pool.Pool._wait_for_updates',
    'multiprocessing.pool.worker',
    'socketserver.BaseServer.serve_forever',
})
_CALLS = frozenset({'_socket.socket._accept', '_socket.socket.accept'})
_MAIN = 'MainThread'
# Of the session, and of the thread's own time.
_PRESENT, _WAITED = 0.9, 0.99


def samples(tables):
    """Return, for each sample, whether it is idle: a bytearray."""
    states = tables.column(STATE)
    found = bytearray(len(states))
    if _BLOCKED not in states:
        return found
    loops = _Loops(tables)
    nodes = tables.column(NODE)
    threads = tables.column(THREAD)
    bored = _bored_threads(tables, states, nodes, threads)
    for number, state in enumerate(states):
        if state == _BLOCKED:
            found[number] = (threads[number] in bored
                             or loops.wait_at(nodes[number]))
    return found


class _Loops:
    """Which stacks are those of a loop that waits."""

    def __init__(self, tables):
        self._functions = tables.functions
        self._function_of_frame = tables.frames_view()[
            0::FRAME_COLUMNS].tolist()
        self._nodes = tables.nodes_view()
        self._known = {}

    def wait_at(self, node):
        known = self._known.get(node)
        if known is None:
            known = self._known[node] = self._is_loop(node)
        return known

    def _is_loop(self, node):
        is_python = False
        while node:
            frame = self._nodes[NODE_COLUMNS * node + 1]
            function = self._functions[self._function_of_frame[frame]]
            if function.kind != 'python':
                if function.name in _CALLS:
                    return True
            elif function.module not in _WAITING:
                return function.name in _LOOPS
            else:
                is_python = True
            node = self._nodes[NODE_COLUMNS * node]
        return is_python


def _bored_threads(tables, states, nodes, threads):
    """Return the numbers of threads that did nothing but wait."""
    present_ns = _PRESENT * tables.length_ns
    totals = [0] * len(tables.threads)
    values = tables.column(KEY_COLUMNS + tables.own)
    for thread, value in zip(threads, values):
        totals[thread] += value
    candidates = {
        number for number, (thread, total)
        in enumerate(zip(tables.threads, totals))
        if total >= present_ns > 0 and thread.name != _MAIN
        and thread.native_id != tables.pid}
    if not candidates:
        return candidates
    innermost, _ = tables.innermost_python()
    places = list(tables.frame_tuples())
    waited = {}
    for state, node, thread, value in zip(states, nodes, threads, values):
        if (state == _BLOCKED and thread in candidates
                and innermost[node] >= 0):
            key = thread, places[innermost[node]][:2]
            waited[key] = waited.get(key, 0) + value
    return {thread for (thread, _), value in waited.items()
            if value >= _WAITED * totals[thread]}
