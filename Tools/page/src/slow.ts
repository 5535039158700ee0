// Slow requests: how long they took, and what the slow ones did otherwise.

import type {App, View} from './app';
import {meter} from './bars';
import {h, head, link, stacked} from './dom';
import type {Await, Document, Route, Spent} from './document';
import {greatest} from './model';
import {lineButton} from './places';
import {count, ms, percent, plural, signed, STATES, time} from './words';

const ROUTES = 12;
const UNDER_WAY = 8;
const BINS = 17;
const PEAK_PX = 100;
const FEW = 100;
const NAMED = 0.085;
const MOST_BY = 2;
const LEAST_NS = 5e4;
const LEAST_PART = 0.1;

export const slow: View = {
  name: 'slow',
  title: 'Slow requests',
  keys: [['↑ ↓', 'routes']],
  isThere: () => true,
  draw,
};

/** What a request did: names of states, and of the parts of *spent*. */
const SPENT = [
  ['loop_wait', 5], ['awaiting', 0], ['gil_wait', 6], ['running', 4],
] as const;
type Reason = typeof SPENT[number][0];

const WORDS: Record<Reason, {name: string; css: string; tip: string}> = {
  loop_wait: STATES.loop_wait!,
  awaiting: {name: 'awaited', css: 'wait', tip: 'Awaited something: a free ' +
    'connection, a database, a lock, what ran in a worker thread.'},
  gil_wait: STATES.gil_wait!,
  running: {name: 'in its own code', css: 'run', tip: 'The event loop ran ' +
    'it: on a CPU, waiting for one, or in a call that blocks.'},
};

/** The mean of some requests. */
interface Mean {
  readonly count: number;
  readonly total: number;
  readonly by: Readonly<Record<Reason, number>>;
}

function meanOf(all: readonly Spent[]): Mean {
  const sum = (place: number) => all.reduce(
    (total, its) => total + its[place]!, 0);
  const number = sum(2);
  const total = number ? sum(3) / number : 0;
  const by = {loop_wait: 0, awaiting: 0, gil_wait: 0, running: 0};
  let rest = total;
  // To wait for the GIL costs CPU time, too: together they are no more than
  // the time that passed.
  for (const reason of ['running', 'loop_wait', 'gil_wait'] as const) {
    const place = SPENT.find(([name]) => name === reason)![1];
    by[reason] = Math.min(rest, number ? sum(place) / number : 0);
    rest -= by[reason];
  }
  by.awaiting = rest;
  return {count: number, total, by};
}

/** Where the slow ones begin: in whole buckets, at least a share of all. */
function slowFrom(route: Route, share: number): number {
  const all = [...route.spent].sort((a, b) => b[0] - a[0]);
  const wanted = share * all.reduce((sum, its) => sum + its[2], 0);
  let found = 0;
  for (const [from, , number] of all) {
    found += number;
    if (found >= wanted) {
      return from;
    }
  }
  return 0;
}

function draw(app: App, place: HTMLElement): void {
  const {requests} = app.model.doc;
  const rows = requests?.rows ?? [];
  const route = rows.find(({value}) => value === app.query.slow) ?? rows[0];
  const now = app.doc.live?.requests ?? [];
  if (route === undefined && now.length) {
    place.replaceChildren(...underWay(app, now));
    return;
  }
  if (route === undefined) {
    place.replaceChildren(h('div', {class: 'empty'},
      h('b', {}, 'No requests were seen.'), 'A framework’s middleware or a ' +
      'label makes them: see the guide.'));
    return;
  }
  const from = app.query.from
    || slowFrom(route, app.model.doc.rules.slowest);
  const isSlow = (bucket: Spent) => bucket[0] >= from;
  const slowest = meanOf(route.spent.filter(isSlow));
  const others = meanOf(route.spent.filter((its) => !isSlow(its)));
  const name = app.query.from ? `${ms(from)} and more`
    : route.count < FEW ? `Slowest ${slowest.count}` : 'Slowest 1\u00a0%';
  place.replaceChildren(
    ...now.length ? underWay(app, now) : [],
    lead(app, route, name, slowest, others),
    h('div', {class: 'two slow2'}, h('div', {}, routes(app, rows, route)),
      histogram(app, route, from, name, slowest.count)),
    ...queriesOf(app, route),
    ...slowest.count && others.count
      ? [compared(app, route, name, slowest, others)] : [],
    h('p', {}, link(`Show only ${route.value} in all views`, () => app.show(
      'mine', {label: [requests!.key, route.value]}))));
}

