// Which values of a pprof file are which of ours.
//
// This file owns the names and units that tools give to types of values, as
// _formats/pprof/types.py does.  It must not know how a file is read.
// @ts-check

/**
 * name  as in Python: 'wall_ns', 'count'
 * kind  as in a pprof file: 'wall', 'samples'
 * unit  'nanoseconds', 'count', 'bytes' or another text
 *
 * @typedef {object} ValueType
 * @property {string} name
 * @property {string} kind
 * @property {string} unit
 */

/** @type {[ValueType, string[]][]} */
const MEASURED = [
  [valueType('samples', 'count'),
   ['samples', 'wall-samples', 'cpu-samples']],
  [valueType('cpu', 'nanoseconds'), ['cpu', 'cpu-time']],
  [valueType('wall', 'nanoseconds'), ['wall', 'wall-time']]];
/** @type {Record<string, number>} */
const NS_PER_UNIT = {
  nanoseconds: 1, microseconds: 1e3, milliseconds: 1e6, seconds: 1e9};
const MOST_TYPES = 256;
// Counts that older versions wrote for their margins; see
// _formats/pprof/types.py.
const OF_OLDER_FILES = [
  'same_leaf', 'same_line', 'same_call',
  'same_leaf_2', 'same_line_2', 'same_call_2'];
// Kinds of values that are those of tasks.
export const TASK = 'task';
export const DELAY = 'delay';

/** @param {ValueType} type */
export function isOfTasks({kind}) {
  return kind === TASK || kind === DELAY;
}

/**
 * @param {string} kind
 * @param {string} unit
 * @returns {ValueType}
 */
function valueType(kind, unit) {
  const suffix = {count: '', nanoseconds: '_ns'}[unit] ?? `_${unit}`;
  const name = kind + suffix;
  return {name: name === 'samples' ? 'count' : name, kind, unit};
}

/**
 * The types of the profile, where in a sample of the file each is (a number
 * and a factor, 0 if it is missing there), and what the file is about.
 * @param {string[][]} pairs of kind and unit
 * @param {string} byDefault
 * @param {boolean} isOurs
 */
export function valueTypesOf(pairs, byDefault, isOurs) {
  if (pairs.length > MOST_TYPES) {
    throw new Error('the profile has too many types of values');
  }
  const places = MEASURED.map(([, kinds]) => typePlace(kinds, pairs));
  const hasClock = places[1] !== null || places[2] !== null;
  /** @type {ValueType[]} */
  const valueTypes = [];
  /** @type {[number, number][]} */
  const found = [];
  places.forEach((place, number) => {
    if (place !== null || (!isOurs && hasClock)) {
      valueTypes.push(MEASURED[number][0]);
      found.push(place ?? [0, 0]);
    }
  });
  const taken = new Set(found.filter(([, factor]) => factor)
    .map(([number]) => number));
  /** @param {string} kind */
  const isIgnored = (kind) => isOurs && OF_OLDER_FILES.includes(kind);
  pairs.forEach(([kind, unit], number) => {
    if (!taken.has(number) && !isIgnored(kind)) {
      valueTypes.push(valueType(kind, unit));
      found.push([number, 1]);
    }
  });
  return {valueTypes, places: found,
          isOlder: pairs.some(([kind]) => isIgnored(kind)),
          mode: modeOf(pairs, byDefault, valueTypes, found)};
}

/**
 * @param {string[]} kinds that tools use for it, best first
 * @param {string[][]} pairs
 * @returns {[number, number] | null}
 */
function typePlace(kinds, pairs) {
  for (const kind of kinds) {
    const number = pairs.findIndex((pair) => pair[0] === kind);
    if (number >= 0) {
      const unit = pairs[number][1];
      const factor = unit === 'count' ? 1 : NS_PER_UNIT[unit];
      if (factor === undefined) {
        throw new Error('the profile has an unknown unit');
      }
      return [number, factor];
    }
  }
  return null;
}

/**
 * What a profile is about that does not say so itself: a clock rather than
 * how often.
 * @param {string[][]} pairs
 * @param {string} byDefault
 * @param {ValueType[]} valueTypes
 * @param {[number, number][]} places
 */
function modeOf(pairs, byDefault, valueTypes, places) {
  const kinds = pairs.map(([kind]) => kind);
  const wanted = kinds.indexOf(
    kinds.includes(byDefault) ? byDefault : kinds[kinds.length - 1]);
  const known = valueTypes.filter((_, at) => places[at][1]);
  const type = valueTypes[places.findIndex(
    ([number, factor]) => factor && number === wanted)];
  if (type.unit === 'count') {
    for (const clock of ['wall', 'cpu']) {
      if (known.some(({kind}) => kind === clock)) {
        return clock;
      }
    }
  }
  return type.kind;
}
