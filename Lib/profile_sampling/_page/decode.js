// From a pprof message to the profile that views show.
//
// This file owns the tables of a profile here and what the parts of a message
// become in them.  It must not know how a message is encoded, nor add anything
// up.  As in Python, a stack is a node of a tree, a node's parent is its caller
// and has a lower number; node 0 is the stack without a frame.
// @ts-check

import {Functions} from './functions.js';
import {Labels} from './labels.js';
import {noLives} from './lives.js';
import {GAUGES} from './losses.js';
import {PairTable} from './pairs.js';
import {takeApart} from './pprof.js';
import {valueTypesOf} from './types.js';

/** @typedef {import('./pprof.js').Parts} Parts */
/** @typedef {import('./functions.js').Func} Func */
/** @typedef {import('./labels.js').Thread} Thread */
/** @typedef {import('./labels.js').LabelSet} LabelSet */
/** @typedef {import('./types.js').ValueType} ValueType */

// Inlined calls make many frames of few bytes.
const MAX_STEPS = 1e8;
// No clock of a profiler ticks faster.
const SHORTEST_PERIOD_NS = 1000;
const MARK = '# profile_sampling 1';

/**
 * Frames and samples are columns; what is not there is -1.
 *
 * @typedef {object} Profile
 * @property {string} mode
 * @property {ValueType[]} valueTypes
 * @property {number} own what it is about: a number of a value type
 * @property {number} rateHz
 * @property {number} startNs
 * @property {number} durationNs
 * @property {number} wholeCpuNs of a part that was saved; 0 if it is none
 * @property {boolean} isPart whether it is one, of which counters are not
 * @property {number | null} pid
 * @property {string} pythonVersion
 * @property {boolean} hasOpcodes
 * @property {Map<string, number>} stats
 * @property {Map<string, string>} meta
 * @property {Func[]} functions
 * @property {Thread[]} threads
 * @property {LabelSet[]} labels
 * @property {{func: number, line: number, callee: number}[]} holders
 * @property {{func: Int32Array, line: Int32Array, column: Int32Array}} frames
 * @property {Nodes} nodes
 * @property {Samples} samples
 * @property {boolean} isRounded whether sums may be more than numbers can say
 * @property {string[]} [moreKeys] that a profile it is compared with has
 * @property {string[]} timelineTexts what timelineOf() reads
 * @property {import('./timeline.js').Timeline | null} timeline
 * @property {string[]} livesTexts what livesIn() reads
 * @property {import('./lives.js').Lives} lives
 * @property {[number, number] | null} spanNs of a part by time, its range
 * @property {Uint8Array} [isIn] of that which samples are in it
 */

/**
 * @typedef {object} Nodes
 * @property {number} length
 * @property {Int32Array} parent
 * @property {Int32Array} frame
 */

/**
 * @typedef {object} Samples
 * @property {number} length
 * @property {Int32Array} node
 * @property {Int32Array} thread
 * @property {Int32Array} labels
 * @property {Uint8Array} state
 * @property {Int32Array} holder
 * @property {Int32Array} holderThread
 * @property {Int32Array} offset
 * @property {string[]} opcode
 * @property {Float64Array[]} values for each value type
 */

/**
 * @param {Uint8Array} bytes a message, not compressed
 * @returns {Profile}
 */
export function decodeProfile(bytes) {
  const parts = takeApart(bytes);
  /** @param {number} number */
  const string = (number) => {
    const text = parts.strings[number];
    if (text === undefined) {
      throw new Error('the profile is damaged: a string does not exist');
    }
    return text;
  };
  const comments = parts.comments.map(string);
  const types = valueTypesOf(
    parts.types.map(([kind, unit]) => [string(kind), string(unit)]),
    string(parts.defaultType), comments.includes(MARK));
  const facts = factsOf(comments, parts);
  const mode = facts.mode ?? types.mode;
  const functions = new Functions(facts.modules);
  const stacks = new Stacks(parts, string, functions);
  const labels = new Labels(parts, string, functions, facts.hasOpcodes);
  const {valueTypes} = types;
  const samples = samplesOf(parts, stacks, labels, types);
  const own = valueTypes.findLastIndex((type) => type.kind === mode);
  if (own < 0) {
    throw new Error('the profile is damaged: its mode is not known');
  }
  return {
    ...facts, mode, own, valueTypes,
    functions: functions.rows, threads: labels.threads, labels: labels.rows,
    holders: labels.holders, frames: stacks.frames(), nodes: stacks.nodes(),
    samples, timeline: null, lives: noLives(),
    isRounded: samples.values.some(isTooLarge)};
}

