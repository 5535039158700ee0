// The timeline: lanes by thread or route, and a part of it that is chosen.

import type {App, View} from './app';
import {bar, inWords, parts} from './bars';
import {choices, h, head, stacked} from './dom';
import {addTo, type Model, type Sum} from './model';
import {fit, Paint} from './paint';
import {placeLink} from './places';
import {clock, percent, STATES, time} from './words';

const LANE_PX = 54;
const BINS = 300;
const MOST_LANES = 12;
const ROWS = 6;
const LEAST_PART = 0.005;
const STEP_NS = 5e8;
const UNUSUAL = 0.02;
const TICKS = 8;
const NEAR_END = 0.98;

export const timeline: View = {
  name: 'time',
  title: 'Timeline',
  keys: [['drag', 'choose a part'], ['Esc', 'all']],
  isThere: () => true,
  draw,
  press,
};

interface Lane {
  readonly name: string;
  readonly sum: Sum;
  /** By bin, and the number of a state. */
  readonly bins: Float64Array;
}

function draw(app: App, place: HTMLElement): void {
  const {model} = app;
  if (model.doc.live && model.doc.timeline === null) {
    place.replaceChildren(h('div', {class: 'empty'},
      h('b', {}, 'The time line comes with the next figures.')));
    return;
  }
  if (model.doc.timeline === null || model.doc.timeline.is_stale) {
    place.replaceChildren(h('div', {class: 'empty'}, h('b', {},
      model.doc.timeline === null ? 'No timeline was recorded.'
        : 'The timeline does not belong to these samples.'),
    'Record with ', h('code', {}, '--timeline'), ', or with ',
    h('code', {}, '-X sampleprof=timeline=1'), '.'));
    return;
  }
  const hasRoutes = model.doc.route >= 0;
  const isByRoute = hasRoutes && app.query.lanes === 'route';
  const lanes = lanesOf(app, isByRoute);
  place.replaceChildren(tools(app, hasRoutes, isByRoute),
    lanesElement(app, lanes, isByRoute), below(app));
  paintLanes(place, model, lanes, isByRoute);
}

function tools(app: App, hasRoutes: boolean, isByRoute: boolean): HTMLElement {
  return h('div', {class: 'tools'}, ...hasRoutes ? [
    h('span', {class: 'm2 label'}, 'Lanes'),
    choices('Lanes', [
      {text: 'By route', isChosen: isByRoute,
        choose: () => app.ask({lanes: 'route'})},
      {text: 'By thread', isChosen: !isByRoute,
        choose: () => app.ask({lanes: 'thread'})}])] : [],
  h('span', {class: 'm3'}, 'Height is how busy it was' +
    (isByRoute ? ', each lane on a scale of its own' : '') + ', colour what ' +
    'it did; blank is idle. Drag to choose a part: ' +
    (app.doc.live ? 'the page pauses, ' : '') + 'every view follows.'));
}

/** What each lane did: the largest ones, and all others in one. */
function lanesOf(app: App, isByRoute: boolean): Lane[] {
  const {model} = app;
  const {doc} = model;
  const labels = doc.column('sample_labels');
  const threads = doc.column('sample_thread');
  const values = isByRoute ? model.labelValues(doc.route) : [];
  const keyOf = isByRoute
    ? (i: number) => values[labels[i]!] ?? 'no request'
    : (i: number) => doc.threads[threads[i]!]!;
  const weights = app.weightsWith({time: null});
  const sums = [...model.sumsBy(weights, keyOf)].sort(
    ([, a], [, b]) => b.total - a.total);
  const shown = sums.length > MOST_LANES
    ? sums.slice(0, MOST_LANES - 1) : sums;
  const size = doc.states.length;
  const lanes: Lane[] = shown.map(([name, sum]) => ({
    name, sum, bins: new Float64Array(BINS * size)}));
  const numbers = new Map(shown.map(([name], number) => [name, number]));
  if (shown.length < sums.length) {
    const rest = model.newSum();
    sums.slice(shown.length).forEach(([, sum]) => addTo(rest, sum));
    lanes.push({name: `${sums.length - shown.length} more ` +
      (isByRoute ? 'routes' : 'threads'), sum: rest,
    bins: new Float64Array(BINS * size)});
  }
  fillBins(model, weights, (i) => lanes[
    numbers.get(keyOf(i)) ?? lanes.length - 1]!);
  return lanes;
}

