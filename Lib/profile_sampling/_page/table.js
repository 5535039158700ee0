// Tables of numbers and names.
//
// This file owns how rows become a table, and its keys.  It must not know what
// a table is about.
//
// All rows that are there are in the page, so that the browser's own search
// finds them; of long tables the rest comes when it is asked for.
// @ts-check

import {button, element, shareClass} from './dom.js';
import {counted, printable} from './words.js';

const ROWS = 300;

/**
 * What a cell is: a text, or a number as it is shown and as it is.
 *
 * text    what is shown
 * value   the number itself, in nanoseconds or counts
 * share   of a bar behind the text, from 0 to 1
 * faint   whether it may be chance
 * title   what is told of it when the mouse rests on it
 * bars    shares of a bar with several parts, and their classes
 *
 * @typedef {object} Cell
 * @property {string} [text]
 * @property {number | null} [value]
 * @property {number} [share]
 * @property {boolean} [faint]
 * @property {string} [title]
 * @property {[string, number][]} [bars]
 */

/**
 * @template Row
 * @typedef {object} Column
 * @property {string} key
 * @property {string} heading
 * @property {'number' | 'text' | 'code'} kind
 * @property {(row: Row) => Cell} cell
 * @property {(() => void)} [onsort] what a click on the heading does
 * @property {boolean} [isSorted]
 */

/**
 * @template Row
 * @param {string} name
 * @param {Column<Row>[]} columns
 * @param {Row[]} rows
 * @param {object} [options]
 * @param {(row: Row) => void} [options.onselect]
 * @param {(row: Row) => boolean} [options.isSelected]
 */
export function tableOf(name, columns, rows, options = {}) {
  const body = element('tbody');
  const table = element(
    'table', {'aria-label': name, dataset: {name}},
    element('thead', {}, element('tr', {}, ...columns.map(headingOf))), body);
  const holder = element('div', {class: 'table'}, table);
  let shown = 0;
  const more = button('', () => show(shown + ROWS), {class: 'more'});
  /** @param {number} length */
  const show = (length) => {
    for (; shown < Math.min(length, rows.length); shown++) {
      body.append(rowOf(columns, rows[shown], shown, options));
    }
    more.textContent = `… ${counted(rows.length - shown, 'more row')}`;
    more.hidden = shown >= rows.length;
  };
  show(ROWS);
  body.addEventListener('keydown', (event) => moveBy(event, body));
  if (!rows.length) {
    holder.append(element('p', {class: 'note'}, 'There is nothing here.'));
  }
  holder.append(more);
  return holder;
}

/**
 * @template Row
 * @param {Column<Row>} column
 */
function headingOf({heading, kind, onsort, isSorted}) {
  return element(
    'th', {scope: 'col', class: kind,
           'aria-sort': isSorted ? 'descending' : undefined},
    onsort === undefined ? heading : button(heading, onsort));
}

/**
 * @template Row
 * @param {Column<Row>[]} columns
 * @param {Row} row
 * @param {number} number
 * @param {{onselect?: (row: Row) => void,
 *          isSelected?: (row: Row) => boolean}} options
 */
function rowOf(columns, row, number, {onselect, isSelected}) {
  const isOn = isSelected?.(row) ?? false;
  const made = element(
    'tr', {tabindex: number ? -1 : 0, class: isOn ? 'selected' : undefined,
           'aria-current': isOn ? 'true' : undefined},
    ...columns.map((column) => cellOf(column.key, column.kind,
                                      column.cell(row))));
  if (onselect !== undefined) {
    const select = () => {
      mark(made);
      onselect(row);
    };
    made.addEventListener('click', select);
    made.addEventListener('keydown', (event) => {
      if (event.key === 'Enter' && event.target === made) {
        select();
      }
    });
  }
  return made;
}

/**
 * Mark a row of a table, and no other.
 * @param {HTMLElement} row
 */
function mark(row) {
  const marked = row.parentElement?.querySelector('.selected');
  marked?.classList.remove('selected');
  marked?.removeAttribute('aria-current');
  row.classList.add('selected');
  row.setAttribute('aria-current', 'true');
}

/**
 * @param {string} key
 * @param {string} kind
 * @param {Cell} cell
 */
function cellOf(key, kind, cell) {
  const {text = '', value, share, faint, title, bars} = cell;
  const shown = element(
    'td', {class: faint ? `${kind} faint` : kind, title,
           dataset: {key, ...value === undefined || value === null ? {}
             : {value}}},
    // Of a program, tabs are as wide as others see them.
    ...kind === 'text' ? breakable(printable(text))
      : [printable(text.replaceAll('\t', '        '))]);
  if (share !== undefined && share > 0) {
    shown.classList.add('bar', shareClass(share));
  }
  if (bars !== undefined) {
    shown.append(stackOf(bars));
  }
  return shown;
}

/**
 * A name that may be broken behind its dots rather than anywhere.
 * @param {string} text
 */
function breakable(text) {
  return text.split(/(?<=[.])/).flatMap((part, at) => (
    at ? [element('wbr'), part] : [part]));
}

/** @param {[string, number][]} bars */
export function stackOf(bars) {
  return element('span', {class: 'stack'}, ...bars.map(([name, share]) => (
    element('span', {class: `part ${name} ${shareClass(share)}`}))));
}

/**
 * @param {KeyboardEvent} event
 * @param {HTMLElement} body
 */
function moveBy(event, body) {
  const row = /** @type {HTMLElement} */ (event.target).closest('tr');
  /** @type {Record<string, Element | null | undefined>} */
  const places = {
    ArrowDown: row?.nextElementSibling, ArrowUp: row?.previousElementSibling,
    Home: body.firstElementChild, End: body.lastElementChild};
  const place = places[event.key];
  if (place instanceof HTMLElement) {
    event.preventDefault();
    row?.setAttribute('tabindex', '-1');
    place.setAttribute('tabindex', '0');
    place.focus();
  }
}
