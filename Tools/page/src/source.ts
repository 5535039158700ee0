// The source of a line of mine, with what each line took.

import type {App} from './app';
import {bar, inWords, parts} from './bars';
import {h, link} from './dom';
import type {Document} from './document';
import {addAt, greatest, type Row, type Sum} from './model';
import {count, percent, plural} from './words';

interface Text {
  readonly name: string;
  readonly filename: string;
  readonly first_line: number;
  readonly lines: Readonly<Record<string, string>>;
  readonly notes: readonly string[];
}

const AROUND = 30;
const MOST_WAITS = 3;
const PART_OF_WAITS = 0.05;
const PART_OF_ROUTE = 0.5;

/** The text of functions, by their numbers. */
export class Sources {
  readonly #texts = new Map<string, Text>();

  constructor(readonly doc: Document, data: ArrayBuffer | null) {
    const functions: Text[] = data === null ? []
      : JSON.parse(new TextDecoder().decode(data)).functions;
    for (const text of functions) {
      this.#texts.set(keyOf(text.name, text.filename, text.first_line), text);
    }
  }

  get isEmpty(): boolean {
    return this.#texts.size === 0;
  }

  text(number: number): Text | null {
    const {module, qualname, file, first_line: first} = this.doc.functions;
    const name = module[number] ? `${module[number]}.${qualname[number]}`
      : qualname[number]!;
    return this.#texts.get(keyOf(name, this.doc.files[file[number]!] ?? '',
      first[number]!)) ?? null;
  }

  /** A line of a function without its indent; '' if it is not there. */
  line(number: number, line: number): string {
    return number < 0 ? ''
      : this.text(number)?.lines[String(line)]?.trim() ?? '';
  }
}

function keyOf(name: string, file: string, first: number): string {
  return [name, file, first].join('\n');
}

/** The panel of a row's source. */
export function sourcePanel(app: App, row: Row): HTMLElement {
  const {model, side: {sources}} = app;
  const number = model.doc.places.function[row.place]!;
  const line = model.doc.places.line[row.place]!;
  const text = number < 0 ? null : sources.text(number);
  return h('aside', {class: 'panel', 'aria-label': 'Source'},
    h('div', {class: 'top'},
      h('b', {'data-tip': number < 0 ? null : model.fileOf(number)},
        model.placeName(row.place)),
      h('span', {class: 'm2 name'}, model.functionName(row.place)),
      h('span', {class: 'acts'}, ...actions(app, row),
        h('button', {type: 'button', class: 'close', 'aria-label': 'Close',
          onclick: () => app.ask({line: ''})}, '×'))),
    h('div', {class: 'sum'}, number < 0 ? 'This ' : `Line ${line} `,
      ...madeCalls(app, row.place), 'took ',
      h('b', {}, app.amount(row.total)), `: ${inWords(parts(app, row))}.`,
      waitsFor(app, row.place)),
    text === null || Object.keys(text.lines).length === 0
      ? h('p', {class: 'sum'}, ...why(app, text, number))
      : code(app, number, line, text, (sum, most) => bar(
        app, parts(app, sum), most)),
    callees(app, row.place));
}

/** 'made 48,000 calls, 120.0 a call of orders, and '. */
function madeCalls({model}: App, place: number): (Node | string)[] {
  const its = model.callsAt(place);
  return its === undefined ? [] : ['made ', h('b', {},
    plural(its.calls, 'call')), its.ofFunction > 1
    ? `, ${(its.calls / its.ofFunction).toFixed(1)} a call of ` +
      model.functionName(place) : '', ', and '];
}

function callees({model}: App, place: number): HTMLElement | null {
  const its = model.callsAt(place);
  return its === undefined ? null : h('div', {class: 'sum'},
    h('b', {}, 'Calls of this line'), ...its.callees.map(
      ([name, calls, ofAll, each]) => h('div', {}, `${count(calls)} `,
        h('code', {}, name), ofAll > calls
          ? h('span', {class: 'm3'}, ` of ${count(ofAll)} in all`) : null,
        each ? h('span', {class: 'm2'}, `, ${each} each`) : null)));
}

