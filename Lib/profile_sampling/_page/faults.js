// What of an address cannot be shown.
//
// This file owns what is said of views, values and others that there are none
// of.  It must not know what is shown instead.
// @ts-check

import {keysOf} from './match.js';
import {valueChoices} from './part.js';
import {FOLDS, NO_QUERY} from './query.js';
import {lifeKeys} from './tasks.js';

/** @typedef {import('./app.js').App} App */

/**
 * A sentence for each thing that a query asks for and that is not there.
 * @param {App} app
 * @param {string[]} views
 */
export function faultsOf(app, views) {
  const {query, profile, names, sides} = app;
  const {view, value, by, sort, fold, selected, side, scale} = query;
  /** @type {[string, string[], string[]][]} */
  const asked = [
    ['view', [view], views], ['order', [sort], ['self', 'cum']],
    ['kind of frames', fold, FOLDS],
    ['label', [by], [...new Set([...keysOf(profile), ...lifeKeys(app)])]],
    ['value', [value], ['', ...valueChoices(profile).map(({name}) => name)]],
    ['second profile', [side, scale],
     sides.length > 1 ? ['', 'base', 'share'] : ['']]];
  const faults = asked.flatMap(([what, texts, known]) => texts
    .filter((text) => !known.includes(text))
    .map((text) => `There is no ${what} "${text}" here; there `
                   + `${known.length > 1 ? 'are' : 'is'}: ${
                     known.filter(Boolean).join(', ') || 'none'}.`));
  if (selected !== NO_QUERY.selected && !names.numbers.has(selected)) {
    faults.push(`There is no function "${selected}" in this profile.`);
  }
  return faults;
}
