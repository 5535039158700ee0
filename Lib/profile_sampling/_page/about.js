// Tables of the whole: what labels cost, and how good the profile is.
//
// This file owns the pivot of labels by states, and the counters.  It must not
// know how a table is laid out.
// @ts-check

import {element} from './dom.js';
import {qualityLine} from './header.js';
import {joinedValues} from './joined.js';
import {exactly, keysOf, valuesOf} from './match.js';
import {stateSums} from './sums.js';
import {tableOf} from './table.js';
import {changedSums, stateColumns, valueCell} from './tables.js';
import {grouped, printable} from './words.js';

/** @typedef {import('./app.js').App} App */
/** @typedef {import('./sums.js').StateSums} StateSums */

/**
 * What each value of a key cost; idle time is apart.
 * @param {import('./model.js').Model} model
 * @param {string} key
 */
export function rowsBy({profile, whole: part, isIdle}, key) {
  const {of, texts} = valuesOf(profile, key);
  const busy = stateSums(
    part, (row) => (isIdle[row] ? -1 : of[row]), texts.length);
  const idle = stateSums(
    part, (row) => (isIdle[row] ? of[row] : -1), texts.length);
  const used = new Set(Array.from(part.rows, (row) => of[row]));
  return texts.map((text, number) => (
    {text, number, idle: idle[number].total,
     sums: busy[number]}))
    .filter(({number}) => used.has(number))
    .sort((one, other) => other.sums.total - one.sums.total
      || other.idle - one.idle || (one.text < other.text ? -1 : 1));
}

/** @param {App} app */
export function pivotView(app) {
  const keys = keysOf(app.profile);
  const key = keys.includes(app.query.by) ? app.query.by : keys[0];
  const choice = element(
    'select', {'aria-label': 'key',
               onchange: () => app.change({by: choice.value})},
    ...keys.map((name) => element(
      'option', {value: name, selected: name === key}, printable(name))));
  const {rows, otherOf} = joinedValues(
    rowsBy(app.model, key),
    app.against === null ? [] : rowsBy(app.against.rival, key));
  const {where} = app.query;
  return [
    element('div', {class: 'bar-of-tools'}, element(
      'label', {}, 'by ', choice)),
    tableOf('by', [
      ...stateColumns(app, rows, ({sums}) => sums),
      ...changedSums(app, (row) => row.sums, (row) => otherOf(row)?.sums),
      ...app.model.sites.idle ? [
        /** @type {import('./table.js').Column<(typeof rows)[0]>} */ ({
          key: 'idle', heading: 'idle', kind: 'number',
          cell: ({idle}) => valueCell(app, idle)})] : [],
      {key: 'value', heading: key, kind: 'text',
       cell: ({text}) => ({text, title: 'Enter or click: only these'})}],
    rows, {onselect: ({text}) => app.change(
      {where: [...where, [key, exactly(text)]]})})];
}

/**
 * @param {import('./decode.js').Profile} profile
 * @returns {[string, string][]}
 */
function countersOf({meta, stats}) {
  return [...meta, ...[...stats].map(([name, value]) => (
    /** @type {[string, string]} */ ([name, grouped(value)])))];
}

/** @param {App} app */
export function qualityView(app) {
  const {model, profile} = app;
  const facts = qualityLine(model.part, model.sites);
  const rows = countersOf(profile);
  const others = new Map(app.against === null ? []
    : countersOf(app.against.rival.profile));
  return [
    element('h2', {}, 'How far this profile can be trusted'),
    element('ul', {}, ...facts.map((text) => element('li', {}, text))),
    element('h2', {}, 'Counters'),
    tableOf('stats', [
      {key: 'value', heading: 'value', kind: 'number', cell: ([, value]) => (
        {text: value})},
      ...app.against === null ? [] : [
        /** @type {import('./table.js').Column<[string, string]>} */ ({
          key: 'other', heading: app.against.isBase ? 'new' : 'base',
          kind: 'number', cell: ([name]) => ({text: others.get(name)})})],
      {key: 'counter', heading: 'counter', kind: 'text',
       cell: ([name]) => ({text: name})}], rows)];
}
