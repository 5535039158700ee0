// What is shown of changes: columns, colours, and the table that Python made.
//
// This file owns how changes are written.  It must not work them out, nor say
// whether runs differ: that is Python's business.
// @ts-check

import {button, element} from './dom.js';
import {KINDS} from './functions.js';
import {NO_QUERY, partKey} from './query.js';
import {tableOf} from './table.js';
import {
  amount, briefAmount, counted, percent, printable, share, titleOf
} from './words.js';

/** @typedef {import('./app.js').App} App */
/** @typedef {import('./against.js').TreeAgainst} TreeAgainst */
/** @typedef {import('./types.js').ValueType} ValueType */
/** @typedef {import('./table.js').Cell} Cell */

/**
 * What _formats/changes.py says of a difference, and in words.
 *
 * @typedef {object} Changes
 * @property {{runs: number, work: (number | null)[]}} before
 * @property {{runs: number, work: (number | null)[]}} after
 * @property {string} value
 * @property {string} unit
 * @property {boolean} share
 * @property {string} by
 * @property {string} method
 * @property {Change} total
 * @property {Change[]} rows
 * @property {{what: string, heading: string[], notes: string[]}} words
 */

/**
 * @typedef {object} Change
 * @property {string | null} name
 * @property {string | null} kind
 * @property {number | null} line
 * @property {string} called
 * @property {number} before
 * @property {number} after
 * @property {number} change
 * @property {number | null} margin
 * @property {number | null} relative
 */

// What is drawn, and the class of its colour.
/** @type {[string, string][]} */
export const CHANGES = [
  ['▼ less', 'less3'], ['a bit less', 'less1'],
  ['the same, or chance may be the reason', 'same'], ['a bit more', 'more1'],
  ['▲ more', 'more3']];

/** @param {number} level from -3 to 3 */
export function levelColor(level) {
  return level ? `${level < 0 ? 'less' : 'more'}${Math.abs(level)}` : 'same';
}

/** @param {number} level */
export function levelSign(level) {
  return level < 0 ? '▼ ' : '▲ ';
}

/**
 * @param {number} value
 * @param {(size: number) => string} text
 */
function signed(value, text) {
  return `${value > 0 ? '+' : value < 0 ? '−' : ''}${text(Math.abs(value))}`;
}

/**
 * A change as it is written: a value, or a share of all.
 * @param {App} app
 * @param {number} change
 * @param {ValueType} [type]
 */
function changeText(app, change, type = app.model.part.type) {
  if (app.query.scale === 'share') {
    return signed(change, (size) => share(size, app.side.totalOf(app.query)));
  }
  return signed(change, (size) => briefAmount(Math.round(size), type));
}

/**
 * The change as a share of what was before.
 * @param {number} change
 * @param {number} before
 * @param {number} after
 */
function relativeText(change, before, after) {
  return !before && !after ? '' : !before ? 'new' : !after ? 'gone'
    : signed(change / before, percent);
}

/**
 * @param {App} app
 * @param {number} own
 * @param {number} other
 */
function beforeAndAfter({against}, own, other) {
  const scaled = other * (against?.ratio ?? 1);
  return against?.isBase ? [own, scaled] : [scaled, own];
}

/**
 * What a row has, and its counterpart; how far chance may put them apart.
 *
 * @typedef {{own: number, other: number, margin?: number | null}} Pair
 */

/**
 * Columns of the other profile; none if there is none.
 * @template Row
 * @param {App} app
 * @param {(row: Row) => Pair | null} pairOf
 * @param {string} [prefix] of keys
 * @param {string} [what] of headings
 * @param {ValueType} [type] what is compared, if it is not the chosen value
 * @returns {import('./table.js').Column<Row>[]}
 */
export function changeColumns(app, pairOf, prefix = '', what = '',
                              type = app.model.part.type) {
  const {against} = app;
  if (against === null) {
    return [];
  }
  /** @param {(pair: Pair) => Cell} cell */
  const cellOf = (cell) => (/** @type {Row} */ row) => {
    const pair = pairOf(row);
    return pair === null ? {} : cell(pair);
  };
  const heading = against.isBase ? 'new' : 'base';
  return [
    {key: `${prefix}other`, heading: `${heading} ${what}`.trim(),
     kind: 'number', cell: cellOf((pair) => otherCell(app, pair, type))},
    {key: `${prefix}change`, heading: `${what} change`.trim(), kind: 'number',
     cell: cellOf((pair) => changeCell(app, pair, type))},
    {key: `${prefix}relative`, heading: '%', kind: 'number',
     cell: cellOf(({own, other}) => {
       const [before, after] = beforeAndAfter(app, own, other);
       return {text: relativeText(after - before, before, after)};
     })}];
}