/** A record lies from its moment back over its wall time. */
function fillBins(model: Model, weights: Float64Array,
  laneOf: (sample: number) => Lane): void {
  const {doc} = model;
  const times = doc.column('record_time');
  const samples = doc.column('record_sample');
  const walls = doc.column('record_wall');
  const values = doc.has('record_value') ? doc.column('record_value') : walls;
  const size = doc.states.length;
  const width = doc.duration_ns / BINS;
  for (let i = 0; i < times.length; i++) {
    const sample = samples[i]!;
    if (weights[sample] === 0) {
      continue;
    }
    const {bins} = laneOf(sample);
    const state = model.states[sample]!;
    const until = times[i]!;
    const from = Math.max(0, until - walls[i]!);
    const first = Math.min(BINS - 1, Math.floor(from / width));
    const last = Math.min(BINS - 1, Math.floor(until / width));
    for (let bin = first; bin <= last; bin++) {
      const part = until === from ? 1
        : (Math.min(until, (bin + 1) * width) - Math.max(from, bin * width)) /
          (until - from);
      bins[bin * size + state]! += Math.max(0, part) * values[i]!;
    }
  }
}

function lanesElement(app: App, lanes: readonly Lane[],
  isByRoute: boolean): HTMLElement {
  const {doc} = app.model;
  const length = doc.duration_ns;
  const axis = h('div', {class: 'axis'}, ...ticks(length).map((tick) => h(
    'span', {class: tick === 0 ? 'first' : tick > NEAR_END * length ? 'last'
      : '', 'style.left': `${100 * tick / length}%`},
    doc.live ? clock((doc.start_time_ns + tick) / 1e9)
      : tick === 0 ? '0' : shortTime(tick))));
  return h('div', {class: 'lanes'}, h('div'), axis,
    ...lanes.flatMap((lane) => [
      h('div', {class: 'name'}, h('b', {title: lane.name}, lane.name),
        h('span', {class: 'm3'}, app.amount(lane.sum.total) + (isByRoute ||
          doc.mode !== 'wall' ? ''
          : `, ${percent(lane.sum.total, length)} busy`))),
      h('div', {class: 'pic'}, h('canvas', {role: 'img', 'aria-label':
        `${lane.name}: ${inWords(parts(app, lane.sum))}`}))]),
    brush(app));
}

function paintLanes(place: HTMLElement, model: Model, lanes: readonly Lane[],
  isByRoute: boolean): void {
  const paint = new Paint();
  const size = model.doc.states.length;
  const states = Object.entries(STATES).map(([state, {css}]) => (
    [model.doc.states.indexOf(state), css] as const));
  const length = model.doc.duration_ns / BINS;
  [...place.querySelectorAll<HTMLCanvasElement>('.pic canvas')].forEach(
    (canvas, number) => {
      const {bins} = lanes[number]!;
      const width = canvas.parentElement!.clientWidth;
      const pen = fit(canvas, width, LANE_PX - 1);
      const sumOf = (bin: number) => bins.subarray(
        bin * size, (bin + 1) * size).reduce((a, b) => a + b, 0);
      const peak = Math.max(isByRoute || model.doc.mode !== 'wall' ? 1
        : length, ...Array.from({length: BINS}, (_, bin) => sumOf(bin)));
      for (let bin = 0; bin < BINS; bin++) {
        let y = LANE_PX - 1;
        for (const [state, css] of states) {
          const value = bins[bin * size + state] ?? 0;
          if (value > 0) {
            const height = value / peak * (LANE_PX - 5);
            y -= height;
            pen.fillStyle = paint.state(css);
            pen.fillRect(bin * width / BINS, y,
              Math.max(0.7, width / BINS - 0.4), height);
          }
        }
      }
    });
}

/** Round moments, at most so many. */
function ticks(length: number): number[] {
  const power = 10 ** Math.floor(Math.log10(length / TICKS));
  const step = power * ([1, 2, 5, 10].find(
    (factor) => length / (power * factor) <= TICKS) ?? 10);
  return Array.from({length: Math.floor(length / step) + 1},
    (_, number) => number * step);
}

function shortTime(ns: number): string {
  return ns >= 1e9 ? `${Number((ns / 1e9).toFixed(3))}\u00a0s`
    : `${Number((ns / 1e6).toFixed(3))}\u00a0ms`;
}

/** What is chosen, and where it is dragged. */
function brush(app: App): HTMLElement {
  const length = app.model.doc.duration_ns;
  const {time: chosen} = app.query;
  return brushOf(app, chosen, length, chosen ? text(chosen) : '', 1e6,
    (range) => app.ask({time: range && range[1] - range[0] >
      LEAST_PART * length ? range : null}));
}

