// Tasks: classes of them, values of labels by how long requests took, and who
// held their loop.
//
// This file owns their tables, whose columns are those of
// _formats/tables_of_tasks.py.  It must not know how a table is laid out, nor
// how its rows are worked out.
// @ts-check

import {changeColumns, meanColumns} from './differences.js';
import {button, element, shareClass} from './dom.js';
import {nsCell} from './gil.js';
import {addedUp, pictureOf, toEven} from './histogram.js';
import {joinedHolders, joinedLives} from './joined.js';
import {WITHOUT, exactly, keyOf, keysOf} from './match.js';
import {tableOf} from './table.js';
import {placeCell} from './tables.js';
import {
  NO_LIFE, awaitedOf, classRows, endedOf, hasDelay, hasTasks, latenciesOf,
  lifeNs, loopHolders, valueRows, wholeLife
} from './tasksums.js';
import {DELAY, TASK} from './types.js';
import {brief, counted, grouped, printable, share} from './words.js';

/** @typedef {import('./app.js').App} App */
/** @typedef {import('./tasksums.js').Life} Life */
/** @typedef {import('./tasksums.js').Times} Times */
/** @typedef {import('./tasksums.js').ClassRow} ClassRow */
/** @typedef {import('./tasksums.js').ValueRow} ValueRow */

const AWAITED = 3;
const UNKNOWN = '[unknown]';
// What is compared of how long something took.
const COMPARED = ['mean', 'p99'];
const LIFE_TIME = {name: 'task_ns', kind: TASK, unit: 'nanoseconds'};
const DELAY_TIME = {name: 'delay_ns', kind: DELAY, unit: 'nanoseconds'};

/**
 * The part that is looked at, but of another value.
 * @param {App} app
 * @param {string} kind
 */
function partFor(app, kind) {
  return app.models.of({...app.query, value: `${kind}_ns`}).part;
}

/**
 * The same of the other profile; null: there is none.
 * @param {App} app
 * @param {string} kind
 */
function otherPartFor({otherSide, query}, kind) {
  return otherSide?.models.of({...query, value: `${kind}_ns`}).part ?? null;
}

/**
 * What is said of tasks above all views; nothing if there are none.
 * @param {App} app
 */
export function tasksLine(app) {
  if (!hasTasks(app.model.profile)) {
    return [];
  }
  const part = partFor(app, TASK);
  const {running, loopWait, awaiting} = wholeLife(part);
  const ended = endedOf(part);
  const [first, ...others] = [
    ...ended === null ? [] : [`${grouped(ended)} ended`],
    ...[['running', running], ['loop wait', loopWait], ['awaiting', awaiting]]
      .map(([name, ns]) => `${name} ${share(Number(ns), part.total)}`)];
  return [`Tasks: ${first}`, ...others];
}

/** @param {App} app */
export function tasksView(app) {
  if (!hasTasks(app.model.profile)) {
    return [element(
      'p', {class: 'note'}, 'The lives of tasks are in no time line: ',
      button('All time', () => app.change({time: ''})))];
  }
  const byLabel = byLabelParts(app);
  const isOfRequests = app.profile.lives.latencies.size > 0;
  return [
    ...isOfRequests ? byLabel : [], ...classParts(app),
    ...isOfRequests ? [] : byLabel, ...holderParts(app)];
}

/**
 * How tasks spent their lives, as columns; *each* makes of all what is shown.
 * @template {{life: Life}} Row
 * @param {(row: Row, ns: number) => number} [each]
 * @returns {import('./table.js').Column<Row>[]}
 */
function lifeColumns(each = (_, ns) => ns) {
  return [
    {key: 'states', heading: 'states', kind: 'text', cell: ({life}) => ({
      bars: /** @type {[string, number][]} */ ([
        ['running', life.running], ['loop_wait', life.loopWait],
        ['awaiting', life.awaiting]])
        .filter(([, ns]) => ns)
        .map(([state, ns]) => [state, ns / lifeNs(life)])})},
    {key: 'running', heading: 'running', kind: 'number',
     cell: (row) => nsCell(each(row, row.life.running))},
    {key: 'loop_wait', heading: 'loop wait', kind: 'number',
     cell: (row) => nsCell(each(row, row.life.loopWait))},
    {key: 'awaiting', heading: 'awaiting', kind: 'number',
     cell: (row) => nsCell(each(row, row.life.awaiting))}];
}

