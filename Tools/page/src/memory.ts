// Memory: of what the RSS consists, what is in use over time, and which lines
// allocated it.

import type {App, View} from './app';
import {meter} from './bars';
import {LIFETIMES, type Measure} from './blocks';
import {nothingLeft} from './chrome';
import {byId, choices, h, head, link, stacked, withCode} from './dom';
import {colouringOf} from './flame';
import {addAt, finder, type Row} from './model';
import {choose, clock, measureOf, measures, momentText, SHORT_NS, shownStep,
  spanText, stepsOf, whenText, WORDS} from './measures';
import {librariesOf, sourceOf, textOf} from './mine';
import {fit, Paint} from './paint';
import {MEASURES} from './query';
import {actions, code, why} from './source';
import {brushOf} from './timeline';
import {amount, BYTES, percent, plural, plusMinus, said, shareOf,
  signed} from './words';

const LEAST_SHARE = 0.005;
const ROWS = 200;
const WIDE_PX = 1180;
const BANDS = 7;
const IN_USE_PX = 150, FLOW_PX = 40;
/** A band that is as high has its name in it; and one that is gone. */
const NAMED_PX = 11.5, SPIKE_PX = 24;
/** About what a letter of a name takes. */
const LETTER_PX = 6;
const NARROW_PX = 640;
const TICKS = 7;
const TICK_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200,
  14_400, 21_600, 43_200];
/** In what is shorter nothing is said by the hour. */
const LEAST_HOURS = 1 / 12;
const MOST_TYPES = 6;

/** Parts of the RSS: how they are drawn, and what to do. */
export const PARTS: Readonly<Record<string, readonly [string, string]>> = {
  'Python, in use': ['py', 'the table above'],
  'Python, other blocks': ['pyold', 'record from the start'],
  'Python, free': ['pyfree', 'reused first; nothing to do'],
  'C libraries': ['clib', 'no stacks: see the guide'],
  'malloc, free': ['cfree', 'kept for reuse; the guide says how to give it ' +
    'back'],
  'files': ['file', 'the system takes them back when it must'],
  'rest': ['rest', ''],
};

export const memory: View = {
  name: 'memory',
  title: 'Memory',
  keys: [['m', 'next measure'], ['↑ ↓', 'lines'], ['Enter', 'source'],
    ['drag', 'choose a time']],
  isThere: ({doc}) => doc.memory !== null,
  draw,
  press,
};

function press(app: App, {key, target, shiftKey}: KeyboardEvent): boolean {
  const {measure, time, at} = app.query;
  if (key === 'm') {
    choose(app, MEASURES[(MEASURES.indexOf(measure || 'in_use') + 1) %
      MEASURES.length]!);
    return true;
  }
  const by = {ArrowLeft: -1, ArrowRight: 1}[key];
  if (by === undefined || !(target instanceof Element) ||
      !target.matches('.brush')) {
    return false;
  }
  const blocks = app.model.blocks!;
  if (time === null) {
    const next = (at < 0 ? blocks.last : at) + by;
    app.ask({measure: 'in_use', at: Math.max(0, Math.min(blocks.last, next))},
      false);
    return true;
  }
  const {from, to} = blocks.steps(app.selection);
  const [begin, end] = [from + (shiftKey ? 0 : by), to + by];
  if (begin >= 0 && end <= blocks.last && end >= begin) {
    app.ask({time: blocks.timeOf(begin, end)}, false);
  }
  return true;
}

function draw(app: App, place: HTMLElement): void {
  const {doc} = app.model;
  const its = doc.memory!;
  const measure = measureOf(app);
  const rows = app.model.rows(app.weights);
  const bands = its.has_moments ? bandsOf(app) : [];
  place.replaceChildren(...cards(app),
    ...its.has_moments ? lanes(app, bands) : [h('p', {class: 'lead'},
      'One moment. Record with ', h('code', {}, 'every=60'),
      ', or take two snapshots, to see what grew.')],
    h('div', {class: 'tools'}, h('span', {class: 'm2 label'}, 'Show'),
      measures(app), h('span', {class: 'grow'}),
      link('Flame graph of this', () => app.show('flame', {measure}))),
    h('p', {class: 'lead small2'}, ...sentence(app, rows)),
    ...rows.length ? table(app, rows) : [nothingLeft(app)],
    h('div', {class: 'pair'}, rss(app), h('div', {}, types(app), routes(app))));
  if (its.has_moments) {
    paintLanes(app, place, bands);
  }
}

function cards(app: App): HTMLElement[] {
  const {cards: all} = app.doc.memory!;
  return all.length === 0 ? [] : [h('div', {class: 'cards'}, ...all.map(
    ({title, figure, a, text, go, link: name}) => h('article', {class: 'card'},
      h('h2', {class: 't'}, title),
      h('span', {class: 'n'}, a ? `${figure}/h` : figure),
      h('p', {class: 'd'}, ...withCode(text.replace(': --rss', ''))),
      h('button', {type: 'button', class: 'go', 'data-key': `card ${title}`,
        onclick: () => go ? choose(app, go) : toParts()}, name))))];
}

function toParts(): void {
  document.getElementById('m-rss')?.scrollIntoView({block: 'center'});
}

// Time

/** Round moments: as steps, and what they are called. */
function ticks(app: App): [number, string][] {
  const {begin_ns: begin, step_ns: length} = app.doc.memory!;
  const {start_time_ns: start, duration_ns: duration} = app.doc;
  const between = 1e9 * (TICK_S.find(
    (s) => duration / (1e9 * s) <= TICKS) ?? 86_400);
  const found: [number, string][] = [];
  const first = duration < SHORT_NS ? start
    : Math.ceil(start / between) * between;
  for (let at = first; at <= start + duration; at += between) {
    found.push([(at - begin) / length, momentText(app, at, between < 6e10)]);
  }
  return found;
}

