// Who called what: the call tree, and a function between callers and callees.
//
// This file owns how trees are shown as rows that open and close.  It must not
// know how trees are made.
// @ts-check

import {button, element, styleOf} from './dom.js';
import {changeColumns, goneNote} from './differences.js';
import {FlameView} from './flame.js';
import {tableOf} from './table.js';
import {placeCell, valueCell} from './tables.js';
import {FromRoots, ROOT} from './tree.js';
import {counted, percent, printable, share} from './words.js';

/** @typedef {import('./app.js').App} App */
/** @typedef {import('./layout.js').Tree} Tree */

// What is open at first: calls with that share, until there are so many rows.
const OPEN_SHARE = 0.05;
const FIRST_ROWS = 60;
// The same of what leads to what is searched for.
const ROWS_TO_FOUND = 400;
// Of a node, that are shown at once.
const CHILDREN = 100;
const MAX_INDENT = 40;
// What one key opens at most.
const OPEN_AT_ONCE = 5000;

/**
 * The flame graph of all.
 * @param {App} app
 */
export function flameView(app) {
  const {up} = app.query;
  const against = app.treeAgainst('all', (model) => model.tree(up));
  return [...new FlameView(app, app.model.tree(up), 'all', 'main',
                           against).parts(),
          ...goneNote(app, against)];
}

