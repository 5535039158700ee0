// The flame graph: frames as wide as what they cost, on a canvas.
//
// This file owns how frames are drawn and how one moves among them.  It must
// not know where they are (layout.js) nor what they sum up to.
//
// The canvas is as large as what can be seen of it and stays there while the
// page behind it scrolls: a stack may have 50,000 frames.
// @ts-check

import {C, OPERATOR, PYTHON} from './functions.js';
import {CHANGES, changeLines, levelColor, levelSign} from './differences.js';
import {button, element, styleOf} from './dom.js';
import {hit, layOut} from './layout.js';
import {ROOT} from './tree.js';
import {TASK} from './types.js';
import {amount, counted, printable, share, titleOf} from './words.js';

/** @typedef {import('./app.js').App} App */
/** @typedef {import('./layout.js').Layout} Layout */

const ROW = 18;
const INSET = 4;
const SHADES = 5;
/** @type {[string, string][]} */
const WAITS = [
  ['[waiting', 'waiting'], ['[GIL wait', 'gil'], ['[CPU wait', 'cpu'],
  ['[GC', 'gc'],
  ['[awaiting', 'awaiting'], ['[loop wait', 'loop']];
// What is drawn, and the class of its colour.
/** @type {[string, string][]} */
const LEGEND = [
  ['Python', 'p2'], ['C', 'c'], ['operator', 'op'], ['waiting', 'waiting'],
  ['GIL wait', 'gil'], ['CPU wait', 'cpu'], ['GC', 'gc'], ['other', 'other']];
/** @type {[string, string][]} */
const LEGEND_OF_TASKS = [['awaiting', 'awaiting'], ['loop wait', 'loop']];

export class FlameView {
  /**
   * @param {App} app
   * @param {import('./layout.js').Tree} tree
   * @param {string} rootName what its root stands for
   * @param {string} place 'main', or where it is no higher than it needs
   * @param {import('./against.js').TreeAgainst | null} against
   */
  constructor(app, tree, rootName, place, against) {
    this.isSmall = place !== 'main';
    this.place = place;
    this.app = app;
    this.tree = tree;
    this.against = against;
    this.rootName = rootName;
    this.canvas = element('canvas', {class: `canvas-${place}`});
    this.sizer = element('div', {class: `sizer sizer-${place}`}, this.canvas);
    this.box = element(
      'div', {class: this.isSmall ? 'flame small' : 'flame', tabindex: 0,
              role: 'application',
              'aria-label': 'Flame graph; arrow keys move among frames, '
                + 'Enter zooms in, Escape zooms out'}, this.sizer);
    this.note = element('p', {class: 'note'});
    this.zoomIn = button('Zoom in', () => this.zoom(this.at));
    this.zoomOut = button('Zoom out', () => this.zoom(ROOT));
    this.tip = element('div', {class: `tip tip-${place}`, hidden: true});
    this.said = element('p', {class: 'said', 'aria-live': 'polite'});
    this.zoomed = ROOT;
    this.at = ROOT;
    /** @type {Layout} */
    this.layout = {node: [], x: [], width: [], firstOf: [], smaller: 0};
    this.listen();
  }

  /** What the view is made of. */
  parts() {
    const isOfTasks = this.app.model.part.type.kind === TASK;
    const colors = this.against === null
      ? [...LEGEND, ...isOfTasks ? LEGEND_OF_TASKS : []] : CHANGES;
    const legend = element('p', {class: 'legend'}, ...this.isSmall ? []
      : colors.map(([name, color]) => element('span', {class: color}, name)));
    const zooms = element('div', {class: 'zooms'}, this.zoomIn, this.zoomOut);
    return [element('div', {class: 'bar-of-tools'}, legend, zooms),
            this.box, this.said, this.note, this.tip];
  }

  listen() {
    const {box} = this;
    new ResizeObserver(() => this.fit()).observe(box);
    matchMedia('(prefers-color-scheme: dark)').addEventListener(
      'change', () => this.draw());
    box.addEventListener('scroll', () => this.draw());
    box.addEventListener('mousemove', (event) => this.point(event));
    box.addEventListener('mouseleave', () => {
      this.tip.hidden = true;
    });
    box.addEventListener('click', (event) => {
      const node = this.under(event);
      if (node >= 0) {
        this.app.select(this.tree.func[node] ?? -1);
        this.goTo(node);
      }
    });
    box.addEventListener('dblclick', (event) => {
      const node = this.under(event);
      if (node >= 0) {
        this.zoom(node);
      }
    });
    box.addEventListener('keydown', (event) => this.key(event));
  }