/**
 * Whether sums of a column may be larger than all whole numbers that there
 * are here.
 * @param {Float64Array} column
 */
function isTooLarge(column) {
  let sum = 0;
  for (const value of column) {
    sum += Math.abs(value);
  }
  return sum > Number.MAX_SAFE_INTEGER;
}

/**
 * What the writer said of the whole, in comments and fields.
 * @param {string[]} comments
 * @param {Parts} parts
 */
function factsOf(comments, parts) {
  const facts = {
    mode: /** @type {string | null} */ (null),
    wholeCpuNs: 0, isPart: false, rateHz: parts.period >= SHORTEST_PERIOD_NS
      ? Math.floor(1e9 / parts.period) : 0,
    startNs: parts.timeNs, durationNs: parts.durationNs,
    pid: /** @type {number | null} */ (null), pythonVersion: '',
    spanNs: /** @type {[number, number] | null} */ (null),
    hasOpcodes: false,
    stats: /** @type {Map<string, number>} */ (new Map()),
    meta: /** @type {Map<string, string>} */ (new Map()),
    timelineTexts: /** @type {string[]} */ ([]),
    livesTexts: /** @type {string[]} */ ([]),
    modules: /** @type {Set<string>} */ (new Set())};
  if (!comments.includes(MARK)) {
    return facts;
  }
  const pids = new Set();
  const spans = new Set();
  for (const comment of comments) {
    const [, key, text] = /^# (\S+) ([^]*)$/.exec(comment) ?? [];
    const space = text?.lastIndexOf(' ') ?? -1;
    switch (key) {
      case 'module': facts.modules.add(text); break;
      case 'python': facts.pythonVersion = text; break;
      case 'pid': pids.add(Number(text)); break;
      case 'span_ns': spans.add(text); break;
      case 'timeline': facts.timelineTexts.push(text); break;
      case 'mode': facts.mode = text; break;
      case 'tasks': facts.livesTexts.push(text); break;
      case 'whole_cpu_ns':
        facts.isPart = true;
        facts.wholeCpuNs = Number(text);
        break;
      case 'rate_hz': facts.rateHz = Number(text); break;
      case 'names':
        facts.hasOpcodes ||= text === 'all' || text === 'opcodes';
        break;
      case 'meta': {
        const at = text.indexOf(' ');
        facts.meta.set(text.slice(0, at), text.slice(at + 1));
        break;
      }
      case 'stat': {
        const name = text.slice(0, space);
        const value = Number(text.slice(space + 1));
        const known = facts.stats.get(name) ?? 0;
        facts.stats.set(name, GAUGES.has(name) ? Math.max(known, value)
          : known + value);
        break;
      }
    }
  }
  if (pids.size === 1) {
    [facts.pid] = pids;
  }
  if (spans.size === 1) {
    const [from, until] = [...spans][0].split(' ').map(Number);
    facts.spanNs = 0 <= from && from <= until ? [from, until] : null;
  }
  return facts;
}

/** Stacks of locations, as nodes of frames. */
class Stacks {
  /**
   * @param {Parts} parts
   * @param {(number: number) => string} string
   * @param {Functions} functions
   */
  constructor(parts, string, functions) {
    this.functions = functions;
    /** @type {number[][]} */
    this.frameRows = [];
    this.frameNumbers = new Map();
    this.tree = new PairTable();
    const numbers = new Map(parts.functions.map(([number, name, file, line]) =>
      [number, functions.add(string(name), string(file), line)]));
    this.framesOf = new Map(parts.locations.map((location) =>
      [location[0], this.framesAt(location, parts.lines, numbers)]));
    this.nodeOf = new Int32Array(parts.stacks.length);
    this.put(parts.stacks);
  }

  /**
   * Whether stacks of locations are stacks of frames, as in files of ours.
   * @param {PairTable} stacks
   */
  keep(stacks) {
    const all = [...this.framesOf.values()];
    const isSame = all.length === this.frameRows.length
      && all.every((frames) => frames.length === 1);
    if (isSame) {
      this.tree = stacks;
      const frameAt = this.frameAt();
      for (let stack = 1; stack < stacks.length; stack++) {
        const frame = frameAt[stacks.items[stack]] ?? -1;
        stacks.items[stack] = frame >= 0 ? frame
          : this.framesAtStack(stacks, stack)[0];
        this.nodeOf[stack] = stack;
      }
    }
    return isSame;
  }

