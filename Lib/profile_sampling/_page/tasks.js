// What the lives of tasks were spent in, and who held their loop.
//
// This file owns the sums per class of tasks, as _data/by_task.py and
// _formats/tables_of_tasks.py have them, and their tables.  It must not know
// how a table is laid out.
//
// What counters know of all tasks, such as how many have ended, is in the
// report: here there are sums over samples.
// @ts-check

import {element} from './dom.js';
import {PSEUDO} from './functions.js';
import {nsCell} from './gil.js';
import {AWAITING, LOOP_WAIT} from './labels.js';
import {innermostPython} from './sums.js';
import {tableOf} from './table.js';
import {placeCell} from './tables.js';
import {DELAY, TASK} from './types.js';
import {brief, share} from './words.js';

/** @typedef {import('./app.js').App} App */
/** @typedef {import('./part.js').Part} Part */

const AWAITED = 3;
const UNKNOWN = '[unknown]';

/**
 * awaited  by the number of a function, -1: none
 *
 * @typedef {object} Life
 * @property {string} name
 * @property {number} running
 * @property {number} loopWait
 * @property {number} awaiting
 * @property {Map<number, number>} awaited
 */

/** @param {import('./decode.js').Profile} profile */
export function hasTasks({valueTypes}) {
  return valueTypes.some(({kind}) => kind === TASK);
}

/**
 * The part that is looked at, but of another value.
 * @param {App} app
 * @param {string} kind
 */
function partFor(app, kind) {
  return app.models.of({...app.query, value: `${kind}_ns`}).part;
}

/**
 * @param {Part} part
 * @returns {Life[]}
 */
export function livesOf({profile, rows, value, nodes, nodeOf}) {
  const {samples, labels, frames} = profile;
  /** @type {Map<string, Life>} */
  const lives = new Map();
  for (const row of rows) {
    const name = labels[samples.labels[row]].labels.get('task_class')
      ?? UNKNOWN;
    const life = lives.get(name) ?? {
      name, running: 0, loopWait: 0, awaiting: 0, awaited: new Map()};
    lives.set(name, life);
    const ns = value[row];
    if (samples.state[row] === AWAITING) {
      // The leaf says that it is awaited.
      const node = nodes.parent[nodeOf[row]];
      const func = node ? frames.func[nodes.frame[node]] : -1;
      life.awaiting += ns;
      life.awaited.set(func, (life.awaited.get(func) ?? 0) + ns);
    } else if (samples.state[row] === LOOP_WAIT) {
      life.loopWait += ns;
    } else {
      life.running += ns;
    }
  }
  return [...lives.values()].sort((one, other) => (
    lifeNs(other) - lifeNs(one) || (one.name < other.name ? -1 : 1)));
}

/** @param {Life} life */
function lifeNs({running, loopWait, awaiting}) {
  return running + loopWait + awaiting;
}

/**
 * What is said of tasks above all views; nothing if there are none.
 * @param {App} app
 */
export function tasksLine(app) {
  if (!hasTasks(app.profile)) {
    return [];
  }
  const {part} = app.models.of({...app.query, value: `${TASK}_ns`});
  const sums = livesOf(part).reduce((all, life) => [
    all[0] + life.running, all[1] + life.loopWait, all[2] + life.awaiting],
  [0, 0, 0]);
  return ['running', 'loop wait', 'awaiting'].map((name, number) => (
    `${number ? '' : 'Tasks: '}${name} ${share(sums[number], part.total)}`));
}

/** @param {App} app */
export function tasksView(app) {
  const part = partFor(app, TASK);
  const {functions} = app.profile;
  /** @param {[number, number]} awaited */
  const named = ([func, ns]) => (
    `${func < 0 ? UNKNOWN : functions[func].name} ${brief(ns)}`);
  /** @type {import('./table.js').Column<Life>[]} */
  const columns = [
    {key: 'share', heading: 'share', kind: 'number', cell: (life) => ({
      text: share(lifeNs(life), part.total),
      share: part.total ? lifeNs(life) / part.total : 0})},
    {key: 'life', heading: 'life', kind: 'number',
     cell: (life) => nsCell(lifeNs(life))},
    {key: 'states', heading: 'states', kind: 'text', cell: (life) => ({
      bars: /** @type {[string, number][]} */ ([
        ['running', life.running], ['loop_wait', life.loopWait],
        ['awaiting', life.awaiting]])
        .filter(([, ns]) => ns)
        .map(([state, ns]) => [state, ns / lifeNs(life)])})},
    {key: 'running', heading: 'running', kind: 'number',
     cell: ({running}) => nsCell(running)},
    {key: 'loop_wait', heading: 'loop wait', kind: 'number',
     cell: ({loopWait}) => nsCell(loopWait)},
    {key: 'awaiting', heading: 'awaiting', kind: 'number',
     cell: ({awaiting}) => nsCell(awaiting)},
    {key: 'task', heading: 'task', kind: 'text',
     cell: ({name}) => ({text: name})},
    {key: 'awaited', heading: 'awaited', kind: 'text', cell: ({awaited}) => ({
      text: [...awaited].sort((one, other) => other[1] - one[1])
        .slice(0, AWAITED).map(named).join(', ')})}];
  return [
    element('h2', {}, 'Tasks by how long they lived'),
    tableOf('tasks', columns, livesOf(part)), ...holdersOf(app)];
}

/** What ran in a loop while others waited for it; @param {App} app */
function holdersOf(app) {
  if (!app.profile.valueTypes.some(({kind}) => kind === DELAY)) {
    return [];
  }
  const part = partFor(app, DELAY);
  const {profile, rows, nodeOf, value} = part;
  const {samples, frames, functions, labels} = profile;
  const {innermost, called} = innermostPython(part);
  /** @type {Map<string, {func: number, line: number, task: string,
   *                      ns: number, callees: Map<number, number>}>} */
  const holders = new Map();
  for (const row of rows) {
    const node = nodeOf[row];
    const frame = innermost[node];
    const func = frame < 0 ? -1 : frames.func[frame];
    const line = frame < 0 ? 0 : frames.line[frame];
    const callee = called[node] < 0 ? -1 : frames.func[called[node]];
    const task = labels[samples.labels[row]].labels.get('task_class')
      ?? '[no task]';
    const key = `${func},${line},${task}`;
    const known = holders.get(key)
      ?? {func, line, task, ns: 0, callees: new Map()};
    known.ns += value[row];
    known.callees.set(callee, (known.callees.get(callee) ?? 0) + value[row]);
    holders.set(key, known);
  }
  const ranked = [...holders.values()].sort(
    (one, other) => other.ns - one.ns);
  return [
    element('h2', {}, 'Held the loop while others waited'),
    tableOf('loop_holders', [
      {key: 'share', heading: 'share', kind: 'number', cell: ({ns}) => ({
        text: share(ns, part.total), share: part.total ? ns / part.total : 0})},
      {key: 'delay', heading: 'delay', kind: 'number',
       cell: ({ns}) => nsCell(ns)},
      {key: 'holder', heading: 'held by', kind: 'text',
       cell: ({func, line}) => placeCell(app, func, line)},
      {key: 'callee', heading: 'in', kind: 'text', cell: ({callees}) => {
        const [[callee]] = [...callees].sort(
          (one, other) => other[1] - one[1]);
        const kind = functions[callee]?.kind ?? PSEUDO;
        return {text: kind === PSEUDO ? '' : functions[callee].name};
      }},
      {key: 'task', heading: 'task', kind: 'text',
       cell: ({task}) => ({text: task})}],
    ranked, app.choosing(({func}) => func))];
}
