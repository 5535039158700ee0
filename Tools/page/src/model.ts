// The profile: what is selected of its samples, and sums of that.

import {Blocks, type Measure, type Measured} from './blocks';
import type {Document} from './document';
import {shortNames} from './words';

/** What of the profile is shown; null and '' are all. */
export interface Selection {
  readonly state: string;
  /** In nanoseconds since the start. */
  readonly time: readonly [number, number] | null;
  readonly label: readonly [key: string, value: string] | null;
  readonly idle: boolean;
  /** Of memory, '' is the time; and the step at whose end it was in use, -1:
   * at the end of all. */
  readonly measure: Measure | '';
  readonly at: number;
}

/** All of the profile but for what is idle or is not. */
export const UNFILTERED = {state: '', time: null, label: null, at: -1} as const;

/** A sum, and what of it was in each state, by the state's number. */
export interface Sum {
  total: number;
  readonly states: Float64Array;
}

export interface Row extends Sum {
  readonly place: number;
  called: string;
}

/** What a line called: how often, in how many calls of its function, and
 * each callee, with its calls of all lines and what one took. */
export interface LineCalls {
  readonly calls: number;
  readonly ofFunction: number;
  readonly callees: readonly (readonly [string, number, number, string])[];
}

/** What is not code of mine. */
const OUTSIDE = -1, IMPORTS = -2, COUNTING = -3;
const ROOT = 0;

export class Model {
  readonly names: string[];
  readonly #fileNames: string[];
  /** Names of several places. */
  readonly #shared: ReadonlySet<string>;
  readonly #values: ArrayLike<number>;
  readonly #idle: number;
  readonly states: ArrayLike<number>;
  readonly nodes: ArrayLike<number>;
  readonly paths: ArrayLike<number>;
  readonly pathParents: ArrayLike<number>;
  readonly pathPlaces: ArrayLike<number>;
  readonly places: Uint32Array;
  readonly #isNowhere: boolean[];
  readonly #calls: ReadonlyMap<string, LineCalls>;
  readonly blocks: Blocks | null;
  #known = new Map<string, Float64Array>();
  #measured = new Map<string, Measured>();

