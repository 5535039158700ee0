// Which samples are of threads that had nothing to do.
//
// This file owns what counts as idle, which is what _data/idle.py says.  It
// must not know how it is shown.
// @ts-check

import {PYTHON} from './functions.js';
import {BLOCKED} from './labels.js';
import {innermostPython} from './sums.js';

/** @typedef {import('./part.js').Part} Part */

const WAITING_MODULES = new Set([
  'multiprocessing.connection', 'multiprocessing.queues',
  'multiprocessing.synchronize', 'queue', 'selectors', 'socket', 'ssl',
  'threading']);
const LOOPS = new Set([
  'asyncio.base_events.BaseEventLoop._run_once',
  'asyncio.runners.Runner.run',
  'concurrent.futures.process._ExecutorManagerThread.'
  + 'wait_result_broken_or_wakeup',
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
  'socketserver.BaseServer.serve_forever']);
const ACCEPT_CALLS = new Set([
  '_socket.socket._accept', '_socket.socket.accept']);
// Of the session, and of the thread's own time.
const PRESENT_SHARE = 0.9;
const WAITED_SHARE = 0.99;

/**
 * Per sample of the profile, whether it is idle.
 * @param {Part} part
 */
export function idleSamples(part) {
  const {profile: {samples}, rows, nodeOf} = part;
  const found = new Uint8Array(samples.length);
  if (!rows.some((row) => samples.state[row] === BLOCKED)) {
    return found;
  }
  const isLoop = loopsOf(part);
  const bored = boredThreads(part);
  for (const row of rows) {
    found[row] = Number(samples.state[row] === BLOCKED
      && (bored.has(samples.thread[row]) || isLoop(nodeOf[row])));
  }
  return found;
}

/**
 * Whether a stack is that of a loop that waits for more work.
 * @param {Part} part
 */
function loopsOf({profile: {functions, frames}, nodes}) {
  const known = new Map();
  /** @param {number} node */
  const isLoop = (node) => {
    let isPython = false;
    for (; node; node = nodes.parent[node]) {
      const {kind, module, name} = functions[frames.func[nodes.frame[node]]];
      if (kind !== PYTHON) {
        if (ACCEPT_CALLS.has(name)) {
          return true;
        }
      } else if (!WAITING_MODULES.has(module)) {
        return LOOPS.has(name);
      } else {
        isPython = true;
      }
    }
    return isPython;
  };
  return (/** @type {number} */ node) => {
    if (!known.has(node)) {
      known.set(node, isLoop(node));
    }
    return known.get(node);
  };
}

/**
 * The numbers of threads that did nothing but wait.
 * @param {Part} part
 */
function boredThreads(part) {
  const {profile, rows, nodeOf, value} = part;
  const {samples, threads, frames, durationNs, spanNs, pid} = profile;
  const presentNs = PRESENT_SHARE
    * (spanNs === null ? durationNs : spanNs[1] - spanNs[0]);
  const totals = new Float64Array(threads.length);
  for (const row of rows) {
    totals[samples.thread[row]] += value[row];
  }
  const candidates = new Set([...threads.keys()].filter((number) => (
    totals[number] >= presentNs && presentNs > 0
    && threads[number].name !== 'MainThread'
    && threads[number].nativeId !== pid)));
  if (!candidates.size) {
    return candidates;
  }
  const {innermost} = innermostPython(part);
  /** @type {Map<string, number>} */
  const waited = new Map();
  for (const row of rows) {
    const frame = innermost[nodeOf[row]];
    const thread = samples.thread[row];
    if (samples.state[row] === BLOCKED && candidates.has(thread)
        && frame >= 0) {
      const key = [thread, frames.func[frame], frames.line[frame]].join();
      waited.set(key, (waited.get(key) ?? 0) + value[row]);
    }
  }
  const bored = new Set();
  for (const [key, ns] of waited) {
    const thread = Number.parseInt(key, 10);
    if (ns >= WAITED_SHARE * totals[thread]) {
      bored.add(thread);
    }
  }
  return bored;
}
