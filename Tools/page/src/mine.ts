// My code: the lines of the user, what they took and what they were doing.

import type {App, View} from './app';
import {bar, parts} from './bars';
import {nothingLeft} from './chrome';
import {h, head, link, stacked, withCode} from './dom';
import {addAt, addTo, finder, greatest, type Row} from './model';
import {sourcePanel} from './source';
import {count, heading, percent, plural} from './words';

// Rows with less are one row; as many are drawn at a time.
const LEAST_SHARE = 0.005;
const ROWS = 5, FLAT_ROWS = 15, FLAT_SHARE = 0.05;
const AT_A_TIME = 200;
const WIDE_PX = 1180;
// There is no column of calls on narrower screens.
const NARROW_PX = 1020;
const MOST_NAMES = 4;

export const mine: View = {
  name: 'mine',
  title: 'My code',
  keys: [['↑ ↓', 'lines'], ['Enter', 'source']],
  isThere: () => true,
  draw,
};

function draw(app: App, place: HTMLElement): void {
  const {model, query} = app;
  const rows = model.rows(app.weights);
  if (query.sort === 'calls') {
    rows.sort((a, b) => (model.callsAt(b.place)?.calls ?? 0) -
      (model.callsAt(a.place)?.calls ?? 0));
  }
  const total = app.sum.total;
  if (!rows.length) {
    place.replaceChildren(nothing(app));
    return;
  }
  const isFound = query.q ? finder(query.q) : () => true;
  const inside = rows.filter(({place: its}) => !model.isOutside(its));
  const outside = rows.filter(({place: its}) => model.isOutside(its));
  const found = inside.filter((row) => isFound(textOf(app, row)));
  const least = leastRows(found, total);
  const shown = query.all ? found : found.filter(({total: its}, number) => (
    number < least || its >= LEAST_SHARE * total));
  const chosen = query.line
    ? rows.find((row) => model.placeKey(row.place) === query.line) : undefined;
  const isBeside = chosen !== undefined && innerWidth >= WIDE_PX;
  const hasCalls = model.hasCalls && !isBeside && innerWidth > NARROW_PX;
  const nColumns = (isBeside ? 4 : 5) + Number(hasCalls);
  const table = tableOf(app, total, isBeside, hasCalls);
  const most = rows.reduce((max, row) => Math.max(max, row.total), 0);
  const body = table.tBodies[0]!;
  const fill = (from: number): void => {
    for (const row of shown.slice(from, from + AT_A_TIME)) {
      body.append(rowOf(app, row, most, total, isBeside, hasCalls));
      if (row === chosen && !isBeside) {
        body.append(h('tr', {class: 'unfold'},
          h('td', {colspan: nColumns}, sourcePanel(app, row))));
      }
    }
    if (from + AT_A_TIME < shown.length) {
      const more = h('tr', {class: 'rest'}, h('td', {colspan: nColumns}, link(
        `Show ${plural(shown.length - from - AT_A_TIME, 'more line')}`,
        () => {
          more.remove();
          fill(from + AT_A_TIME);
          addRest();
        })));
      body.append(more);
    }
  };
  const addRest = () => {
    body.querySelectorAll('.end').forEach((row) => row.remove());
    body.append(...restRows(app, found.length - shown.length,
      found.filter((row) => !shown.includes(row)),
      query.q ? [] : outside, most, total, nColumns, hasCalls));
  };
  fill(0);
  addRest();
  stacked(table);
  place.replaceChildren(...cards(app), ...hint(app),
    h('div', {class: isBeside ? 'split open' : 'split'}, table,
      isBeside && sourcePanel(app, chosen)));
}

/** How many rows are shown whatever they have, as in the report: more where
 * what is left has much, in a flat profile. */
function leastRows(rows: readonly Row[], total: number): number {
  let rest = rows.slice(ROWS).reduce((sum, row) => sum + row.total, 0);
  let number = ROWS;
  while (number < FLAT_ROWS && rest >= FLAT_SHARE * total) {
    rest -= rows[number++]?.total ?? 0;
  }
  return number;
}

function nothing(app: App): HTMLElement {
  const isFiltered = app.query.state || app.query.time || app.query.label;
  return isFiltered ? nothingLeft(app) : h('div', {class: 'empty'},
    h('b', {}, 'No thread did anything while this was recorded.'),
    'What threads with nothing to do waited for is left out.');
}

