// The page: one query, one view at a time, of one profile or of two.
//
// This file owns the state of the page and what is around the view.  It must
// not know how a view is drawn.
//
// The query is the address's fragment: each change of it is a step that the
// browser's way back undoes.
// @ts-check

import {pivotView, qualityView} from './about.js';
import {TreeView, flameView, sandwichView} from './calls.js';
import {changesView, comparedLines, sideTools} from './differences.js';
import {chipsOf} from './chips.js';
import {button, byId, element, keepingFocus} from './dom.js';
import {
  asides, idleLine, qualityLine, statesLine, totalsLine, whatLine
} from './header.js';
import {faultsOf} from './faults.js';
import {findingLines} from './findings.js';
import {gilView} from './gil.js';
import {AWAITING, LOOP_WAIT, SHOWN_STATES, STATES} from './labels.js';
import {exactly} from './match.js';
import {valueChoices} from './part.js';
import {missingIn, paired} from './pairing.js';
import {
  FOLDS, NO_QUERY, fromFragment, toFragment, unreadOf
} from './query.js';
import {Side, againstOf} from './sides.js';
import {sourceView} from './source.js';
import {Steps} from './steps.js';
import {functionsView, sitesView} from './tables.js';
import {tasksLine, tasksView} from './tasks.js';
import {hasTasks} from './tasksums.js';
import {timeView} from './time.js';
import {TASK} from './types.js';
import {briefAmount, printable, share, stateName, titleOf} from './words.js';

/** @typedef {import('./decode.js').Profile} Profile */
/** @typedef {import('./query.js').Query} Query */

// So long after the last letter the search begins.
const TYPING_MS = 200;
/** @type {Record<string, {name: string, make: (app: App) => Node[]}>} */
const VIEWS = {
  changes: {name: 'Changes', make: changesView},
  flame: {name: 'Flame graph', make: flameView},
  sites: {name: 'Lines', make: sitesView},
  functions: {name: 'Functions', make: functionsView},
  tree: {name: 'Call tree', make: (app) => new TreeView(app).parts()},
  sandwich: {name: 'Callers and callees', make: sandwichView},
  source: {name: 'Source', make: sourceView},
  by: {name: 'Labels', make: pivotView},
  gil: {name: 'GIL', make: gilView},
  tasks: {name: 'Tasks', make: tasksView},
  quality: {name: 'Quality', make: qualityView},
  time: {name: 'Time', make: timeView}};

export class App {
  /**
   * @param {Profile} profile
   * @param {import('./source.js').Sources | null} sources
   * @param {import('./findings.js').Finding[] | null} findings
   */
  constructor(profile, sources, findings) {
    // The new one, and the base that it is compared with.
    this.sides = [new Side(profile)];
    // Values that one of them has, and the other has not.
    /** @type {{side: Side, types: import('./types.js').ValueType[]}[]} */
    this.lacking = [];
    // What Python says of how their runs differ.
    /** @type {import('./differences.js').Changes | null} */
    this.changes = null;
    this.sources = sources;
    this.findings = findings ?? [];
    /** @type {Query} */
    this.query = fromFragment(location.hash);
    this.unread = unreadOf(location.hash);
    this.steps = new Steps(() => {
      this.query = fromFragment(this.steps.fragment);
      this.unread = unreadOf(this.steps.fragment);
      this.isTyping = false;
      this.show();
    });
    // What is wrong with the query; then the model is that of the whole.
    this.fault = '';
    // Whether the last step was made by typing.
    this.isTyping = false;
    this.model = this.models.of(NO_QUERY);
    /** @type {import('./against.js').Against | null} */
    this.against = null;
    this.selected = -1;
  }

  get side() {
    return this.sides[this.query.side === 'base' ? 1 : 0] ?? this.sides[0];
  }

  /** The one that it is compared with; null: there is none. */
  get otherSide() {
    return this.sides.find((side) => side !== this.side) ?? null;
  }

  get profile() {
    return this.side.profile;
  }

  get models() {
    return this.side.models;
  }

  get names() {
    return this.side.names;
  }

  /**
   * Show another profile instead; the page's sources are not its.
   * @param {Profile} profile
   */
  take(profile) {
    this.sides = [new Side(profile)];
    this.lacking = [];
    this.changes = null;
    this.sources = null;
    this.findings = [];
    this.change(NO_QUERY);
  }

  /**
   * Compare the profile with another one.
   * @param {Profile} base
   * @param {import('./differences.js').Changes | null} changes
   */
  compare(base, changes) {
    const now = this.sides[0].profile;
    const [before, after] = paired(base, now);
    this.sides = [new Side(after, changes?.after),
                  new Side(before, changes?.before)];
    this.lacking = [now, base].map((whole, number) => (
      {side: this.sides[number], types: missingIn(
        this.sides[number].profile, whole)}))
      .filter(({types}) => types.length);
    this.changes = changes;
  }

  /**
   * Compare with a profile of a file, of whose runs nothing is known.
   * @param {Profile} base
   */
  add(base) {
    this.compare(base, null);
    this.change({view: 'flame', side: ''});
  }

  /**
   * Begin with what was compared, unless the address asks for something.
   * @param {import('./differences.js').Changes | null} changes
   */
  beginWith(changes) {
    if (changes !== null && !location.hash) {
      const {share, value} = changes;
      const own = this.profile.valueTypes[this.profile.own].name;
      this.query = {...this.query, value: value === own ? '' : value,
                    scale: share ? 'share' : ''};
    }
  }

