// Changes: lines of two profiles, by what changed.

import type {App, View} from './app';
import {bar, parts} from './bars';
import {h, head, link, stacked} from './dom';
import type {Change, Changes, Memory} from './document';
import {finder, UNFILTERED, type Sum} from './model';
import {PARTS} from './memory';
import {amount, baseName, BYTES, plural, said, signed, STATES} from './words';

const LEAST = 1;
const ROWS = 200;

export const changes: View = {
  name: 'diff',
  title: 'Changes',
  keys: [['↑ ↓', 'lines']],
  isThere: (app) => app.changes !== null,
  draw: (app, place) => drawChanges(app, app.changes!, place),
};

function drawChanges(app: App, found: Changes, place: HTMLElement): void {
  const isFound = app.query.q ? finder(app.query.q) : () => true;
  const rows = found.rows.filter((row) => isFound(
    [row.name, row.qualname, row.source, row.called].join(' ')));
  const clear = rows.filter((row) => row.is_clear).sort(
    (a, b) => Math.abs(b.change) - Math.abs(a.change));
  const same = rows.filter((row) => !row.is_clear);
  place.replaceChildren(lead(found, clear), ...sums(app),
    table(app, found, clear, same),
    ...found.notes.map((note) => h('p', {class: 'm2 note'}, note)));
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

/** Both profiles' states, on one scale. */
function sums(app: App): HTMLElement[] {
  const {before, after} = app.sides;
  if (!before || !after) {
    return [];
  }
  if (before.model.doc.memory && after.model.doc.memory &&
      app.changes!.value.unit === 'bytes') {
    return partsOfBoth(before.model.doc.memory, after.model.doc.memory);
  }
  const all = {...UNFILTERED, idle: false, measure: ''} as const;
  // Of one run, as in the table.
  const found = app.changes!;
  const [was, is] = [before, after].map(({model}, number) => {
    const {runs} = number ? found.after : found.before;
    const sum = model.sum(model.weights(all));
    return {total: sum.total / runs, states: sum.states.map(
      (value) => value / runs)};
  }) as [Sum, Sum];
  const scale = Math.max(was.total, is.total);
  const {states, value} = app.doc;
  const line = (name: string, sum: Sum) => [h('span', {class: 'm2'}, name),
    bar(app, parts(app, sum), scale), h('span', {}, app.amount(sum.total))];
  return [h('div', {class: 'ba'}, ...line('before', was), ...line('after', is),
    h('div', {class: 'key2'}, ...Object.entries(STATES).flatMap(
      ([state, {name, css, tip}]) => {
        const number = states.indexOf(state);
        const more = is.states[number]! - was.states[number]!;
        return is.states[number] || was.states[number] ? [h('span', {
          'data-tip': tip}, h('i', {class: `sw s-${css}`}), `${name} `,
        h('b', {}, signed(amount(value, more, scale), more)))] : [];
      })))];
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

function nameOf(row: Change): string {
  return row.file && row.line ? `${baseName(row.file)}:${row.line}`
    : row.name ?? 'without';
}

function table(app: App, found: Changes, clear: readonly Change[],
  same: readonly Change[]): HTMLElement {
  const {all} = app.query;
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
    head('Before → after', 'At this line, in both profiles.', 'r'),
    head('Change', 'After less before: − is less, + is more.', 'r'),
    head('Give or take', 'The true change is within this of the figure ' +
      'shown, 19 times of 20, ' + (found.method === 'runs'
      ? 'as far as the runs tell.' : 'as far as sampling goes.'), 'r'),
    h('th', {scope: 'col', class: 'dv bars', 'data-tip': 'The bar is the ' +
      'change; the thin line across its end is the give or take.',
    tabindex: 0}, h('div', {class: 'lm'},
      h('span', {class: 'less'}, found.value.unit === 'bytes' ? '← less'
        : '← less time'), h('span', {class: 'more'},
        found.value.unit === 'bytes' ? 'more in use →' : 'more →'))),
    ...found.lead ? [head('Survived', 'Of what was allocated between the ' +
      'two, the share that is in use in the second.', 'r')] : [],
    head('In', 'The library that the line called … and the function in ' +
      'which most of the time went.'))), body));
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
  const width = Math.max(LEAST, 1.04 * (most - least));
  return {width, zero: 100 * (-least / width) + (least < 0 ? 2 : 0)};
}

function rowOf(app: App, found: Changes, row: Change,
  scale: Scale): HTMLElement {
  const css = row.change < 0 ? 'less' : 'more';
  const name = nameOf(row);
  const isThere = row.place >= 0 && !app.model.isOutside(row.place);
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
  const exact = value.unit === 'nanoseconds' ? 'measured' : 'exact';
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
