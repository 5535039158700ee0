// The page: one profile, one query, one view at a time.
//
// This file owns the state of the page and what is around the view.  It must
// not know how a view is drawn.
//
// The query is the address's fragment: each change of it is a step that the
// browser's way back undoes.
// @ts-check

import {pivotView, qualityView} from './about.js';
import {TreeView, sandwichView} from './calls.js';
import {button, byId, element} from './dom.js';
import {FlameView} from './flame.js';
import {
  asides, qualityLine, statesLine, totalsLine, whatLine} from './header.js';
import {gilView} from './gil.js';
import {STATES} from './labels.js';
import {exactly} from './match.js';
import {valueChoices} from './part.js';
import {Models} from './model.js';
import {NO_QUERY, fromFragment, toFragment, toOptions} from './query.js';
import {sourceView} from './source.js';
import {functionsView, sitesView} from './tables.js';
import {timeView} from './time.js';
import {briefAmount, printable, share, stateName, titleOf} from './words.js';

/** @typedef {import('./decode.js').Profile} Profile */
/** @typedef {import('./query.js').Query} Query */

/** @type {Record<string, {name: string, make: (app: App) => Node[]}>} */
const VIEWS = {
  flame: {name: 'Flame graph', make: (app) => new FlameView(
    app, app.model.tree(app.query.up), 'all', 'main').parts()},
  sites: {name: 'Lines', make: sitesView},
  functions: {name: 'Functions', make: functionsView},
  tree: {name: 'Call tree', make: (app) => new TreeView(app).parts()},
  sandwich: {name: 'Callers and callees', make: sandwichView},
  source: {name: 'Source', make: sourceView},
  by: {name: 'Labels', make: pivotView},
  gil: {name: 'GIL', make: gilView},
  quality: {name: 'Quality', make: qualityView},
  time: {name: 'Time', make: timeView}};

export class App {
  /**
   * @param {Profile} profile
   * @param {import('./source.js').Sources | null} sources
   */
  constructor(profile, sources) {
    this.profile = profile;
    this.sources = sources;
    this.models = new Models(profile);
    /** @type {Query} */
    this.query = fromFragment(location.hash);
    // What is wrong with the query; then the model is that of the whole.
    this.fault = '';
    this.model = this.models.of(NO_QUERY);
    this.selected = -1;
    this.names = namesOf(profile);
  }

  start() {
    addEventListener('popstate', () => {
      this.query = fromFragment(location.hash);
      this.show();
    });
    this.show();
  }

  /**
   * Show another profile instead; the page's sources are not its.
   * @param {Profile} profile
   */
  take(profile) {
    this.profile = profile;
    this.sources = null;
    this.models = new Models(profile);
    this.names = namesOf(profile);
    this.change(NO_QUERY);
  }

  /**
   * Do what a key asks for; return whether it does anything.
   * @param {string} key
   */
  key(key) {
    const view = Object.keys(VIEWS)[Number.parseInt(key, 10) - 1];
    const step = this.steps()[key];
    if (view !== undefined) {
      this.change({view});
    } else if (step !== undefined && this.selected >= 0) {
      this.change(step.changes);
    } else if (key === 'v') {
      const names = valueChoices(this.profile).map(({name}) => name);
      const at = Math.max(0, names.indexOf(this.query.value));
      this.change({value: names[(at + 1) % names.length]});
    } else if (key === 't') {
      this.change({view: 'time'});
    } else if (key === 'l') {
      this.change({up: !this.query.up});
    } else if (key === 'i') {
      this.change({flip: !this.query.flip});
    } else if (key === 'u') {
      this.undo();
    } else if (key === '0') {
      this.change({...NO_QUERY, view: this.query.view});
    } else if (key === 'Escape') {
      this.select(-1);
    } else {
      return false;
    }
    return true;
  }

  undo() {
    if (this.stepsBack) {
      history.back();
    }
  }

  /**
   * What can be done with the function that is selected, by its key.
   * @returns {Record<string, {name: string, title: string,
   *                           changes: Partial<Query>}>}
   */
  steps() {
    const {focus, ignore, hide, collapse} = this.query;
    const func = this.profile.functions[this.selected];
    const pattern = func === undefined ? '' : exactly(func.name);
    return {
      f: {name: 'Focus', title: 'only stacks with it',
          changes: {focus: [...focus, pattern]}},
      r: {name: 'Root', title: 'stacks begin at it',
          changes: {root: pattern}},
      d: {name: 'Drop', title: 'only stacks without it',
          changes: {ignore: [...ignore, pattern]}},
      m: {name: 'Merge', title: 'leave it out; its time goes to its callers',
          changes: {hide: [...hide, pattern]}},
      c: {name: 'Collapse', title: 'what it calls becomes its own time',
          changes: {collapse: [...collapse, pattern]}}};
  }