/**
 * How long they took: tasks that have ended, or requests.
 * @template {{times: Times | null}} Row
 * @param {App} app
 * @param {(row: Row) => Row | undefined} otherOf
 * @returns {import('./table.js').Column<Row>[]}
 */
function timeColumns(app, otherOf) {
  return (/** @type {('mean' | 'p50' | 'p99' | 'longest')[]} */ (
    ['mean', 'p50', 'p99', 'longest'])).flatMap((key) => [
    /** @type {import('./table.js').Column<Row>} */ ({
      key, heading: key, kind: 'number',
      cell: ({times}) => (times === null ? {} : nsCell(times[key]))}),
    ...COMPARED.includes(key) ? meanColumns(
      app, (/** @type {Row} */ row) => ({
        own: row.times?.[key] ?? null,
        other: otherOf(row)?.times?.[key] ?? null}), key, brief) : []]);
}

/**
 * @template {{life: Life}} Row
 * @param {App} app
 * @param {(row: Row, ns: number) => number} [each]
 * @returns {import('./table.js').Column<Row>}
 */
function awaitedColumn({profile}, each = (_, ns) => ns) {
  return {key: 'awaited', heading: 'awaited', kind: 'text', cell: (row) => ({
    text: awaitedOf(profile, row.life).slice(0, AWAITED).map(([func, ns]) => (
      `${func < 0 ? UNKNOWN : profile.functions[func].name} ${
        brief(each(row, ns))}`)).join(', ')})};
}

/**
 * @template {{life: Life}} Row
 * @param {App} app
 * @param {number} total
 * @param {(row: Row) => Row | undefined} otherOf
 * @returns {import('./table.js').Column<Row>[]}
 */
function lifeShareColumns(app, total, otherOf) {
  return [
    {key: 'life', heading: 'life', kind: 'number', cell: ({life}) => ({
      ...nsCell(lifeNs(life)),
      share: total ? lifeNs(life) / total : 0,
      title: `${share(lifeNs(life), total)} of all lives`})},
    ...changeColumns(app, (/** @type {Row} */ row) => ({
      own: lifeNs(row.life), other: lifeNs(otherOf(row)?.life ?? NO_LIFE)}),
      '', '', LIFE_TIME)];
}

/** @param {App} app */
function classParts(app) {
  const part = partFor(app, TASK);
  const other = otherPartFor(app, TASK);
  const {rows, otherOf} = joinedLives(
    classRows(part), other === null ? [] : classRows(other),
    {life: NO_LIFE, counters: null, times: null});
  const isCounted = rows.some(({counters}) => counters !== null);
  /**
   * @param {'finished' | 'longestStepNs'} key
   * @param {(value: number) => import('./table.js').Cell} cellOf
   */
  const counter = (key, cellOf) => (/** @type {ClassRow} */ {counters}) => (
    counters === null ? {} : cellOf(counters[key]));
  /** @type {import('./table.js').Column<ClassRow>[]} */
  const columns = [
    {key: 'task', heading: 'task', kind: 'text',
     cell: ({name}) => ({text: name ?? UNKNOWN})},
    ...lifeShareColumns(app, part.total, otherOf),
    ...isCounted ? [
      /** @type {import('./table.js').Column<ClassRow>} */ ({
        key: 'finished', heading: 'ended', kind: 'number',
        cell: counter('finished', (value) => (
          {text: grouped(value), value}))}),
      ...meanColumns(app, (/** @type {ClassRow} */ row) => ({
        own: row.counters?.finished ?? null,
        other: otherOf(row)?.counters?.finished ?? null}), 'ended', grouped),
      ...timeColumns(app, otherOf)] : [],
    ...lifeColumns(),
    ...isCounted ? [
      /** @type {import('./table.js').Column<ClassRow>} */ ({
        key: 'longest_step', heading: 'step', kind: 'number',
        cell: counter('longestStepNs', nsCell)})] : [],
    awaitedColumn(app)];
  return [
    element('h2', {}, 'Tasks by how long they lived'),
    ...withDetail('tasks', columns, rows,
                  (row) => classDetail(app, row, otherOf(row)?.times ?? null),
                  ({func}) => app.select(func)),
    ...part.isWhole || !app.profile.lives.classes.size ? [] : [element(
      'p', {class: 'note'}, 'How many tasks ended, and when, is known of all '
      + 'of them, not of a part.')]];
}