// The parts of the RSS

/** Parts at the moment that is shown; the RSS is the last. */
function partsAt(app: App): [string, number][] {
  const {parts, history} = app.doc.memory!;
  const step = shownStep(app);
  const its = history[step];
  return parts.map(({name, bytes}, number) => [name,
    its && step < app.model.blocks!.last ? its[number] ?? bytes : bytes]);
}

/** The bar on top. */
export function drawRss(app: App): void {
  const all = partsAt(app);
  const {limit} = app.doc.memory!;
  if (!all.length) {
    byId('band').replaceChildren();
    byId('legend').replaceChildren(h('span', {class: 'm2'},
      'RSS is not known here.'));
    return;
  }
  const [, whole] = all[all.length - 1]!;
  const shown = all.slice(0, -1).filter(([, bytes]) => bytes > 0);
  byId('band').replaceChildren(h('span', {class: 'bar bandbar', role: 'img',
    'aria-label': shown.map(([name, bytes]) => (
      `${name} ${said(BYTES, bytes)}`)).join(', ')},
  ...shown.map(([name, bytes]) => h('i', {class: `s-${PARTS[name]![0]}`,
    'style.flex': bytes / whole}))));
  byId('legend').replaceChildren(...shown.map(([name, bytes]) => h('button', {
    type: 'button', onclick: toParts}, h('span', {
    class: `sw s-${PARTS[name]![0]}`}), `${name} `,
  h('b', {}, said(BYTES, bytes)))), h('span', {class: 'right'}, h('span', {},
    'RSS ', h('b', {}, said(BYTES, whole)), ` ${
      whenText(app, shownStep(app))}` +
    (limit ? `, limit ${said(BYTES, limit)}` : ''))));
}

function rss(app: App): HTMLElement {
  const all = partsAt(app);
  if (!all.length) {
    return h('div');
  }
  const {parts, limit} = app.doc.memory!;
  const [, whole] = all[all.length - 1]!;
  const isEnd = shownStep(app) === app.model.blocks!.last;
  return h('div', {class: 'blk', id: 'm-rss'},
    h('h2', {}, `Where the ${said(BYTES, whole)} of RSS are `,
      h('span', {class: 'm3'}, whenText(app, shownStep(app)))),
    h('p', {}, 'Python’s part is all that this profile can explain line by ' +
      'line. The rest is named as far as the system and malloc tell it.'),
    stacked(h('table', {class: 'stack', 'aria-label': 'Parts of RSS'},
      h('thead', {}, h('tr', {}, head('Size', 'Of resident memory.', 'r'),
        head('Share', 'Of the RSS.', 'r'),
        head('Part', 'In the order of the bar on top.'),
        head('Known by', 'How the figure is known.'), head('What to do'))),
      h('tbody', {}, ...all.map(([name, bytes], number) => {
        const part = parts[number]!;
        const isRss = number === all.length - 1;
        return bytes > 0 && h('tr', {class: isRss ? 'rest total' : ''},
          h('td', {class: 'r share'}, (part.is_most && isEnd ? '≤ ' : '') +
            amount(BYTES, bytes, whole)),
          h('td', {class: 'r'}, percent(bytes, whole)),
          h('td', {class: 'key nowrap'}, isRss ? null : h('span', {
            class: `sw s-${PARTS[name]![0]}`}), ` ${name}`),
          h('td', {class: 'm2 w2'}, part.margin && isEnd
            ? `${part.known_by}, ± ${said(BYTES, part.margin)}`
            : part.known_by),
          h('td', {class: 'm2 wide'}, !isRss ? PARTS[name]![1] : limit
            ? `limit ${said(BYTES, limit)}, of it ` +
              `${said(BYTES, limit - bytes)} left` : ''));
      })))));
}

// Lines

interface Figures {
  readonly of: (measure: Measure, place: number) => number;
  readonly margin: (place: number) => number;
}

/** The figures of lines, of any measure. */
function figuresOf(app: App): Figures {
  const {model, selection} = app;
  const known = new Map<Measure, Map<number, number>>();
  const of = (measure: Measure, place: number) => {
    let sums = known.get(measure);
    if (sums === undefined) {
      known.set(measure, sums = new Map());
      const {bytes} = model.measured({...selection, measure});
      bytes.forEach((value, i) => addAt(sums!, model.places[i]!, value));
    }
    return place === ALL ? [...sums.values()].reduce((a, b) => a + b, 0)
      : sums.get(place) ?? 0;
  };
  const variances = new Map<number, number>();
  model.measured(selection).variances.forEach((value, i) => {
    addAt(variances, model.places[i]!, value);
    addAt(variances, ALL, value);
  });
  return {of, margin: (place) => model.marginOf(variances.get(place) ?? 0)};
}

const ALL = -1;

function seconds(app: App): number {
  const {from, to} = stepsOf(app);
  const {memory: its, duration_ns: length} = app.doc;
  return Math.min(length, (to - from + 1) * its!.step_ns) / 1e9;
}