/** Requests that have not ended, the oldest first. */
function underWay(app: App,
  all: NonNullable<Document['live']>['requests']): HTMLElement[] {
  const oldest = all[0]!;
  const same = all.filter(([, route]) => route === oldest[1]).length;
  const scale = oldest[0];
  const rest = all.length - UNDER_WAY;
  return [h('p', {class: 'lead'},
    h('b', {}, `${plural(same, 'request')} of ${oldest[1]}`),
    same === 1 ? ' is under way, for ' : ' are under way, the oldest for ',
    h('b', {}, time(1e9 * oldest[0])),
    all.length > same ? `; ${all.length - same} of other routes.` : '.'),
  h('h2', {}, 'Under way now, the oldest first'),
  stacked(h('table', {class: 'rows stack way', 'aria-label':
    'Requests under way'},
  h('colgroup', {}, ...['72px', '16%', '26%', ''].map(
    (width) => h('col', width ? {'style.width': width} : {}))),
  h('thead', {}, h('tr', {}, head('For', 'Since the middleware saw it.', 'r'),
    head(''), head('Route'), head('What it does now'))),
  h('tbody', {}, ...all.slice(0, UNDER_WAY).map(
    ([age, route, line, state, what]) => h('tr', {},
      h('td', {class: 'r share'}, time(1e9 * age)),
      h('td', {class: 'bars'}, meter(age, scale, '')),
      h('td', {class: 'key where'}, route),
      h('td', {class: 'wide'},
        h('span', {class: state ? `sw s-${STATES[state]?.css ?? 'idle'}`
          : ''}), ' ', line < 0 ? null : lineButton(app, line), ' ',
        h('span', {class: 'm2'}, what)))),
  rest > 0 ? h('tr', {class: 'rest'}, h('td'), h('td'),
    h('td', {class: 'key'}, `${rest} more`), h('td')) : null)))];
}

function lead(app: App, route: Route, name: string, slowest: Mean,
  others: Mean): HTMLElement {
  const b = (text: string) => h('b', {}, text);
  if (!slowest.count || !others.count) {
    return h('p', {class: 'lead'}, b(route.value), ' took ',
      b(ms(route.mean_ns)), ' in the mean, the longest ',
      b(ms(route.longest_ns)), '. What single requests did was not recorded.');
  }
  const most = greatest(SPENT, ([reason]) => (
    slowest.by[reason] - others.by[reason]))![0];
  const more = slowest.by[most] - others.by[most];
  const text: (Node | string)[] = [
    app.query.from ? `The ${plural(slowest.count, 'request')} of `
      : `${name.replace(/^S/, 'The s')} of `, b(route.value),
    app.query.from ? ` with ${name} take ` : slowest.count === 1 ? ' takes '
      : ' take ', b(ms(slowest.total)),
    `, all others ${ms(others.total)}. `];
  if (more > 0) {
    text.push('Of the difference, ', b(ms(more)), ` are ${WORDS[most].name}`);
    const [first] = most === 'loop_wait' ? loopHolders(app) : [];
    const [its] = most === 'awaiting' ? route.awaited : [];
    text.push(...first ? [': ', percent(first[1], first[2]),
      ' of all such waits were while ', h('code', {},
        app.model.holderName(first[0])), ' held it.']
      : its ? [': ', percent(its.ns, awaitedBy(route)), ' of what all its ' +
        'requests awaited was ', ...awaits(app, route, its), '.'] : ['.']);
  }
  return h('p', {class: 'lead'}, ...text);
}

/** Holders of the loop, what tasks waited meanwhile, and for all. */
function loopHolders(app: App): [number, number, number][] {
  const all = [...app.model.loopHolders(null)];
  const total = all.reduce((sum, [, delay]) => sum + delay, 0);
  return all.sort(([, a], [, b]) => b - a).slice(0, MOST_BY).map(
    ([holder, delay]) => [holder, delay, total]);
}

