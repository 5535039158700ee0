// The view of time: lanes, a heat map, the stacks of one lane, and what changed
// between two ranges.
//
// This file owns what is shown of which time, and what a chosen range does.
// It must not know how lanes and maps are drawn.
// @ts-check

import {changes} from './changes.js';
import {ChartView} from './chart.js';
import {button, element} from './dom.js';
import {HeatView} from './heat.js';
import {LanesView} from './lanes.js';
import {emptyLanes, laneNames, lanesOf} from './lanesums.js';
import {keysOf} from './match.js';
import {rangeOf, textOf} from './ranges.js';
import {tableOf} from './table.js';
import {sumOf} from './timeline.js';
import {placeCell, valueCell} from './tables.js';
import {brief, briefAmount, counted, printable, seconds} from './words.js';

/** @typedef {import('./app.js').App} App */
/** @typedef {import('./ranges.js').Range} Range */
/** @typedef {import('./timeline.js').Timeline} Timeline */

const LANES = 16;
const HOW = 'python -m profile_sampling record --timeline PROGRAM';

/** @param {App} app */
export function timeView(app) {
  const {timeline} = app.profile;
  if (timeline === null || timeline.isStale) {
    return [element('p', {}, timeline === null
      ? 'This profile has no time line: it says what took how long, not when. '
        + 'One that does is made by profile(timeline=True) or by'
      : 'Another tool has changed the samples of this profile, so that its '
        + 'time line is not of them any more.'),
    ...timeline === null ? [element('p', {}, element('code', {}, HOW))] : []];
  }
  return new TimeView(app, timeline).parts();
}

export class TimeView {
  /**
   * @param {App} app
   * @param {Timeline} line
   */
  constructor(app, line) {
    this.app = app;
    this.line = line;
    const {query, profile} = app;
    this.model = app.models.of({...query, time: ''});
    const last = line.length ? line.time[line.length - 1] : 1;
    /** @type {Range} */
    const whole = profile.spanNs ?? [0, Math.max(profile.durationNs, last)];
    this.window = clipped(rangeOf(query.zoom), whole) ?? whole;
    this.range = clipped(rangeOf(query.time), whole);
    this.than = clipped(rangeOf(query.than), whole);
    const keys = this.keys();
    this.key = keys.includes(query.lanes) ? query.lanes : keys[0];
    this.order = lanesOf(this.model, line, this.key, this.window, 1);
    const empty = emptyLanes(this.order, this.key, this.window);
    // Numbers of the values whose lanes are left out.
    this.empty = new Set(empty.map(({value}) => value));
  }

  keys() {
    return keysOf(this.app.profile).filter((key) => key !== 'state');
  }

  parts() {
    const {app: {query, profile}, key, order, empty} = this;
    const names = laneNames(profile, key);
    const chosen = names.indexOf(query.lane);
    const lane = chosen >= 0 ? chosen : order[0]?.value ?? 0;
    const lanes = new LanesView(this, LANES);
    const others = order.length - empty.size - LANES;
    const more = button(
      `\u2026 ${counted(others, 'more lane')}`, () => {
        lanes.showAll();
        more.remove();
      }, {class: 'more', hidden: others <= 0});
    const heat = new HeatView(this);
    const chart = new ChartView(this, lane);
    return [
      this.tools(), ...lanes.plot.parts(), more, ...this.emptyNote(),
      heat.heading, ...heat.plot.parts(),
      element('h2', {}, `Stacks of ${printable(names[lane] ?? 'nothing')}`),
      ...chart.plot.parts(), chart.note,
      ...this.quality(), ...this.comparison()];
  }

  /** Which lanes are left out. */
  emptyNote() {
    const texts = this.order.filter(({value}) => this.empty.has(value)).map(
      ({name, total}) => `${printable(name)} (${brief(total)})`);
    return texts.length ? [element(
      'p', {class: 'note'}, `Without a lane, for it would be empty: ${
        texts.join(', ')}`)] : [];
  }

  tools() {
    const {app, range} = this;
    const {query} = app;
    const choice = element(
      'select', {'aria-label': 'lanes of', onchange: () => app.change(
        {lanes: choice.value, lane: ''})},
      ...this.keys().map((name) => element(
        'option', {value: name, selected: name === this.key},
        printable(name))));
    const steps = /** @type {[string, Partial<import('./query.js').Query>,
                              boolean][]} */ ([
      ['Zoom in', {zoom: query.time}, range !== null],
      ['Zoom out', {zoom: ''}, query.zoom !== ''],
      ['All time', {time: ''}, range !== null],
      ['Compare with another range', {than: query.time, time: ''},
       range !== null],
      ['Compare no more', {than: ''}, this.than !== null]]);
    return element(
      'div', {class: 'bar-of-tools time'},
      element('label', {}, 'lanes by ', choice),
      element('span', {class: 'range'}, range === null
        ? 'Drag over time to look at a part of it'
        : `${seconds(range[0])} to ${seconds(range[1])}`),
      ...steps.filter(([, , isThere]) => isThere).map(
        ([name, step]) => button(name, () => app.change(step))));
  }

