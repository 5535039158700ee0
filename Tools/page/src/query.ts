// What is asked for, and how the page's address says it.

import type {Measure} from './blocks';
import type {Document} from './document';
import type {Selection} from './model';
import {STATES} from './words';

export type ViewName =
  'mine' | 'flame' | 'time' | 'waits' | 'slow' | 'memory' | 'diff';
export const VIEW_NAMES: readonly ViewName[] = [
  'mine', 'flame', 'time', 'waits', 'slow', 'memory', 'diff'];
export const MEASURES: readonly Measure[] = [
  'in_use', 'peak', 'grew', 'survived', 'allocated', 'churn'];

/** Of a live page: in seconds, and its name. */
export const WINDOWS: readonly (readonly [number, string])[] = [
  [10, '10 s'], [60, '1 min'], [300, '5 min'], [0, 'since you came']];

export interface Query extends Selection {
  readonly view: ViewName;
  /** What is searched for. */
  readonly q: string;
  /** The place whose source is open, as 'orders.py:62'. */
  readonly line: string;
  readonly colour: 'package' | 'state';
  readonly flip: boolean;
  readonly fold: boolean;
  /** Whether small rows are shown, too. */
  readonly all: boolean;
  readonly lanes: 'thread' | 'route';
  /** What lines are sorted by, and what of two profiles is compared. */
  readonly sort: 'time' | 'calls';
  /** The request whose times are shown, and from which time on they are slow;
   * 0: the slowest 1 %. */
  readonly slow: string;
  readonly from: number;
  /** Whose waits are shown; '': those of tasks where there were requests. */
  readonly waits: '' | 'threads' | 'tasks';
  /** Of a difference: which profile the other views are of. */
  readonly side: 'before' | 'after';
  /** Of a live page: how many seconds are shown, 0 for all, and the moment that
   * now is compared with, in seconds since 1970. */
  readonly window: number;
  readonly since: number;
  /** What the bands of memory are. */
  readonly bands: 'line' | 'package' | 'type';
}

export function initial(doc: Document): Query {
  return {
    view: doc.changes ? 'diff' : doc.memory?.is_all ? 'memory' : 'mine',
    measure: doc.memory?.is_all ? 'in_use' : '', at: -1, bands: 'line',
    state: '', time: null, label: null,
    idle: false, q: '', line: '', colour: 'package', flip: false, fold: false,
    all: false, slow: '', from: 0, side: 'after', waits: '',
    sort: doc.changes?.calls?.is_first ? 'calls' : 'time',
    window: doc.live ? WINDOWS[0]![0] : 0, since: 0,
    lanes: doc.route < 0 || doc.live ? 'thread' : 'route'};
}

/** Everything that is not as it was at first. */
export function toAddress(query: Query, doc: Document): string {
  const parts = new URLSearchParams();
  const first = initial(doc);
  for (const name of ['view', 'state', 'q', 'line', 'colour', 'lanes', 'sort',
    'slow', 'side', 'waits', 'measure', 'bands'] as const) {
    if (query[name] !== first[name]) {
      parts.set(name, query[name]);
    }
  }
  for (const name of ['idle', 'flip', 'fold', 'all'] as const) {
    if (query[name]) {
      parts.set(name, '1');
    }
  }
  if (query.time) {
    parts.set('time', query.time.map((ns) => ns / 1e9).join('-'));
  }
  if (query.label) {
    parts.set('where', query.label.join('='));
  }
  if (query.at >= 0) {
    parts.set('at', String(query.at));
  }
  for (const name of ['from', 'window', 'since'] as const) {
    if (query[name] !== first[name]) {
      parts.set(name, String(query[name]));
    }
  }
  return parts.toString();
}

/** What an address does not say, or says wrongly, is as it was at first. */
export function fromAddress(text: string, doc: Document): Query {
  const parts = new URLSearchParams(text);
  const first = initial(doc);
  const one = <T extends string>(name: string, known: readonly T[],
    otherwise: T): T => (
      known.find((value) => value === parts.get(name)) ?? otherwise);
  const [begin = NaN, end = NaN] = (parts.get('time') ?? '').split('-').map(
    (part) => part === '' ? NaN : 1e9 * Number(part));
  const [key = '', ...value] = (parts.get('where') ?? '').split('=');
  return {
    ...first,
    view: one('view', VIEW_NAMES, first.view),
    state: one('state', Object.keys(STATES).filter(
      (state) => doc.states.includes(state)), ''),
    time: (doc.timeline ?? doc.memory) && begin >= 0 && end > begin ? [begin, end] : null,
    label: doc.label_keys.includes(key) ? [key, value.join('=')] : null,
    idle: parts.get('idle') === '1',
    q: parts.get('q') ?? '',
    line: parts.get('line') ?? '',
    colour: one('colour', ['package', 'state'], first.colour),
    flip: parts.get('flip') === '1',
    fold: parts.get('fold') === '1',
    all: parts.get('all') === '1',
    lanes: one('lanes', ['thread', 'route'], first.lanes),
    sort: one('sort', ['time', 'calls'], first.sort),
    slow: parts.get('slow') ?? '',
    from: Math.max(0, Number(parts.get('from')) || 0),
    waits: one('waits', ['threads', 'tasks'], first.waits),
    side: one('side', ['before', 'after'], first.side),
    window: WINDOWS.find(([seconds]) => String(seconds) === parts.get(
      'window'))?.[0] ?? first.window,
    since: Math.max(0, Number(parts.get('since')) || 0),
    measure: doc.memory ? one('measure', MEASURES, first.measure) : '',
    at: doc.memory && parts.has('at') ? Number(parts.get('at')) || 0 : -1,
    bands: one('bands', ['line', 'package', 'type'], first.bands),
  };
}

/** The command that shows the same, of the page itself; a search leaves
 * sums as they are. */
export function command(query: Query, doc: Document): string {
  // In a notebook it has no name.
  const file = location.protocol === 'about:' ? 'FILE' : decodeURIComponent(
    location.pathname.slice(location.pathname.lastIndexOf('/') + 1));
  const words = ['python', '-m', 'profile_sampling', 'report', file,
    ...doc.options];
  if (query.state) {
    words.push('--where', `state=^${query.state}$`);
  }
  if (query.label) {
    const [key, value] = query.label;
    words.push('--where', `${key}=^${escaped(value)}$`);
  }
  const isMemory = query.measure !== '' &&
    (query.view === 'memory' || query.view === 'flame');
  if (isMemory) {
    words.push('--memory', ...query.measure === 'in_use' ? []
      : ['--value', query.measure]);
  }
  if (query.time) {
    const [begin, end] = query.time.map((ns) => String(ns / 1e9));
    words.push(...isMemory ? ['--time', `${begin}..${end}`]
      : ['--from', begin!, '--to', end!]);
  }
  if (isMemory && query.at >= 0) {
    const {begin_ns: first, step_ns: step} = doc.memory!;
    words.push('--at', String(((query.at + 1) * step + first -
      doc.start_time_ns) / 1e9));
  }
  if (query.view === 'waits') {
    words.push('--waits', ...query.waits === 'tasks' ? ['--tasks'] : []);
  }
  if (query.sort === 'calls') {
    words.push('--functions', '--sort', 'calls');
  }
  if (query.idle) {
    words.push('--idle');
  }
  return words.map(quoted).join(' ');
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}

/** As a shell reads it. */
function quoted(word: string): string {
  return /^[\w./:=-]+$/.test(word) ? word
    : `'${word.replaceAll("'", "'\\''")}'`;
}
