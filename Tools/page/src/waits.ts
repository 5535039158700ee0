// Waits: who held the event loop, who held the GIL, and what was waited for.

import type {App, View} from './app';
import {meter} from './bars';
import type {Await} from './document';
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
  keys: [['w', 'threads or tasks']],
  isThere: () => true,
  draw,
  press: (app, {key}) => {
    const isKnown = key === 'w' && app.model.doc.awaited !== null;
    if (isKnown) {
      app.ask({waits: isOfTasks(app) ? 'threads' : 'tasks'});
    }
    return isKnown;
  },
};

type Sums<K> = Map<K, number>;
type SumsBy<K> = Map<K, Sums<number>>;

function draw(app: App, place: HTMLElement): void {
  const ofTasks = isOfTasks(app);
  const blocks = (ofTasks ? [awaited(app), loop(app)]
    : [other(app), gil(app)]).filter((block) => block !== null);
  place.replaceChildren(...app.model.doc.awaited ? [kinds(app, ofTasks)] : [],
    ...blocks.length ? blocks : [h('div', {class: 'empty'},
      h('b', {}, 'Nothing waited for longer than 1\u00a0% of the time.'))]);
}

/** Of tasks, if there are any: at first where requests were seen. */
function isOfTasks(app: App): boolean {
  const its = app.model.doc.awaited;
  return its !== null && (app.query.waits ? app.query.waits === 'tasks'
    : its.of_requests);
}

function kinds(app: App, ofTasks: boolean): HTMLElement {
  return h('div', {class: 'seg', role: 'group', 'aria-label': 'Waits of'},
    ...(['threads', 'tasks'] as const).map((name) => h('button', {
      type: 'button', 'data-key': `waits ${name}`,
      'aria-pressed': String(ofTasks === (name === 'tasks')),
      onclick: () => app.ask({waits: name})},
    name === 'tasks' ? 'Tasks' : 'Threads')));
}

function awaited(app: App): HTMLElement | null {
  const its = app.model.doc.awaited!;
  const {label} = app.query;
  const route = app.model.doc.requests?.rows.find(({value}) => (
    label?.[0] === app.model.doc.requests!.key && label[1] === value));
  const rows = route?.awaited ?? its.rows;
  const all = rows.reduce((sum, {ns}) => sum + ns, 0);
  const who = its.of_requests ? 'Requests' : 'Tasks';
  const left = its.left_out.map(([name, ns]) => (
    `${amount(NS, ns)} ${name === 'resting' ? name : `for ${name}`}`));
  return rows.length === 0 ? null : block<Await>({
    id: 'tasks', title: `What ${who.toLowerCase()} awaited`,
    label: `What ${who.toLowerCase()} awaited`, css: 'wait',
    text: `${who} awaited ${amount(NS, all)} of the ` +
      `${amount(NS, route ? route.mean_ns * route.count : its.took_ns)} ` +
      `${its.of_requests ? 'that they took' : 'of their lives'}. A wait in a ` +
      'worker thread is among those of threads, too.' +
      (left.length ? ` Not in it: ${left.join(', ')}.` : ''),
    heads: [head('Awaited', 'What for, and the function that waits for it.'),
      head(''), head('Time', 'Of all tasks together.', 'r'),
      head('Share', 'Of all such waits.', 'r'),
      head('At', 'The line of yours that awaits it.')],
    sums: new Map(rows.map((row) => [row, row.ns])),
    said: (value, total) => amount(NS, value, total),
    first: ({kind, what}) => h('div', {class: 'where'}, kind,
      h('code', {class: 'm2 beside', title: what}, what)),
    last: (row) => h('td', {class: 'wide'}, row.place >= 0
      ? lineButton(app, row.place) : h('span', {class: 'm2'},
        `outside my code (${row.inside})`)),
  });
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

/** The rows of one holder: it may be in several libraries. */
function grouped(app: App, sums: Sums<number>): SumsBy<string> {
  const groups: SumsBy<string> = new Map();
  for (const [number, value] of sums) {
    const holder = app.model.doc.holders[number];
    addAt(within(groups, !holder ? '' : holder.place >= 0
      ? `${holder.place} ${holder.how}` : `${holder.name} ${holder.how}`),
    number, value);
  }
  return groups;
}

function totals(groups: SumsBy<string>): Sums<string> {
  return new Map([...groups].map(([group, its]) => [group,
    [...its.values()].reduce((sum, value) => sum + value, 0)]));
}

function most(its: Sums<number>): number {
  return greatest([...its], ([, value]) => value)![0];
}

function loop(app: App): HTMLElement | null {
  const groups = grouped(app, app.model.loopHolders(
    app.weightsWith({idle: true})));
  return groups.size === 0 ? null : block({
    id: 'loop', title: 'Who held the event loop',
    label: 'Who held the event loop', css: 'loop',
    text: 'Tasks were ready to go on, but this line kept the loop from ' +
      'running them. The time is that of all tasks that waited, added up: ' +
      'it can be more than the time that passed.',
    heads: [head('Holder', 'The innermost line of yours of who held it.'),
      head(''), head('Others waited', 'How long other tasks waited for the ' +
        'loop meanwhile, all of them together.', 'r'),
      head('Share', 'Of all waits for the loop.', 'r'),
      head('How', 'It ran in the loop, or it held the GIL, which the loop ' +
        'waited for.')],
    sums: totals(groups),
    said: (value, total) => amount(NS, value, total),
    first: (group) => holderOf(app, most(groups.get(group)!)),
    last: (group) => h('td', {class: 'wide m2'}, app.model.doc.holders[
      most(groups.get(group)!)]?.how ?? ''),
  });
}

function gil(app: App): HTMLElement | null {
  const {model, model: {doc}, weights} = app;
  const state = doc.states.indexOf('gil_wait');
  const holders = doc.column('sample_holder');
  const held: Sums<number> = new Map();
  // Who waited for each.
  const waited: SumsBy<number> = new Map();
  for (let i = 0; i < weights.length; i++) {
    if (model.states[i] === state && weights[i]) {
      addAt(held, holders[i]!, weights[i]!);
      addAt(within(waited, holders[i]!), model.places[i]!, weights[i]!);
    }
  }
  const groups = grouped(app, held);
  const sums = totals(groups);
  return isSmall(app, sums) ? null : block({
    id: 'gil', title: 'Who held the GIL while others waited',
    label: 'Who held the GIL', css: 'gil', sums,
    text: 'Threads could run, but another thread held the GIL.',
    heads: [head('Holder', 'The innermost line of yours of the thread that ' +
      'held the GIL, or what it was in outside of your code.'),
    head(''), head('Others waited', 'How long threads waited for it, all ' +
      'of them together.', 'r'),
    head('Share', 'Of all waits for the GIL.', 'r'),
    head('Waited most', 'The line of yours that waited most for it.')],
    said: (value, total) => app.amount(value, total),
    first: (group) => holderOf(app, most(groups.get(group)!)),
    last: (group) => {
      const by: Sums<number> = new Map();
      for (const number of groups.get(group)!.keys()) {
        waited.get(number)!.forEach((value, place) => addAt(by, place, value));
      }
      return h('td', {class: 'wide'}, lineButton(app, most(by)));
    },
  });
}

function holderOf(app: App, number: number): HTMLElement {
  const its = app.model.doc.holders[number];
  if (!its || its.place < 0) {
    return h('span', {class: 'm2'}, app.model.holderName(number));
  }
  return placeLink(app, its.place, its.name);
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
