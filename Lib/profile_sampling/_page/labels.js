// What the labels of samples say: thread, state, task, holder of the GIL,
// instruction, and what the program labelled itself.
//
// This file owns the meaning of labels, as _formats/pprof/labels.py does.  It
// must not know how they are encoded.
// @ts-check

/** @typedef {import('./functions.js').Functions} Functions */
/** @typedef {import('./pprof.js').Parts} Parts */

export const STATES = [
  'running', 'waiting', 'gil_wait', 'gc', 'lost', 'unsampled', 'custom',
  'asleep_with_gil', 'awaiting', 'loop_wait', 'native', 'cpu_wait'];
// The order in which they are told.
export const SHOWN_STATES = [
  'running', 'native', 'waiting', 'gil_wait', 'cpu_wait', 'asleep_with_gil',
  'gc', 'awaiting', 'loop_wait', 'unsampled', 'lost', 'custom'];
const STATE_TEXTS = STATES.map((state) => state.replaceAll('_', ' '));
const OF_SAMPLES = new Set([
  'state', 'interpreter', 'thread name', 'thread id', 'thread native id',
  'task name', 'task id', 'gil holder', 'gil holder place',
  'gil holder interpreter', 'gil holder thread', 'gil holder thread id',
  'gil holder thread native id']);
export const NOT_KNOWN = -1;
export const RUNNING = STATES.indexOf('running');
export const WAITING = STATES.indexOf('waiting');
export const NATIVE = STATES.indexOf('native');
export const CUSTOM = STATES.indexOf('custom');
// Of tasks that no thread runs: they are on no clock of a thread.
export const AWAITING = STATES.indexOf('awaiting');
export const LOOP_WAIT = STATES.indexOf('loop_wait');

/**
 * @typedef {object} Thread
 * @property {number} ident
 * @property {number} nativeId
 * @property {string} name '' if it has none
 * @property {number} interpreter
 */

/**
 * Labels of the program, and the task if the sample was in one.
 *
 * @typedef {object} LabelSet
 * @property {Map<string, string>} labels
 * @property {string | null} task
 */

/**
 * What a set of a message comes to; numbers of rows, -1: none.
 *
 * @typedef {object} About
 * @property {number} thread
 * @property {number} labels
 * @property {number} state
 * @property {number} holder
 * @property {number} holderThread
 * @property {number} offset
 * @property {string} opcode '' if it is not known
 */

export class Labels {
  /**
   * @param {Parts} parts
   * @param {(number: number) => string} string
   * @param {Functions} functions
   * @param {boolean} hasInstructions
   */
  constructor(parts, string, functions, hasInstructions) {
    this.sets = parts.sets;
    // With the gaps that there are between labels.
    this.meanings = parts.labels.map(([key, text, number]) => (
      {key: string(key), text: string(text), number}));
    this.functions = functions;
    this.hasInstructions = hasInstructions;
    /** @type {Thread[]} */
    this.threads = [];
    /** @type {LabelSet[]} */
    this.rows = [];
    /** @type {{func: number, line: number, callee: number}[]} */
    this.holders = [];
    this.known = new Map();
    /** @type {Map<number, About>} */
    this.abouts = new Map();
  }

  /**
   * @param {number} set
   * @returns {About}
   */
  about(set) {
    let about = this.abouts.get(set);
    if (about === undefined) {
      about = this.read(set);
      this.abouts.set(set, about);
    }
    return about;
  }

  /** @param {number} set */
  read(set) {
    /** @type {Map<string, string>} */
    const texts = new Map();
    /** @type {Map<string, number>} */
    const numbers = new Map();
    /** @type {Map<string, Set<string>>} */
    const labels = new Map();
    let offset = -1;
    let opcode = '';
    for (const {key, text, number} of this.path(set)) {
      if (this.hasInstructions && key === 'opcode') {
        opcode = text;
      } else if (this.hasInstructions && key === 'instruction offset') {
        offset = number;
      } else if (!OF_SAMPLES.has(key)) {
        const values = labels.get(key) ?? new Set();
        labels.set(key, values.add(text || (number ? String(number) : '')));
      } else if (text) {
        texts.set(key, text);
      } else {
        numbers.set(key, number);
      }
    }
    const text = texts.get('state') ?? 'running';
    // That of older files.
    const state = STATE_TEXTS.indexOf(text === 'blocked' ? 'waiting' : text);
    const interpreter = numbers.get('interpreter') ?? 0;
    return {
      thread: this.thread('thread', 'thread name', texts, numbers,
                          interpreter),
      labels: this.row(labels, texts, numbers), state: Math.max(0, state),
      ...this.holder(texts, numbers, interpreter), offset, opcode};
  }

  /** @param {number} set */
  path(set) {
    const path = [];
    while (set) {
      path.push(this.meanings[this.sets.items[set]]);
      set = this.sets.parents[set];
    }
    return path.reverse();
  }

  /**
   * @param {string} prefix
   * @param {string} name
   * @param {Map<string, string>} texts
   * @param {Map<string, number>} numbers
   * @param {number} interpreter
   */
  thread(prefix, name, texts, numbers, interpreter) {
    const row = {
      ident: numbers.get(`${prefix} id`) ?? 0,
      nativeId: numbers.get(`${prefix} native id`) ?? 0,
      name: texts.get(name) ?? '', interpreter};
    return this.intern('thread', row, this.threads);
  }

  /**
   * @param {Map<string, Set<string>>} found
   * @param {Map<string, string>} texts
   * @param {Map<string, number>} numbers
   */
  row(found, texts, numbers) {
    const labels = [...found.keys()].sort().map((key) => (
      [key, [.../** @type {Set<string>} */ (found.get(key))].join(', ')]));
    // A file has no text for an empty one.
    const task = texts.get('task name')
      ?? (numbers.has('task name') ? '' : null);
    const key = JSON.stringify([labels, task, numbers.get('task id')]);
    let number = this.known.get(key);
    if (number === undefined) {
      const row = {
        labels: new Map(/** @type {[string, string][]} */ (labels)), task};
      number = this.rows.push(row) - 1;
      this.known.set(key, number);
    }
    return number;
  }

  /**
   * @param {Map<string, string>} texts
   * @param {Map<string, number>} numbers
   * @param {number} interpreter
   */
  holder(texts, numbers, interpreter) {
    const name = texts.get('gil holder')
      ?? (numbers.has('gil holder') ? '' : null);
    if (name === null) {
      return {holder: NOT_KNOWN, holderThread: NOT_KNOWN};
    }
    let thread = NOT_KNOWN;
    if (numbers.has('gil holder thread id')) {
      thread = this.thread(
        'gil holder thread', 'gil holder thread', texts, numbers,
        numbers.get('gil holder interpreter') ?? interpreter);
    }
    const place = this.functions.holder(name, texts.get('gil holder place'));
    return {holder: this.intern('holder', place, this.holders),
            holderThread: thread};
  }

  /**
   * @template T
   * @param {string} kind
   * @param {T} row
   * @param {T[]} rows
   * @returns {number}
   */
  intern(kind, row, rows) {
    const key = kind + JSON.stringify(row);
    let number = this.known.get(key);
    if (number === undefined) {
      number = rows.push(row) - 1;
      this.known.set(key, number);
    }
    return number;
  }
}