/**
 * A table, and below it what is known of the row that was chosen last.
 * @template {{times: Times | null}} Row
 * @param {string} name
 * @param {import('./table.js').Column<Row>[]} columns
 * @param {Row[]} rows
 * @param {(row: Row) => Node[]} detailOf
 * @param {(row: Row) => void} [onselect]
 */
function withDetail(name, columns, rows, detailOf, onselect = () => {}) {
  const first = rows.find(({times}) => times !== null);
  const detail = element('div', {class: 'detail', dataset: {name}},
                         ...first === undefined ? [] : detailOf(first));
  return [
    tableOf(name, columns, rows, {
      isSelected: (row) => row === first,
      onselect: (row) => {
        detail.replaceChildren(...detailOf(row));
        onselect(row);
      }}),
    detail];
}

/**
 * @param {App} app
 * @param {ClassRow} row
 * @param {Times | null} otherTimes
 */
function classDetail(app, {name, counters, times}, otherTimes) {
  const texts = counters === null ? [] : [
    `${grouped(counters.finished)} ended`,
    ...counters.cancelled
      ? [`${grouped(counters.cancelled)} of them by being cancelled`] : [],
    `${counted(counters.steps, 'step')}, the longest ${
      brief(counters.longestStepNs)}`];
  return detailParts(app, name ?? UNKNOWN, texts, [times, otherTimes],
                     ['task_class', name]);
}

/**
 * @param {App} app
 * @param {string} name
 * @param {string[]} texts
 * @param {[Times | null, Times | null]} times here and in the other profile
 * @param {[string, string | null]} where
 */
function detailParts(app, name, texts, times, [key, value]) {
  const {where} = app.query;
  return [
    element('p', {class: 'note'}, element('b', {}, printable(name)),
            texts.length ? `: ${texts.join(', ')} ` : ' ',
            button('Only these', () => app.change({where: [
              ...where, [key, exactly(value ?? WITHOUT)]]}))),
    ...histogramParts(app, key, times)];
}

/**
 * How many took how long: a picture of each profile, and the numbers in them.
 * @param {App} app
 * @param {string} key what they have in common
 * @param {(Times | null)[]} both
 */
function histogramParts({against}, key, both) {
  const known = both.flatMap((times, number) => (times === null ? [] : [{
    times, name: Boolean(number) === !against?.isBase ? 'base' : 'new'}]));
  if (!known.length) {
    return [];
  }
  const whole = known.map(({times: {histogram}}) => histogram).reduce(addedUp);
  const pictures = known.map(({times: {count, histogram}, name}) => ({
    name, count, rows: pictureOf(histogram, whole)}));
  const {rows} = pictures[0];
  /** @param {number} ns */
  const cell = (ns) => ({text: brief(ns), value: ns});
  return [
    ...pictures.flatMap((picture) => [
      ...against === null ? []
        : [element('p', {class: 'note'}, `${picture.name}:`)],
      histogramBars(picture.rows)]),
    element('p', {class: 'ends'},
            element('span', {}, brief(rows[0].first)),
            element('span', {}, 'how many took how long, on a logarithmic '
                    + 'scale'),
            element('span', {}, brief(rows[rows.length - 1].behind))),
    element('details', {}, element('summary', {}, 'these numbers'),
            tableOf(`times of ${key}`, [
              {key: 'first', heading: 'from', kind: 'number',
               cell: ({first}) => cell(first)},
              {key: 'behind', heading: 'to', kind: 'number',
               cell: ({behind}) => cell(behind)},
              ...pictures.flatMap((picture) => countColumns(
                picture, against === null ? '' : `${picture.name} `))],
            rows.map(({first, behind}, at) => ({first, behind, at}))))];
}