/** The two more columns of a measure: head, what it means, and a figure. */
function columnsOf(app: App, its: Figures, scale: number):
  [string, string, (place: number) => Node | string][] {
  const b = (number: number) => number ? amount(BYTES, number, scale) : '–';
  const free = (number: number) => number ? amount(BYTES, number) : '–';
  const share = (place: number) => shareOf(
    its.of('survived', place), its.of('allocated', place));
  const survived: [string, string, (place: number) => string] = ['Survived',
    'Of all that this line allocated, the share that is still in use at the ' +
    'end. 100 %: it never freed anything. Near 0 %: it churns.', share];
  const aSecond: [string, string, (place: number) => string] = ['A second',
    'Bytes for each second of the time.',
    (place) => free(its.of(measureOf(app), place) / seconds(app))];
  switch (measureOf(app)) {
    case 'in_use': return app.doc.memory!.has_moments ? [['Grew',
      'In use at the end less in use after a quarter of the time.',
      (place) => {
        const value = its.of('grew', place);
        return h('span', {class: value > its.margin(place) ? 'more' : 'm3'},
          signed(b(value).replace(/\u00a0.*/, ''), value));
      }], survived] : [survived];
    case 'peak': return [['At the end', 'In use at the end, of the same line.',
      (place) => b(atEnd(app, place))],
    ['Freed since', 'How much less it is by the end.', (place) => {
      const less = its.of('peak', place) - atEnd(app, place);
      return less > its.margin(place) ? b(less) : '–';
    }]];
    case 'grew': return [['Before → after', 'In use at both moments.',
      (place) => {
        const after = its.of('in_use', place);
        return `${b(Math.max(0, after - its.of('grew', place)))} → ${b(after)}`;
      }], survived];
    case 'survived': return [['Allocated', 'In the time, freed or not.',
      (place) => free(its.of('allocated', place))],
    ['Share', 'How much of it is still in use.', share]];
    case 'allocated': return [aSecond, ['Still in use', 'Of what was ' +
      'allocated in the time.', (place) => free(its.of('survived', place))]];
    case 'churn': return [aSecond, ['Lifetime', 'Half of the bytes were ' +
      'freed within this time.', (place) => lifetimeOf(app, place)]];
  }
}

function atEnd(app: App, place: number): number {
  const {model, selection} = app;
  const {bytes} = model.measured({...selection, measure: 'in_use', at: -1,
    time: null});
  return bytes.reduce((sum, value, i) => (
    place === ALL || model.places[i] === place ? sum + value : sum), 0);
}

function lifetimes(app: App, place: number): number[] {
  return app.model.blocks!.lifetimes(stepsOf(app),
    (i) => place === ALL || app.model.places[i] === place);
}

function lifetimeOf(app: App, place: number): string {
  const all = lifetimes(app, place);
  const half = all.reduce((a, b) => a + b, 0) / 2;
  let sum = 0;
  const number = all.findIndex((value) => (sum += value) >= half && half > 0);
  return number < 0 ? '' : number ? `${LIFETIMES[number - 1]} to ` +
    LIFETIMES[number] : `under ${LIFETIMES[0]}`;
}

function sentence(app: App, rows: readonly Row[]): (Node | string)[] {
  const measure = measureOf(app);
  const {total} = app.sum;
  const first = rows.find(({place}) => !app.model.isOutside(place)) ?? rows[0];
  if (first === undefined || total <= 0 && measure !== 'grew') {
    return [];
  }
  const b = (number: number) => h('b', {}, said(BYTES, number));
  const line = h('code', {}, app.model.placeName(first.place));
  const call = first.called ? ` (${first.called})` : '';
  const part = percent(first.total, total);
  const steps = stepsOf(app);
  const from = ` from ${clock(app, steps.from)} to ${clock(app, steps.to + 1)}`;
  const when = whenText(app, shownStep(app)).replace(/^a/, 'A');
  const its = figuresOf(app);
  switch (measure) {
    case 'in_use': return [`${when} `, b(total), ' were in use. ', line, call,
      ` allocated the most of it, ${said(BYTES, first.total)}`,
      app.query.at < 0 && !steps.isPart ? '; of all that this line ever ' +
        `allocated, ${shareOf(its.of('survived', first.place),
          its.of('allocated', first.place))} is still there.` : '.'];
    case 'peak': return ['The most in use at once was ', b(total),
      `, ${whenText(app, shownStep(app))}: ${part} of it from `, line, call,
      '.'];
    case 'grew': {
      const since = steps.isPart ? steps.from : app.doc.memory!.quarter;
      const hours = (steps.to + 1 - since) * app.doc.memory!.step_ns / 3.6e12;
      const isSure = total > its.margin(ALL);
      return [`From ${clock(app, since)} to ${clock(app, steps.to + 1)} it ` +
        `${total < 0 ? 'shrank' : 'grew'} by `, h('b', {class: !isSure ? ''
        : 'more'}, said(BYTES, Math.abs(total))), isSure
        ? (hours < LEAST_HOURS ? '' : `, ${said(BYTES, total / hours)} an hour`) +
          `: ${part} of it at ` : '. ',
      ...isSure ? [line, '. '] : ['That is within its ±. '],
      !steps.isPart && app.doc.memory!.goes_on ? 'Its lowest rose in nearly ' +
        'every eighth of that time: it has not stopped.' : ''];
    }
    case 'survived': return ['Of ', b(its.of('allocated', ALL)),
      ` that were allocated${from}, `, b(total),
      ` are still in use at the end: ${part} of that from `, line, '.'];
    case 'allocated': return [b(total), ` were allocated${from}, ` +
      `${said(BYTES, total / seconds(app))} a second; all but ` +
      `${said(BYTES, Math.max(0, its.of('survived', ALL)))} has been freed. `,
    line, call, ` allocated ${part} of it.`];
    case 'churn': return [b(total / seconds(app)), ' a second were ' +
      'allocated and freed again within a second. ', line, call,
    ` churns most: ${part} of it.`];
  }
}