  /** Lay out anew: the size or the zoom has changed. */
  fit() {
    const width = this.box.clientWidth;
    const isFirst = !this.layout.node.length;
    this.layout = layOut(this.tree, this.zoomed, width);
    styleOf(`sizer-${this.place}`).height = `${
      Math.max(1, this.rows) * ROW}px`;
    const {total, type} = this.app.model.part;
    this.zoomOut.disabled = this.zoomed === ROOT;
    this.zoomIn.disabled = this.at === this.zoomed;
    this.note.textContent = [
      total > 0 ? '' : `There is no ${titleOf(type)} in this part.`,
      this.layout.smaller
        ? `${counted(this.layout.smaller, 'frame')} smaller than half a pixel,`
          + ' with all below: zoom in to see them.' : ''].join(' ').trim();
    if (isFirst && this.app.query.flip) {
      this.box.scrollTop = this.box.scrollHeight;
    }
    this.draw();
  }

  draw() {
    const {box, canvas, layout} = this;
    const scale = globalThis.devicePixelRatio || 1;
    const width = box.clientWidth;
    const height = box.clientHeight;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    const size = styleOf(`canvas-${this.place}`);
    size.width = `${width}px`;
    size.height = `${height}px`;
    const context = canvas.getContext('2d');
    if (context === null) {
      throw new Error('this browser cannot draw');
    }
    context.scale(scale, scale);
    const painter = new Painter(this, context, getComputedStyle(box));
    const first = Math.floor(box.scrollTop / ROW);
    const last = Math.min(this.rows, first + Math.ceil(height / ROW) + 1);
    for (let place = first; place < last; place++) {
      const y = place * ROW - box.scrollTop;
      const row = this.turned(place);
      for (let at = layout.firstOf[row]; at < layout.firstOf[row + 1]; at++) {
        painter.frame(at, y);
      }
    }
  }

  get rows() {
    return this.layout.firstOf.length - 1;
  }

  /** Where a row is; and which row is there. @param {number} row */
  turned(row) {
    return this.app.query.flip ? this.rows - 1 - row : row;
  }

  /** The node under the mouse, or -1. @param {MouseEvent} event */
  under(event) {
    const edge = this.box.getBoundingClientRect();
    const y = event.clientY - edge.top + this.box.scrollTop;
    const at = hit(this.layout, this.turned(Math.floor(y / ROW)),
                   event.clientX - edge.left);
    return at < 0 ? -1 : this.layout.node[at];
  }

  /** @param {MouseEvent} event */
  point(event) {
    const node = this.under(event);
    this.tip.hidden = node < 0;
    if (node < 0) {
      return;
    }
    this.tip.replaceChildren(...this.linesOf(node).map(
      (line) => element('div', {}, line)));
    const x = Math.min(event.clientX + 12, innerWidth - this.tip.offsetWidth);
    const style = styleOf(`tip-${this.place}`);
    style.left = `${Math.max(0, x)}px`;
    const above = event.clientY - this.tip.offsetHeight - 12;
    style.top = `${above < 0 ? event.clientY + 16 : above}px`;
  }

  /**
   * What is said of a node.
   * @param {number} node
   */
  linesOf(node) {
    const {tree, app: {model: {profile, part}}} = this;
    const total = tree.cum[ROOT];
    const title = titleOf(part.type);
    const values = `${title} ${amount(tree.cum[node], part.type)} (${
      share(tree.cum[node], total)}), self ${
      amount(tree.self[node], part.type)}`;
    const changes = this.against === null ? []
      : changeLines(this.app, this.against, node);
    if (node === ROOT) {
      return [this.rootName, values, ...changes];
    }
    const {name, filename, firstLine} = profile.functions[tree.func[node]];
    return [printable(name) || '[no name]',
            ...filename ? [`${printable(filename)}:${firstLine}`] : [],
            values, ...changes];
  }

  /** @param {number} node */
  goTo(node) {
    this.at = node;
    this.zoomIn.disabled = node === this.zoomed;
    this.said.textContent = this.linesOf(node).join('\n');
    Object.assign(this.said.dataset, {
      cum: this.tree.cum[node], self: this.tree.self[node]});
    this.draw();
    const row = this.layout.firstOf.findIndex((first, number) => (
      this.layout.node.slice(first, this.layout.firstOf[number + 1])
        .includes(node)));
    const top = ROW * this.turned(Math.max(0, row));
    const {box} = this;
    if (top < box.scrollTop) {
      box.scrollTop = top;
    } else if (top + ROW > box.scrollTop + box.clientHeight) {
      box.scrollTop = top + ROW - box.clientHeight;
    }
  }

