// What is said of the whole: totals, states, and how good it is.
//
// This file owns these facts and their words, which are those of
// _formats/header.py.  It must not know where they are shown.
// @ts-check

import {button, element} from './dom.js';
import {CUSTOM, RUNNING, SHOWN_STATES, STATES} from './labels.js';
import {
  lostCounts, lostTimes, missedShare, otherLosses, overheadNs
} from './losses.js';
import {countsOf} from './sums.js';
import {isOfTasks} from './types.js';
import {
  brief, briefAmount, counted, dateOf, grouped, printable, seconds, share,
  stateName, titleOf} from './words.js';

/** @typedef {import('./part.js').Part} Part */
/** @typedef {import('./sites.js').Sites} Sites */

const MISSED_SHARE_TOLD = 0.01;

/** @param {Part} part */
export function whatLine({profile}) {
  const own = titleOf(profile.valueTypes[profile.own]);
  const python = profile.pythonVersion
    ? ` of Python ${printable(profile.pythonVersion)}` : '';
  return [`${own[0]?.toUpperCase() ?? ''}${own.slice(1)} profile${python}`,
          brief(profile.durationNs),
          // Others only held the GIL.
          counted(new Set(profile.samples.thread).size, 'thread'),
          dateOf(profile.startNs)];
}

/**
 * The sum of each value of the part; what is looked at first.
 * @param {Part} part
 * @param {Sites} sites
 */
export function totalsLine(part, sites) {
  const {profile: {valueTypes, samples}, rows, type} = part;
  const text = `${titleOf(type)} ${type.name === 'count'
    ? counted(part.total, 'sample') : briefAmount(part.total, type)} `
    + `${isOfTasks(type) ? 'of all tasks' : 'in all threads'}${sites.idle
      ? `, ${briefAmount(sites.idle, type)} of it idle and left out`
      : ''}`;
  const others = valueTypes.flatMap((one, at) => {
    // Tasks have a line of their own.
    if (one === type || isOfTasks(one)) {
      return [];
    }
    let sum = 0;
    for (const row of rows) {
      if (one.name !== 'count' || samples.state[row] !== CUSTOM) {
        sum += samples.values[at][row];
      }
    }
    return [one.name === 'count' ? counted(sum, 'sample')
      : `${titleOf(one)} ${briefAmount(sum, one)}`];
  });
  return [text, ...others];
}

/**
 * How much is left out since threads had nothing to do, and its switch.
 * @param {import('./app.js').App} app
 */
export function idleLine(app) {
  const {whole: {total, type}, sites} = app.model;
  const {idle} = app.query;
  return idle || sites.idle ? [element(
    'p', {class: 'idle'}, idle ? 'idle included '
      : `idle left out: ${briefAmount(sites.idle, type)} of ${
        briefAmount(total, type)} `,
    button(idle ? 'Leave out' : 'Show', () => app.change({idle: !idle})))]
    : [];
}

/** @param {Sites} sites */
export function statesLine({whole, busy}) {
  return SHOWN_STATES.map((state) => (
    [stateName(state), whole.byState[STATES.indexOf(state)]]))
    .filter(([, value]) => value)
    .map(([name, value]) => `${name} ${share(Number(value), busy)}`);
}

/**
 * How far the profile can be trusted.
 * @param {Part} part
 * @param {Sites} sites
 */
export function qualityLine(part, sites) {
  const {profile: {rateHz, stats, spanNs, wholeCpuNs}} = part;
  const parts = [];
  const achieved = achievedHz(part, sites);
  if (achieved !== null) {
    parts.push(`${grouped(achieved)} of ${grouped(rateHz)} Hz`);
  } else if (rateHz) {
    parts.push(`${grouped(rateHz)} Hz`);
  }
  parts.push(...lossesOf(stats), `missed ${share(missedShare(stats), 1)}`);
  const biased = stats.get('captures_biased') ?? 0;
  const captures = (stats.get('captures') ?? 0)
      + (stats.get('captures_merged') ?? 0) + biased;
  if (captures) {
    parts.push(`biased ${share(biased, captures)}`);
  }
  if (sites.busy) {
    const unsampled = sites.whole.byState[STATES.indexOf('unsampled')];
    parts.push(`unsampled ${share(unsampled, sites.busy)}`);
  }
  // Counters are of the whole session, whatever part is looked at.
  const cpuNs = wholeCpuNs || totalOf(part, 'cpu_ns');
  if (cpuNs && captures && spanNs === null) {
    parts.push(`overhead ${share(overheadNs(stats), cpuNs)}`);
  }
  return parts;
}

