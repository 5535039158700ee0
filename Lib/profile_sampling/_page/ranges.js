// What a range of time has of a profile.
//
// This file owns the arithmetic, which is that of _data/timeline.py to the
// nanosecond.  It must not know what the range is chosen for.
// @ts-check

/** @typedef {import('./decode.js').Profile} Profile */
/** @typedef {import('./timeline.js').Timeline} Timeline */

/** Nanoseconds since the profile began. @typedef {[number, number]} Range */

const NS = 1e9;

/**
 * The range of a text, 'from,to' in seconds; either may be left out.  Null: it
 * is none.
 * @param {string} text
 * @returns {Range | null}
 */
export function rangeOf(text) {
  const [, from, to] = /^([\d.]*),([\d.]*)$/.exec(text) ?? [];
  if (!from && !to) {
    return null;
  }
  const range = /** @type {Range} */ ([
    Math.round(Number(from) * NS),
    to ? Math.round(Number(to) * NS) : Number.MAX_SAFE_INTEGER]);
  return range[0] < range[1] ? range : null;
}

/**
 * The text of a range, of which nothing is rounded.
 * @param {Range} range
 */
export function textOf(range) {
  return range.map((ns) => secondsOf(ns)).join(',');
}

/** @param {number} ns */
export function secondsOf(ns) {
  const digits = String(Math.round(ns)).padStart(10, '0');
  return `${digits.slice(0, -9)}.${digits.slice(-9)}`.replace(/\.?0+$/, '');
}

/**
 * The same profile with what samples weigh in a range.
 * @param {Profile} profile
 * @param {Range} range
 * @returns {Profile}
 */
export function inRange(profile, range) {
  const line = profile.timeline;
  if (line === null || line.isStale) {
    throw new Error('this profile has no time line'
                    + (line === null ? '' : ' that is of its samples'));
  }
  const length = profile.samples.length;
  const sums = line.places.map(() => new Float64Array(length));
  const isIn = new Uint8Array(length);
  eachPart(line, range, (row, count, cpu, wall) => {
    isIn[row] = 1;
    sums[0][row] += count;
    sums[1][row] += cpu;
    sums[2][row] += wall;
  });
  // What has no moments cannot be there.
  const kept = profile.valueTypes.map((_, number) => number)
    .filter((number) => line.places.includes(number));
  const {kind} = profile.valueTypes[profile.own];
  const valueTypes = kept.map((number) => profile.valueTypes[number]);
  const own = valueTypes.findLastIndex((type) => type.kind === kind);
  const [begin, end] = profile.spanNs ?? [0, profile.durationNs];
  const first = Math.min(Math.max(range[0], begin), end);
  return {
    ...profile, valueTypes, isIn,
    own: own < 0 ? valueTypes.findIndex((type) => type.kind === 'wall') : own,
    spanNs: [first, Math.max(first, Math.min(range[1], end))],
    samples: {...profile.samples, values: kept.map(
      (number) => sums[line.places.indexOf(number)])}};
}

/**
 * Call with each record's part in a range.  The count, which cannot be
 * divided, is where the moment is.
 * @param {Timeline} line
 * @param {Range} range
 * @param {(row: number, count: number, cpu: number, wall: number) => void
 *        } take
 */
function eachPart(line, [begin, end], take) {
  const {time, row, values: [counts, cpus, walls]} = line;
  for (let at = 0; at < line.length; at++) {
    const moment = time[at];
    const first = Math.max(0, moment - walls[at]);
    const isMomentIn = begin < moment && moment <= end;
    if (isMomentIn && first >= begin) {
      take(row[at], counts[at], cpus[at], walls[at]);
    } else if (first < end && moment > begin) {
      const length = moment - first;
      const from = Math.max(begin - first, 0);
      const until = Math.min(end - first, length);
      const count = isMomentIn ? counts[at] : 0;
      const cpu = partOfValue(cpus[at], from, until, length);
      const wall = partOfValue(walls[at], from, until, length);
      if (count || cpu || wall) {
        take(row[at], count, cpu, wall);
      }
    }
  }
}

/**
 * @param {number} value
 * @param {number} from
 * @param {number} until
 * @param {number} length
 */
function partOfValue(value, from, until, length) {
  return floorOf(value, until, length) - floorOf(value, from, length);
}

/**
 * value * part / length, rounded down; products may have more than 53 bits.
 * @param {number} value
 * @param {number} part
 * @param {number} length
 */
function floorOf(value, part, length) {
  if (value === length) {
    return part;
  }
  const product = value * part;
  return product <= Number.MAX_SAFE_INTEGER ? Math.floor(product / length)
    : Number(BigInt(value) * BigInt(part) / BigInt(length));
}