/** @param {ReturnType<typeof pictureOf>} rows */
function histogramBars(rows) {
  const most = Math.max(...rows.map(({count}) => count));
  return element(
    'div', {class: 'histogram', 'aria-hidden': 'true'},
    ...rows.map(({first, behind, count}) => element('span', {
      class: count ? shareClass(count / most) : 'none',
      title: `${brief(first)} to ${brief(behind)}: ${grouped(count)}`})));
}

/**
 * The numbers of a picture; rows are known by where they are in it.
 * @param {{count: number, rows: ReturnType<typeof pictureOf>}} picture
 * @param {string} prefix of headings
 * @returns {import('./table.js').Column<
 *   {first: number, behind: number, at: number}>[]}
 */
function countColumns({count, rows}, prefix) {
  const most = Math.max(...rows.map((row) => row.count));
  let before = 0;
  const until = rows.map((row) => {
    before += row.count;
    return before;
  });
  const key = prefix.trim() && `${prefix.trim()}_`;
  return [
    {key: `${key}count`, heading: `${prefix}count`, kind: 'number',
     cell: ({at}) => ({text: grouped(rows[at].count), value: rows[at].count,
                       share: rows[at].count / most})},
    {key: `${key}until`, heading: `${prefix}not longer`, kind: 'number',
     cell: ({at}) => ({text: share(until[at], count)})}];
}

/** What has values that tasks can be told apart by; @param {App} app */
export function lifeKeys({profile}) {
  const keys = [...profile.lives.latencies.values()].map(
    ({key}) => keyOf(key));
  return [...new Set([...keys, ...keysOf(profile).filter((key) => (
    key !== 'thread' && key !== 'state' && key !== 'task_class'))])];
}

/** Tasks and requests by a label; @param {App} app */
function byLabelParts(app) {
  const keys = lifeKeys(app);
  if (!keys.length) {
    return [];
  }
  const key = keys.includes(app.query.by) ? app.query.by : keys[0];
  const part = partFor(app, TASK);
  const otherPart = otherPartFor(app, TASK);
  const all = valueRows(part, key);
  const others = otherPart === null ? [] : valueRows(otherPart, key);
  const isOfRequests = [...all, ...others].some(({times}) => times !== null);
  const [here, there] = [all, others].map((rows) => (
    isOfRequests ? requestsOf(rows) : rows));
  const {rows, otherOf} = joinedLives(
    here, there, {life: NO_LIFE, times: null, spawned: 0});
  const choice = element(
    'select', {'aria-label': 'tasks by',
               onchange: () => app.change({by: choice.value})},
    ...keys.map((name) => element(
      'option', {value: name, selected: name === key}, printable(name))));
  const rest = all.filter(({times}) => times === null).reduce(
    (sum, {life}) => sum + lifeNs(life), 0);
  const isPartOf = !part.isWhole && latenciesOf(part, key).length > 0;
  return [
    element('h2', {}, isOfRequests ? 'Requests by ' : 'Tasks by ', choice),
    ...withDetail('tasks_by',
                  valueColumns(app, key, part.total, rows, otherOf), rows,
                  (row) => detailParts(
                    app, row.name ?? WITHOUT, row.times === null ? []
                      : [counted(row.times.count, 'request')],
                    [row.times, otherOf(row)?.times ?? null],
                    [key, row.name])),
    ...isOfRequests && rest ? [element(
      'p', {class: 'note'}, `Tasks in no request: ${brief(rest)}`)] : [],
    ...isPartOf ? [element(
      'p', {class: 'note'}, 'How long requests took is known of all of them, '
      + 'not of a part.')] : []];
}