function table(app: App, rows: readonly Row[]): HTMLElement[] {
  const {model, query, sum: {total}} = app;
  const measure = measureOf(app);
  const its = figuresOf(app);
  const isFound = query.q ? finder(query.q) : () => true;
  const inside = rows.filter((row) => !model.isOutside(row.place) &&
    isFound(textOf(app, row)));
  const isFlow = measure === 'churn' || measure === 'allocated';
  const least = Math.max(isFlow ? 0 : app.doc.memory!.least_bytes,
    LEAST_SHARE * Math.abs(total));
  const isShown = (row: Row) => query.all || Math.abs(row.total) >= least &&
    (measure !== 'grew' || Math.abs(row.total) > its.margin(row.place));
  const shown = inside.filter(isShown).sort((a, b) => (
    Math.abs(b.total) - Math.abs(a.total))).slice(0, ROWS);
  const small = inside.filter((row) => !shown.includes(row));
  const chosen = query.line ? shown.find(
    (row) => model.placeKey(row.place) === query.line) : undefined;
  const isBeside = chosen !== undefined && innerWidth >= WIDE_PX;
  const scale = rows.reduce((most, row) => Math.max(
    most, Math.abs(row.total)), 1);
  const more = columnsOf(app, its, scale);
  const cells = (figure: number, margin: number, place: number | null,
    what: (Node | string | null)[], hasBar = true) => [
    h('td', {class: `r share ${measure === 'grew' && figure > margin ? 'more'
      : ''}`}, figure ? signedIf(measure === 'grew', figure, scale) : '–'),
    h('td', {class: 'r m3'}, margin || figure ? plusMinus(margin, scale) : ''),
    h('td', {class: measure === 'grew' ? 'bars dv' : 'bars'},
      hasBar ? barOf(app, its, place, figure, scale) : null),
    h('td', {class: 'key cut'}, ...what),
    ...more.map(([,, figureOf], number) => h('td', {
      class: `r c${number + 5}`}, place === null ? '' : figureOf(place)))];
  const rowOf = (row: Row) => {
    const key = model.placeKey(row.place);
    return h('tr', {tabindex: 0, 'data-key': key, 'aria-selected':
      String(query.line === key), onclick: () => app.ask({
      line: query.line === key ? '' : key})}, ...cells(row.total,
      its.margin(row.place), row.place, [h('div', {class: 'where'},
        h('span', {class: 'f'}, model.placeName(row.place)),
        h('span', {class: 'fn'}, model.functionName(row.place)),
        row.called ? h('span', {class: 'to inl'}, '→ ',
          h('b', {}, row.called)) : null,
        isBeside ? null : h('span', {class: 'fn'},
          typesOf(app, row.place).slice(0, 2).map(([name]) => name)
            .join(', '))),
      h('code', {class: 'src'}, sourceOf(app, row))]));
  };
  const rest = (figure: number, margin: number, place: number | null,
    ...what: (Node | string)[]) => h('tr', {class: 'rest'},
    ...cells(figure, margin, place, [h('div', {}, ...what)], place !== null &&
      place !== ALL));
  const body = h('tbody', {}, ...shown.flatMap((row) => [rowOf(row),
    ...row === chosen && !isBeside ? [h('tr', {class: 'unfold'}, h('td', {
      colspan: 4 + more.length}, panel(app, row, its)))] : []]));
  if (!query.q) {
    if (small.length || query.all) {
      body.append(rest(small.reduce((sum, row) => sum + row.total, 0),
        Math.hypot(...small.map((row) => its.margin(row.place))), null,
        `${plural(small.length, 'more line')} ${measure === 'grew'
          ? 'within their ±' : isFlow || least > app.doc.memory!.least_bytes
            ? 'under 0.5 %' : `under ${app.doc.memory!.least}`} `,
        link(query.all ? 'Hide' : 'Show', () => app.ask({all: !query.all}),
          {'data-key': 'all'})));
    }
    body.append(...rows.filter((row) => model.isOutside(row.place)).map(
      (row) => rest(row.total, its.margin(row.place), row.place,
        `${model.placeName(row.place)} `, h('span', {class: 'm3'},
          librariesOf(app, row)))),
    rest(total, its.margin(ALL), ALL, h('b', {}, 'all')));
  }
  const what = app.doc.is_mine === true ? 'Line of my code' : 'Line';
  const result = stacked(h('table', {class: 'rows stack fix mem',
    'aria-label': 'Lines by memory'},
  h('colgroup', {}, ...['92px', '60px', isBeside ? '13%' : '20%', '',
    measure === 'grew' ? '150px' : '84px', measure === 'churn' ? '108px'
      : '78px'].slice(0, 4 + more.length).map((width) => h('col',
    width ? {'style.width': width} : {}))),
  h('thead', {}, h('tr', {},
    head(WORDS[measure].name, `${WORDS[measure].tip} A line’s figure has all ` +
      'that it called outside your code.', 'r'),
    head('±', 'The true figure is within this, 19 times of 20. “exact”: ' +
      'blocks so large that each one was sampled.', 'r'),
    head('Compared', measure === 'allocated' ? 'Dark: still in use. Pale: ' +
      'freed.' : 'Its length compares the lines.'),
    head(what, 'The innermost line of yours that allocated it: not who ' +
      'refers to it. After the arrow what it called, then the types.'),
    ...more.map(([name, tip]) => head(name, tip, 'r')))), body));
  return [h('div', {class: isBeside ? 'split open' : 'split'}, result,
    isBeside && panel(app, chosen, its))];
}

