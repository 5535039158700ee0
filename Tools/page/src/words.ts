// Figures and words: each thing has one name on the whole page.

import type {Value} from './document';
import states from './states.json';

export interface StateWords {
  readonly name: string;
  readonly css: string;
  readonly tip: string;
}

/** In the order of bars and legends; see _data/states.py. */
export const STATES: Readonly<Record<string, StateWords>> = states;

const NO_BREAK = '\u00a0';
const MOST_FOLDERS = 64;
const MINUS = '\u2212';
const MS = 1e6;
const SECOND = 1e9;
/** Least amount of a unit in a table, its bytes, name and decimals; 1 KB is
 * 1,024 bytes. */
const UNITS: readonly [number, number, string, number][] = [
  [10 * 2 ** 30, 2 ** 30, 'GB', 2], [2 ** 20, 2 ** 20, 'MB', 1],
  [2 ** 10, 2 ** 10, 'KB', 1], [0, 1, 'B', 0]];
export const BYTES: Value = {name: 'bytes', kind: 'bytes', unit: 'bytes'};

export function count(number: number): string {
  return Math.round(number).toLocaleString('en-US');
}

let decimals = 1;

/** Shares of a few seconds are sure to a whole per cent. */
export function roundShares(areWhole: boolean): void {
  decimals = areWhole ? 0 : 1;
}

export function percent(part: number, whole: number): string {
  const share = whole > 0 ? 100 * part / whole : 0;
  return `${decimals === 0 && share > 0 && share < 0.5 ? '<1'
    : share >= 99.95 ? '100' : share.toFixed(decimals)}${NO_BREAK}%`;
}

/** A time as in a sentence: three digits. */
export function time(ns: number): string {
  const size = Math.abs(ns);
  if (size >= 9.995 * SECOND) {
    return `${(ns / SECOND).toFixed(1)}${NO_BREAK}s`;
  }
  if (size >= 0.9995 * SECOND) {
    return `${(ns / SECOND).toFixed(2)}${NO_BREAK}s`;
  }
  if (size >= 9.95 * MS || ns === 0) {
    return `${Math.round(ns / MS)}${NO_BREAK}ms`;
  }
  return size >= 0.0995 * MS ? `${(ns / MS).toFixed(1)}${NO_BREAK}ms`
    : `${(ns / 1000).toFixed(1)}${NO_BREAK}µs`;
}

/** Of milliseconds, as in the tables of requests. */
export function ms(ns: number): string {
  const value = ns / MS;
  return `${value.toFixed(Math.abs(value) >= 100 ? 0 : 1)}${NO_BREAK}ms`;
}

/** An amount of a value, in the unit that is right for *scale*. */
export function amount(value: Value, number: number, scale = number): string {
  if (value.unit === 'nanoseconds') {
    return Math.abs(scale) >= SECOND
      ? `${(number / SECOND).toFixed(2)}${NO_BREAK}s`
      : `${(number / MS).toFixed(1)}${NO_BREAK}ms`;
  }
  if (value.unit === 'bytes') {
    const [, size, name, digits] = UNITS.find(
      ([least]) => Math.abs(scale) >= least)!;
    return `${grouped(number / size, digits)}${NO_BREAK}${name}`;
  }
  if (value.unit === 'threads') {
    return number.toFixed(2);
  }
  return count(number) + (value.unit === 'count' ? '' : ` ${value.unit}`);
}

function grouped(number: number, digits: number): string {
  return number.toLocaleString('en-US', {minimumFractionDigits: digits,
    maximumFractionDigits: digits}).replace(/^-/, MINUS);
}

/** In a sentence: three digits. */
export function said(value: Value, number: number): string {
  if (value.unit === 'bytes') {
    const [, size, name] = UNITS.find(
      ([, size]) => Math.abs(number) >= 0.9995 * size) ?? UNITS.at(-1)!;
    const its = number / size;
    return `${grouped(its, size === 1 || Math.abs(its) >= 99.95 ? 0
      : Math.abs(its) >= 9.995 ? 1 : 2)}${NO_BREAK}${name}`;
  }
  return value.unit === 'nanoseconds' ? time(number)
    : value.unit === 'threads' ? `${number.toFixed(1)} threads`
      : amount(value, number);
}

/** A margin in the unit of another amount, or that there is none. */
export function plusMinus(margin: number, scale: number): string {
  const [, size, , digits] = UNITS.find(
    ([least]) => Math.abs(scale) >= least)!;
  return margin / size < 0.5 * 10 ** -digits ? 'exact'
    : `± ${grouped(margin / size, digits)}`;
}

/** A share of what there was, however small. */
export function shareOf(part: number, whole: number): string {
  return part <= 0 || whole <= 0 ? '–' : part < 0.001 * whole
    ? `<${NO_BREAK}0.1${NO_BREAK}%` : percent(part, whole);
}

export function signed(text: string, number: number): string {
  const digits = text.replace(/^[-\u2212]/, '');
  return number === 0 ? digits : (number < 0 ? MINUS : '+') + digits;
}

export function plural(number: number, one: string): string {
  return `${count(number)} ${one}${number === 1 ? '' : 's'}`;
}

export function clock(at: number): string {
  return new Date(at * 1000).toLocaleTimeString('en-GB');
}

/** The last parts of each path, as many as tell it from all others. */
export function shortNames(paths: readonly string[]): string[] {
  const found = [...paths];
  let left = new Map(paths.map((path, number) => [number, path]));
  for (let length = 1; left.size; length++) {
    const tails = new Map<string, number[]>();
    for (const [number, path] of left) {
      const tail = path.split(/[\\/]/).slice(-length).join('/');
      tails.set(tail, [...tails.get(tail) ?? [], number]);
    }
    left = new Map([...tails].flatMap(([tail, numbers]) => {
      if (numbers.length === 1) {
        found[numbers[0]!] = tail;
      }
      // Of what is as short as this there is no more to say.
      return numbers.length === 1 || length > MOST_FOLDERS ? []
        : numbers.map((number) => [number, paths[number]!] as const);
    }));
  }
  return found;
}

export function baseName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1) || path;
}

/** How many time units a head of a column of a value is. */
export function heading(value: Value): string {
  return value.unit === 'nanoseconds' ? 'Time'
    : value.unit === 'bytes' ? 'Size' : 'Amount';
}