function hint(app: App): HTMLElement[] {
  return app.model.doc.is_mine === true ? [] : [h('p', {class: 'lead'},
    'None of the time is in code of yours. These are the library lines. ' +
    'If some of it is yours: ', h('code', {}, '--mine PATTERN'), '.')];
}

function cards(app: App): HTMLElement[] {
  const {cards: all, also} = app.model.doc;
  if (!all.length) {
    return [];
  }
  return [h('div', {class: 'cards'}, ...all.map((card) => h('article', {
    class: 'card'},
  h('h2', {class: 't'}, card.title), h('span', {class: 'n'}, card.figure),
  h('p', {class: 'd'}, ...withCode(card.text)),
  card.go && card.link ? h('button', {type: 'button', class: 'go',
    'data-key': `card ${card.rule}`, onclick: () => follow(app, card.go,
      card.place)}, card.link) : null))),
  ...also.length === 0 ? [] : [h('p', {class: 'also'}, 'Also: ',
    ...also.flatMap(({title, figure, go, place, rule}, number) => {
      const text = title.charAt(0).toLowerCase() + title.slice(1);
      return [number > 0 && '; ', go ? link(text, () => {
        follow(app, go, place);
      }, {'data-key': `also ${rule}`}) : text, ` ${figure}`];
    }))]];
}

function follow(app: App, go: string, place: number): void {
  if (go === 'place') {
    app.ask({line: app.model.placeKey(place)});
    document.querySelector('tr[aria-selected=true]')?.scrollIntoView(
      {block: 'nearest'});
  } else if (go === 'timeline') {
    app.show('time');
  } else {
    app.show('waits', {waits: go === 'loop' || go === 'tasks' ? 'tasks'
      : 'threads'});
    document.getElementById(`w-${go === 'waits' ? 'what' : go}`)?.scrollIntoView({block: 'center'});
  }
}

export function sourceOf(app: App, row: Row): string {
  const {function: functions, line} = app.model.doc.places;
  return app.side.sources.line(functions[row.place]!, line[row.place]!);
}

export function textOf(app: App, row: Row): string {
  const number = app.model.doc.places.function[row.place]!;
  return [app.model.placeName(row.place), app.model.names[number] ?? '',
    sourceOf(app, row), row.called].join(' ');
}

const CALLS_TIP = 'How often this line called a function, counted, not ' +
  'sampled. Calls of C functions are counted with calls=all.';
const OF_ALL_TIP = 'Calls are of the whole recording, they do not follow ' +
  'this filter.';

/** Whether only a part of the recording is shown, but calls of all of it. */
function isPart({query}: App): boolean {
  return Boolean(query.state || query.time || query.label);
}

function tableOf(app: App, total: number, isBeside: boolean,
  hasCalls: boolean): HTMLTableElement {
  const what = app.model.doc.is_mine === true ? 'Line of my code' : 'Line';
  return h('table', {class: 'rows stack fix', 'aria-label': what},
    h('colgroup', {}, ...(isBeside ? ['76px', '82px', '160px', ''] : ['76px',
      '82px', ...(hasCalls ? ['84px'] : []), '22%', '', '26%']).map((width) => h('col',
      width ? {'style.width': width} : {}))),
    h('thead', {}, h('tr', {},
      head('Share', `Of the ${app.said(total)} that are shown.`, 'r'),
      head(heading(app.model.doc.value), 'Of all threads together, at this ' +
        'line and in what it called that is not yours.', 'r'),
      hasCalls ? h('th', {scope: 'col', class: 'r', 'data-tip': isPart(app)
        ? OF_ALL_TIP : CALLS_TIP, 'aria-sort': app.query.sort === 'calls'
        ? 'descending' : 'none'}, link('Calls', () => app.ask({
        sort: app.query.sort === 'calls' ? 'time' : 'calls'}),
      {'data-key': 'sort calls'})) : null,
      head('What it was doing', 'Coloured by state, as in the bar on top.'),
      head(what, 'The innermost line of yours on the stack.'),
      isBeside ? null : head('In', 'The library that the line called … and ' +
        'the function in which most of the time went.'))),
    h('tbody'));
}