function awaitedBy(route: Route): number {
  return route.awaited.reduce((sum, {ns}) => sum + ns, 0);
}

/** What a request awaited, in words: where, or what its thread did. */
function awaits(app: App, route: Route, {kind, what, place}: Await):
  (Node | string)[] {
  if (kind !== 'worker thread' || what === 'a free one') {
    return [...place < 0 ? [] : [lineButton(app, place), ' '],
      `${kind}${what ? ` (${what})` : ''}`];
  }
  const states = Object.entries(route.threads).sort(([, a], [, b]) => b - a);
  const total = states.reduce((sum, [, ns]) => sum + ns, 0);
  return [kind, states.length ? ': ' : '', states.slice(0, MOST_BY).map(
    ([state, ns]) => `${STATES[state as keyof typeof STATES]?.name ?? state} ` +
      percent(ns, total)).join(', ')];
}

/** What a request asks a service, a disk or the system for. */
function queriesOf(app: App, route: Route): Node[] {
  const rows = (app.model.doc.calls?.queries ?? []).filter(
    (row) => row.route === route.value);
  if (!rows.length) {
    return [];
  }
  const said = rows.find((row) => row.text);
  return [...said ? [h('p', {class: 'lead'}, `${said.text} at ${said.name}.`)]
    : [],
    stacked(h('table', {class: 'rows stack', 'aria-label': 'Queries'},
      h('thead', {}, h('tr', {},
        head('Line', 'The innermost line of yours that asked.'),
        head('Calls', 'Counted, not sampled.', 'r'),
        head('A request', 'Calls by the number of requests.', 'r'),
        head('Waited', 'Of the time beside.', 'r'),
        head('Time', 'Of the line for this route, by samples, with all that ' +
          'it calls.', 'r'), head('What'))),
      h('tbody', {}, ...rows.map((row) => h('tr', {},
        h('td', {class: 'key where'}, row.place < 0 ? row.name
          : lineButton(app, row.place)),
        h('td', {class: 'r'}, count(row.calls)),
        h('td', {class: 'r'}, row.per ? row.per.toFixed(1) : ''),
        h('td', {class: 'r'}, app.amount(row.waited_ns, row.ns)),
        h('td', {class: 'r'}, app.amount(row.ns)),
        h('td', {}, row.what))))))];
}

function routes(app: App, rows: readonly Route[], chosen: Route):
  HTMLTableElement {
  const now = app.doc.live?.requests;
  const under = (its: readonly (readonly [number, ...unknown[]])[]) => [
    h('td', {class: 'r share'}, count(its.length)),
    h('td', {class: 'r'}, its[0] ? time(1e9 * its[0][0]) : '–')];
  const cells = (route: Route) => [
    ...now ? under(now.filter(([, its]) => its === route.value)) : [],
    h('td', {class: 'r'}, count(route.count)),
    h('td', {class: 'r'}, ms(route.mean_ns)),
    h('td', {class: 'r'}, ms(route.p50_ns)),
    h('td', {class: 'r share'}, ms(route.p99_ns))];
  const rest = rows.slice(ROUTES);
  const all = rows.reduce((sum, its) => sum + its.count, 0);
  const mean = (some: readonly Route[]) => ms(some.reduce(
    (sum, its) => sum + its.mean_ns * its.count, 0) / some.reduce(
    (sum, its) => sum + its.count, 0));
  return stacked(h('table', {class: 'rows stack', 'aria-label': 'Routes'},
    h('thead', {}, h('tr', {}, head('Route', 'The route of the framework, or ' +
      'a label that the program sets.'),
    ...now ? [head('Under way', 'Begun and not done, now.', 'r'),
      head('Oldest', 'The longest time that one of them has taken so far.',
        'r')] : [],
    head(now ? 'Done' : 'Requests', 'Finished during the profile.', 'r'),
    head('Mean', 'Mean time of a request.', 'r'),
    head('p50', 'Half of the requests are faster than this.', 'r'),
    head('p99', 'One of a hundred is slower than this.', 'r'))),
    h('tbody', {}, ...rows.slice(0, ROUTES).map((route) => h('tr', {
      tabindex: 0, 'data-key': `route ${route.value}`,
      'aria-selected': String(route === chosen),
      onclick: () => app.ask({slow: route.value, from: 0})},
    h('td', {class: 'key where'}, route.value), ...cells(route))),
    rest.length ? h('tr', {class: 'rest'}, h('td', {class: 'key'},
      `all else (${rest.length})`), ...now ? [h('td'), h('td')] : [], h('td', {class: 'r'}, count(rest.reduce(
      (sum, its) => sum + its.count, 0))), h('td', {class: 'r'}, mean(rest)),
    h('td'), h('td')) : null,
    h('tr', {class: 'rest'}, h('td', {class: 'key'}, 'all'),
      ...now ? under(now) : [],
      h('td', {class: 'r'}, count(all)), h('td', {class: 'r'}, mean(rows)),
      h('td'), h('td')))));
}