function signedIf(isSigned: boolean, figure: number, scale: number): string {
  const text = amount(BYTES, figure, scale);
  return isSigned ? signed(text, figure) : text;
}

function barOf(app: App, its: Figures, place: number | null, figure: number,
  scale: number): HTMLElement {
  const measure = measureOf(app);
  if (measure === 'grew') {
    return grewBar(its, place, figure, scale);
  }
  const left = measure === 'allocated' && place !== null
    ? Math.max(0, its.of('survived', place)) : 0;
  return h('span', {class: 'bar m', role: 'img', 'aria-label':
    amount(BYTES, figure, scale), 'style.width':
    `${figure ? Math.max(1, 100 * Math.abs(figure) / scale) : 0}%`},
  left > 0 ? h('i', {class: 's-py', 'style.flex': left}) : null,
  h('i', {class: `s-${WORDS[measure].css}`, 'style.flex': figure - left}));
}

/** Less to the left, more to the right, with how far it may be off. */
function grewBar(its: Figures, place: number | null, figure: number,
  scale: number): HTMLElement {
  const zero = 30, width = 1.75 * scale;
  const at = (value: number) => Math.max(0, Math.min(100,
    zero + 100 * value / width));
  const margin = place === null ? 0 : its.margin(place);
  return h('div', {class: 'diff', role: 'img', 'aria-label':
    `${signedIf(true, figure, scale)}, ${plusMinus(margin, scale)}`},
  h('span', {class: 'z', 'style.left': `${zero}%`}),
  h('span', {class: `d ${figure < 0 ? 'less' : 'more'}`, 'style.left':
    `${Math.min(zero, at(figure))}%`, 'style.width':
    `${Math.abs(at(figure) - zero)}%`}),
  margin ? h('span', {class: 'e', 'style.left': `${at(figure - margin)}%`,
    'style.width': `${at(figure + margin) - at(figure - margin)}%`}) : null);
}

/** What a label has of a line, the largest first; of all lines: ALL. */
function byLabel(app: App, key: number, place: number, without: string):
  [string, number][] {
  const {model} = app;
  if (key < 0) {
    return [];
  }
  const values = model.labelValues(key);
  const labels = model.doc.column('sample_labels');
  const sums = new Map<string, number>();
  app.weights.forEach((value, i) => {
    if (value && (place === ALL || model.places[i] === place)) {
      addAt(sums, values[labels[i]!] ?? without, value);
    }
  });
  return [...sums].filter(([, value]) => value > 0).sort(
    ([, a], [, b]) => b - a);
}

function typesOf(app: App, place: number): [string, number][] {
  return byLabel(app, app.doc.memory!.type, place, 'buffer');
}

function types(app: App): HTMLElement {
  const {type} = app.doc.memory!;
  return byKey(app, 'type', type, 'Of the object that a block belongs to; a ' +
    'buffer without one is by who allocated it.', 'buffer') ?? h('div', {
    class: 'blk'}, h('h2', {}, 'Types'), h('p', {},
    'Types were not resolved.'));
}

/** Routes, if there were any: one is chosen by a click. */
function routes(app: App): HTMLElement | null {
  return byKey(app, 'route', app.model.doc.route, 'What was allocated for ' +
    'requests of it, whoever freed it.', 'no request');
}

function byKey(app: App, noun: string, key: number, note: string,
  without: string): HTMLElement | null {
  const all = byLabel(app, key, ALL, without);
  if (!all.length) {
    return null;
  }
  const {total} = app.sum;
  const {label_keys: keys, requests} = app.model.doc;
  // How often each route was asked for.
  const counts = new Map(noun !== 'route' || measureOf(app) !== 'allocated'
    ? [] : requests?.rows.map(({value, count}) => [value, count]));
  const rows = all.slice(0, MOST_TYPES);
  const rest = all.slice(MOST_TYPES).reduce((sum, [, its]) => sum + its, 0);
  const row = (name: string, value: number, css = '') => h('tr', {class: css},
    h('td', {class: 'r share'}, amount(BYTES, value, rows[0]![1])),
    h('td', {class: 'r'}, percent(value, total)),
    counts.size ? h('td', {class: 'r'}, counts.has(name)
      ? said(BYTES, value / counts.get(name)!) : '') : null,
    h('td', {class: 'bars'}, css ? null : meter(value, rows[0]![1],
      WORDS[measureOf(app)].css)), h('td', {class: 'key'},
      css || name === without ? name : link(name, () => app.ask({
        label: [keys[key]!, name]}))));
  return h('div', {class: 'blk'}, h('h2', {}, `${
    WORDS[measureOf(app)].name}, by ${noun}`), h('p', {}, note),
  stacked(h('table', {class: 'stack types', 'aria-label': `By ${noun}`},
    h('thead', {}, h('tr', {}, head('Size', '', 'r'), head('Share', '', 'r'),
      counts.size ? head('By one', 'For one request.', 'r') : null, head(''),
      head(noun === 'type' ? 'Type' : 'Route'))), h('tbody', {}, ...rows.map(
      ([name, value]) => row(name, value)), rest > 0 ? row(plural(
      all.length - MOST_TYPES, `more ${noun}`), rest, 'rest') : null))));
}

