// Which samples are of threads that had nothing to do.
//
// This file owns what counts as idle, which is what _data/idle.py says.  It
// must not know how it is shown, nor which frames are left out: only whole
// stacks tell it.
// @ts-check

import {PSEUDO, PYTHON} from './functions.js';
import {NATIVE, WAITING} from './labels.js';
import {RULES} from './rules.js';
import {innermostPython} from './sums.js';

/** @typedef {import('./part.js').Part} Part */

const WAITING_MODULES = new Set(RULES.waiting);
const LOOPS = new Set(RULES.loops);
// Loops that call what they are given themselves.
const WORKERS = new Set(RULES.workers);
const WAITING_IN_C = new Set(RULES.waiting_in_c);
const ACCEPT_CALLS = new Set(RULES.accept);

/**
 * Per sample of the profile, whether it is idle.
 * @param {Part} part
 */
export function idleSamples(part) {
  const {profile: {samples}, rows} = part;
  const found = new Uint8Array(samples.length);
  if (!rows.some((row) => samples.state[row] === WAITING)) {
    return found;
  }
  const isLoop = loopsOf(part.profile);
  const bored = boredThreads(part);
  for (const row of rows) {
    found[row] = Number(samples.state[row] === WAITING
      && (bored.has(samples.thread[row]) || isLoop(samples.node[row])));
  }
  return found;
}

/**
 * Whether a stack is that of a loop that waits for more work.
 * @param {import('./decode.js').Profile} profile
 */
function loopsOf({functions, frames, nodes}) {
  const known = new Map();
  /** @param {number} node */
  const isLoop = (node) => {
    /** @type {import('./functions.js').Func | null} */
    let called = null;
    for (; node; node = nodes.parent[node]) {
      const func = functions[frames.func[nodes.frame[node]]];
      const {kind, module, name} = func;
      if (kind !== PYTHON) {
        if (ACCEPT_CALLS.has(name)) {
          return true;
        }
      } else if (name === RULES.run) {
        return isWait(called);
      } else if (!WAITING_MODULES.has(module)) {
        return LOOPS.has(name) || (WORKERS.has(name) && fetches(called));
      }
      called = func;
    }
    return called?.kind === PYTHON;
  };
  return (/** @type {number} */ node) => {
    if (!known.has(node)) {
      known.set(node, isLoop(node));
    }
    return known.get(node);
  };
}

/**
 * Whether a function is known to be there for waiting.
 * @param {import('./functions.js').Func | null} func
 */
function isWait(func) {
  return func !== null && (func.kind === PYTHON
    ? WAITING_MODULES.has(func.module) && func.name !== RULES.run
    : WAITING_IN_C.has(func.module));
}

/** @param {import('./functions.js').Func | null} func */
function fetches(func) {
  return func !== null
    && (func.kind === PYTHON || func.name === RULES.fetches);
}

/**
 * The numbers of threads that did nothing but wait.
 * @param {Part} part
 */
function boredThreads(part) {
  const {profile, rows} = part;
  const {samples} = profile;
  const {wall, cpu} = clocksOf(part);
  const candidates = alwaysThere(part, wall);
  if (!candidates.size) {
    return new Set();
  }
  const placeOf = waitsOf(profile);
  const computed = new Map();
  /** @type {Map<string, number>} */
  const waited = new Map();
  for (const row of rows) {
    const thread = samples.thread[row];
    if (![WAITING, NATIVE].includes(samples.state[row])
        || !candidates.has(thread)) {
      continue;
    }
    computed.set(thread, (computed.get(thread) ?? 0) + (cpu?.[row] ?? 0));
    const place = placeOf(samples.node[row]);
    if (place !== null) {
      const key = `${thread},${place}`;
      waited.set(key, (waited.get(key) ?? 0) + wall[row]);
    }
  }
  const bored = new Set();
  for (const [key, ns] of waited) {
    const thread = Number.parseInt(key, 10);
    if (ns >= RULES.waited * (candidates.get(thread) ?? 0)
        && computed.get(thread) < RULES.computed * ns) {
      bored.add(thread);
    }
  }
  return bored;
}

/**
 * Wall and CPU time of samples; if they are missing, what is looked at, and
 * nothing.
 * @param {Part} part
 */
function clocksOf({profile: {samples, valueTypes}, value}) {
  const [wall, cpu] = ['wall_ns', 'cpu_ns'].map((wanted) => samples.values[
    valueTypes.findIndex(({name}) => name === wanted)]);
  return {wall: wall ?? value, cpu};
}

/**
 * The time of each thread that was there for nearly all of the session.
 * @param {Part} part
 * @param {Float64Array} wall
 */
function alwaysThere({profile, rows}, wall) {
  const {samples, threads, durationNs, spanNs, pid} = profile;
  const presentNs = RULES.present
    * (spanNs === null ? durationNs : spanNs[1] - spanNs[0]);
  const totals = new Float64Array(threads.length);
  for (const row of rows) {
    totals[samples.thread[row]] += wall[row];
  }
  return new Map([...totals.entries()].filter(([number, total]) => (
    total >= presentNs && presentNs > 0
    && threads[number].name !== 'MainThread'
    && threads[number].nativeId !== pid)));
}

/**
 * What tells the line at which a stack is in a wait; null: it is known to be
 * none.
 * @param {import('./decode.js').Profile} profile
 */
function waitsOf(profile) {
  const {frames, functions, nodes} = profile;
  const {innermost, called} = innermostPython({profile, nodes});
  return (/** @type {number} */ node) => {
    const frame = innermost[node];
    if (frame < 0) {
      return null;
    }
    const callee = called[node] < 0 ? null
      : functions[frames.func[called[node]]];
    // Without names of C functions nothing tells what it is in.
    return isWait(functions[frames.func[frame]]) || callee === null
      || callee.kind === PSEUDO || isWait(callee)
      ? `${frames.func[frame]},${frames.line[frame]}` : null;
  };
}
