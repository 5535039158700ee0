// Waits: who held the event loop, who held the GIL, and what was waited for.

import type {App, View} from './app';
import type {Document} from './document';
import {h, head, stacked} from './dom';
import {greatest} from './model';
import {placeLink} from './timeline';
import {amount, percent} from './words';

const NS = {name: 'delay_ns', kind: 'delay', unit: 'nanoseconds'};
const ROWS = 8;
const LEAST_SHARE = 0.01;
const MOST_BY = 3;

export const waits: View = {
  name: 'waits',
  title: 'Waits',
  keys: [],
  isThere: () => true,
  draw,
};

function draw(app: App, place: HTMLElement): void {
  const blocks = [loop(app), gil(app), other(app)].filter(
    (block) => block !== null);
  place.replaceChildren(...blocks.length ? blocks : [h('div', {class: 'empty'},
    h('b', {}, 'Nothing waited for longer than 1\u00a0% of the time.'))]);
}

function block(id: string, title: string, text: string,
  table: HTMLTableElement): HTMLElement {
  return h('section', {class: 'blk', id: `w-${id}`},
    h('h2', {}, title), h('p', {}, text), stacked(table));
}

function meter(value: number, most: number, css: string): HTMLElement {
  return h('div', {class: 'meter'}, h('i', {class: `s-${css}`,
    'style.width': `${most ? 100 * value / most : 0}%`}));
}

/** The rows with most, and all others in one. */
function limited<T>(all: [T, number][]): {shown: [T, number][],
  rest: number, nRest: number} {
  all.sort(([, a], [, b]) => b - a);
  const shown = all.length > ROWS ? all.slice(0, ROWS - 1) : all;
  const others = all.slice(shown.length);
  return {shown, nRest: others.length,
    rest: others.reduce((sum, [, value]) => sum + value, 0)};
}

function restRow(text: string, value: string, share: string,
  columns: number): HTMLElement {
  return h('tr', {class: 'rest'}, h('td', {class: 'key'}, text), h('td'),
    h('td', {class: 'r'}, value), h('td', {class: 'r'}, share),
    ...columns > 4 ? [h('td', {class: 'wide'})] : []);
}

function loop(app: App): HTMLElement | null {
  const {model} = app;
  if (!model.doc.has('sample_delay')) {
    return null;
  }
  const delays = model.doc.column('sample_delay');
  const holders = model.doc.column('sample_holder');
  const sums = new Map<number, {delay: number, held: number}>();
  let total = 0;
  const {weights} = app;
  for (let i = 0; i < delays.length; i++) {
    if (delays[i] && !holders[i] && weights[i]) {
      const place = model.places[i]!;
      const sum = sums.get(place) ?? {delay: 0, held: 0};
      sum.delay += delays[i]!;
      sum.held += weights[i]!;
      sums.set(place, sum);
      total += delays[i]!;
    }
  }
  if (total <= 0) {
    return null;
  }
  const {shown, rest, nRest} = limited([...sums].map(
    ([place, {delay}]): [number, number] => [place, delay]));
  return block('loop', 'Who held the event loop',
    'Tasks were ready to go on, but this line kept the loop from running ' +
    'them. The time is that of all tasks that waited, added up: it can be ' +
    'more than the time that passed.',
    h('table', {class: 'stack waits', 'aria-label': 'Who held the event loop'},
      h('thead', {}, h('tr', {}, head('Holder', 'The innermost line of yours ' +
        'that ran in the loop’s thread.'), head(''),
      head('Others waited', 'How long other tasks waited for the loop ' +
        'meanwhile, all of them together.', 'r'),
      head('Share', 'Of all waits for the loop.', 'r'),
      head('Held', 'How long the line itself took while others waited.',
        'r'))),
      h('tbody', {}, ...shown.map(([place, delay]) => h('tr', {},
        h('td', {class: 'key cut'}, placeLink(app, place)),
        h('td', {class: 'bars'}, meter(delay, total, 'loop')),
        h('td', {class: 'r share'}, amount(NS, delay, total)),
        h('td', {class: 'r'}, percent(delay, total)),
        h('td', {class: 'r'}, app.amount(sums.get(place)!.held)))),
      nRest ? restRow(`all else (${nRest})`, amount(NS, rest, total),
        percent(rest, total), 5) : null)));
}