/**
 * Columns of the other profile for what does not grow with the number of runs:
 * what the other has as it is, and the change as a share of it.
 * @template Row
 * @param {App} app
 * @param {(row: Row) => {own: number | null, other: number | null}} pairOf
 * @param {string} what of keys and headings
 * @param {(value: number) => string} text
 * @returns {import('./table.js').Column<Row>[]}
 */
export function meanColumns({against}, pairOf, what, text) {
  if (against === null) {
    return [];
  }
  return [
    {key: `other_${what}`, kind: 'number',
     heading: `${against.isBase ? 'new' : 'base'} ${what}`,
     cell: (row) => {
       const {other} = pairOf(row);
       return other === null ? {} : {text: text(other), value: other};
     }},
    {key: `relative_${what}`, heading: '%', kind: 'number', cell: (row) => {
      const {own, other} = pairOf(row);
      const [before, after] = against.isBase ? [own, other] : [other, own];
      return {text: before === null || after === null ? ''
        : relativeText(after - before, before, after)};
    }}];
}

/**
 * @param {App} app
 * @param {Pair} pair
 * @param {ValueType} type
 * @returns {Cell}
 */
function otherCell({against}, {other}, type) {
  const value = other * (against?.ratio ?? 1);
  const rounded = Math.round(value);
  return {text: rounded ? briefAmount(rounded, type) : '-', value,
          title: amount(rounded, type)};
}

/**
 * @param {App} app
 * @param {Pair} pair
 * @param {ValueType} type
 * @returns {Cell}
 */
function changeCell(app, {own, other, margin}, type) {
  const value = app.against?.change(own, other) ?? 0;
  const faint = margin !== undefined && margin !== null
    && Math.abs(value) <= margin;
  return {text: value ? changeText(app, value, type) : '-', value, faint,
          title: faint ? 'chance may be the reason' : undefined};
}

/**
 * What is said of a frame in the flame graph.
 * @param {App} app
 * @param {TreeAgainst} tree
 * @param {number} node
 */
export function changeLines(app, tree, node) {
  const {against, union} = tree;
  const {part: {type}} = app.model;
  const own = tree.tree.cum[node];
  const other = tree.otherCum(node);
  const change = tree.change(node);
  const [before, after] = beforeAndAfter(app, own, other);
  const lines = [
    `${against.isBase ? 'new' : 'base'} `
    + `${amount(Math.round(other * against.ratio), type)}, change `
    + `${changeText(app, change)} ${relativeText(change, before, after)}`];
  if (union !== null) {
    if (union.more[node] && union.less[node]) {
      lines.push(`that is ${changeText(app, union.more[node])} and `
                 + `${changeText(app, union.less[node])} in what it calls`);
    }
  }
  if (change && tree.isChance(node)) {
    lines.push('chance may be the reason');
  }
  return lines;
}

/**
 * How much is in calls that a flame graph of this shape does not have.
 * @param {App} app
 * @param {TreeAgainst | null} tree
 */
export function goneNote(app, tree) {
  if (tree === null || tree.union === null || !tree.union.missing.count) {
    return [];
  }
  const {count, value} = tree.union.missing;
  const {isBase} = tree.against;
  const text = `${counted(count, 'call')} of `
    + `${briefAmount(value, app.model.part.type)} `
    + `${isBase ? 'came new' : 'vanished'}, not in this shape: `;
  return [element('p', {class: 'note'}, text, button(
    isBase ? 'show the new shape' : "show the base's shape",
    () => app.change({side: isBase ? '' : 'base'})))];
}

