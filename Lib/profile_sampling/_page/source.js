// The source of a function with what each line and instruction cost.
//
// This file owns the sums per line and instruction, as _data/by_function.py and
// _data/by_instruction.py have them, and how they stand beside the text.  It
// must not know where the text is from.
// @ts-check

import {changeColumns} from './differences.js';
import {button, element} from './dom.js';
import {PYTHON, compareFunctions} from './functions.js';
import {RUNNING} from './labels.js';
import {lineIn} from './pairing.js';
import {countsOf, innermostPython, sumsOfFrames} from './sums.js';
import {tableOf} from './table.js';
import {marginCell, stateCells, valueCell} from './tables.js';
import {printable} from './words.js';

/** @typedef {import('./app.js').App} App */
/** @typedef {import('./part.js').Part} Part */
/** @typedef {import('./sums.js').StateSums} StateSums */

/**
 * What a page has of a function; see _formats/sources.py.
 *
 * @typedef {object} Source
 * @property {string} name
 * @property {string} filename
 * @property {number} first_line
 * @property {Record<string, string>} lines by their numbers
 * @property {string[]} notes
 */

/**
 * @typedef {object} Sources
 * @property {Source[]} functions
 * @property {Record<string, string>} generic
 * @property {number} left_out
 */

/**
 * What an instruction cost, with what it called.
 *
 * @typedef {object} Instruction
 * @property {number} line
 * @property {number} column
 * @property {number} offset
 * @property {string} name of the generic instruction; '' if it is not known
 * @property {number} self
 * @property {Map<string, number>} specialized counts by names
 * @property {number} unspecialized
 * @property {Map<number, number>} callees values by functions
 */

// Instructions below a line: of all time, and how many.
const LEAST_SHARE = 0.005;
const INSTRUCTIONS = 5;

/**
 * Per line of a function the cumulative value.
 * @param {Part} part
 * @param {number} func
 * @returns {Map<number, number>}
 */
export function linesOf(part, func) {
  const {profile: {frames}, nodes} = part;
  /** @type {Map<number, number>} */
  const numbers = new Map();
  const keys = frames.func.map((its, frame) => {
    const line = frames.line[frame];
    if (its !== func) {
      return 0;
    }
    numbers.set(line, numbers.get(line) ?? numbers.size + 1);
    return numbers.get(line) ?? 0;
  });
  const {cum} = sumsOfFrames(part, part.value, keys, numbers.size + 1);
  const used = new Set();
  for (const row of part.rows) {
    for (let node = part.nodeOf[row]; node && !used.has(node);
      node = nodes.parent[node]) {
      used.add(node);
    }
  }
  const seen = new Set([...used].map((node) => keys[nodes.frame[node]]));
  return new Map([...numbers].filter(([, key]) => seen.has(key))
    .map(([line, key]) => [line, cum[key]]));
}

/**
 * The instructions of a function, the most expensive first.
 * @param {Part} part
 * @param {number} func
 * @param {Record<string, string>} generic names of generic instructions
 * @returns {Instruction[]}
 */
export function instructionsOf(part, func, generic) {
  const {profile: {frames, samples}, rows, nodeOf, value} = part;
  const {innermost, called} = innermostPython(part);
  const counts = countsOf(part);
  /** @type {Map<string, Instruction>} */
  const found = new Map();
  for (const row of rows) {
    const frame = innermost[nodeOf[row]];
    if (frame < 0 || frames.func[frame] !== func) {
      continue;
    }
    const opcode = samples.opcode[row];
    const name = generic[opcode] ?? opcode;
    const [line, column] = [frames.line[frame], frames.column[frame]];
    const offset = samples.offset[row];
    const key = [line, column, offset, name].join();
    const one = found.get(key) ?? {
      line, column, offset, name, self: 0, specialized: new Map(),
      unspecialized: 0, callees: new Map()};
    found.set(key, one);
    one.self += value[row];
    if (counts !== null && opcode in generic) {
      if (opcode === name) {
        one.unspecialized += counts[row];
      } else {
        one.specialized.set(
          opcode, (one.specialized.get(opcode) ?? 0) + counts[row]);
      }
    }
    const callee = called[nodeOf[row]];
    if (callee >= 0) {
      const its = frames.func[callee];
      one.callees.set(its, (one.callees.get(its) ?? 0) + value[row]);
    }
  }
  return [...found.values()].sort((one, other) => other.self - one.self
    || one.line - other.line || one.column - other.column
    || one.offset - other.offset);
}