/** A range of a length that is dragged, in steps; a click is none. */
export function brushOf(app: App, chosen: readonly [number, number] | null,
  length: number, said: string, step: number,
  choose: (range: [number, number] | null, at: number) => void,
  ...marks: HTMLElement[]): HTMLElement {
  const share = (ns: number) => `${100 * ns / length}%`;
  const element = h('div', {
    class: 'brush', tabindex: 0, role: 'slider', 'data-key': 'brush',
    'aria-label': 'Chosen time', 'aria-valuemin': 0,
    'aria-valuemax': length / step,
    'aria-valuenow': (chosen?.[0] ?? 0) / step,
    'aria-valuetext': said || 'all'},
  ...chosen ? [
    h('div', {class: 'shade', 'style.left': 0,
      'style.width': share(chosen[0])}),
    h('div', {class: 'shade', 'style.left': share(chosen[1]),
      'style.right': 0}),
    h('div', {class: 'win', 'style.left': share(chosen[0]),
      'style.width': share(chosen[1] - chosen[0])},
    h('span', {}, said))] : [], ...marks);
  element.addEventListener('pointerdown', (event) => {
    const {left, width} = element.getBoundingClientRect();
    const at = (x: number) => Math.round(Math.max(0, Math.min(1,
      (x - left) / width)) * length / step) * step;
    const begin = at(event.clientX);
    const win = h('div', {class: 'win'});
    element.append(win);
    app.isDragged = true;
    element.setPointerCapture(event.pointerId);
    const range = (x: number): [number, number] => (
      [Math.min(begin, at(x)), Math.max(begin, at(x))]);
    const move = ({clientX}: PointerEvent) => {
      const [from, to] = range(clientX);
      win.style.left = share(from);
      win.style.width = share(to - from);
    };
    element.addEventListener('pointermove', move);
    element.addEventListener('pointerup', ({clientX}) => {
      const [from, to] = range(clientX);
      app.isDragged = false;
      app.pause();
      choose(to > from ? [from, to] : null, from);
    }, {once: true});
    event.preventDefault();
    element.focus({preventScroll: true});
  });
  return element;
}

function text([begin, end]: readonly [number, number]): string {
  return `${(begin / 1e9).toFixed(1)}–${(end / 1e9).toFixed(1)}\u00a0s`;
}

function press(app: App, {key, shiftKey, target}: KeyboardEvent): boolean {
  const {time: chosen} = app.query;
  const step = {ArrowLeft: -STEP_NS, ArrowRight: STEP_NS}[key];
  if (step === undefined || !(target instanceof Element) ||
      !target.matches('.brush')) {
    return false;
  }
  const length = app.model.doc.duration_ns;
  const [begin, end] = chosen ?? [0, Math.min(length, STEP_NS)];
  if (chosen && shiftKey) {
    app.ask({time: [begin, Math.min(length, Math.max(
      begin + STEP_NS, end + step))]}, false);
  } else if (begin + (chosen ? step : 0) >= 0 &&
             end + (chosen ? step : 0) <= length) {
    app.ask({time: chosen ? [begin + step, end + step] : [begin, end]}, false);
  }
  return true;
}

function below(app: App): HTMLElement {
  const {model, query: {time: chosen}} = app;
  const sum = app.sum;
  const whole = model.sum(app.weightsWith({time: null}));
  const unusual = chosen === null ? undefined : parts(app, sum).map((part) => ({
    ...part, was: parts(app, whole).find(
      ({css}) => css === part.css)?.value ?? 0,
  })).map((part) => ({...part, more: part.value / sum.total -
    part.was / whole.total})).filter(({more}) => more > UNUSUAL)
    .sort((a, b) => b.more - a.more)[0];
  return h('div', {class: 'two'},
    h('div', {}, h('h2', {}, chosen
      ? `In these ${time(chosen[1] - chosen[0])}, beside the whole`
      : `In all ${time(model.doc.duration_ns)}`),
    h('div', {class: 'cmp'}, ...chosen ? [h('div', {}, h('b', {}, 'chosen '),
      h('span', {class: 'm2'}, app.amount(sum.total))),
    bar(app, parts(app, sum), sum.total)] : [],
    h('div', {}, 'whole ', h('span', {class: 'm2'}, app.amount(whole.total))),
    bar(app, parts(app, whole), whole.total)),
    unusual === undefined ? null : h('p', {}, 'More than usual: ',
      h('b', {}, unusual.name), `, ${percent(unusual.value, sum.total)} here, ` +
      `${percent(unusual.was, whole.total)} in the whole profile.`)),
    lines(app, sum.total));
}

function lines(app: App, total: number): HTMLElement {
  const {model} = app;
  const rows = model.rows(app.weights).sort(
    (a, b) => b.total - a.total).slice(0, ROWS);
  const most = rows[0]?.total ?? 0;
  return h('div', {}, stacked(h('table', {class: 'stack lines',
    'aria-label': 'Lines in the chosen time'},
  h('thead', {}, h('tr', {}, head('Share', 'Of the chosen time.', 'r'),
    head('What it was doing', 'Coloured by state.'),
    head('Line of my code', 'The innermost line of yours.'))),
  h('tbody', {}, ...rows.map((row) => h('tr', {},
    h('td', {class: 'r share'}, percent(row.total, total)),
    h('td', {class: 'bars'}, bar(app, parts(app, row), most)),
    h('td', {class: 'key cut'}, placeLink(app, row.place))))))));
}