function gil(app: App): HTMLElement | null {
  const {model, model: {doc}, weights} = app;
  const state = doc.states.indexOf('gil_wait');
  const holders = doc.column('sample_holder');
  const groups = doc.holders.map((holder) => holderGroup(holder));
  const sums = new Map<string, number>();
  // Who waited for each, and what was it that held most.
  const by = new Map<string, Map<number, number>>();
  const within = new Map<string, Map<number, number>>();
  let total = 0;
  for (let i = 0; i < weights.length; i++) {
    if (model.states[i] === state && weights[i]) {
      const group = groups[holders[i]!]!;
      sums.set(group, (sums.get(group) ?? 0) + weights[i]!);
      add(by, group, model.places[i]!, weights[i]!);
      add(within, group, holders[i]!, weights[i]!);
      total += weights[i]!;
    }
  }
  if (total <= 0 || total < LEAST_SHARE * app.sum.total) {
    return null;
  }
  const {shown, rest, nRest} = limited([...sums]);
  return block('gil', 'Who held the GIL while others waited',
    'Threads could run, but another thread held the GIL.',
    h('table', {class: 'stack waits', 'aria-label': 'Who held the GIL'},
      h('thead', {}, h('tr', {}, head('Holder', 'Where the thread was that ' +
        'held the GIL.'), head(''), head('Others waited', 'How long threads ' +
        'waited for it, all of them together.', 'r'),
      head('Share', 'Of all waits for the GIL.', 'r'),
      head('Waited most', 'The line of yours that waited most for it.'))),
      h('tbody', {}, ...shown.map(([group, value]) => h('tr', {},
        h('td', {class: 'key cut'}, holderOf(app, group,
          greatest([...within.get(group)!], ([, its]) => its)![0])),
        h('td', {class: 'bars'}, meter(value, total, 'gil')),
        h('td', {class: 'r share'}, app.amount(value, total)),
        h('td', {class: 'r'}, percent(value, total)),
        h('td', {class: 'wide'}, lineButton(app,
          greatest([...by.get(group)!], ([, its]) => its)![0])))),
      nRest ? restRow(`all else (${nRest})`, app.amount(rest, total),
        percent(rest, total), 5) : null)));
}

function add<K>(sums: Map<K, Map<number, number>>, key: K, number: number,
  value: number): void {
  const its = sums.get(key) ?? new Map<number, number>();
  its.set(number, (its.get(number) ?? 0) + value);
  sums.set(key, its);
}

/** Lines of mine stand alone, functions of a library together. */
function holderGroup(holder: Document['holders'][number]): string {
  return holder === null ? '' : holder.place > 0 ? `line ${holder.place}`
    : holder.name.split('.')[0]!;
}

function holderOf(app: App, group: string, holder: number): HTMLElement {
  const its = app.model.doc.holders[holder];
  if (!its) {
    return h('span', {class: 'm3'}, 'not known');
  }
  return its.place > 0 ? placeLink(app, its.place)
    : its.name === group ? h('b', {}, group)
      : h('div', {class: 'where'}, group, h('code', {class: 'm2 beside',
        title: its.name}, its.name.slice(group.length + 1)));
}

export function lineButton(app: App, place: number): HTMLElement {
  const name = app.model.placeName(place);
  return app.model.isOutside(place) ? h('span', {class: 'm2'}, name)
    : h('button', {type: 'button', class: 'f', onclick: () => app.show(
      'mine', {line: name})}, name);
}

function other(app: App): HTMLElement | null {
  const {model, weights} = app;
  const numbers = model.doc.column('sample_wait');
  const sums = new Map<number, number>();
  const by = new Map<number, Map<number, number>>();
  let total = 0;
  for (let i = 0; i < weights.length; i++) {
    const wait = numbers[i]!;
    if (wait && weights[i]) {
      sums.set(wait, (sums.get(wait) ?? 0) + weights[i]!);
      add(by, wait, model.places[i]!, weights[i]!);
      total += weights[i]!;
    }
  }
  if (total <= 0 || total < LEAST_SHARE * app.sum.total) {
    return null;
  }
  const {shown, rest, nRest} = limited([...sums]);
  return block('what', 'What was waited for',
    'Not on a CPU. The kind follows from the function in C that waits.',
    h('table', {class: 'stack waits', 'aria-label': 'What was waited for'},
      h('thead', {}, h('tr', {}, head('Waited for', 'The function in C that ' +
        'waited, and the kind of its wait.'), head(''),
      head('Time', 'Of all threads together.', 'r'),
      head('Share', 'Of all such waits.', 'r'),
      head('By', 'The lines of yours that waited, most first.'))),
      h('tbody', {}, ...shown.map(([wait, value]) => {
        const {name, kind} = model.doc.waits[wait]!;
        return h('tr', {},
          h('td', {class: 'key cut'}, h('div', {class: 'where'},
            kind === 'other' ? h('code', {}, name) : kind,
            kind === 'other' ? null : h('code', {class: 'm2 beside',
              title: name}, name))),
          h('td', {class: 'bars'}, meter(value, total, 'wait')),
          h('td', {class: 'r share'}, app.amount(value, total)),
          h('td', {class: 'r'}, percent(value, total)),
          h('td', {class: 'wide'}, ...[...by.get(wait)!].sort(
            ([, a], [, b]) => b - a).slice(0, MOST_BY).flatMap(
            ([place, its], number) => [number ? ', ' : '',
              lineButton(app, place), ' ',
              h('span', {class: 'm2'}, app.amount(its, value))])));
      }), nRest ? restRow(`all else (${nRest})`, app.amount(rest, total),
        percent(rest, total), 5) : null)));
}