/** What is compared, in words; @param {App} app */
export function comparedLines(app) {
  const {against, changes, sides: [now, base]} = app;
  if (against === null) {
    return [];
  }
  const {part} = against.model;
  const other = against.rival.part.total;
  const [before, after] = beforeAndAfter(app, part.total, other);
  const change = against.change(part.total, other);
  const text = [
    `Compared with the base: ${app.query.scale === 'share' ? 'shares'
      : `net ${changeText(app, change)} (${
        relativeText(change, before, after)})`}`];
  const gross = app.treeAgainst('all', (model) => model.tree(app.query.up))
    ?.union;
  if (gross?.more[0] && gross.less[0]) {
    text.push(`gross ${changeText(app, gross.more[0])} and `
              + changeText(app, gross.less[0]));
  }
  if (now.runs > 1 || base.runs > 1) {
    text.push(now.runs === base.runs ? `sums of ${now.runs} runs each`
      : `sums of ${counted(now.runs, 'new run')} and of `
        + `${counted(base.runs, 'run')} of the base, scaled to as many`);
  }
  if (changes?.method !== 'runs') {
    text.push('how runs differ is not known');
  }
  return [text, ...app.lacking.map(({side, types}) => [
    `Only ${side === now ? 'what is new' : 'the base'} has values of ${
      types.map(titleOf).join(' and ')}: they are left out`])];
}

/** Which profile is shown, and how they are compared; @param {App} app */
export function sideTools(app) {
  if (app.sides.length < 2) {
    return [];
  }
  const {side, scale} = app.query;
  return [
    button('base', () => app.change({side: side ? '' : 'base'}),
           {'aria-pressed': String(side === 'base'), class: 'side',
            title: 'show the base, and what became of it'}),
    button('shares', () => app.change({scale: scale ? '' : 'share'}),
           {'aria-pressed': String(scale === 'share'), class: 'scale',
            title: 'compare shares of all, not values'})];
}

/** @param {App} app */
export function changesView(app) {
  const {changes} = app;
  if (changes === null) {
    return [element('p', {class: 'note'}, 'There are no runs to judge by: see '
      + 'the columns of the other views, or make a page of several runs: '
      + 'python -m profile_sampling diff BASE... -- NEW... -o x.html')];
  }
  const {words, rows, total} = changes;
  return [
    ...words.heading.map((text) => element('p', {class: 'note'}, text)),
    ...partKey(app.query) === partKey({...NO_QUERY, value: app.query.value})
      ? [] : [element('p', {class: 'note'},
                      'Of the whole, not of the part that is chosen.')],
    tableOf('changes', tableColumns(app, changes), [
      {...total, name: 'total', kind: null, line: null, called: ''}, ...rows],
    app.choosing((row) => funcOf(app, row))),
    ...words.notes.map((text) => element('p', {class: 'note'},
                                         printable(text)))];
}

/**
 * The number of the function that a row is of; -1: it is of none.
 * @param {App} app
 * @param {Change} row
 */
function funcOf(app, {name, kind}) {
  return kind === null ? -1 : app.profile.functions.findIndex((func) => (
    func.name === name && KINDS[func.kind] === kind));
}

/**
 * @param {App} app
 * @param {Changes} changes
 * @returns {import('./table.js').Column<Change>[]}
 */
function tableColumns(app, {unit, share: isShare, words}) {
  const type = {name: '', kind: '', unit};
  /** @param {number} value */
  const text = (value) => (isShare ? percent(value)
    : briefAmount(unit === 'nanoseconds' || Number.isInteger(value)
      ? Math.round(value) : Number(value.toPrecision(4)), type));
  /** @param {number} value */
  const cell = (value) => ({text: value ? text(value) : '-', value});
  return [
    {key: 'before', heading: 'before', kind: 'number',
     cell: ({before}) => cell(before)},
    {key: 'after', heading: 'after', kind: 'number',
     cell: ({after}) => cell(after)},
    {key: 'change', heading: 'change', kind: 'number',
     cell: ({change, margin}) => (
       {text: change ? signed(change, text) : '-', value: change,
        faint: margin === null || Math.abs(change) <= margin})},
    {key: 'margin', heading: '±', kind: 'number', cell: ({margin}) => (
      margin === null ? {text: '?'} : cell(margin))},
    {key: 'relative', heading: '%', kind: 'number',
     cell: ({change, before, after}) => (
       {text: relativeText(change, before, after)})},
    {key: 'name', heading: words.what, kind: 'text',
     cell: ({name, line, kind, called}) => ({
       text: `${name ?? '[without]'}${kind === 'python' ? `:${line}` : ''}${
         called && ` in ${called}`}`, title: kind ?? undefined})}];
}
