// Changes: lines of two profiles, by what changed.

import type {App, View} from './app';
import {bar, parts} from './bars';
import {choices, h, head, link, stacked} from './dom';
import type {CallChange, Change, Changes, Memory, Since} from './document';
import {finder, UNFILTERED, type Sum} from './model';
import {PARTS} from './memory';
import {
  amount, baseName, BYTES, clock, heading, plural, said, signed, STATES, time,
} from './words';

const ROWS = 200;
/** In threads. */
const ALIKE = 0.1;

export const changes: View = {
  name: 'diff',
  title: 'Changes',
  keys: [['↑ ↓', 'lines']],
  isThere: (app) => app.changes !== null,
  draw: (app, place) => {
    const live = app.newest?.live;
    if (!live) {
      drawChanges(app, app.changes!, place);
    } else if (live.changes && live.changes.moment === app.query.since) {
      drawChanges(app, live.changes, place);
    } else {
      place.replaceChildren(h('div', {class: 'empty'}, h('b', {},
        !app.query.since ? 'Compared with which moment?'
          : live.changes === null ? 'Nothing was seen before ' +
            `${clock(app.query.since)}, or since.`
            : 'That comes with the next figures.'),
      'Click in the history above; a pause is such a moment, too.'));
    }
  },
};

/** Whether it is of a process that runs: then figures are threads. */
function isSince(found: Changes): found is Since {
  return 'states' in found;
}

function drawChanges(app: App, found: Changes, place: HTMLElement): void {
  const isFound = app.query.q ? finder(app.query.q) : () => true;
  const {calls} = found;
  const isOfCalls = calls !== null && app.query.sort === 'calls';
  const chosen = calls === null ? [] : [choices('What is compared', [
    {text: heading(found.value), isChosen: !isOfCalls,
      choose: () => app.ask({sort: 'time'})},
    {text: 'Calls', isChosen: isOfCalls, tip: 'How often lines called ' +
      'functions: counted, not sampled.',
    choose: () => app.ask({sort: 'calls'})}])];
  if (isOfCalls) {
    place.replaceChildren(h('p', {class: 'lead'}, `${calls.lead}. `),
      ...chosen, callsTable(app, calls.rows.filter((row) => isFound(
        `${row.name} ${row.called}`)), calls.total),
      ...calls.notes.map((note) => h('p', {class: 'm2 note'}, note)));
    return;
  }
  const rows = found.rows.filter((row) => isFound(
    [row.name, row.qualname, row.source, row.called].join(' ')));
  const clear = rows.filter((row) => row.is_clear).sort(
    (a, b) => Math.abs(b.change) - Math.abs(a.change));
  const same = rows.filter((row) => !row.is_clear);
  const [was, is] = isSince(found) ? found.states.map(sumOf) : sidesOf(app);
  const memories = found.value.unit === 'bytes' ? memoriesOf(app) : null;
  const [before, now] = isSince(found)
    ? [clock(found.moment), 'now'] as const : ['before', 'after'] as const;
  const text = isSince(found) ? leadSince(app, found, clear)
    : lead(found, clear);
  place.replaceChildren(text, ...chosen,
    ...memories ? partsOfBoth(...memories)
      : was && is ? sums(app, found, before, was, now, is) : [],
    table(app, found, clear, same),
    ...(isSince(found) ? ['Figures are threads: how many were there at a ' +
      'time, on average. Click in the history above to compare another ' +
      'moment with now; a pause sets it, too.'] : found.notes).map(
      (note) => h('p', {class: 'm2 note'}, note)));
}

function sumOf(states: readonly number[]): Sum {
  return {total: states.reduce((sum, its) => sum + its, 0),
    states: new Float64Array(states)};
}

function leadSince(app: App, {moment, length_s, states}: Since,
  clear: readonly Change[]): HTMLElement {
  const [was, is] = states.map(sumOf) as [Sum, Sum];
  const threads = app.newest!.live!.threads;
  const more = is.total - was.total;
  const since = h('b', {}, clock(moment));
  const first = clear[0];
  const text: (Node | string)[] = [];
  if (Math.abs(more) < ALIKE) {
    text.push('As many threads are busy as at ', since,
      `: ${is.total.toFixed(1)} of ${threads}. `);
  } else {
    const [name, its] = Object.entries(STATES).map(([state, words]) => {
      const number = app.doc.states.indexOf(state);
      return [words.name, is.states[number]! - was.states[number]!] as const;
    }).reduce((a, b) => Math.abs(b[1]) > Math.abs(a[1]) ? b : a);
    text.push('Since ', since, ' ', h('b', {class: more < 0 ? 'less' : 'more'},
      `${Math.abs(more).toFixed(1)} threads ${more < 0 ? 'fewer' : 'more'}`),
    ` are busy: ${was.total.toFixed(1)} → ${is.total.toFixed(1)} of ` +
    `${threads}. Most of that is `, h('b', {}, name),
    ` (${signed(its.toFixed(2), its)}). `);
  }
  text.push(...first ? ['The line that changed most is ',
    h('code', {}, nameOf(first)),
    ` (${signed(first.change.toFixed(2), first.change)}).`]
    : ['No line changed by more than its give or take.']);
  return h('p', {class: 'lead', 'data-tip': `${time(1e9 * length_s)} before ` +
    `${clock(moment)}, beside the last ${time(1e9 * length_s)}.`}, ...text);
}