function panel(app: App, row: Row, its: Figures): HTMLElement {
  const {model, side: {sources}} = app;
  const measure = measureOf(app);
  const number = model.doc.places.function[row.place]!;
  const line = model.doc.places.line[row.place]!;
  const text = number < 0 ? null : sources.text(number);
  const [say, tail] = {in_use: ['has', ' in use'],
    peak: ['had', ' in use at the peak'], grew: ['grew by', ''],
    survived: ['has, of that time,', ' in use at the end'],
    allocated: ['allocated', ''], churn: ['churned', '']}[measure];
  const margin = plusMinus(its.margin(row.place), row.total);
  const [figure, unit] = amount(BYTES, row.total).split('\u00a0');
  const kinds = typesOf(app, row.place).slice(0, 3).map(([name, value]) => (
    `${name} ${percent(value, Math.abs(row.total))}`)).join(', ');
  const allocated = its.of('allocated', row.place);
  return h('aside', {class: 'panel', 'aria-label': 'Source'},
    h('div', {class: 'top'}, h('b', {'data-tip': number < 0 ? null
      : model.fileOf(number)}, model.placeName(row.place)),
    h('span', {class: 'm2 name'}, model.functionName(row.place)),
    h('span', {class: 'acts'}, ...actions(app, row),
      h('button', {type: 'button', class: 'close', 'aria-label': 'Close',
        onclick: () => app.ask({line: ''})}, '×'))),
    h('div', {class: 'sum'}, `Line ${line} ${say} `,
      h('b', {}, figure!), margin === 'exact' ? '' : ` ${margin}`,
      ` ${unit}${tail}${kinds && `: ${kinds}`}. Of ` +
      `${said(BYTES, allocated)} that it allocated, ` +
      `${shareOf(its.of('survived', row.place), allocated).replace('–',
        'nothing')} is still in use.`),
    ...app.doc.memory!.has_moments ? [life(app, row.place, its)] : [],
    text === null || Object.keys(text.lines).length === 0
      ? h('p', {class: 'sum'}, ...why(app, text, number))
      : code(app, number, line, text, (sum, most) => meter(
        Math.abs(sum.total), most, WORDS[measure].css)));
}

function life(app: App, place: number, its: Figures): HTMLElement {
  const freed = lifetimes(app, place);
  const live = Math.max(0, its.of('survived', place));
  const all = freed.reduce((a, b) => a + b, 0) + live;
  const most = Math.max(...freed, live, 1);
  const bin = (value: number, css: string, tip: string) => h('span', {
    class: css, 'data-tip': `${tip}: ${said(BYTES, value)}, ` +
      `${shareOf(value, all)} of what it allocated`}, h('i', {'style.height':
    `${value > 0 ? Math.max(2, 100 * value / most) : 0}%`}));
  return h('div', {class: 'sub2'}, h('h3', {class: 'tipped', tabindex: 0,
    'data-tip': 'Time from allocation to free, by bytes. Green: still in ' +
      'use at the end. All at the left is churn; all green is kept.'},
  'Lifetimes of its blocks'),
  h('div', {class: 'life', role: 'img', 'aria-label': 'Lifetimes'},
    ...freed.map((value, number) => bin(value, '', number === freed.length - 1
      ? 'longer' : `under ${LIFETIMES[number]}`)),
    bin(live, 'live', 'still in use')),
  h('div', {class: 'lifex'}, ...LIFETIMES.map((text) => h('span', {}, text)),
    h('span', {}, 'in use')));
}

// Lanes

interface Band {
  readonly name: string;
  readonly colour: string;
  readonly isMine: boolean;
  readonly levels: Float64Array;
}

/** What lies in bands: the steadiest lowest, what comes and goes on top. */
function bandsOf(app: App): Band[] {
  const {model, query} = app;
  const {doc} = model;
  const labels = doc.column('sample_labels');
  const libraries = doc.column('sample_library');
  const typesOfSets = doc.memory!.type < 0 ? []
    : model.labelValues(doc.memory!.type);
  const nameOf = (i: number): string => {
    const place = model.places[i]!;
    return query.bands === 'type' ? typesOfSets[labels[i]!] ?? 'buffer'
      : model.isOutside(place) || query.bands === 'line'
        ? model.placeName(place)
        : doc.libraries[libraries[i]!] || 'my code';
  };
  const isWanted = wanted(app);
  const names = new Map<string, number>();
  const placeOf = new Map<string, number>();
  const keys = Array.from({length: model.length}, (_, i) => {
    if (!isWanted(i)) {
      return -1;
    }
    const name = nameOf(i);
    if (!names.has(name)) {
      names.set(name, names.size);
      placeOf.set(name, model.places[i]!);
    }
    return names.get(name)!;
  });
  const levels = model.blocks!.levels(keys, names.size);
  const most = (its: Float64Array) => its.reduce((a, b) => Math.max(a, b), 0);
  const ranked = [...names].map(([name, number]) => ({
    name, levels: levels[number]!, most: most(levels[number]!)})).sort(
    (a, b) => b.most - a.most).filter((its) => its.most > 0);
  const colours = colouringOf(model).colours;
  const found: Band[] = ranked.slice(0, BANDS).map((its, rank) => {
    const place = placeOf.get(its.name)!;
    const number = doc.places.function[place]!;
    const isMine = query.bands === 'line' && number >= 0 ||
      its.name === 'my code';
    return {name: its.name, levels: its.levels, isMine,
      colour: query.bands === 'line' ? number >= 0 ? colours[number]!
        : model.isImports(place) ? 'g-1' : 'g-2'
        : its.name === 'my code' ? 'mine-1' : `p-${rank % 5 + 1}`};
  });
  const rest = ranked.slice(BANDS);
  if (rest.length) {
    const sum = new Float64Array(model.blocks!.last + 1);
    rest.forEach((its) => its.levels.forEach((value, step) => {
      sum[step]! += value;
    }));
    found.push({name: 'all else', colour: 'g-3', isMine: false, levels: sum});
  }
  const quarter = doc.memory!.quarter;
  const range = ({levels: its, name}: Band) => {
    const late = its.subarray(quarter);
    const [low, high] = [Math.min(...late), Math.max(...late)];
    return name === 'all else' ? -1 : high - low +
      (its[its.length - 1]! < 0.02 * high ? 1e15 : 0);
  };
  return found.sort((a, b) => range(a) - range(b));
}