interface Bin {
  from: number;
  to: number;
  count: number;
}

/** Bins of equal width in the logarithm, of whole buckets; one begins where
 * the slow ones do. */
function binsOf(route: Route, slow: number): Bin[] {
  const times = route.times.filter(([, , number]) => number);
  const first = Math.max(1, times[0]?.[0] ?? 1);
  const last = times[times.length - 1]?.[1] ?? 2;
  const width = Math.log(last / first) / BINS;
  const bins: Bin[] = [];
  let place = -1;
  for (const [from, to, number] of route.times) {
    if (from < times[0]![0] || from >= last) {
      continue;
    }
    const its = Math.min(BINS - 1, Math.floor(
      Math.log(Math.max(from, first) / first) / width + 1e-9));
    const bin = bins[bins.length - 1];
    if (bin === undefined || its > place || bin.from < slow && from >= slow) {
      bins.push({from, to, count: number});
    } else {
      bin.to = to;
      bin.count += number;
    }
    place = its;
  }
  return bins;
}

function histogram(app: App, route: Route, from: number, name: string,
  number: number): HTMLElement {
  const bins = binsOf(route, from);
  const peak = Math.max(...bins.map((bin) => bin.count));
  const isOn = (bin: Bin) => bin.from >= from;
  return h('div', {}, h('h2', {}, `How long ${route.value} took `,
    h('span', {class: 'm3'}, `${plural(route.count, 'request')}; click a ` +
      'bar: it and all slower ones')),
  h('div', {class: 'histo', role: 'group', 'aria-label': 'Requests by time'},
    ...bins.map((bin, place) => h('button', {
      type: 'button', class: isOn(bin) ? 'on' : '',
      'aria-pressed': String(isOn(bin)), 'data-key': `bin ${place}`,
      'data-tip': `${ms(bin.from)} to ${ms(bin.to)}: ` +
        plural(bin.count, 'request'),
      onclick: () => app.ask({slow: route.value, from:
        app.query.from === bin.from || place === 0 ? 0 : bin.from})},
    place === bins.length - 1 ? h('span', {class: 'hl'},
      name.startsWith(`Slowest ${number}`) ? name.toLowerCase()
        : `${name.toLowerCase()}: ${count(number)}`) : null,
    bin.count ? h('span', {}, count(bin.count)) : null,
    h('i', {'style.height':
      `${bin.count ? Math.max(2, PEAK_PX * bin.count / peak) : 0}px`})))),
  h('div', {class: 'ticks', 'aria-hidden': 'true'}, ...bins.map(
    (bin, place) => h('span', {}, tick(bin.from) +
      (place === bins.length - 1 ? ' ms' : '')))));
}

function tick(ns: number): string {
  const value = ns / 1e6;
  return value.toFixed(value >= 20 ? 0 : value >= 0.95 ? 1 : 2);
}