function lead(found: Changes, clear: readonly Change[]): HTMLElement {
  if (found.lead) {
    return h('p', {class: 'lead'}, `${found.lead}.`);
  }
  const {total, value} = found;
  const part = total.before ? Math.abs(100 * total.change / total.before) : 0;
  const isLess = total.change < 0;
  const text: (Node | string)[] = found.is_doubtful ? [
    `Not sure: ${said(value, total.before)} → ${said(value, total.after)}. ` +
    'One side has a single run, or had too little CPU: any row may be ' +
    'chance (~). '] : total.is_clear ? [
    'In all ', h('b', {class: isLess ? 'less' : 'more'},
      `${said(value, Math.abs(total.change))} ${isLess ? 'less' : 'more'}`),
    `: ${said(value, total.before)} → ${said(value, total.after)} ` +
    `(${signed(part.toFixed(part < 10 ? 1 : 0), total.change)}\u00a0%` +
    (total.margin ? `, give or take ${said(value, total.margin)}). ` : '). ')]
    : [`In all about the same: ${said(value, total.before)} → ` +
      `${said(value, total.after)}. `];
  if (!clear.length) {
    text.push('No line changed by more than its give or take.');
  }
  for (const row of clear.slice(0, 2)) {
    const name = h('code', {}, nameOf(row));
    const its = said(value, Math.abs(row.change));
    const direction = row.change < 0 ? 'less' : 'more';
    text.push(name, ...row.tag === 'gone' ? [` is gone, which saves ${its}. `]
      : row.tag === 'new' ? [` is new and takes ${its}. `]
        : [' takes ', h('b', {class: direction}, `${its} ${direction}`), '. ']);
  }
  return h('p', {class: 'lead'}, ...text);
}

/** What both profiles did. */
function sidesOf(app: App): (Sum | undefined)[] {
  const {before, after} = app.sides;
  if (!before || !after) {
    return [undefined, undefined];
  }
  const all = {...UNFILTERED, idle: false, measure: ''} as const;
  // Of one run, as in the table.
  const found = app.changes!;
  return [before, after].map(({model}, number) => {
    const {runs} = number ? found.after : found.before;
    const sum = model.sum(model.weights(all));
    return {total: sum.total / runs, states: sum.states.map(
      (value) => value / runs)};
  });
}

/** Both, on one scale. */
function sums(app: App, {value}: Changes, before: string, was: Sum,
  now: string, is: Sum): HTMLElement[] {
  const scale = Math.max(was.total, is.total);
  const {states} = app.doc;
  const line = (name: string, sum: Sum) => [h('span', {class: 'm2'}, name),
    bar(app, parts(app, sum), scale), h('span', {},
    said(value, sum.total))];
  return [h('div', {class: 'ba'}, ...line(before, was), ...line(now, is),
    h('div', {class: 'key2'}, ...Object.entries(STATES).flatMap(
      ([state, {name, css, tip}]) => {
        const number = states.indexOf(state);
        const more = is.states[number]! - was.states[number]!;
        return is.states[number] || was.states[number] ? [h('span', {
          'data-tip': tip}, h('i', {class: `sw s-${css}`}), `${name} `,
        h('b', {}, signed(amount(value, more, scale), more)))] : [];
      })))];
}

function memoriesOf({sides: {before, after}}: App): [Memory, Memory] | null {
  const was = before?.model.doc.memory, is = after?.model.doc.memory;
  return was && is ? [was, is] : null;
}

