// The measures of memory, and the moments that they are of: in words.

import type {App} from './app';
import type {Measure, Steps} from './blocks';
import {choices, h} from './dom';
import {MEASURES} from './query';

/** Of what is shorter, moments are since the start. */
export const SHORT_NS = 6e11;

interface MeasureWords {
  readonly name: string;
  readonly tip: string;
  readonly css: string;
}

export const WORDS: Readonly<Record<Measure, MeasureWords>> = {
  in_use: {name: 'In use', css: 'py', tip: 'Allocated and not freed, at the ' +
    'end or at the chosen moment.'},
  peak: {name: 'At the peak', css: 'py', tip: 'What was in use at the one ' +
    'moment with the most.'},
  grew: {name: 'Grew', css: 'py', tip: 'In use at the end less in use after ' +
    'a quarter of the time, or at the begin of the chosen time.'},
  survived: {name: 'Survived', css: 'py', tip: 'Of what was allocated in ' +
    'the time, what is still in use at the end.'},
  allocated: {name: 'Allocated', css: 'freed', tip: 'All that was allocated ' +
    'in the time, freed or not.'},
  churn: {name: 'Churn', css: 'freed', tip: 'Allocated and freed again ' +
    'within a second: it costs time, not memory.'},
};

export function choose(app: App, measure: Measure): void {
  // A moment is of what was in use then.
  app.ask({measure, at: measure === 'in_use' ? app.query.at : -1});
}

export function measureOf(app: App): Measure {
  return app.query.measure || 'in_use';
}

/** The switch of measures; with *time*, of the time, too. */
export function measures(app: App, hasTime = false): HTMLElement {
  const {query: {measure}, doc} = app;
  const its = MEASURES.filter((one) => doc.memory!.has_moments ||
    ['in_use', 'peak', 'allocated'].includes(one));
  return h('span', {class: 'six'}, choices('Measure', [
    ...hasTime ? [{text: 'Time', isChosen: measure === '',
      choose: () => app.ask({measure: ''})}] : [],
    ...its.map((one) => ({text: WORDS[one].name, tip: WORDS[one].tip,
      isChosen: one === measure || !hasTime && !measure && one === 'in_use',
      choose: () => choose(app, one)}))]));
}

// Time

/** The time of day that a step begins. */
export function clock(app: App, step: number, isLong = false): string {
  const {begin_ns: begin, step_ns: length} = app.doc.memory!;
  const {start_time_ns: start, duration_ns: duration} = app.doc;
  return momentText(app, Math.max(start, Math.min(start + duration,
    begin + step * length)), isLong);
}

/** A moment as the report calls it: in short recordings, since the start. */
export function momentText({doc}: App, ns: number, isLong: boolean): string {
  return doc.duration_ns < SHORT_NS
    ? `${Number(((ns - doc.start_time_ns) / 1e9).toFixed(1))}\u00a0s`
    : new Date(ns / 1e6).toISOString().slice(11, isLong ? 19 : 16);
}

export function spanText(app: App, {from, to}: Steps): string {
  return `${clock(app, from)}–${clock(app, to + 1)}`;
}

/** What chips say of a chosen time or moment. */
export function timeText(app: App): string {
  const {time, at} = app.query;
  return time ? `time ${spanText(app, stepsOf(app))}`
    : `at ${clock(app, at + 1, true)}`;
}

export function stepsOf(app: App): Steps {
  return app.model.blocks!.steps(app.selection);
}

/** The step whose memory is shown. */
export function shownStep(app: App): number {
  const steps = stepsOf(app);
  const {memory: its} = app.doc;
  return app.selection.measure !== 'peak' ? steps.to : !app.model.blocks!.hasPeak(
    steps) ? app.model.blocks!.highest(steps) : its!.peak < 0 ? steps.to : its!.peak;
}

export function whenText(app: App, step: number): string {
  const {peak, peak_ns: ns} = app.doc.memory!;
  return measureOf(app) === 'peak' && step === peak
    ? `at ${momentText(app, app.doc.start_time_ns + ns, true)}`
    : step === app.model.blocks!.last ? 'at the end' : `at ${clock(app, step + 1, true)}`;
}
