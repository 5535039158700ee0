// The tables by call site and by function.
//
// This file owns what their columns are, which are those of the report.  It
// must not know how a table is laid out, nor how its rows are worked out.
// @ts-check

import {ranksOf} from './confidence.js';
import {changeColumns} from './differences.js';
import {element} from './dom.js';
import {KINDS, PYTHON} from './functions.js';
import {joinedFunctions, joinedSites} from './joined.js';
import {RUNNING, STATES} from './labels.js';
import {tableOf} from './table.js';
import {
  amount, briefAmount, counted, percent, printable, stateName
} from './words.js';

/** @typedef {import('./app.js').App} App */
/** @typedef {import('./sums.js').StateSums} StateSums */
/** @typedef {import('./sites.js').SiteRow} SiteRow */
/** @typedef {import('./sites.js').FunctionRow} FunctionRow */
/** @typedef {import('./table.js').Cell} Cell */

// Of the time of a line: a callee below is not told.
const HARDLY = 0.1;
const MOSTLY = 0.95;

/**
 * A value with its unit.
 * @param {App} app
 * @param {number} value
 * @param {boolean} [faint]
 * @returns {Cell}
 */
export function valueCell({model: {part: {type}}}, value, faint = false) {
  return {text: value ? briefAmount(value, type) : '-', value, faint,
          title: amount(value, type)};
}

/**
 * How far a sum of running time may be off.
 * @param {App} app
 * @param {number} records of running code
 * @returns {Cell}
 */
export function marginCell({model: {sites, part: {type}}}, records) {
  const margin = sites.precision.margin(records);
  return margin === null ? {}
    : {text: margin ? briefAmount(margin, type) : '-', value: margin};
}

/**
 * Whether chance may be a large part of a value.
 * @param {App} app
 * @param {StateSums} sums
 */
function isWeak({model: {sites: {precision}}}, {total, records}) {
  const margin = precision.margin(records);
  return margin !== null && margin > total / 2;
}

/**
 * The columns that say what threads did.
 * @template Row
 * @param {App} app
 * @param {Row[]} rows
 * @param {(row: Row) => StateSums} sumsOf
 * @returns {import('./table.js').Column<Row>[]}
 */
export function stateColumns(app, rows, sumsOf) {
  const {sites: {busy, precision}} = app.model;
  const ranks = ranksOf(rows.map(sumsOf), precision);
  const numbers = new Map(rows.map((row, number) => [row, number]));
  const states = STATES.map((_, state) => state).filter((state) => (
    state === RUNNING || rows.some((row) => sumsOf(row).byState[state])));
  return [
    {key: 'rank', heading: '#', kind: 'number', cell: (row) => {
      const {rank, isTied} = ranks[numbers.get(row) ?? 0];
      return {text: `${rank}${isTied ? ' =' : ''}`, value: rank,
              title: isTied ? 'chance may have put these rows in this order'
                : undefined};
    }},
    {key: 'self_share', heading: 'self', kind: 'number', cell: (row) => {
      const share = busy ? sumsOf(row).total / busy : 0;
      return {text: percent(share), share, faint: isWeak(app, sumsOf(row))};
    }},
    {key: 'self', heading: 'value', kind: 'number',
     cell: (row) => valueCell(app, sumsOf(row).total,
                              isWeak(app, sumsOf(row)))},
    ...precision.isKnown ? [
      marginColumn(app, (row) => sumsOf(row).records)] : [],
    {key: 'states', heading: 'states', kind: 'text',
     cell: (row) => stateCells(sumsOf(row))},
    ...states.map((state) => stateColumn(app, state, sumsOf))];
}

/**
 * The columns of the other profile.
 * @template Row
 * @param {App} app
 * @param {(row: Row) => StateSums} sumsOf
 * @param {(row: Row) => StateSums | undefined} othersOf
 */
export function changedSums(app, sumsOf, othersOf) {
  return changeColumns(app, (/** @type {Row} */ row) => {
    const sums = sumsOf(row);
    const others = othersOf(row);
    return {own: sums.total, other: others?.total ?? 0,
            margin: app.against?.margin(sums.records,
                                        others?.records ?? 0)};
  });
}

/**
 * What threads did, as a bar.
 * @param {StateSums} sums
 * @returns {Cell}
 */
export function stateCells({byState, total}) {
  return {bars: STATES.map((state, number) => (
    /** @type {[string, number]} */ ([state, byState[number] / total])))
    .filter(([, share]) => share > 0)};
}

/**
 * @template Row
 * @param {App} app
 * @param {(row: Row) => number} recordsOf
 * @returns {import('./table.js').Column<Row>}
 */
function marginColumn(app, recordsOf) {
  return {key: 'margin', heading: '±', kind: 'number',
          cell: (row) => marginCell(app, recordsOf(row))};
}

/**
 * @template Row
 * @param {App} app
 * @param {number} state
 * @param {(row: Row) => StateSums} sumsOf
 * @returns {import('./table.js').Column<Row>}
 */