  /**
   * Take a step that can be undone.
   * @param {Partial<Query>} changes
   */
  change(changes) {
    const before = toFragment(this.query);
    this.query = {...this.query, ...changes};
    const after = toFragment(this.query);
    if (after !== before) {
      history.pushState({steps: this.stepsBack + 1}, '', `#${after}`);
    }
    this.show();
  }

  /** How many steps there are to undo before one would leave the page. */
  get stepsBack() {
    return Number(history.state?.steps ?? 0);
  }

  /** @param {number} func -1: none */
  select(func) {
    this.query = {...this.query, selected: this.names.of[func] ?? ''};
    history.replaceState(history.state, '', `#${toFragment(this.query)}`);
    this.selected = func;
    this.showSelected();
  }

  /**
   * The rows that are of what is searched for.
   * @template Row
   * @param {Row[]} rows
   * @param {(row: Row) => number} funcOf
   */
  found(rows, funcOf) {
    if (!this.query.search) {
      return rows;
    }
    const {found} = this.model.matches(this.query.search);
    return rows.filter((row) => found[funcOf(row)]);
  }

  /**
   * How rows of a table are selected.
   * @template Row
   * @param {(row: Row) => number} funcOf
   */
  choosing(funcOf) {
    return {
      onselect: (/** @type {Row} */ row) => this.select(funcOf(row)),
      isSelected: (/** @type {Row} */ row) => (
        this.selected >= 0 && funcOf(row) === this.selected)};
  }

  /** Show what the query asks for. */
  show() {
    this.findModel();
    this.selected = this.names.numbers.get(this.query.selected) ?? -1;
    const view = VIEWS[this.query.view] ?? VIEWS.flame;
    const command = this.profile.meta.get('command') ?? 'Profile';
    document.title = printable(command);
    byId('facts').replaceChildren(...this.facts());
    keepingFocus(byId('tools'), this.tools());
    keepingFocus(byId('chips'), this.chips());
    byId('view').replaceChildren(...this.fault ? [element(
      'p', {class: 'fault', role: 'alert'}, printable(this.fault))]
      : view.make(this));
    this.showSelected();
  }

  /** A query may come from an address that somebody wrote. */
  findModel() {
    this.fault = '';
    try {
      this.model = this.models.of(this.query);
      if (this.query.search) {
        this.model.matches(this.query.search);
      }
    } catch (error) {
      this.model = this.models.of(NO_QUERY);
      this.fault = /** @type {Error} */ (error).message;
    }
  }

  facts() {
    const {part, sites} = this.model;
    const command = this.profile.meta.get('command');
    return [
      element('h1', {}, printable(command ?? 'Profile')),
      ...[whatLine(part), totalsLine(part, sites), statesLine(sites),
          ['Quality: ' + qualityLine(part, sites).join(', ')],
          ...asides(part).map((text) => [text])]
        .filter((texts) => texts.length)
        .map((texts) => element('p', {}, texts.join(', ')))];
  }

  tools() {
    const {query} = this;
    const tabs = Object.entries(VIEWS).map(([view, {name}]) => button(
      name, () => this.change({view}),
      {'aria-current': query.view === view ? 'page' : undefined}));
    const values = element('select', {
      'aria-label': 'value', onchange: (/** @type {Event} */ event) => {
        const {value} = /** @type {HTMLSelectElement} */ (event.target);
        this.change({value});
      }}, ...valueChoices(this.profile).map((type, number) => {
      const value = number ? type.name : '';
      return element('option', {value, selected: query.value === value},
                     titleOf(type));
    }));
    return [element('div', {class: 'tabs'}, ...tabs),
            values, this.searchBox(), element(
              'div', {class: 'filters'}, ...this.states(), ...this.folds(),
              ...this.directions())];
  }

  searchBox() {
    const {query} = this;
    const box = element('input', {
      type: 'search', placeholder: 'search, or /pattern/', value: query.search,
      'aria-label': 'search', onchange: () => this.change(
        {search: box.value})});
    const found = element('output', {class: 'found'});
    if (query.search && !this.fault) {
      const {part} = this.model;
      const {total} = this.model.matches(query.search);
      found.textContent = `${briefAmount(total, part.type)}, `
        + `${share(total, part.total)} matched`;
      found.dataset.value = String(total);
    }
    return element('span', {class: 'search'}, box, found);
  }