/** Of what the RSS consisted in both. */
function partsOfBoth(...both: [Memory, Memory]): HTMLElement[] {
  const wholes = both.map(({parts}) => parts[parts.length - 1]?.bytes ?? 0);
  if (wholes.includes(0)) {
    return [];
  }
  const line = (name: string, {parts}: Memory, whole: number) => [
    h('span', {class: 'm2'}, name), h('span', {class: 'bar', role: 'img',
      'aria-label': parts.map((part) => `${part.name} ${
        amount(BYTES, part.bytes)}`).join(', '),
      'style.width': `${100 * whole / Math.max(...wholes)}%`},
    ...parts.slice(0, -1).filter(({bytes}) => bytes > 0).map((part) => h('i', {
      class: `s-${PARTS[part.name]![0]}`, 'style.flex': part.bytes / whole}))),
    h('span', {}, amount(BYTES, whole))];
  const [was, is] = both;
  return [h('div', {class: 'ba'}, ...line('before', was, wholes[0]!),
    ...line('after', is, wholes[1]!), h('div', {class: 'key2'},
      ...is.parts.slice(0, -1).flatMap(({name, bytes}) => {
        const more = bytes - (was.parts.find(
          (part) => part.name === name)?.bytes ?? 0);
        return bytes || more ? [h('span', {}, h('i', {
          class: `sw s-${PARTS[name]![0]}`}), `${name} `, h('b', {},
          more ? signed(amount(BYTES, more, wholes[1]!), more)
            : 'the same'))] : [];
      })))];
}

function nameOf(row: Change | CallChange): string {
  return row.file && row.line ? `${baseName(row.file)}:${row.line}`
    : row.name ?? 'without';
}

function table(app: App, found: Changes, clear: readonly Change[],
  same: readonly Change[]): HTMLElement {
  const {all} = app.query;
  const isOfBytes = found.value.unit === 'bytes';
  const scale = scaleOf([...clear, ...all ? same : []]);
  const body = h('tbody', {}, ...clear.slice(0, ROWS).map(
    (row) => rowOf(app, found, row, scale)));
  if (same.length) {
    if (all) {
      body.append(...same.slice(0, ROWS).map(
        (row) => rowOf(app, found, row, scale)));
    }
    const sum = (name: 'before' | 'after' | 'change') => same.reduce(
      (total, row) => total + row[name], 0);
    body.append(h('tr', {class: 'rest'},
      h('td', {class: 'key'}, `${plural(same.length, 'line')} as before `,
        link(all ? 'Hide' : 'Show', () => app.ask({all: !all}),
          {'data-key': 'all'})),
      h('td', {class: 'r w2'}, beforeAfter(found, sum('before'),
        sum('after'))),
      h('td', {class: 'r'}, change(found, sum('change'))), h('td'),
      h('td', {class: 'bars dv'}), found.lead ? h('td') : null,
      h('td', {class: 'in wide'}, 'changed less than the give or take')));
  }
  const {total} = found;
  body.append(h('tr', {class: 'rest total'}, h('td', {class: 'key'}, 'all'),
    h('td', {class: 'r w2'}, beforeAfter(found, total.before, total.after)),
    h('td', {class: `r share ${total.change < 0 ? 'less' : 'more'}`},
      change(found, total.change)),
    h('td', {class: 'r'}, margin(found, total)),
    h('td', {class: 'bars dv'}), found.lead ? h('td') : null,
    h('td', {class: 'in wide'})));
  return stacked(h('table', {class: 'rows stack fix changes',
    'aria-label': 'Lines by change'},
  h('colgroup', {}, ...['', '160px', '92px', '92px', '22%',
    ...found.lead ? ['84px'] : [], '20%'].map(
    (width) => h('col', width ? {'style.width': width} : {}))),
  h('thead', {}, h('tr', {},
    head('Line of my code', 'The innermost line of yours. New and gone lines ' +
      'are marked.'),
    isSince(found) ? head('Before → now', 'How many threads were at this ' +
      'line, on average.', 'r')
      : head('Before → after', 'At this line, in both profiles.', 'r'),
    head('Change', 'After less before: − is less, + is more.', 'r'),
    head('Give or take', 'The true change is within this of the figure ' +
      'shown, 19 times of 20, ' + (found.method === 'runs'
      ? 'as far as the runs tell.' : 'as far as sampling goes.'), 'r'),
    h('th', {scope: 'col', class: 'dv bars', 'data-tip': 'The bar is the ' +
      'change; the thin line across its end is the give or take.',
    tabindex: 0}, h('div', {class: 'lm'},
      h('span', {class: 'less'}, isSince(found) || isOfBytes ? '← less'
        : '← less time'), h('span', {class: 'more'},
        isOfBytes ? 'more in use →' : 'more →'))),
    ...found.lead ? [head('Survived', 'Of what was allocated between the ' +
      'two, the share that is in use in the second.', 'r')] : [],
    head('In', 'The library that the line called … and the function in ' +
      'which most of the time went.'))), body));
}

function callsTable(app: App, rows: readonly CallChange[],
  total: CallChange): HTMLElement {
  return stacked(h('table', {class: 'rows stack', 'aria-label':
    'Calls by change'},
  h('thead', {}, h('tr', {},
    head('Line', 'The line that called. New and gone calls are marked.'),
    head('Before → after', 'Counted: no give or take.', 'r'),
    head('Change', 'After less before: − is less, + is more.', 'r'),
    head('Calls', 'What the line called.'))),
  h('tbody', {}, ...rows.map((row) => callsRow(app, row)),
    callsRow(app, total, true))));
}