export function why(app: App, text: Text | null, number: number): string[] {
  if (number < 0) {
    return ['It has no line of yours.'];
  }
  if (text?.notes.length) {
    return [...text.notes];
  }
  return [app.side.sources.isEmpty
    ? 'The source was not saved with this profile (--no-source).'
    : 'The source of this function is not in this page.'];
}

export function actions(app: App, {place}: Row): HTMLElement[] {
  const {model} = app;
  const found = [link('Flame graph', () => app.show('flame', {
    q: model.names[model.doc.places.function[place]!] ?? ''}))];
  const key = model.doc.route;
  if (key < 0 || app.query.label) {
    return found;
  }
  const values = model.labelValues(key);
  const labels = model.doc.column('sample_labels');
  const sums = model.sumsBy(app.weights, (i) => (
    model.places[i] === place ? values[labels[i]!] ?? null : undefined));
  const own = [...sums].filter(([value]) => value !== undefined);
  const most = greatest(own, ([, {total}]) => total);
  const total = own.reduce((sum, [, its]) => sum + its.total, 0);
  if (most?.[0] && most[1].total >= PART_OF_ROUTE * total) {
    const value = most[0];
    found.push(link(`Only ${value}`, () => app.ask({
      label: [model.doc.label_keys[key]!, value]})));
  }
  return found;
}

function waitsFor(app: App, place: number): string {
  const {model, weights} = app;
  const waits = model.doc.column('sample_wait');
  const sums = new Map<number, number>();
  let total = 0;
  for (let i = 0; i < weights.length; i++) {
    if (model.places[i] === place && waits[i]) {
      total += weights[i]!;
      addAt(sums, waits[i]!, weights[i]!);
    }
  }
  const named = [...sums].sort(([, a], [, b]) => b - a).slice(0, MOST_WAITS)
    .filter(([, value]) => value >= PART_OF_WAITS * total && value > 0)
    .map(([wait]) => {
      const {name, kind} = model.doc.waits[wait]!;
      return kind === 'other' ? name : `${kind} (${name})`;
    });
  return named.length ? ` It waits for: ${named.join(', ')}.` : '';
}

function callsText({model}: App, number: number, line: number): string {
  const its = model.callsOf(number, line);
  return its === undefined ? '' : count(its.calls);
}

/** The lines of a function, with what each has and a bar of it. */
export function code(app: App, number: number, line: number, text: Text,
  barOf: (sum: Sum, most: number) => HTMLElement): HTMLElement {
  const sums = app.model.lineSums(number, app.weights);
  const {total} = app.sum;
  const most = Math.max(...[...sums.values()].map(({total}) => total), 0);
  const all = Object.keys(text.lines).map(Number).sort((a, b) => a - b);
  const chosen = all.indexOf(line);
  const shown = all.length > 2 * AROUND
    ? all.slice(Math.max(0, chosen - AROUND), chosen + AROUND) : all;
  const {hasCalls} = app.model;
  const body = h('div', {class: hasCalls ? 'code calls' : 'code'});
  const fill = (numbers: readonly number[]) => {
    body.replaceChildren(...numbers.map((its) => {
      const sum = sums.get(its);
      return h('div', {class: its === line ? 'hot' : sum ? '' : 'cold'},
        h('span', {class: 't', title: sum
          ? percent(sum.total, total) : null}, sum
          ? app.amount(sum.total, most) : ''),
        hasCalls ? h('span', {class: 't m2'}, callsText(app, number, its))
          : null,
        sum ? barOf(sum, most) : h('span'),
        h('span', {class: 'no'}, String(its)),
        h('pre', {}, text.lines[String(its)]!));
    }));
    if (numbers.length < all.length) {
      body.append(h('p', {class: 'more'},
        link('Show the whole function', () => fill(all))));
    }
  };
  fill(shown);
  return body;
}
