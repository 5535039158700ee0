// What stands out in the profile, in words.
//
// This file owns which view shows more of a finding.  It must not find any:
// _formats/findings.py does, and puts its sentences into the page.
// @ts-check

import {button, element} from './dom.js';
import {exactly} from './match.js';
import {NO_QUERY, partKey} from './query.js';
import {printable} from './words.js';

/** @typedef {import('./app.js').App} App */
/** @typedef {import('./query.js').Query} Query */
/** @typedef {{rule: string, text: string}} Finding */

/** @param {string} state */
function lines(state) {
  return {view: 'sites', where: /** @type {[string, string][]} */ (
    [['state', exactly(state)]])};
}

/** @type {Record<string, Partial<Query>>} */
const MORE = {
  gil: {view: 'gil'}, gil_asleep: lines('asleep_with_gil'),
  loop_blocked: {...lines('waiting'), value: 'task_ns'},
  loop_wait: {view: 'tasks'},
  waiting: lines('waiting'), cpu_wait: lines('cpu_wait'), gc: lines('gc'),
  generic: {view: 'source'}, few: {view: 'quality'}};

/**
 * What tasks did on their loop's thread is in a value of theirs, if the profile
 * has it.
 * @param {string} rule
 * @param {App} app
 */
function moreOf(rule, {profile}) {
  const {value = '', ...more} = MORE[rule];
  return profile.valueTypes.some(({name}) => name === value)
    ? {...more, value} : more;
}

/**
 * The findings, which are of the whole profile: of a part there are none.
 * @param {App} app
 */
export function findingLines(app) {
  const isWhole = partKey(
    {...app.query, value: '', idle: false}) === partKey(NO_QUERY)
    && app.side === app.sides[0];
  const views = app.views().map(([view]) => view);
  return app.findings.filter(() => isWhole).map(({rule, text}) => element(
    'p', {class: 'finding', dataset: {rule}}, printable(text), ' ',
    ...views.includes(MORE[rule]?.view ?? '')
      ? [button('show', () => app.change(moreOf(rule, app)))] : []));
}