  /** The views that there is something to show in. */
  views() {
    return Object.entries(VIEWS).filter(([view]) => (
      (view !== 'changes' || this.sides.length > 1)
      && (view !== 'tasks' || hasTasks(this.profile))));
  }

  /**
   * Do what a key asks for; return whether it does anything.
   * @param {string} key
   */
  key(key) {
    const view = this.views()[Number.parseInt(key, 10) - 1]?.[0];
    const step = this.transforms()[key];
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
    } else if (key === 'b' && this.against !== null) {
      this.change({side: this.query.side ? '' : 'base'});
    } else if (key === 's' && this.against !== null) {
      this.change({scale: this.query.scale ? '' : 'share'});
    } else if (key === 'u') {
      this.steps.back();
    } else if (key === '0') {
      this.change({...NO_QUERY, view: this.query.view});
    } else if (key === 'Escape') {
      this.select(-1);
    } else {
      return false;
    }
    return true;
  }

  /**
   * What can be done with the function that is selected, by its key.
   * @returns {Record<string, {name: string, title: string,
   *                           changes: Partial<Query>}>}
   */
  transforms() {
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
      this.steps.take(after);
    }
    this.unread = [];
    this.isTyping = false;
    this.show();
  }

  /**
   * Search for what is typed: that is one step, however many letters it has.
   * @param {string} search
   */
  search(search) {
    if (search === this.query.search) {
      return;
    }
    if (this.isTyping) {
      this.query = {...this.query, search};
      this.steps.replace(toFragment(this.query));
      this.show();
    } else {
      this.change({search});
      this.isTyping = true;
    }
  }

  /** @param {number} func -1: none */
  select(func) {
    this.query = {...this.query, selected: this.names.of[func] ?? ''};
    this.steps.replace(toFragment(this.query));
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
    document.title = this.title();
    byId('facts').replaceChildren(...this.facts());
    keepingFocus(byId('tools'), this.tools());
    keepingFocus(byId('chips'), chipsOf(this));
    byId('view').replaceChildren(
      ...this.faults().map((text) => element(
        'p', {class: 'fault', role: 'alert'}, printable(text))),
      ...this.fault ? [] : view.make(this));
    this.showSelected();
  }

  faults() {
    return this.fault ? [this.fault] : [...this.unread, ...faultsOf(
      this, this.views().map(([view]) => view))];
  }

  /** A query may come from an address that somebody wrote. */
  findModel() {
    this.fault = '';
    try {
      this.model = this.models.of(this.query);
      if (this.query.search) {
        this.model.matches(this.query.search);
      }
      this.against = this.findAgainst();
    } catch (error) {
      this.model = this.models.of(NO_QUERY);
      this.against = null;
      this.fault = /** @type {Error} */ (error).message;
    }
  }

  /** What was worked out before is kept. */
  findAgainst() {
    const {otherSide} = this;
    if (otherSide === null) {
      return null;
    }
    const found = againstOf(this.side, otherSide, this.query);
    const {against} = this;
    return against?.model === found.model && against.rival === found.rival
      && against.ratio === found.ratio ? against : found;
  }

  /**
   * A tree beside the one of the other profile; null if there is none.
   * @param {string} name
   * @param {(model: import('./model.js').Model) =>
   *         import('./layout.js').Tree} treeOf
   */
  treeAgainst(name, treeOf) {
    return this.against?.tree(name, treeOf) ?? null;
  }

  /** What was run; of two profiles both, if that was not the same. */
  title() {
    const [after, before] = this.sides.map(({profile: {meta}}) => (
      meta.get('command') ?? 'Profile'));
    return printable(
      before === undefined ? after
        : before === after ? `${after}: before \u2192 after`
          : `${before} \u2192 ${after}`);
  }

  facts() {
    const {part, whole, sites} = this.model;
    return [
      element('h1', {}, this.title()),
      ...[whatLine(part), totalsLine(whole, sites), statesLine(sites),
          tasksLine(this),
          ['Quality: ' + qualityLine(part, sites).join(', ')],
          ...comparedLines(this),
          ...asides(part).map((text) => [text])]
        .filter((texts) => texts.length)
        .map((texts) => element('p', {}, texts.join(', '))),
      ...idleLine(this), ...findingLines(this)];
  }

  tools() {
    const {query} = this;
    const tabs = this.views().map(([view, {name}]) => button(
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
              'div', {class: 'filters'}, ...sideTools(this), ...this.states(),
              ...this.folds(), ...this.directions())];
  }

  searchBox() {
    const {query} = this;
    const box = element('input', {
      type: 'search', placeholder: 'search, or /pattern/', value: query.search,
      'aria-label': 'search', onchange: () => this.search(box.value)});
    let timer = 0;
    box.addEventListener('input', (event) => {
      clearTimeout(timer);
      if (!(/** @type {InputEvent} */ (event).isComposing)) {
        timer = setTimeout(() => this.search(box.value), TYPING_MS);
      }
    });
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
    if (this.model.part.type.kind !== TASK) {
      used.delete(AWAITING);
      used.delete(LOOP_WAIT);
    }
    const shown = SHOWN_STATES.filter(
      (state) => used.has(STATES.indexOf(state)));
    return shown.map((state) => {
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
    return FOLDS.map((name) => {
      const text = name === 'pseudo' ? '[ ]' : name;
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
      ...Object.values(this.transforms()).map((step) => button(
        step.name, () => this.change(step.changes), {title: step.title})),
      button('×', () => this.select(-1), {'aria-label': 'select nothing'}));
  }
}
