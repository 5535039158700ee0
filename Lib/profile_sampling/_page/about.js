// Tables of the whole: what labels cost, and how good the profile is.
//
// This file owns the pivot of labels by states, and the counters.  It must not
// know how a table is laid out.
// @ts-check

import {element} from './dom.js';
import {qualityLine} from './header.js';
import {exactly, keysOf, valuesOf} from './match.js';
import {stateSums} from './sums.js';
import {tableOf} from './table.js';
import {stateColumns, valueCell} from './tables.js';
import {grouped, printable} from './words.js';

/** @typedef {import('./app.js').App} App */
/** @typedef {import('./sums.js').StateSums} StateSums */

/**
 * What each value of a key cost; idle time is apart.
 * @param {App} app
 * @param {string} key
 */
export function rowsBy(app, key) {
  const {part, sites: {isIdle}} = app.model;
  const {of, texts} = valuesOf(app.profile, key);
  const busy = stateSums(
    part, (row) => (isIdle[row] ? -1 : of[row]), texts.length);
  const idle = stateSums(
    part, (row) => (isIdle[row] ? of[row] : -1), texts.length);
  const used = new Set(Array.from(part.rows, (row) => of[row]));
  return texts.map((text, number) => (
    {text, number, sums: busy[number], idle: idle[number].total}))
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
  const rows = rowsBy(app, key);
  const {where} = app.query;
  return [
    element('div', {class: 'bar-of-tools'}, element(
      'label', {}, 'by ', choice)),
    tableOf('by', [
      ...stateColumns(app, rows, ({sums}) => sums),
      ...app.model.sites.idle ? [
        /** @type {import('./table.js').Column<(typeof rows)[0]>} */ ({
          key: 'idle', heading: 'idle', kind: 'number',
          cell: ({idle}) => valueCell(app, idle)})] : [],
      {key: 'value', heading: key, kind: 'text',
       cell: ({text}) => ({text, title: 'Enter or click: only these'})}],
    rows, {onselect: ({text}) => app.change(
      {where: [...where, [key, exactly(text)]]})})];
}

/** @param {App} app */
export function qualityView(app) {
  const {model, profile} = app;
  const facts = qualityLine(model.part, model.sites);
  const rows = [...profile.meta, ...[...profile.stats].map(
    ([name, value]) => [name, grouped(value)])];
  return [
    element('h2', {}, 'How far this profile can be trusted'),
    element('ul', {}, ...facts.map((text) => element('li', {}, text))),
    element('h2', {}, 'Counters'),
    tableOf('stats', [
      {key: 'value', heading: 'value', kind: 'number', cell: ([, value]) => (
        {text: value})},
      {key: 'counter', heading: 'counter', kind: 'text',
       cell: ([name]) => ({text: name})}], rows)];
}
