// Waits: who held the event loop, who held the GIL, and what was waited for.

import type {App, View} from './app';
import {meter} from './bars';
import type {Document} from './document';
import {h, head, stacked} from './dom';
import {addAt, greatest, within} from './model';
import {lineButton, placeLink} from './places';
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

type Sums<K> = Map<K, number>;
type SumsBy<K> = Map<K, Sums<number>>;

function draw(app: App, place: HTMLElement): void {
  const blocks = [loop(app), gil(app), other(app)].filter(
    (block) => block !== null);
  place.replaceChildren(...blocks.length ? blocks : [h('div', {class: 'empty'},
    h('b', {}, 'Nothing waited for longer than 1\u00a0% of the time.'))]);
}

/** A table of sums: those with most, and all others in one. */
interface Block<K> {
  readonly id: string;
  readonly title: string;
  readonly text: string;
  readonly label: string;
  readonly heads: readonly HTMLElement[];
  readonly css: string;
  readonly sums: Sums<K>;
  readonly said: (value: number, total: number) => string;
  readonly first: (key: K) => HTMLElement;
  readonly last: (key: K) => HTMLElement;
}

function block<K>({id, title, text, label, heads, css, sums, said, first,
  last}: Block<K>): HTMLElement {
  const all = [...sums].sort(([, a], [, b]) => b - a);
  const total = all.reduce((sum, [, value]) => sum + value, 0);
  const shown = all.length > ROWS ? all.slice(0, ROWS - 1) : all;
  const nRest = all.length - shown.length;
  const rest = all.slice(shown.length).reduce(
    (sum, [, value]) => sum + value, 0);
  return h('section', {class: 'blk', id: `w-${id}`},
    h('h2', {}, title), h('p', {}, text), stacked(h('table', {
      class: 'stack waits', 'aria-label': label},
    h('thead', {}, h('tr', {}, ...heads)),
    h('tbody', {}, ...shown.map(([key, value]) => h('tr', {},
      h('td', {class: 'key cut'}, first(key)),
      h('td', {class: 'bars'}, meter(value, total, css)),
      h('td', {class: 'r share'}, said(value, total)),
      h('td', {class: 'r'}, percent(value, total)), last(key))),
    nRest ? h('tr', {class: 'rest'},
      h('td', {class: 'key'}, `all else (${nRest})`), h('td'),
      h('td', {class: 'r'}, said(rest, total)),
      h('td', {class: 'r'}, percent(rest, total)),
      h('td', {class: 'wide'})) : null))));
}

function isSmall(app: App, sums: Sums<unknown>): boolean {
  const total = [...sums.values()].reduce((sum, value) => sum + value, 0);
  return total <= 0 || total < LEAST_SHARE * app.sum.total;
}

function loop(app: App): HTMLElement | null {
  const found = app.model.loopHolders(app.weights);
  return found.size === 0 ? null : block({
    id: 'loop', title: 'Who held the event loop',
    label: 'Who held the event loop', css: 'loop',
    text: 'Tasks were ready to go on, but this line kept the loop from ' +
      'running them. The time is that of all tasks that waited, added up: ' +
      'it can be more than the time that passed.',
    heads: [head('Holder', 'The innermost line of yours that ran in the ' +
      'loop’s thread.'), head(''),
    head('Others waited', 'How long other tasks waited for the loop ' +
      'meanwhile, all of them together.', 'r'),
    head('Share', 'Of all waits for the loop.', 'r'),
    head('Held', 'How long the line itself took while others waited.', 'r')],
    sums: new Map([...found].map(([place, {delay}]) => [place, delay])),
    said: (value, total) => amount(NS, value, total),
    first: (place) => placeLink(app, place),
    last: (place) => h('td', {class: 'r'},
      app.amount(found.get(place)!.held)),
  });
}

function gil(app: App): HTMLElement | null {
  const {model, model: {doc}, weights} = app;
  const state = doc.states.indexOf('gil_wait');
  const holders = doc.column('sample_holder');
  const groups = doc.holders.map((holder) => holderGroup(holder));
  const sums: Sums<string> = new Map();
  // Who waited for each, and what was it that held most.
  const waited: SumsBy<string> = new Map(), held: SumsBy<string> = new Map();
  for (let i = 0; i < weights.length; i++) {
    if (model.states[i] === state && weights[i]) {
      const group = groups[holders[i]!]!;
      addAt(sums, group, weights[i]!);
      addAt(within(waited, group), model.places[i]!, weights[i]!);
      addAt(within(held, group), holders[i]!, weights[i]!);
    }
  }
  const most = (of: SumsBy<string>, group: string) => (
    greatest([...of.get(group)!], ([, value]) => value)![0]);
  return isSmall(app, sums) ? null : block({
    id: 'gil', title: 'Who held the GIL while others waited',
    label: 'Who held the GIL', css: 'gil', sums,
    text: 'Threads could run, but another thread held the GIL.',
    heads: [head('Holder', 'Where the thread was that held the GIL.'),
      head(''), head('Others waited', 'How long threads waited for it, all ' +
        'of them together.', 'r'),
      head('Share', 'Of all waits for the GIL.', 'r'),
      head('Waited most', 'The line of yours that waited most for it.')],
    said: (value, total) => app.amount(value, total),
    first: (group) => holderOf(app, group, most(held, group)),
    last: (group) => h('td', {class: 'wide'},
      lineButton(app, most(waited, group))),
  });
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

function other(app: App): HTMLElement | null {
  const {model, weights} = app;
  const numbers = model.doc.column('sample_wait');
  const sums: Sums<number> = new Map();
  const by: SumsBy<number> = new Map();
  for (let i = 0; i < weights.length; i++) {
    const wait = numbers[i]!;
    if (wait && weights[i]) {
      addAt(sums, wait, weights[i]!);
      addAt(within(by, wait), model.places[i]!, weights[i]!);
    }
  }
  return isSmall(app, sums) ? null : block({
    id: 'what', title: 'What was waited for', label: 'What was waited for',
    css: 'wait', sums,
    text: 'Not on a CPU. The kind follows from the function in C that waits.',
    heads: [head('Waited for', 'The function in C that waited, and the kind ' +
      'of its wait.'), head(''),
    head('Time', 'Of all threads together.', 'r'),
    head('Share', 'Of all such waits.', 'r'),
    head('By', 'The lines of yours that waited, most first.')],
    said: (value, total) => app.amount(value, total),
    first: (wait) => {
      const {name, kind} = model.doc.waits[wait]!;
      return h('div', {class: 'where'},
        kind === 'other' ? h('code', {}, name) : kind,
        kind === 'other' ? null : h('code', {class: 'm2 beside', title: name},
          name));
    },
    last: (wait) => h('td', {class: 'wide'}, ...[...by.get(wait)!].sort(
      ([, a], [, b]) => b - a).slice(0, MOST_BY).flatMap(
      ([place, value], number) => [number ? ', ' : '',
        lineButton(app, place), ' ', h('span', {class: 'm2'},
          app.amount(value, sums.get(wait)))])),
  });
}