/**
 * The source of a function; of all of that name where two profiles are
 * compared, which do not tell them apart.
 * @param {App} app
 * @param {import('./functions.js').Func} func
 * @returns {Source | undefined}
 */
function sourceOf(app, {name, filename, firstLine}) {
  const found = (app.sources?.functions ?? []).filter((one) => (
    one.name === name && one.filename === filename
    && (app.against !== null || one.first_line === firstLine)));
  return found.length < 2 ? found[0] : {
    ...found[0], lines: Object.assign({}, ...found.map(({lines}) => lines)),
    notes: [...new Set(found.flatMap(({notes}) => notes))]};
}

/**
 * The function of the most expensive line that there is a text of; -1: there
 * is no function of Python.
 * @param {App} app
 */
function worthReading(app) {
  const {functions} = app.profile;
  const found = app.model.sites.rows.map(({func}) => func).filter(
    (func) => functions[func]?.kind === PYTHON);
  return found.find((func) => (
    Object.keys(sourceOf(app, functions[func])?.lines ?? {}).length))
    ?? found[0] ?? -1;
}

/** @param {App} app */
export function sourceView(app) {
  const {profile: {functions}} = app;
  const func = functions[app.selected]?.kind === PYTHON ? app.selected
    : worthReading(app);
  if (func < 0) {
    return [element('p', {class: 'note'}, 'There is no Python function here.')];
  }
  const {name, filename} = functions[func];
  const source = sourceOf(app, functions[func]);
  const notes = source?.notes ?? ['The page has no source of this function.'];
  const table = listing(app, func, source);
  return [
    element('h2', {}, printable(`${name} in ${filename} `),
            button('most expensive line', () => goToMost(table))),
    table,
    ...notes.map((note) => element('p', {class: 'note'}, printable(note)))];
}

/**
 * A row for what is not shown before a line.
 * @param {number} line
 * @returns {Line}
 */
function gapTo(line) {
  return {line, one: null, isGap: true};
}

/**
 * Go to the line with the longest bar.
 * @param {HTMLElement} table
 */
function goToMost(table) {
  const cells = [...table.querySelectorAll('td[data-key="self"].bar')];
  /** @param {Element} cell */
  const valueOf = (cell) => Number(
    /** @type {HTMLElement} */ (cell).dataset.value);
  cells.sort((one, other) => valueOf(other) - valueOf(one));
  const row = cells[0]?.closest('tr');
  row?.scrollIntoView({block: 'center'});
  row?.focus({preventScroll: true});
}

/**
 * What lines of a function are in the other profile, by their numbers here.
 * @param {App} app
 * @param {number} func
 */
function otherLines({against, profile}, func) {
  if (against === null) {
    return {cums: new Map(), sums: new Map()};
  }
  const {rival} = against;
  /** @param {number} line */
  const here = (line) => lineIn(rival.profile, profile, func, line);
  return {
    cums: new Map([...linesOf(rival.part, func)].map(
      ([line, value]) => [here(line), value])),
    sums: new Map(rival.sites.rows.filter((row) => row.func === func)
      .map((row) => [here(row.line), row.sums.total]))};
}

/**
 * @typedef {object} Line
 * @property {number} line
 * @property {StateSums} [sums]
 * @property {number} [cum]
 * @property {Instruction | null} one
 * @property {boolean} [isGap] whether it stands for lines that are left out
 */

/**
 * @param {App} app
 * @param {number} func
 * @param {Source | undefined} source
 */