/** The call tree as a table whose rows open and close. */
export class TreeView {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.tree = app.model.tree(app.query.up);
    const against = app.treeAgainst('all', (model) => (
      model.tree(app.query.up)));
    /** @type {import('./table.js').Column<number>[]} */
    this.changes = changeColumns(app, (node) => (
      {own: this.tree.cum[node], other: against?.otherCum(node) ?? 0}));
    this.found = app.query.search
      ? app.model.matches(app.query.search).found : null;
    /** @type {Set<number>} */
    this.open = new Set();
    /** @type {Map<number, number>} */
    this.shownOf = new Map();
    this.at = this.tree.children(ROOT)[0] ?? ROOT;
    this.body = element('tbody');
    this.body.addEventListener('keydown', (event) => this.key(event));
    this.openFirst();
    this.fill();
  }

  parts() {
    const heads = [
      ...['cum', 'self', 'cum', 'self',
          ...this.changes.map(({heading}) => heading)].map((text) => element(
        'th', {scope: 'col', class: 'number'}, text)),
      element('th', {scope: 'col', class: 'text'}, 'function')];
    return [element('div', {class: 'table'}, element(
      'table', {role: 'treegrid', 'aria-label': 'call tree',
                dataset: {name: 'tree'}},
      element('thead', {}, element('tr', {}, ...heads)), this.body))];
  }

  openFirst() {
    const least = OPEN_SHARE * this.tree.cum[ROOT];
    const leads = this.leadsToFound();
    const pending = [...this.tree.children(ROOT)];
    const most = leads === null ? FIRST_ROWS : ROWS_TO_FOUND;
    for (let rows = pending.length; pending.length && rows < most;) {
      const node = /** @type {number} */ (pending.shift());
      if (leads === null ? this.tree.cum[node] >= least : leads[node]) {
        const children = this.tree.children(node);
        this.open.add(node);
        rows += children.length;
        children.forEach((child) => pending.push(child));
      }
    }
  }

  /**
   * Which nodes have what is searched for below them; null if nothing is, or
   * nodes are not made before they are opened.
   */
  leadsToFound() {
    const {tree, found} = this;
    if (found === null || !(tree instanceof FromRoots)) {
      return null;
    }
    const leads = new Uint8Array(tree.length);
    for (let node = tree.length - 1; node > 0; node--) {
      leads[tree.parent[node]] |= leads[node] | found[tree.func[node]];
    }
    return leads;
  }

  /** Make the rows of what is open, without calling itself. */
  fill() {
    const rows = [];
    const pending = this.levelOf(ROOT, 1, 0).reverse();
    while (pending.length) {
      const [node, level, indent] = /** @type {[number, number, number]} */ (
        pending.pop());
      if (node < 0) {
        rows.push(this.moreRow(-node - 1, level, indent));
        continue;
      }
      rows.push(this.row(node, level, indent));
      if (this.open.has(node)) {
        pending.push(...this.levelOf(node, level + 1, indent).reverse());
      }
    }
    this.body.replaceChildren(...rows);
  }

  /**
   * What is below a node: number, level, indent.  What is alone is not
   * indented.  A negative number stands for the rest.
   * @param {number} parent
   * @param {number} level
   * @param {number} indent
   * @returns {[number, number, number][]}
   */
  levelOf(parent, level, indent) {
    const children = this.tree.children(parent);
    const shown = this.shownOf.get(parent) ?? CHILDREN;
    const inside = children.length > 1 && parent !== ROOT ? indent + 1
      : indent;
    /** @type {[number, number, number][]} */
    const rows = children.slice(0, shown).map(
      (node) => [node, level, inside]);
    return children.length > shown
      ? [...rows, [-parent - 1, level, inside]] : rows;
  }

  /**
   * @param {number} node
   * @param {number} level
   * @param {number} indent
   */
  row(node, level, indent) {
    const {app, tree, open} = this;
    const total = tree.cum[ROOT];
    const hasChildren = tree.children(node).length > 0;
    const func = tree.func[node];
    const {text, title} = placeCell(app, func, 0);
    const mark = element('span', {class: 'mark', 'aria-hidden': 'true'},
                         !hasChildren ? '' : open.has(node) ? '▾' : '▸');
    const isFound = this.found !== null && this.found[func];
    const name = element(
      'td', {class: `text ${indentClass(indent)}${isFound ? ' match' : ''}`,
             title}, mark, printable(text ?? ''));
    const cells = [tree.cum[node], tree.self[node]];
    const made = element(
      'tr', {role: 'row', tabindex: node === this.at ? 0 : -1,
             'aria-level': level, dataset: {node},
             'aria-expanded': hasChildren ? String(open.has(node)) : undefined,
             class: func === app.selected ? 'selected' : undefined},
      ...cells.map((value) => element(
        'td', {class: 'number'}, total ? percent(value / total) : '-')),
      ...cells.map((value, number) => {
        const cell = valueCell(app, value);
        return element('td', {class: 'number', title: cell.title,
                              dataset: {key: number ? 'self' : 'cum', value}},
                       cell.text ?? '');
      }), ...this.changes.map(({key, cell}) => element(
        'td', {class: 'number', dataset: {key, value: cell(node).value ?? ''}},
        cell(node).text ?? '')), name);
    mark.addEventListener('click', () => this.toggle(node));
    made.addEventListener('dblclick', () => this.toggle(node));
    made.addEventListener('click', () => {
      app.select(func);
      this.goTo(node);
    });
    return made;
  }

  /**
   * @param {number} parent
   * @param {number} level
   * @param {number} indent
   */
  moreRow(parent, level, indent) {
    const shown = this.shownOf.get(parent) ?? CHILDREN;
    const rest = this.tree.children(parent).length - shown;
    const more = button(`… ${counted(rest, 'more call')}`, () => {
      this.shownOf.set(parent, shown + CHILDREN);
      this.fill();
    });
    return element(
      'tr', {role: 'row', 'aria-level': level},
      element('td', {colspan: 4 + this.changes.length}),
      element('td', {class: `text ${indentClass(indent)}`}, more));
  }

  /** @param {number} node */
  toggle(node) {
    if (!this.open.delete(node)) {
      this.open.add(node);
    }
    this.goTo(node);
  }

  /** Open a node and all below it; @param {number} node */
  openAll(node) {
    const pending = [node];
    for (let count = 0; pending.length && count < OPEN_AT_ONCE; count++) {
      const one = /** @type {number} */ (pending.pop());
      this.open.add(one);
      this.tree.children(one).forEach((child) => pending.push(child));
    }
    this.goTo(node);
  }

  /** @param {number} node */
  goTo(node) {
    this.at = node;
    this.fill();
    const row = this.body.querySelector(`[data-node="${node}"]`);
    if (row instanceof HTMLElement) {
      row.focus();
    }
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const {open, tree} = this;
    const rows = [...this.body.querySelectorAll('[data-node]')];
    const at = rows.findIndex((row) => (
      row instanceof HTMLElement && row.dataset.node === String(this.at)));
    const isOpen = open.has(this.at);
    /** @param {number} place */
    const go = (place) => {
      const row = rows[place];
      if (row instanceof HTMLElement) {
        this.goTo(Number(row.dataset.node));
      }
    };
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      go(at + (event.key === 'ArrowDown' ? 1 : -1));
    } else if (event.key === 'Home' || event.key === 'End') {
      go(event.key === 'Home' ? 0 : rows.length - 1);
    } else if (event.key === 'ArrowRight') {
      if (isOpen) {
        this.goTo(tree.children(this.at)[0] ?? this.at);
      } else {
        this.toggle(this.at);
      }
    } else if (event.key === 'ArrowLeft') {
      if (isOpen) {
        this.toggle(this.at);
      } else if (tree.parent[this.at] !== ROOT) {
        this.goTo(tree.parent[this.at]);
      }
    } else if (event.key === '*') {
      this.openAll(this.at);
    } else if (event.key === 'Enter') {
      this.app.select(tree.func[this.at]);
      this.goTo(this.at);
    } else {
      return;
    }
    event.preventDefault();
  }
}

