// How values, names and places are written for people.
//
// This file owns their spelling, which is that of the text report
// (_formats/words.py).  It must not know where they are shown.
// @ts-check

/** @typedef {import('./types.js').ValueType} ValueType */

/** @type {Record<string, string>} */
const CLOCKS = {wall: 'wall', cpu: 'CPU'};
/** @type {Record<string, string>} */
const UNITS = {count: '', bytes: ' B'};
/** @type {Record<string, string>} */
const STATE_NAMES = {
  gil_wait: 'GIL wait', gc: 'GC', cpu_wait: 'CPU wait',
  asleep_with_gil: 'asleep with GIL', loop_wait: 'loop wait'};
const MAX_KIND = 16;
/** @type {Record<string, string>} */
const ESCAPES = {'\n': '\\n', '\r': '\\r', '\t': '\\t'};
const INVISIBLE = /(?! )[\p{C}\p{Z}]/gu;

/**
 * A text of the program with what cannot be seen as an escape: nothing in it
 * can reorder or break a line.
 * @param {string} text
 */
export function printable(text) {
  return text.replace(INVISIBLE, (char) => {
    const code = /** @type {number} */ (char.codePointAt(0));
    const hex = code.toString(16);
    return ESCAPES[char] ?? (
      code < 0x100 ? `\\x${hex.padStart(2, '0')}`
        : code < 0x10000 ? `\\u${hex.padStart(4, '0')}`
          : `\\U${hex.padStart(8, '0')}`);
  });
}

/** @param {number} value */
export function grouped(value) {
  const [whole, part] = String(value).split('.');
  const text = whole.replace(/\B(?=(\d{3})+$)/g, ',');
  return part === undefined ? text : `${text}.${part}`;
}

/**
 * @param {number} value
 * @param {number} digits
 */
function fixed(value, digits) {
  return grouped(/** @type {any} */ (value.toFixed(digits)));
}

/**
 * A time in few characters; *scale*, a time, chooses the unit.
 * @param {number} ns
 * @param {number} [scale]
 */
export function brief(ns, scale = ns) {
  const size = Math.abs(scale);
  if (size >= 1e9) {
    return `${fixed(ns / 1e9, 2)}s`;
  }
  if (size >= 1e6) {
    return `${fixed(ns / 1e6, 1)}ms`;
  }
  return `${fixed(ns / 1e3, 1)}us`;
}

/** @param {number} ns */
export function seconds(ns) {
  return Math.abs(ns) < 1e9 ? `${fixed(ns / 1e6, 3)} ms`
    : `${fixed(ns / 1e9, 3)} s`;
}

/**
 * @param {number} value
 * @param {ValueType} type
 * @param {number} [scale]
 */
export function briefAmount(value, type, scale) {
  return type.unit === 'nanoseconds' ? brief(value, scale)
    : inUnit(value, type);
}

/**
 * The same with all that is known.
 * @param {number} value
 * @param {ValueType} type
 */
export function amount(value, type) {
  return type.unit === 'nanoseconds' ? seconds(value) : inUnit(value, type);
}

/**
 * @param {number} value
 * @param {ValueType} type
 */
function inUnit(value, type) {
  const unit = UNITS[type.unit] ?? ` ${shortened(printable(type.unit),
                                                 MAX_KIND)}`;
  return grouped(value) + unit;
}

/**
 * @param {number} part
 * @param {number} total
 */
export function share(part, total) {
  return total ? `${fixed(100 * part / total, 1)} %` : '-';
}

/** @param {number} value from 0 to 1 */
export function percent(value) {
  return `${fixed(100 * value, 1)}%`;
}

/** @param {string} state */
export function stateName(state) {
  return STATE_NAMES[state] ?? state;
}

/** @param {ValueType} type */
export function titleOf(type) {
  return CLOCKS[type.kind] ?? shortened(printable(type.kind), MAX_KIND);
}

/**
 * @param {number} number
 * @param {string} one
 * @param {string} [more]
 */
export function counted(number, one, more = `${one}s`) {
  return `${grouped(number)} ${number === 1 ? one : more}`;
}

/** @param {number} ns since the epoch */
export function dateOf(ns) {
  const date = new Date(Math.floor(ns / 1e9) * 1000);
  if (!ns || Number.isNaN(date.getTime())) {
    return 'at a time not known';
  }
  return `${date.toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

/**
 * @param {string} text
 * @param {number} width
 */
export function shortened(text, width) {
  return text.length <= width ? text : `${text.slice(0, width - 3)}...`;
}