function listing(app, func, source) {
  const {part, sites} = app.model;
  const cum = linesOf(part, func);
  const sums = new Map(sites.rows.filter((row) => row.func === func)
    .map((row) => [row.line, row.sums]));
  const instructions = instructionsOf(part, func,
                                      app.sources?.generic ?? {});
  const texts = new Map(Object.entries(source?.lines ?? {}).map(
    ([line, text]) => [Number(line), text]));
  // Rows are ranked.
  const most = sites.rows.find((row) => row.func === func)?.sums.total ?? 0;
  const {cums: otherCums, sums: otherSums} = otherLines(app, func);
  /** @type {Line[]} */
  const rows = [...new Set([...texts.keys(), ...cum.keys(),
                            ...otherCums.keys()])]
    .sort((one, other) => one - other)
    .flatMap((line, at, lines) => [
      ...at && lines[at - 1] < line - 1 ? [gapTo(line)] : [],
      /** @type {Line} */ (
        {line, sums: sums.get(line), cum: cum.get(line), one: null}),
      ...instructions.filter((one) => (
        one.line === line && one.self >= LEAST_SHARE * sites.busy
        && (one.name || one.callees.size))).slice(0, INSTRUCTIONS)
        .map((one) => ({line, sums: undefined, cum: undefined, one}))]);
  return tableOf('source', [
    {key: 'self', heading: 'self', kind: 'number', cell: (row) => {
      const value = row.one?.self ?? row.sums?.total;
      return value === undefined ? {} : {
        ...valueCell(app, value),
        share: row.one === null && most ? value / most : undefined};
    }},
    {key: 'running', heading: 'run', kind: 'number', cell: ({sums: its}) => (
      its === undefined ? {} : valueCell(app, its.byState[RUNNING]))},
    {key: 'margin', heading: '±', kind: 'number', cell: ({sums: its}) => (
      its === undefined ? {} : marginCell(app, its.records))},
    {key: 'states', heading: 'states', kind: 'text', cell: ({sums: its}) => (
      its === undefined ? {} : stateCells(its))},
    {key: 'cum', heading: 'cum', kind: 'number', cell: (row) => (
      row.cum === undefined ? {} : valueCell(app, row.cum))},
    ...['self', 'cum'].flatMap((which) => changeColumns(
      app, (/** @type {Line} */ {line, one, isGap, ...own}) => (
        one !== null || isGap || !(own.cum || otherCums.get(line))
          ? null : which === 'cum'
          ? {own: own.cum ?? 0, other: otherCums.get(line) ?? 0}
          : {own: own.sums?.total ?? 0, other: otherSums.get(line) ?? 0}),
      `${which}_`, which)),
    {key: 'line', heading: 'line', kind: 'number',
     cell: ({line, one, isGap}) => (
       one !== null || isGap ? {text: isGap ? '⋮' : ''}
         : {text: String(line), value: line})},
    {key: 'source', heading: 'source', kind: 'code',
     cell: ({line, one, isGap}) => ({text: one !== null ? told(app, one)
       : isGap ? '' : texts.get(line) ?? ''})}],
  rows);
}

/**
 * An instruction in words, below the place that it is for.
 * @param {App} app
 * @param {Instruction} one
 */
function told({profile: {functions}}, one) {
  const words = [one.name || '?'];
  const specialized = [...one.specialized.values()].reduce(
    (sum, count) => sum + count, 0);
  const seen = specialized + one.unspecialized;
  if (seen) {
    const names = [...one.specialized].sort(
      (first, second) => second[1] - first[1]).map(([name]) => name);
    words.push(`${(100 * specialized / seen).toFixed(0)}% specialized${
      names.length ? ` (${names.join(', ')})` : ''}`);
    if (specialized && one.unspecialized) {
      words.push(`${(100 * one.unspecialized / seen).toFixed(0)}% `
                 + 'deoptimized');
    }
  }
  const callees = [...one.callees].sort((first, second) => (
    second[1] - first[1]
    || compareFunctions(functions[first[0]], functions[second[0]])));
  words.push(...callees.slice(0, 3).map(([func, value]) => (
    `in ${functions[func].name} ${(100 * value / one.self).toFixed(0)}%`)));
  return `${' '.repeat(Math.max(0, one.column - 1))}^ ${words.join(', ')}`;
}