  /** The frame of locations with small numbers, which ours have; else -1. */
  frameAt() {
    const found = new Int32Array(4 * this.framesOf.size).fill(-1);
    for (const [number, [frame]] of this.framesOf) {
      found[number] = frame;
    }
    return found;
  }

  /**
   * @param {PairTable} stacks
   * @param {number} stack
   */
  framesAtStack(stacks, stack) {
    const frames = this.framesOf.get(stacks.items[stack]);
    if (frames === undefined) {
      throw new Error('the profile is damaged: a location is missing');
    }
    return frames;
  }

  /**
   * The frames of a location, the root first.
   * @param {number[]} location
   * @param {number[][]} lines
   * @param {Map<number, number>} numbers
   */
  framesAt([, address, first, count], lines, numbers) {
    if (!count) {
      const name = `0x${address.toString(16)}`;
      return [this.frame(this.functions.add(name, '<C>', 0), 0, 0)];
    }
    return lines.slice(first, first + count).reverse().map(
      ([number, line, column]) => {
        const func = numbers.get(number);
        if (func === undefined) {
          throw new Error('the profile is damaged: a function is missing');
        }
        return this.frame(func, line, column);
      });
  }

  /**
   * @param {number} func
   * @param {number} line
   * @param {number} column
   */
  frame(func, line, column) {
    const key = `${func},${line},${column}`;
    let number = this.frameNumbers.get(key);
    if (number === undefined) {
      number = this.frameRows.push([func, line, column]) - 1;
      this.frameNumbers.set(key, number);
    }
    return number;
  }

  /** @param {PairTable} stacks */
  put(stacks) {
    let steps = 0;
    if (this.keep(stacks)) {
      return;
    }
    for (let stack = 1; stack < stacks.length; stack++) {
      const frames = this.framesAtStack(stacks, stack);
      let node = this.nodeOf[stacks.parents[stack]];
      for (const frame of frames) {
        node = this.tree.add(node, frame);
      }
      this.nodeOf[stack] = node;
      steps += frames.length;
      if (steps > MAX_STEPS) {
        throw new Error('the profile is too large for this page');
      }
    }
  }

  frames() {
    /** @param {number} column */
    const cells = (column) => Int32Array.from(
      this.frameRows, (row) => row[column]);
    return {func: cells(0), line: cells(1), column: cells(2)};
  }

  /** @returns {Nodes} */
  nodes() {
    const {length, parents, items} = this.tree;
    return {length, parent: parents.slice(0, length),
            frame: Int32Array.from(items.subarray(0, length))};
  }
}

/**
 * @param {Parts} parts
 * @param {Stacks} stacks
 * @param {Labels} labels
 * @param {ReturnType<typeof valueTypesOf>} types
 * @returns {Samples}
 */
function samplesOf(parts, stacks, labels, {places, isOlder}) {
  const width = parts.types.length;
  // Some rows of older files have nothing else than what is ignored.
  const rows = [...Array(parts.samples.length / 2).keys()].filter(
    (row) => !isOlder || places.some(
      ([number]) => parts.values[row * width + number]));
  const {length} = rows;
  const columns = {
    length, node: new Int32Array(length), thread: new Int32Array(length),
    labels: new Int32Array(length), state: new Uint8Array(length),
    holder: new Int32Array(length), holderThread: new Int32Array(length),
    offset: new Int32Array(length),
    opcode: /** @type {string[]} */ (new Array(length).fill('')),
    values: places.map(() => new Float64Array(length))};
  rows.forEach((row, i) => {
    const about = labels.about(parts.samples[2 * row + 1]);
    columns.node[i] = stacks.nodeOf[parts.samples[2 * row]];
    columns.thread[i] = about.thread;
    columns.labels[i] = about.labels;
    columns.state[i] = about.state;
    columns.holder[i] = about.holder;
    columns.holderThread[i] = about.holderThread;
    columns.offset[i] = about.offset;
    columns.opcode[i] = about.opcode;
    places.forEach(([number, factor], place) => {
      columns.values[place][i] = factor
        ? factor * parts.values[row * width + number] : 0;
    });
  });
  return columns;
}