function stateColumn(app, state, sumsOf) {
  return {key: STATES[state], heading: stateName(STATES[state]),
          kind: 'number',
          cell: (row) => valueCell(app, sumsOf(row).byState[state])};
}

/**
 * Where something is, as people write it.
 * @param {App} app
 * @param {number} func
 * @param {number} line
 * @returns {Cell}
 */
export function placeCell({profile}, func, line) {
  if (func < 0) {
    return {text: '[no frames]'};
  }
  const {name, filename, firstLine, kind} = profile.functions[func];
  return {
    text: `${name || '[no name]'}${line ? `:${line}` : ''}`,
    title: kind === PYTHON
      ? printable(`${filename}:${line || firstLine}`) : KINDS[kind]};
}

/** @param {App} app */
export function sitesView(app) {
  const {sites, part} = app.model;
  const {rows: all, otherOf} = joinedSites(app);
  const rows = app.found(all, ({func}) => func);
  const notes = sites.nowhere.map(([state, value]) => (
    `[${STATES[state]}] ${briefAmount(value, part.type)}: on no line`));
  if (sites.idle) {
    notes.push(`[idle] ${briefAmount(sites.idle, part.type)} in `
      + `${counted(sites.idleThreads, 'thread')} that had nothing to do: `
      + sites.idleRows.slice(0, 3).map(
        ({func, line}) => printable(placeCell(app, func, line).text ?? ''))
        .join(', '));
  }
  return [
    tableOf('sites', [
      ...stateColumns(app, rows, ({sums}) => sums),
      ...changedSums(app, (row) => row.sums, (row) => otherOf(row)?.sums),
      {key: 'site', heading: 'line', kind: 'text',
       cell: ({func, line}) => placeCell(app, func, line)},
      {key: 'in', heading: 'in', kind: 'text',
       cell: (row) => ({text: mostlyIn(app, row)})}],
    rows, app.choosing(({func}) => func)),
    ...notes.map((note) => element('p', {class: 'note'}, note))];
}

/**
 * What most of the time of a line was in.
 * @param {App} app
 * @param {SiteRow} row
 */
function mostlyIn({profile}, {callees, sums}) {
  const [first] = callees;
  if (first === undefined || first[1] < HARDLY * sums.total) {
    return '';
  }
  const {name} = profile.functions[first[0]];
  return first[1] < MOSTLY * sums.total
    ? `${name} ${(100 * first[1] / sums.total).toFixed(0)}%` : name;
}

/** @param {App} app */
export function functionsView(app) {
  const {query: {sort}, model} = app;
  const {total, type} = model.part;
  const {rows: all, otherOf} = joinedFunctions(app, sort);
  const rows = app.found(all, ({func}) => func);
  /** @param {number} value */
  const shareCell = (value) => ({
    text: total ? percent(value / total) : '-',
    share: total ? value / total : 0});
  /**
   * @param {'self' | 'cum'} key
   * @param {(row: FunctionRow) => Cell} cell
   * @returns {import('./table.js').Column<FunctionRow>}
   */
  const column = (key, cell) => ({
    key: `${key}_share`, heading: key, kind: 'number', isSorted: sort === key,
    onsort: () => app.change({sort: key}), cell});
  return [
    tableOf('functions', [
      column('self', ({self}) => shareCell(self)),
      column('cum', ({cum}) => shareCell(cum)),
      {key: 'self', heading: `self ${type.kind}`, kind: 'number',
       cell: ({self}) => valueCell(app, self)},
      {key: 'self_margin', heading: '±', kind: 'number',
       cell: ({selfRecords}) => marginCell(app, selfRecords)},
      {key: 'cum', heading: `cum ${type.kind}`, kind: 'number',
       cell: ({cum}) => valueCell(app, cum)},
      {key: 'cum_margin', heading: '±', kind: 'number',
       cell: ({cumRecords}) => marginCell(app, cumRecords)},
      ...changeColumns(app, (/** @type {FunctionRow} */ row) => {
        const other = otherOf(row);
        return sort === 'cum'
          ? {own: row.cum, other: other?.cum ?? 0, margin: app.against?.margin(
            row.cumRecords, other?.cumRecords ?? 0)}
          : {own: row.self, other: other?.self ?? 0,
             margin: app.against?.margin(
               row.selfRecords, other?.selfRecords ?? 0)};
      }),
      {key: 'function', heading: 'function', kind: 'text',
       cell: ({func}) => placeCell(app, func, 0)},
      {key: 'place', heading: 'place', kind: 'text',
       cell: ({func}) => ({text: placeOf(app, func)})}],
    rows, app.choosing(({func}) => func))];
}

/**
 * @param {App} app
 * @param {number} func
 */
function placeOf({profile}, func) {
  const {filename, firstLine, kind} = profile.functions[func];
  return kind === PYTHON ? `${filename}:${firstLine}` : KINDS[kind];
}