  /** A button for each state: only that one, or all again. */
  states() {
    const {where} = this.query;
    const used = new Set(this.profile.samples.state);
    return STATES.filter((_, number) => used.has(number)).map((state) => {
      const pattern = exactly(state);
      const isOn = where.some(([key, text]) => (
        key === 'state' && text === pattern));
      const others = where.filter(([key]) => key !== 'state');
      return button(stateName(state), () => this.change({
        where: isOn ? others : [...others, ['state', pattern]]}),
      {class: `state ${state}`, 'aria-pressed': String(isOn)});
    });
  }

  folds() {
    const {fold} = this.query;
    const choices = {C: 'C', operators: 'operators', pseudo: '[ ]',
                     stdlib: 'stdlib', packages: 'packages'};
    return Object.entries(choices).map(([name, text]) => {
      const isOn = fold.includes(name);
      return button(text, () => this.change({
        fold: isOn ? fold.filter((one) => one !== name) : [...fold, name]}),
      {class: 'fold', 'aria-pressed': String(!isOn),
       title: `show ${name}, or fold it into its callers`});
    });
  }

  /** Where graphs and trees begin, and where that is on the screen. */
  directions() {
    const {up, flip} = this.query;
    return [
      button('from leaves', () => this.change({up: !up}),
             {'aria-pressed': String(up)}),
      button('upwards', () => this.change({flip: !flip}),
             {'aria-pressed': String(flip),
              title: 'flames, not icicles'})];
  }

  /** What is asked for, each with a button that takes it back. */
  chips() {
    const {query} = this;
    const chips = query.where.map(([key, pattern], number) => button(
      `${key} = ${printable(pattern)} ×`, () => this.change({
        where: query.where.filter((_, at) => at !== number)})));
    for (const name of /** @type {const} */ (
      ['focus', 'ignore', 'hide', 'collapse'])) {
      query[name].forEach((pattern, number) => chips.push(button(
        `${name} ${printable(pattern)} ×`, () => this.change({
          [name]: query[name].filter((_, at) => at !== number)}))));
    }
    if (query.root) {
      chips.push(button(`root ${printable(query.root)} ×`,
                        () => this.change({root: ''})));
    }
    for (const name of /** @type {const} */ (['time', 'than', 'zoom'])) {
      if (query[name]) {
        const range = printable(query[name]).replace(',', ' to ');
        chips.push(button(`${name} ${range} s ×`,
                          () => this.change({[name]: ''})));
      }
    }
    if (chips.length) {
      chips.push(button('undo', () => this.undo(),
                        {disabled: !this.stepsBack}));
    }
    const options = toOptions(query);
    return [...chips, ...options
      ? [element('code', {title: 'the same part in the command report'},
                 `report ${options}`)] : []];
  }

  /** What is selected, and what can be done with it. */
  showSelected() {
    const place = byId('selected');
    if (this.selected < 0) {
      place.replaceChildren();
      return;
    }
    const {name, filename, firstLine} = this.profile.functions[this.selected];
    const {part: {type, total}, functionSums} = this.model;
    const row = functionSums.get(this.selected);
    const values = row === undefined ? 'not in this part'
      : `self ${briefAmount(row.self, type)} (${share(row.self, total)}), `
        + `cum ${briefAmount(row.cum, type)} (${share(row.cum, total)})`;
    place.replaceChildren(
      element('b', {}, printable(name) || '[no name]'),
      element('span', {}, filename ? printable(`${filename}:${firstLine}`)
        : ''),
      element('span', {}, values),
      ...Object.values(this.steps()).map(({name: step, title, changes}) => (
        button(step, () => this.change(changes), {title}))),
      button('×', () => this.select(-1), {'aria-label': 'select nothing'}));
  }
}

/**
 * Put new children in a place; what has the focus keeps it.
 * @param {HTMLElement} place
 * @param {Node[]} children
 */
function keepingFocus(place, children) {
  const controls = () => [...place.querySelectorAll('button, select, input')];
  const at = controls().indexOf(
    /** @type {Element} */ (document.activeElement));
  place.replaceChildren(...children);
  const control = controls()[at];
  if (control instanceof HTMLElement) {
    control.focus();
  }
}

/**
 * How functions are spelt where they are selected: the place is told too of
 * those that have a name in common.
 * @param {Profile} profile
 */
function namesOf({functions}) {
  const counts = new Map();
  for (const {name} of functions) {
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  const of = functions.map(({name, filename, firstLine, kind}) => (
    counts.get(name) === 1 ? name
      : `${name} ${filename}:${firstLine}:${kind}`));
  return {of, numbers: new Map(of.map((name, number) => [name, number]))};
}