function wanted(app: App): (sample: number) => boolean {
  const {label} = app.selection;
  if (!label) {
    return () => true;
  }
  const values = app.model.labelValues(
    app.model.doc.label_keys.indexOf(label[0]));
  const labels = app.model.doc.column('sample_labels');
  return (i) => values[labels[i]!] === label[1];
}

function lanes(app: App, bands: readonly Band[]): HTMLElement[] {
  const {model, query} = app;
  const blocks = model.blocks!;
  const its = app.doc.memory!;
  const n = its.n_steps;
  const steps = stepsOf(app);
  const share = (step: number) => `${100 * step / n}%`;
  const step = shownStep(app);
  const mark = (at: number, text: string, isOn = false) => h('div', {
    class: isOn ? 'at on' : 'at', 'style.left': share(at)}, h('span', {
    class: at > 0.94 * n ? 'last' : at < 0.06 * n ? 'first' : ''}, text));
  const peakSize = model.measured({...app.selection, measure: 'peak',
    time: null, at: -1}).bytes.reduce((a, b) => a + b, 0);
  const measure = measureOf(app);
  const marks = measure === 'peak' ? [mark(step + 1,
    `peak ${whenText(app, step).replace(/^at /, '')}`, true)]
    : query.at >= 0 ? [mark(query.at + 1, clock(app, query.at + 1, true),
      true)]
      : measure === 'grew' && !query.time ? [mark(its.quarter,
        clock(app, its.quarter), true)]
        : its.peak >= 0 && !query.time ? [mark(its.peak + 0.5,
          `peak ${said(BYTES, peakSize)}`)] : [];
  const marked = [...measure === 'peak' ? [step + 1] : query.at >= 0
    ? [query.at + 1] : measure === 'grew' && !query.time ? [its.quarter]
      : query.time ? [(steps.from + steps.to + 1) / 2] : [its.peak]];
  const axis = h('div', {class: 'axis'}, ...ticks(app).map(
    ([at, text]) => h('span', {class: marked.some(
      (one) => Math.abs(one - at) < 0.08 * n) ? 'hid' : at < 0.03 * n ? 'first'
      : at > 0.97 * n ? 'last' : '', 'style.left': share(at)}, text)));
  const used = bands.reduce((sum, band) => sum + band.levels[step]!, 0);
  const rss = its.history[step];
  const allocated = model.measured({...app.selection, measure: 'allocated'})
    .bytes.reduce((a, b) => a + b, 0);
  const name = (title: string, ...lines: string[]) => h('div', {class: 'name'},
    h('b', {}, title), ...lines.map((text) => h('span', {class: 'm3'}, text)));
  const picture = (lane: string, css: string, label: string) => h('div', {
    class: `pic ${css}`}, h('canvas', {'data-lane': lane, role: 'img',
    'aria-label': label}));
  return [h('div', {class: 'tools'}, h('span', {class: 'm2 label'}, 'Bands'),
    choices('Bands', (['line', 'package', 'type'] as const).map((bands) => ({
      text: bands === 'line' ? 'By my line' : `By ${bands}`,
      isChosen: query.bands === bands, choose: () => app.ask({bands})}))),
    h('span', {class: 'm3'}, 'Click a moment for what was in use then. Drag ' +
      'over a time for what was allocated there and is still in use.')),
  h('div', {class: 'lanes mem'}, h('div'), axis,
    name('In use', `${said(BYTES, used)} ${whenText(app, step)}`,
      ...rss ? [`line: RSS, ${said(BYTES, rss[rss.length - 1]!)}`] : []),
    picture('in_use', 'tall', `In use: ${bands.map((band) => `${band.name} ` +
      `${said(BYTES, band.levels[blocks.last]!)} at the end`).join(', ')}`),
    name('Allocated', `${said(BYTES, allocated / seconds(app))} a second`),
    picture('allocated', 'mid', 'Allocated over time'),
    name('Survived', 'of it, to the end'),
    picture('survived', 'mid', 'Of what was allocated then, what is still ' +
      'in use at the end'),
    brushOf(app, query.time && [steps.from, steps.to + 1], n,
      query.time ? spanText(app, steps) : '', 1, (range, at) => {
        if (range) {
          app.ask({time: blocks.timeOf(range[0], range[1] - 1), at: -1,
            measure: 'survived'});
        } else {
          app.ask(query.time || query.at >= 0 ? {time: null, at: -1,
            measure: 'in_use'} : {at: Math.max(0, Math.min(blocks.last,
            at - 1)), measure: 'in_use'});
        }
      }, ...marks))];
}