function callsRow(app: App, row: CallChange, isTotal = false): HTMLElement {
  const css = row.change < 0 ? 'less' : row.change > 0 ? 'more' : 'm3';
  const open = row.place < 0 ? null : () => app.show('mine', {side: 'after',
    line: app.sides.after!.model.placeKey(row.place)});
  const number = (its: number) => its.toLocaleString('en-US', {
    maximumFractionDigits: 1});
  return h('tr', {class: isTotal ? 'rest total' : row.called ? row.tag : 'rest',
    tabindex: open ? 0 : null, onclick: open},
  h('td', {class: 'key where'}, h('span', row.called ? {class: 'f', title:
    row.file} : {}, nameOf(row)), row.tag
    ? h('span', {class: `tag ${css}`}, row.tag) : null),
  h('td', {class: 'r w2'}, row.before ? number(row.before) : '–',
    h('span', {class: 'm3'}, ' → '), row.after ? number(row.after) : '–'),
  h('td', {class: `r share ${css}`}, `${row.is_sure ? '' : '~ '}` +
    signed(number(row.change), row.change)),
  h('td', {}, row.called));
}

/** Where zero is, and how much the width of the column stands for. */
interface Scale {
  readonly zero: number;
  readonly width: number;
}

function scaleOf(rows: readonly Change[]): Scale {
  const ends = rows.flatMap(({change: its, margin: give}) => (
    [its - (give ?? 0), its + (give ?? 0)]));
  const least = Math.min(0, ...ends), most = Math.max(0, ...ends);
  const width = 1.04 * (most - least) || 1;
  return {width, zero: 100 * (-least / width) + (least < 0 ? 2 : 0)};
}

function rowOf(app: App, found: Changes, row: Change,
  scale: Scale): HTMLElement {
  const css = row.change < 0 ? 'less' : 'more';
  const name = nameOf(row);
  // What stands still may not have the place.
  const isThere = row.place >= 0 && (isSince(found)
    ? app.newest === app.doc : !app.model.isOutside(row.place));
  const open = () => app.show('mine', {side: 'after',
    line: app.sides.after!.model.placeKey(row.place)});
  return h('tr', {class: row.tag, tabindex: 0, 'data-key': name,
    onclick: isThere ? open : null},
  h('td', {class: 'key cut'}, h('div', {class: 'where'},
    h('span', {class: 'f', title: row.file}, name),
    h('span', {class: 'fn'}, row.qualname === name ? '' : row.qualname),
    row.tag ? h('span', {class: `tag ${css}`, title:
      `No sample was at this line ${row.tag === 'gone' ? 'after' : 'before'}.`},
    row.tag) : null),
  h('code', {class: 'src'}, row.source)),
  h('td', {class: 'r w2'}, beforeAfter(found, row.before, row.after)),
  h('td', {class: `r share ${css}`}, change(found, row.change)),
  h('td', {class: 'r m2'}, margin(found, row)),
  h('td', {class: 'bars dv'}, picture(found, row, scale, css)),
  found.lead ? h('td', {class: 'r'}, row.survived) : null,
  h('td', {class: 'in wide'}, h('span', {class: 'l', title: row.called},
    row.called)));
}

function beforeAfter({value}: Changes, before: number,
  after: number): HTMLElement {
  const scale = Math.max(before, after);
  return h('span', {}, before ? amount(value, before, scale) : '–',
    h('span', {class: 'm3'}, ' → '),
    after ? amount(value, after, scale) : '–');
}

function change({value, is_doubtful}: Changes, number: number): string {
  return `${is_doubtful ? '~ ' : ''}${signed(amount(value, number), number)}`;
}

function margin({value}: Changes, row: Change): string {
  // What clocks measure has no error of sampling.
  const exact = value.kind === 'wall' || value.unit === 'nanoseconds'
    ? 'measured' : 'exact';
  return row.margin === null ? '' : row.margin === 0 ? exact
    : `± ${amount(value, row.margin, row.change)}`;
}

function picture(found: Changes, row: Change, {zero, width}: Scale,
  css: string): HTMLElement {
  const at = (number: number) => zero + 100 * number / width;
  const give = row.margin ?? 0;
  return h('div', {class: 'diff', role: 'img', 'aria-label':
    `${change(found, row.change)}, give or take: ${margin(found, row)}`},
  h('span', {class: 'z', 'style.left': `${zero}%`}),
  h('span', {class: `d ${css}`, 'style.left':
    `${Math.min(zero, at(row.change))}%`,
  'style.width': `${100 * Math.abs(row.change) / width}%`}),
  give ? h('span', {class: 'e', 'style.left': `${at(row.change - give)}%`,
    'style.width': `${200 * give / width}%`}) : null);
}