  /** @param {number} node */
  zoom(node) {
    this.zoomed = node;
    this.fit();
    this.goTo(node);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const {tree, at} = this;
    const siblings = at === ROOT ? [ROOT] : tree.children(tree.parent[at]);
    const place = siblings.indexOf(at);
    const isFlipped = this.app.query.flip;
    /** @type {Record<string, number | undefined>} */
    const goals = {
      [isFlipped ? 'ArrowUp' : 'ArrowDown']: tree.children(at)[0],
      [isFlipped ? 'ArrowDown' : 'ArrowUp']: tree.parent[at],
      ArrowRight: siblings[place + 1], ArrowLeft: siblings[place - 1],
      Home: ROOT};
    if (event.key === 'Enter') {
      this.zoom(at);
    } else if (event.key === 'Escape') {
      this.zoom(ROOT);
    } else if (event.key === ' ') {
      this.app.select(tree.func[at] ?? -1);
      this.draw();
    } else if (event.key in goals) {
      this.goTo(goals[event.key] ?? at);
    } else {
      return;
    }
    event.preventDefault();
  }
}

/** Draws frames in the colours of the page. */
class Painter {
  /**
   * @param {FlameView} view
   * @param {CanvasRenderingContext2D} context
   * @param {CSSStyleDeclaration} style
   */
  constructor(view, context, style) {
    this.view = view;
    this.context = context;
    this.style = style;
    this.colors = new Map();
    const {app} = view;
    this.functions = app.profile.functions;
    this.found = app.query.search
      ? app.model.matches(app.query.search).found : null;
    this.selected = app.selected;
    context.font = '12px ui-monospace, Menlo, Consolas, monospace';
    context.textBaseline = 'middle';
    this.charWidth = context.measureText('M').width;
  }

  /** @param {string} name of a colour of the page */
  color(name) {
    let color = this.colors.get(name);
    if (color === undefined) {
      color = this.style.getPropertyValue(`--${name}`);
      this.colors.set(name, color);
    }
    return color;
  }

  /**
   * @param {number} at
   * @param {number} y
   */
  frame(at, y) {
    const {context, view: {layout, tree}} = this;
    const node = layout.node[at];
    const x = layout.x[at];
    const width = Math.max(layout.width[at] - 0.5, 0.5);
    const func = tree.func[node];
    const isDim = this.found !== null
      && (node === ROOT || !this.found[func]);
    context.globalAlpha = isDim ? 0.3 : 1;
    const level = this.view.against?.level(node);
    context.fillStyle = this.color(level === undefined
      ? colorOf(this.functions[func]) : levelColor(level));
    context.fillRect(x, y, width, ROW - 1);
    this.label(node, x, y, width, level ? levelSign(level) : '');
    context.globalAlpha = 1;
    if (node === this.view.at || (node !== ROOT && func === this.selected)) {
      context.strokeStyle = this.color('text');
      context.lineWidth = node === this.view.at ? 2 : 1;
      context.strokeRect(x + 1, y + 1, Math.max(width - 2, 0.5), ROW - 3);
    }
  }

  /**
   * @param {number} node
   * @param {number} x
   * @param {number} y
   * @param {number} width
   * @param {string} sign before the name
   */
  label(node, x, y, width, sign) {
    const room = width - 2 * INSET;
    if (room < 2 * this.charWidth) {
      return;
    }
    const func = this.functions[this.view.tree.func[node]];
    const names = node === ROOT ? [this.view.rootName]
      : [func.name, func.qualname];
    const [name, short] = names.map(
      (text) => sign + (printable(text) || '[no name]'));
    this.context.fillStyle = this.color('frame-text');
    this.context.fillText(
      this.fits(name, room) ? name : this.cut(short ?? name, room),
      x + INSET, y + ROW / 2);
  }

  /**
   * @param {string} text
   * @param {number} room
   */
  fits(text, room) {
    // Of names of a thousand characters nobody measures the end.
    return text.length * this.charWidth <= 4 * room
      && this.context.measureText(text).width <= room;
  }

  /**
   * @param {string} text
   * @param {number} room
   */
  cut(text, room) {
    if (this.fits(text, room)) {
      return text;
    }
    let length = Math.floor(room / this.charWidth) - 1;
    while (length > 0 && !this.fits(`${text.slice(0, length)}…`, room)) {
      length--;
    }
    return length > 0 ? `${text.slice(0, length)}…` : '';
  }
}

/**
 * The name of the colour of a function; functions of a module are alike.
 * @param {import('./functions.js').Func | undefined} func
 */
export function colorOf(func) {
  if (func === undefined) {
    return 'other';
  }
  const {kind, module, filename, qualname} = func;
  if (kind === PYTHON) {
    let shade = 0;
    for (const char of module || filename) {
      shade = (shade * 31 + (char.codePointAt(0) ?? 0)) & 0xffff;
    }
    return `p${shade % SHADES}`;
  }
  if (kind === C) {
    return 'c';
  }
  if (kind === OPERATOR) {
    return 'op';
  }
  return WAITS.find(([begin]) => qualname.startsWith(begin))?.[1] ?? 'other';
}