function paintLanes(app: App, place: HTMLElement,
  bands: readonly Band[]): void {
  const paint = new Paint();
  const {model} = app;
  const its = app.doc.memory!;
  const n = its.n_steps;
  const [all, left] = model.blocks!.flows(wanted(app));
  const rss = its.history.map((row) => row && row[row.length - 1]!);
  for (const canvas of place.querySelectorAll<HTMLCanvasElement>(
    'canvas[data-lane]')) {
    const width = canvas.parentElement!.clientWidth;
    const lane = canvas.dataset.lane;
    const height = (lane === 'in_use' ? IN_USE_PX : FLOW_PX) - 1;
    const pen = fit(canvas, width, height);
    if (lane === 'in_use') {
      paintInUse(paint, pen, width, height, bands, rss);
      continue;
    }
    const values = lane === 'allocated' ? all : left.map(
      (value) => Math.max(0, value));
    const sorted = [...values].sort((a, b) => a - b);
    const top = lane === 'allocated' ? sorted[n - 1]!
      : Math.max(1, 2.2 * sorted[Math.floor(0.7 * n)]!,
        sorted[n - 1]! / 20);
    values.forEach((value, step) => {
      const size = Math.min(value, top) / (top || 1) * (height - 5);
      const x = step * width / n;
      pen.fillStyle = paint.colour(lane === 'allocated' ? 'freed' : 'py');
      pen.fillRect(x + 0.3, height - size, Math.max(0.7, width / n - 0.8),
        size);
      if (value > top) {
        // Cut: two notches.
        pen.fillStyle = paint.colour('bg');
        pen.fillRect(x, height - size + 4, width / n, 1.5);
        pen.fillRect(x, height - size + 7, width / n, 1.5);
      }
    });
  }
}

function paintInUse(paint: Paint, pen: CanvasRenderingContext2D, width: number,
  height: number, bands: readonly Band[],
  rss: readonly (number | null)[]): void {
  const n = bands[0]?.levels.length ?? 0;
  const sums = Array.from({length: n}, (_, step) => bands.reduce(
    (sum, band) => sum + band.levels[step]!, 0));
  const top = 1.06 * Math.max(1, ...sums, ...rss.map((its) => its ?? 0));
  const y = (value: number) => height - value / top * (height - 2);
  const x = (step: number) => step * width / n;
  pen.font = `11px ${paint.font}`;
  pen.textBaseline = 'middle';
  const scale = niceStep(top);
  for (let value = scale; value < top; value += scale) {
    pen.fillStyle = paint.colour('line');
    pen.fillRect(0, Math.round(y(value)), width, 1);
    if (width > NARROW_PX && y(value) > 12) {
      pen.fillStyle = paint.colour('ink-3');
      pen.fillText(said(BYTES, value).replace(/\.0+/, ''), 4, y(value) - 6);
    }
  }
  const base = new Float64Array(n);
  const labels: [string, number, number, string, CanvasTextAlign][] = [];
  for (const {name, colour, isMine, levels} of bands) {
    const outline = (isTop: boolean) => {
      for (let step = 0; step < n; step++) {
        const at = isTop ? step : n - 1 - step;
        const level = y(base[at]! + (isTop ? levels[at]! : 0));
        pen.lineTo(x(isTop ? at : at + 1), level);
        pen.lineTo(x(isTop ? at + 1 : at), level);
      }
    };
    pen.fillStyle = paint.colour(colour);
    pen.beginPath();
    pen.moveTo(0, y(base[0] ?? 0));
    outline(true);
    outline(false);
    pen.fill();
    const end = levels[n - 1]!;
    const [most, at] = levels.reduce(([a, place], value, step) => (
      value > a ? [value, step] : [a, place]), [0, 0]);
    const figure = (value: number) => said(BYTES, value).replace(/\u00a0.*/,
      '');
    const label = `${name}  ${figure(end)}`;
    // As far as the name goes to the left the band has to be there, too.
    const first = Math.max(0, Math.floor(
      n * (1 - (8 + LETTER_PX * label.length) / width)));
    const under = Math.max(base[first]!, base[n - 1]!);
    const over = Math.min(base[first]! + levels[first]!, base[n - 1]! + end);
    if (height * (over - under) / top > NAMED_PX) {
      labels.push([label, width - 8, y((under + over) / 2),
        isMine ? '#fff' : paint.colour('lib-ink'), 'right']);
    } else if (end < most / 20 && height * most / top > SPIKE_PX) {
      const isLeft = at > 0.7 * n;
      const right = levels.findIndex((value, step) => (
        step > at && value < most / 2));
      labels.push([`${name}  ${figure(most)}`, isLeft ? x(at) - 6
        : x(right) + 6, y(base[at]! + 0.72 * most), paint.colour('ink'),
      isLeft ? 'right' : 'left']);
    }
    levels.forEach((value, step) => {
      base[step]! += value;
    });
    pen.strokeStyle = paint.colour('bg');
    pen.lineWidth = 1;
    pen.beginPath();
    base.forEach((value, step) => {
      pen.lineTo(x(step), y(value));
      pen.lineTo(x(step + 1), y(value));
    });
    pen.stroke();
  }
  pen.strokeStyle = paint.colour('rss');
  pen.lineWidth = 1.5;
  pen.beginPath();
  rss.forEach((value, step) => {
    if (value !== null) {
      pen.lineTo(x(step), y(value));
      pen.lineTo(x(step + 1), y(value));
    }
  });
  pen.stroke();
  const last = rss[rss.length - 1];
  if (last) {
    labels.push([`RSS ${said(BYTES, last).replace(/\u00a0.*/, '')}`,
      width - 8, y(last) + 10, paint.colour('ink'), 'right']);
  }
  for (const [text, left, middle, ink, align] of labels) {
    pen.textAlign = align;
    pen.fillStyle = ink;
    pen.fillText(text, left, middle);
  }
  pen.textAlign = 'left';
}

/** A round number of bytes, of which four or five are as much. */
function niceStep(top: number): number {
  const unit = 2 ** (10 * Math.floor(Math.log2(top / 4) / 10));
  const wanted = top / 4 / unit;
  return unit * ([1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].find(
    (its) => its >= wanted * 0.8) ?? 1000);
}