/** @param {number} indent */
function indentClass(indent) {
  const depth = Math.min(indent, MAX_INDENT);
  const name = `indent-${depth}`;
  styleOf(name).paddingLeft = `${8 + 14 * depth}px`;
  return name;
}

/**
 * A function between those that called it and those that it called.
 * @param {App} app
 */
export function sandwichView(app) {
  const func = app.selected >= 0 ? app.selected
    : app.model.functionRows('self')[0]?.func ?? -1;
  if (func < 0) {
    return [element('p', {class: 'note'}, 'There is no function here.')];
  }
  const name = printable(app.profile.functions[func].name) || '[no name]';
  const above = app.model.callersOf(func);
  const below = app.model.calleesOf(func);
  const aboveOther = app.treeAgainst(
    'callers', (model) => model.callersOf(func));
  const belowOther = app.treeAgainst(
    'callees', (model) => model.calleesOf(func));
  return [
    element('h2', {}, `Callers of ${name}`),
    ...neighbours(app, 'callers', above, '[nobody]', aboveOther),
    ...new FlameView(app, above, name, 'above', aboveOther).parts(),
    element('h2', {}, `Callees of ${name}`),
    ...neighbours(app, 'callees', below, '[itself]', belowOther),
    ...new FlameView(app, below, name, 'below', belowOther).parts()];
}

/**
 * What is next to the root of a tree, and what the root has alone.
 * @param {Tree} tree
 */
function nextTo(tree) {
  const rows = tree.children(ROOT).map(
    (node) => ({func: tree.func[node], value: tree.cum[node]}));
  if (tree.self[ROOT]) {
    rows.push({func: -1, value: tree.self[ROOT]});
    rows.sort((one, other) => other.value - one.value);
  }
  return rows;
}

/**
 * The rows next to the root of a tree, and what the root has alone.
 * @param {App} app
 * @param {string} name
 * @param {Tree} tree
 * @param {string} alone
 * @param {import('./against.js').TreeAgainst | null} against
 */
function neighbours(app, name, tree, alone, against) {
  const total = tree.cum[ROOT];
  const {part} = app.model;
  const rows = nextTo(tree);
  const others = new Map(against === null ? []
    : nextTo(against.other).map(({func, value}) => [func, value]));
  for (const func of others.keys()) {
    if (!rows.some((row) => row.func === func)) {
      rows.push({func, value: 0});
    }
  }
  return [tableOf(name, [
    {key: 'share', heading: 'share', kind: 'number', cell: ({value}) => ({
      text: share(value, total), share: total ? value / total : 0})},
    {key: 'of_all', heading: 'of all', kind: 'number',
     cell: ({value}) => ({text: share(value, part.total)})},
    {key: 'cum', heading: 'cum', kind: 'number',
     cell: ({value}) => valueCell(app, value)},
    ...changeColumns(app, ({func, value}) => (
      {own: value, other: others.get(func) ?? 0})),
    {key: 'function', heading: name.slice(0, -1), kind: 'text',
     cell: ({func}) => (func < 0 ? {text: alone} : placeCell(app, func, 0))}],
  rows, {onselect: ({func}) => {
    if (func >= 0) {
      app.change({selected: app.names.of[func]});
    }
  }})];
}