  constructor(readonly doc: Document) {
    const {module, qualname} = doc.functions;
    this.names = qualname.map((name, number) => (
      module[number] ? `${module[number]}.${name}` : name));
    this.#fileNames = shortNames(doc.files);
    const seen = new Set<string>();
    this.#shared = new Set(doc.places.function.map(
      (_, place) => this.placeName(place)).filter((name) => (
      seen.has(name) || !seen.add(name))));
    this.#calls = new Map((doc.calls?.lines ?? []).map(
      ([number, line, calls, ofFunction, callees]) => [
        `${number}:${line}`, {calls, ofFunction, callees}]));
    this.#values = doc.column('sample_value');
    this.#idle = doc.states.indexOf('idle');
    this.states = doc.column('sample_state');
    this.nodes = doc.column('sample_node');
    this.paths = doc.column('sample_path');
    this.pathParents = doc.column('path_parent');
    this.pathPlaces = doc.column('path_place');
    this.places = Uint32Array.from(
      this.paths as ArrayLike<number> & Iterable<number>,
      (path) => this.pathPlaces[path]!);
    this.blocks = doc.memory && new Blocks(doc, this.length);
    this.#isNowhere = doc.states.map(
      (state) => doc.rules.nowhere.includes(state));
  }

  get length(): number {
    return this.#values.length;
  }

  /** What each sample weighs, of what is selected. */
  weights(selection: Selection): Float64Array {
    const key = JSON.stringify(selection);
    let found = this.#known.get(key);
    if (found === undefined) {
      // Some are asked for in turns, as with and without a state.
      if (this.#known.size > 8) {
        this.#known.clear();
      }
      found = this.#weigh(selection);
      this.#known.set(key, found);
    }
    return found;
  }

  /** Bytes of a measure, and their variances, of what is selected. */
  measured(selection: Selection): Measured {
    const {measure, time, label, at} = selection;
    const key = JSON.stringify([measure, time, label, at]);
    let found = this.#measured.get(key);
    if (found === undefined) {
      if (this.#measured.size > 16) {
        this.#measured.clear();
      }
      found = this.blocks!.measured(
        measure || 'in_use', this.blocks!.steps(selection));
      const isLabelled = label && this.#withLabel(label);
      const labels = this.doc.column('sample_labels');
      for (let i = 0; isLabelled && i < this.length; i++) {
        if (!isLabelled[labels[i]!]) {
          found.bytes[i] = found.variances[i] = 0;
        }
      }
      this.#measured.set(key, found);
    }
    return found;
  }

  /** How far a sum of bytes may be off. */
  marginOf(variance: number): number {
    return this.doc.memory!.margin_unit * Math.sqrt(Math.max(0, variance));
  }

  #weigh({state, time, label, idle, measure, at}: Selection): Float64Array {
    if (measure) {
      return this.measured({state, time, label, idle, measure, at}).bytes;
    }
    const weights = time === null ? Float64Array.from(
      this.#values as ArrayLike<number> & Iterable<number>)
      : this.between(time);
    const wanted = state ? this.doc.states.indexOf(state) : -1;
    const isLabelled = label && this.#withLabel(label);
    const labels = this.doc.column('sample_labels');
    for (let i = 0; i < weights.length; i++) {
      // Whoever chooses that state wants to see it.
      if (!idle && wanted !== this.#idle && this.states[i] === this.#idle
          || wanted >= 0 && this.states[i] !== wanted
          || isLabelled && !isLabelled[labels[i]!]
          || this.#isNowhere[this.states[i]!]) {
        weights[i] = 0;
      }
    }
    return weights;
  }

  /** What samples weigh in a range of time: a record that is partly in it
   * weighs that part, its moment being its end. */
  between([begin, end]: readonly [number, number]): Float64Array {
    const weights = new Float64Array(this.length);
    if (this.doc.timeline === null) {
      return weights;
    }
    const times = this.doc.column('record_time');
    const samples = this.doc.column('record_sample');
    const walls = this.doc.column('record_wall');
    const values = this.doc.has('record_value')
      ? this.doc.column('record_value') : walls;
    for (let i = 0; i < times.length; i++) {
      const until = times[i]!;
      const from = Math.max(0, until - walls[i]!);
      const part = until === from
        ? Number(begin < until && until <= end)
        : Math.max(0, Math.min(end, until) - Math.max(begin, from)) /
          (until - from);
      weights[samples[i]!]! += part * values[i]!;
    }
    return weights;
  }

  #withLabel([key, value]: readonly [string, string]): boolean[] {
    const number = this.doc.label_keys.indexOf(key);
    return this.doc.label_sets.map((set) => set.some(
      ([itsKey, its]) => itsKey === number && its === value));
  }

  /** Of each row of labels, the value of one; null: it has none. */
  labelValues(key: number): (string | null)[] {
    return this.doc.label_sets.map((set) => (
      set.find(([its]) => its === key)?.[1] ?? null));
  }

  newSum(): Sum {
    return {total: 0, states: new Float64Array(this.doc.states.length)};
  }

  /** The sums of all, or of samples by a key of each. */
  sum(weights: Float64Array): Sum {
    const sum = this.newSum();
    for (let i = 0; i < weights.length; i++) {
      sum.total += weights[i]!;
      sum.states[this.states[i]!]! += weights[i]!;
    }
    return sum;
  }

  sumsBy<K>(weights: Float64Array, key: (sample: number) => K): Map<K, Sum> {
    const found = new Map<K, Sum>();
    for (let i = 0; i < weights.length; i++) {
      const weight = weights[i]!;
      if (weight !== 0) {
        const its = key(i);
        let sum = found.get(its);
        if (sum === undefined) {
          found.set(its, sum = this.newSum());
        }
        sum.total += weight;
        sum.states[this.states[i]!]! += weight;
      }
    }
    return found;
  }

  /** What threads with nothing to do took, of what else is selected. */
  idleTime(selection: Selection): number {
    if (selection.state && selection.state !== 'idle') {
      return 0;
    }
    const weights = this.weights({...selection, idle: true});
    let sum = 0;
    for (let i = 0; i < weights.length; i++) {
      sum += this.states[i] === this.#idle ? weights[i]! : 0;
    }
    return sum;
  }

  isImports(place: number): boolean {
    return this.doc.places.function[place] === IMPORTS;
  }

  /** Lines, the most expensive first; what is outside comes last. */
  rows(weights: Float64Array): Row[] {
    const sums = this.sumsBy(weights, (i) => this.places[i]!);
    const rows = [...sums].map(([place, sum]) => ({place, called: '', ...sum}));
    rows.sort((a, b) => Number(this.isOutside(a.place)) -
      Number(this.isOutside(b.place)) || b.total - a.total);
    const called = this.#called(weights);
    for (const row of rows) {
      row.called = called(row);
    }
    return rows;
  }

  /** Whether a place is none of my lines. */
  isOutside(place: number): boolean {
    return this.doc.is_mine === true && this.doc.places.function[place]! < 0;
  }

  /** What most of the time of a line was in: the outermost library that took
   * most, and in that the innermost function. */
  #called(weights: Float64Array): (row: Row) => string {
    const leaves = this.doc.column('sample_leaf');
    const libraries = this.doc.column('sample_library');
    const nLibraries = this.doc.libraries.length;
    const groups = new Map<number, Map<number, Map<number, number>>>();
    for (let i = 0; i < weights.length; i++) {
      const leaf = leaves[i]!;
      if (weights[i] === 0 || leaf === 0) {
        continue;
      }
      // What is called without a library is in none together with others.
      const group = libraries[i] || nLibraries + leaf;
      addAt(within(within(groups, this.places[i]!), group), leaf,
        weights[i]!);
    }
    const {hardly, mostly} = this.doc.rules;
    const withShare = (name: string, value: number, total: number) =>
      value < mostly * total
        ? `${name} ${(100 * value / total).toFixed(0)}\u00a0%` : name;
    return ({place, total}) => {
      const ranked = [...groups.get(place) ?? []].map(([group, its]) => ({
        group, value: [...its.values()].reduce((a, b) => a + b), its}));
      const first = greatest(ranked, ({value}) => value);
      if (first === null) {
        return '';
      }
      const [leaf, ofLeaf] = greatest(
        [...first.its], ([, value]) => value)!;
      const library = first.group < nLibraries
        ? this.doc.libraries[first.group]! : '';
      if (ofLeaf < hardly * total) {
        return !library || first.value < hardly * total ? ''
          : withShare(library, first.value, total);
      }
      const name = library
        ? `${library} … ${this.doc.functions.qualname[leaf - 1]}`
        : this.names[leaf - 1]!;
      return withShare(name, ofLeaf, total);
    };
  }

  /** By holder, how long tasks waited for their loop meanwhile: of what
   * *wanted* selects; without that, of all. */
  loopHolders(wanted: Float64Array | null): Map<number, number> {
    const found = new Map<number, number>();
    if (!this.doc.has('sample_delay')) {
      return found;
    }
    const delays = this.doc.column('sample_delay');
    const holders = this.doc.column('sample_loop_holder');
    for (let i = 0; i < delays.length; i++) {
      if (delays[i] && (wanted === null || wanted[i] || !this.#values[i])) {
        addAt(found, holders[i]!, delays[i]!);
      }
    }
    return found;
  }

  /** What holds it: 'orders.py:62', or what is outside of my code. */
  holderName(number: number): string {
    const holder = this.doc.holders[number];
    return !holder ? 'not seen' : holder.place >= 0
      ? this.placeName(holder.place) : `outside my code (${holder.name})`;
  }

  /** What a line called itself; undefined: nothing, or it was not counted. */
  callsOf(number: number, line: number): LineCalls | undefined {
    return this.#calls.get(`${number}:${line}`);
  }

  callsAt(place: number): LineCalls | undefined {
    const {function: functions, line} = this.doc.places;
    return this.callsOf(functions[place]!, line[place]!);
  }

  get hasCalls(): boolean {
    return this.#calls.size > 0;
  }

  /** 'orders.py:62'. */
  placeName(place: number): string {
    const {function: functions, line: lines} = this.doc.places;
    const number = functions[place]!;
    if (number === OUTSIDE) {
      return this.doc.is_mine ? 'Outside my code' : 'no Python code';
    }
    if (number === IMPORTS) {
      return 'Imports';
    }
    if (number === COUNTING) {
      return 'Counting calls';
    }
    const file = this.doc.functions.file[number]!;
    return file < 0 ? this.names[number]!
      : `${this.#fileNames[file]}:${lines[place]}`;
  }

  /** What no other place is called: two functions may share a line. */
  placeKey(place: number): string {
    const name = this.placeName(place);
    return this.#shared.has(name)
      ? `${name} ${this.functionName(place)}` : name;
  }

  /** The name of the function of a place; '' where the place says it. */
  functionName(place: number): string {
    const number = this.doc.places.function[place]!;
    return number < 0 || !this.fileOf(number) ? ''
      : this.doc.functions.qualname[number]!.replaceAll('<locals>.', '');
  }

  fileOf(number: number): string {
    const file = this.doc.functions.file[number]!;
    return file < 0 ? '' : this.doc.files[file]!;
  }

  /** The lines of a function of mine, with all that they called. */
  lineSums(number: number, weights: Float64Array): Map<number, Sum> {
    const places = this.doc.places;
    const sums = this.sumsBy(weights, (i) => this.paths[i]!);
    const found = new Map<number, Sum>();
    for (const [path, sum] of sums) {
      // A function that calls itself has each line once.
      const seen = new Set<number>();
      for (let at = path; at !== ROOT; at = this.pathParents[at]!) {
        const place = this.pathPlaces[at]!;
        if (places.function[place] === number && !seen.has(place)) {
          seen.add(place);
          const line = places.line[place]!;
          let known = found.get(line);
          if (known === undefined) {
            found.set(line, known = this.newSum());
          }
          addTo(known, sum);
        }
      }
    }
    return found;
  }

  /** Which functions a text finds, as an array of 0 and 1: part of a name or
   * a file, or a pattern in slashes. */
  matching(text: string): Uint8Array {
    const isFound = finder(text);
    return Uint8Array.from(this.names, (name, number) => (
      Number(isFound(name) || isFound(this.fileOf(number)))));
  }

  /** What has a function on its stack that is found. */
  sumMatching(weights: Float64Array, isFound: Uint8Array): number {
    const parents = this.doc.column('node_parent');
    const functions = this.doc.column('node_function');
    const below = new Uint8Array(parents.length);
    for (let node = 1; node < below.length; node++) {
      below[node] = below[parents[node]!]! | isFound[functions[node]!]!;
    }
    let sum = 0;
    for (let i = 0; i < weights.length; i++) {
      sum += below[this.nodes[i]!] ? weights[i]! : 0;
    }
    return sum;
  }
}

/** What finds a text: as it is, in any case, or as a pattern in slashes. */
export function finder(text: string): (where: string) => boolean {
  if (text.length > 2 && text.startsWith('/') && text.endsWith('/')) {
    try {
      const pattern = new RegExp(text.slice(1, -1), 'i');
      return (where) => pattern.test(where);
    } catch {
      // It is not finished: the slashes are letters like others.
    }
  }
  const wanted = text.toLowerCase();
  return (where) => where.toLowerCase().includes(wanted);
}

export function addTo(sum: Sum, more: Sum): void {
  sum.total += more.total;
  more.states.forEach((value, state) => {
    sum.states[state]! += value;
  });
}

export function greatest<T>(all: Iterable<T>,
  size: (one: T) => number): T | null {
  let found: T | null = null;
  for (const one of all) {
    if (found === null || size(one) > size(found)) {
      found = one;
    }
  }
  return found;
}

export function addAt<K>(sums: Map<K, number>, key: K, value: number): void {
  sums.set(key, (sums.get(key) ?? 0) + value);
}

export function within<K, L, V>(maps: Map<K, Map<L, V>>, key: K): Map<L, V> {
  let map = maps.get(key);
  if (map === undefined) {
    maps.set(key, map = new Map());
  }
  return map;
}
