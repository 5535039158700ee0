// What the query asks for, as buttons.
//
// This file owns how each part of it is taken back.  It must not know what the
// query does.
// @ts-check

import {button, element} from './dom.js';
import {toOptions} from './query.js';
import {printable} from './words.js';

/** @typedef {import('./app.js').App} App */

/**
 * What is asked for, each with a button that takes it back.
 * @param {App} app
 */
export function chipsOf(app) {
  const {query} = app;
  const chips = query.where.map(([key, pattern], number) => button(
    `${key} = ${printable(pattern)} ×`, () => app.change({
      where: query.where.filter((_, at) => at !== number)})));
  for (const name of /** @type {const} */ (
    ['focus', 'ignore', 'hide', 'collapse'])) {
    query[name].forEach((pattern, number) => chips.push(button(
      `${name} ${printable(pattern)} ×`, () => app.change({
        [name]: query[name].filter((_, at) => at !== number)}))));
  }
  if (query.root) {
    chips.push(button(`root ${printable(query.root)} ×`,
                      () => app.change({root: ''})));
  }
  for (const name of /** @type {const} */ (['time', 'than', 'zoom'])) {
    if (query[name]) {
      const range = printable(query[name]).replace(',', ' to ');
      chips.push(button(`${name} ${range} s ×`,
                        () => app.change({[name]: ''})));
    }
  }
  if (chips.length) {
    chips.push(button('undo', () => app.steps.back(),
                      {disabled: !app.steps.count}));
  }
  const {part: {type, isDifference}} = app.model;
  const options = toOptions(
    query, query.value && !isDifference ? type.kind : '');
  return [...chips, ...options
    ? [element('code', {title: 'the same part in the command report'},
               `report ${options}`)] : []];
}