/**
 * What readers have to know that is in no table.
 * @param {Part} part
 */
export function asides(part) {
  const {profile: {stats, samples, spanNs, durationNs, isRounded}, rows} = part;
  const texts = [];
  if (isRounded) {
    texts.push('Rounded: values add up to more than 2**53, and from there on '
               + 'only the first 15 digits are exact');
  }
  const missed = missedShare(stats);
  if (missed > MISSED_SHARE_TOLD) {
    texts.push(`Missed: at ${share(missed, 1)} of the ticks the kernel let `
               + 'the clock wait for a CPU while the program ran');
  }
  const counts = countsOf(part);
  let custom = 0;
  if (counts !== null) {
    for (const row of rows) {
      custom += samples.state[row] === CUSTOM ? counts[row] : 0;
    }
  }
  if (custom) {
    texts.push(`Custom: ${grouped(custom)} counted by sample(), which weigh `
               + 'no time and are not in the samples above');
  }
  if (spanNs !== null) {
    texts.push(`Time line: from ${seconds(spanNs[0])} to ${
      seconds(spanNs[1])} of ${seconds(durationNs)}`);
  }
  const wall = stats.get('subscribers_wall_ns') ?? 0;
  const cpu = stats.get('subscribers_cpu_ns') ?? 0;
  if (wall || cpu) {
    texts.push(`Aside: ${seconds(wall)} wall, ${seconds(cpu)} CPU of serving `
               + 'subscribers, not in the times above');
  }
  return texts;
}

/**
 * Ticks come by the wall clock, whatever is looked at.
 * @param {Part} part
 * @param {Sites} sites
 */
function achievedHz(part, {whole}) {
  const {profile: {rateHz, valueTypes, samples}, rows, type,
         isDifference} = part;
  const wall = valueTypes.findIndex(({name}) => name === 'wall_ns');
  const isTime = type.unit === 'nanoseconds' && !isDifference
    && !isOfTasks(type) && countsOf(part) !== null;
  let running = wall < 0 ? whole.byState[RUNNING] : 0;
  for (const row of wall < 0 ? [] : rows) {
    if (samples.state[row] === RUNNING) {
      running += samples.values[wall][row];
    }
  }
  return isTime && running && rateHz
    ? Math.min(rateHz, Math.round(whole.records * 1e9 / running)) : null;
}

/** @param {Map<string, number>} stats */
function lossesOf(stats) {
  const counts = lostCounts(stats);
  const times = lostTimes(stats);
  const others = otherLosses(stats);
  if (!counts.size && !times.length && !others.length) {
    return ['nothing lost'];
  }
  const sum = [...counts.values()].reduce((all, one) => all + one, 0);
  const reasons = [...counts].filter(([reason]) => reason).map(
    ([reason, count]) => (
      `${printable(reason.replaceAll('_', ' '))} ${grouped(count)}`));
  const why = reasons.length ? ` (${reasons.join(', ')})` : '';
  return [`${counted(sum, 'sample')} lost${why}`,
          ...times.map(([clock, ns]) => (
            `${seconds(ns)} ${clock === 'cpu' ? 'CPU' : clock} lost`)),
          ...others];
}

/**
 * The sum of all samples, of whatever part.
 * @param {Part} part
 * @param {string} name
 */
function totalOf({profile: {valueTypes, samples}}, name) {
  const at = valueTypes.findIndex((type) => type.name === name);
  return at < 0 ? 0 : samples.values[at].reduce((sum, one) => sum + one, 0);
}