/**
 * Those that are of requests, all of which took longest first.
 * @param {ValueRow[]} rows
 */
function requestsOf(rows) {
  return rows.filter(({times}) => times !== null).sort(
    (one, other) => latencySum(other) - latencySum(one));
}

/** How long all requests took together; @param {ValueRow} row */
function latencySum({times}) {
  return times === null ? 0 : times.mean * times.count;
}

/**
 * @param {App} app
 * @param {string} key
 * @param {number} total
 * @param {ValueRow[]} rows
 * @param {(row: ValueRow) => ValueRow | undefined} otherOf
 * @returns {import('./table.js').Column<ValueRow>[]}
 */
function valueColumns(app, key, total, rows, otherOf) {
  const isOfRequests = rows.some(
    (row) => (row.times ?? otherOf(row)?.times ?? null) !== null);
  /**
   * What one request has in the mean.
   * @param {ValueRow} row
   * @param {number} ns
   */
  const each = ({times}, ns) => (times === null ? ns
    : toEven(ns / times.count));
  return [
    {key: 'value', heading: key, kind: 'text',
     cell: ({name}) => ({text: name ?? WITHOUT})},
    ...isOfRequests ? [
      ...timeColumns(app, otherOf),
      /** @type {import('./table.js').Column<ValueRow>} */ ({
        key: 'count', heading: 'count', kind: 'number',
        cell: ({times}) => ({text: grouped(times?.count ?? 0),
                             value: times?.count})}),
      ...meanColumns(app, (/** @type {ValueRow} */ row) => ({
        own: row.times?.count ?? null,
        other: otherOf(row)?.times?.count ?? null}), 'count', grouped)]
      : lifeShareColumns(app, total, otherOf),
    ...lifeColumns(each),
    ...rows.some(({spawned}) => spawned) ? [
      /** @type {import('./table.js').Column<ValueRow>} */ ({
        key: 'spawned', heading: 'spawned', kind: 'number',
        cell: (row) => nsCell(each(row, row.spawned))})] : [],
    awaitedColumn(app, each)];
}

/** What held a loop while others waited for it; @param {App} app */
function holderParts(app) {
  if (!hasDelay(app.profile)) {
    return [];
  }
  const part = partFor(app, DELAY);
  const other = otherPartFor(app, DELAY);
  const {rows, otherOf} = joinedHolders(
    app, loopHolders(part), other === null ? [] : loopHolders(other));
  const {functions} = app.profile;
  const isGilWaited = rows.some(({isGilWait}) => isGilWait);
  return [
    element('h2', {}, 'Held the loop while others waited'),
    tableOf('loop_holders', [
      {key: 'share', heading: 'share', kind: 'number', cell: ({ns}) => ({
        text: share(ns, part.total),
        share: part.total ? ns / part.total : 0})},
      {key: 'delay', heading: 'delay', kind: 'number',
       cell: ({ns}) => nsCell(ns)},
      ...changeColumns(app, (/** @type {typeof rows[0]} */ row) => (
        {own: row.ns, other: otherOf(row)?.ns ?? 0}), '', '', DELAY_TIME),
      {key: 'longest', heading: 'longest step', kind: 'number',
       cell: ({longest}) => (longest === null ? {} : nsCell(longest))},
      ...isGilWaited ? [
        /** @type {import('./table.js').Column<typeof rows[0]>} */ ({
          key: 'held', heading: 'held', kind: 'text',
          cell: ({isGilWait}) => ({text: isGilWait ? 'GIL' : 'loop'})})] : [],
      {key: 'holder', heading: isGilWaited ? 'by' : 'held by', kind: 'text',
       cell: ({func, line}) => placeCell(app, func, line)},
      {key: 'callee', heading: 'in', kind: 'text', cell: ({callee}) => (
        {text: callee < 0 ? '' : functions[callee].name})},
      {key: 'task', heading: 'task', kind: 'text',
       cell: ({task, isGilWait}) => (
         {text: isGilWait ? '[other thread]' : task ?? '[no task]'})}],
    rows, app.choosing(({func}) => func))];
}