function rowOf(app: App, row: Row, most: number, total: number,
  isBeside: boolean, hasCalls: boolean): HTMLElement {
  const {model, query} = app;
  const name = model.placeName(row.place);
  const key = model.placeKey(row.place);
  const calls = model.callsAt(row.place)?.calls;
  const choose = () => app.ask({line: query.line === key ? '' : key});
  return h('tr', {
    tabindex: 0, 'data-key': key, onclick: choose,
    'aria-selected': String(query.line === key)},
  h('td', {class: 'r share'}, percent(row.total, total)),
  h('td', {class: 'r'}, app.amount(row.total, total)),
  hasCalls ? h('td', {class: `r ${isPart(app) ? 'm3' : 'm2'}`},
    calls ? count(calls) : '') : null,
  h('td', {class: 'bars'}, bar(app, parts(app, row), most)),
  h('td', {class: 'key cut'},
    h('div', {class: 'where'}, h('span', {class: 'f'}, name),
      h('span', {class: 'fn'}, model.functionName(row.place)),
      isBeside && row.called ? h('span', {class: 'to'}, '→ ',
        h('b', {}, row.called)) : null),
    h('code', {class: 'src'}, sourceOf(app, row)),
    calls && !hasCalls && !isBeside
      ? h('span', {class: 'm2'}, callsOf(app, row.place, calls)) : null),
  isBeside ? null : h('td', {class: 'in wide'}, row.called
    ? h('span', {class: 'l', title: row.called}, row.called)
    : h('span', {class: 'm3'}, 'itself')));
}

/** '48,000 calls · 120.0 a request' of a line that asks for something. */
function callsOf({model: {doc}}: App, place: number, calls: number): string {
  const its = doc.calls?.queries.find(
    (row) => row.place === place && row.route && row.per);
  return plural(calls, 'call') +
    (its ? ` · ${its.per.toFixed(1)} a request` : '');
}

function restRows(app: App, nSmall: number, small: readonly Row[],
  outside: readonly Row[], most: number, total: number, nColumns: number,
  hasCalls: boolean): HTMLElement[] {
  const found: HTMLElement[] = [];
  // What several lines have is no line's: it has no bar.
  const add = (sum: Row, isOne: boolean, ...content: (Node | string)[]) => (
    found.push(h('tr', {class: 'rest end'},
      h('td', {class: 'r'}, percent(sum.total, total)),
      h('td', {class: 'r'}, app.amount(sum.total, total)),
      hasCalls ? h('td') : null,
      h('td', {class: 'bars'}, isOne ? bar(app, parts(app, sum), most) : null),
      h('td', {class: 'key', colspan: nColumns - 3 - Number(hasCalls)},
        ...content))));
  if (app.query.all || nSmall) {
    const sum: Row = {...app.model.newSum(), place: 0, called: ''};
    small.forEach((row) => addTo(sum, row));
    if (app.query.all) {
      found.push(h('tr', {class: 'rest end'}, h('td', {
        colspan: nColumns}, link(
        'Leave out lines under 0.5\u00a0%', () => app.ask({all: false})))));
    } else {
      add(sum, false, `${plural(nSmall, 'more line')} under 0.5\u00a0% `,
        link('Show', () => app.ask({all: true}), {'data-key': 'all'}));
    }
  }
  for (const row of outside) {
    add(row, true, app.model.placeName(row.place), ' ',
      h('span', {class: 'm3'}, app.model.isImports(row.place)
        ? importsOf(app) : librariesOf(app, row)));
  }
  return found;
}

/** The packages whose imports took most, of the whole profile. */
function importsOf(app: App): string {
  return app.model.doc.imports.slice(0, MOST_NAMES).map(
    ([name, value]) => `${name} ${app.amount(value)}`).join(', ');
}

/** The packages that what is outside of my code is in, mostly. */
export function librariesOf(app: App, row: Row): string {
  const {model, weights} = app;
  const {package: packages} = model.doc.functions;
  const functions = model.doc.column('node_function');
  const sums = new Map<string, number>();
  for (let i = 0; i < weights.length; i++) {
    if (model.places[i] === row.place && model.nodes[i]) {
      const name = model.doc.packages[
        packages[functions[model.nodes[i]!]!]!]!;
      addAt(sums, name, weights[i]!);
    }
  }
  sums.delete('');
  const ranked = [...sums].sort(([, a], [, b]) => b - a);
  const first = greatest(ranked, ([, value]) => value)?.[1] ?? 0;
  return ranked.filter(([, value]) => value >= 0.05 * first)
    .slice(0, MOST_NAMES).map(([name]) => name).join(', ');
}