function compared(app: App, route: Route, name: string, slowest: Mean,
  others: Mean): HTMLElement {
  const reasons = SPENT.map(([reason]) => reason).filter((reason) => (
    slowest.by[reason] > LEAST_NS || others.by[reason] > LEAST_NS));
  const scale = Math.max(slowest.total, others.total);
  const strip = (mean: Mean) => h('div', {
    'style.width': `${100 * mean.total / scale}%`},
  h('div', {class: 'bar', role: 'img', 'aria-label': reasons.map(
    (reason) => `${WORDS[reason].name} ${ms(mean.by[reason])}`).join(', ')},
  ...reasons.map((reason) => h('i', {class: `s-${WORDS[reason].css}`,
    'style.flex': mean.by[reason] / mean.total},
  mean.by[reason] / scale > NAMED * (reason === 'loop_wait' ? 3 : 1)
    ? h('em', {class: mean.by[reason] / scale > 0.3 ? 'big' : ''},
      WORDS[reason].name) : null))));
  const most = Math.max(...reasons.map((reason) => Math.abs(
    slowest.by[reason] - others.by[reason])));
  const ranked = reasons.map((reason) => (
    [reason, slowest.by[reason] - others.by[reason]] as const)).sort(
    ([, a], [, b]) => b - a);
  return h('div', {class: 'blk'},
    h('h2', {}, 'What the slow ones did, beside the others'),
    h('p', {}, 'Mean of one request, both on the same scale.'),
    h('div', {class: 'cmp'},
      h('div', {}, h('b', {}, `${name} `), h('span', {class: 'm2'},
        `${plural(slowest.count, 'request')}, ${ms(slowest.total)}`)),
      strip(slowest),
      h('div', {}, h('b', {}, 'All others '), h('span', {class: 'm2'},
        `${plural(others.count, 'request')}, ${ms(others.total)}`)),
      strip(others)),
    stacked(h('table', {class: 'stack reasons', 'aria-label': 'Reasons'},
      h('thead', {}, h('tr', {},
        head('Time spent', 'What the request did or waited for.'),
        head(name, 'Mean of one request.', 'r'),
        head('Others', 'Mean of one request.', 'r'),
        head('Difference', 'How much longer a slow request takes for this.',
          'r'), head(''),
        head('Because of (all requests)', 'Who held the loop while any task ' +
          'waited, what requests of the route awaited, and at which lines ' +
          'threads worked for it: of single requests it is not known.'))),
      h('tbody', {}, ...ranked.map(([reason, more]) => h('tr', {},
        h('td', {class: 'key nowrap'}, h('span', {
          class: `sw s-${WORDS[reason].css}`}), ' ', h('span', {
          class: 'tipped', 'data-tip': WORDS[reason].tip, tabindex: 0},
        WORDS[reason].name)),
        h('td', {class: 'r'}, ms(slowest.by[reason])),
        h('td', {class: 'r'}, ms(others.by[reason])),
        h('td', {class: 'r share'}, signed(ms(more), more)),
        h('td', {class: 'bars'}, meter(
          Math.max(0, more), most, WORDS[reason].css)),
        h('td', {class: 'wide m2'}, ...because(app, route, reason))))))));
}

function because(app: App, route: Route, reason: Reason): (Node | string)[] {
  if (reason === 'awaiting') {
    const total = awaitedBy(route);
    return route.awaited.slice(0, MOST_BY).flatMap((its, number) => [
      number ? '; ' : '', ...awaits(app, route, its),
      ` ${percent(its.ns, total)}`]);
  }
  if (reason === 'loop_wait') {
    return loopHolders(app).flatMap(([holder, value, total], number) => [
      number ? ', ' : '', h('span', {}, app.model.holderName(holder)),
      ` ${percent(value, total)}`]);
  }
  return reason === 'gil_wait' ? [] : routeLines(app, route).flatMap(
    ([place, value, total], number) => [number ? ', ' : '',
      lineButton(app, place), ` ${percent(value, total)}`]);
}

/** The lines at which threads were, for all requests of a route. */
function routeLines(app: App, {value}: Route): [number, number, number][] {
  const weights = app.weightsWith(
    {label: [app.model.doc.requests!.key, value]});
  const {total} = app.model.sum(weights);
  return app.model.rows(weights).filter((row) => (
    row.total >= LEAST_PART * total))
    .slice(0, MOST_BY).map((row) => [row.place, row.total, total]);
}