  quality() {
    const {line, app: {profile: {samples}}} = this;
    const texts = [counted(line.length, 'record')];
    if (line.resolutionNs) {
      texts.push(`those within ${seconds(line.resolutionNs)} are one`);
    }
    const [, , wall] = line.places.map((place, number) => (
      sumOf(samples.values[place]) - sumOf(line.values[number])));
    if (wall) {
      texts.push(`${seconds(wall)} at no moment`);
    }
    return [element('p', {class: 'note'}, `Time line: ${texts.join(', ')}.`)];
  }

  /** The tables of changes from one range to the other. */
  comparison() {
    const {app, range, than} = this;
    if (than === null) {
      return [];
    }
    const {query, model} = app;
    const whole = range ?? this.window;
    const then = app.models.of({...query, time: query.than});
    const scale = (whole[1] - whole[0]) / (than[1] - than[0]);
    /** @param {import('./model.js').Model} one */
    const functions = (one) => new Map(one.functionRows('self').map(
      ({func, self}) => [func, self]));
    /** @param {import('./model.js').Model} one */
    const lines = (one) => new Map(one.sites.rows.map(
      ({func, line, sums}) => [`${func},${line}`, sums.total]));
    return [
      element('h2', {}, `From ${seconds(than[0])} - ${seconds(than[1])} to ${
        seconds(whole[0])} - ${seconds(whole[1])}`),
      element('p', {class: 'note'}, 'Changes are of '
              + `${brief(whole[1] - whole[0])}: what was then is as if its `
              + 'range had been as long.'),
      this.changed('changed_functions', changes(
        functions(model), functions(then), scale), (func) => [func, 0]),
      this.changed('changed_sites', changes(
        lines(model), lines(then), scale), (key) => (
        /** @type {[number, number]} */ (key.split(',').map(Number))))];
  }

  /**
   * @template Key
   * @param {string} name
   * @param {import('./changes.js').Change<Key>[]} rows
   * @param {(key: Key) => [number, number]} placeOf function and line
   */
  changed(name, rows, placeOf) {
    const {app} = this;
    const {type} = app.model.part;
    /**
     * @param {'now' | 'then'} key
     * @returns {import('./table.js').Column<typeof rows[0]>}
     */
    const column = (key) => ({
      key, heading: key, kind: 'number',
      cell: (row) => valueCell(app, row[key])});
    return tableOf(name, [
      {key: 'change', heading: 'change', kind: 'number',
       cell: ({change}) => ({
         text: change ? (change > 0 ? '+' : '\u2212')
           + briefAmount(Math.abs(change), type) : '-', value: change})},
      column('now'), column('then'),
      {key: 'place', heading: name === 'changed_sites' ? 'line' : 'function',
       kind: 'text', cell: ({key}) => placeCell(app, ...placeOf(key))}],
    rows, app.choosing(({key}) => placeOf(key)[0]));
  }

  /** @param {Range | null} range */
  choose(range) {
    this.app.change({time: range === null ? '' : textOf(range)});
  }

  /**
   * The stretch of time of a column of pixels.
   * @param {number} x
   * @param {number} width
   * @param {Range} [window]
   * @returns {Range}
   */
  column(x, width, [begin, end] = this.window) {
    const columns = Math.floor(width);
    const column = Math.max(0, Math.min(columns - 1, Math.floor(x)));
    const size = (end - begin) / columns;
    return [Math.round(begin + column * size),
            Math.round(begin + (column + 1) * size)];
  }

  /**
   * @param {Range} from
   * @param {string} key
   * @param {number} width
   * @param {Range} [window]
   */
  step(from, key, width, window = this.window) {
    const [begin, end] = window;
    const columns = Math.floor(width);
    const at = Math.round((from[0] - begin) / (end - begin) * columns);
    /** @type {Record<string, number>} */
    const goals = {ArrowRight: at + 4, ArrowLeft: at - 4, Home: 0,
                   End: columns - 1, PageDown: at + 40, PageUp: at - 40};
    const goal = goals[key];
    return goal === undefined ? null : this.column(goal, width, window);
  }

  /**
   * Draw over a plot what is not in the range, and where the cursor is.
   * @param {CanvasRenderingContext2D} context
   * @param {number} width
   * @param {number} y
   * @param {number} height
   * @param {import('./plot.js').Plot} plot
   * @param {(name: string) => string} color
   * @param {Range} [window]
   */
  shade(context, width, y, height, plot, color, window = this.window) {
    const [begin, end] = window;
    /** @param {number} ns */
    const place = (ns) => Math.max(0, Math.min(
      width, (ns - begin) / (end - begin) * width));
    const chosen = plot.chosen ?? this.range;
    if (chosen !== null) {
      const [from, until] = chosen.map(place);
      context.globalAlpha = 0.65;
      context.fillStyle = color('back');
      context.fillRect(0, y, from, height);
      context.fillRect(until, y, width - until, height);
      context.globalAlpha = 1;
      context.fillStyle = color('accent');
      context.fillRect(from, y, 1, height);
      context.fillRect(until - 1, y, 1, height);
    }
    if (plot.cursor !== null) {
      context.fillStyle = color('text');
      context.fillRect(place(plot.cursor[0]), y, 1, height);
    }
  }
}

/**
 * @param {Range | null} range
 * @param {Range} whole
 * @returns {Range | null}
 */
function clipped(range, whole) {
  if (range === null) {
    return null;
  }
  const [begin, end] = [Math.max(range[0], whole[0]),
                        Math.min(range[1], whole[1])];
  return begin < end ? [begin, end] : null;
}
