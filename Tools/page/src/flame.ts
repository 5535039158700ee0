// The flame graph: on a canvas as large as what is seen of it.

import type {App, View} from './app';
import {bar, list, partsBy, putCard, type Part} from './bars';
import {nothingLeft} from './chrome';
import type {Document} from './document';
import {byId, choices, h, head, link} from './dom';
import {addAt, UNFILTERED, type Model} from './model';
import {measures, WORDS} from './measures';
import {fit, libraryColour, mineColour, Paint} from './paint';
import {
  indexAt, layOut, nodeSums, shapeOf, statesOf, type Layout, type Shape,
} from './tree';
import {count, percent, plural} from './words';

const ROW_PX = 24;
const STRIP_PX = 7;
const LEAST_PX = 0.5;
const TEXT_PX = 46;
const SHARE_PX = 70;
const ANIMATION_MS = 160;
const DIM = 0.3, ANCESTOR = 0.55;
const AT_MOST = 30;
const MOST_ROWS = 500;
// What leads to the first fork, if it is so many frames, is one row.
const LEAST_CHAIN = 3;
const CHAIN = -1;
const MINE = 0, LIBRARY = 1;
const MINE_SHOWN = 3, LIBRARIES_SHOWN = 5;

export const flame: View = {
  name: 'flame',
  title: 'Flame graph',
  keys: [['Enter', 'zoom in'], ['Esc', 'zoom out']],
  isThere: () => true,
  draw,
  press: (app, event) => graphs.get(app)?.press(event) ?? false,
  isHeld: (app) => graphs.get(app)?.isZoomed ?? false,
};

const graphs = new WeakMap<App, Graph>();

function draw(app: App, place: HTMLElement): void {
  let graph = graphs.get(app);
  if (graph === undefined) {
    graphs.set(app, graph = new Graph(app));
  }
  graph.draw(place);
}

class Graph {
  #doc: Document | null = null;
  #shapes = new Map<string, Shape>();
  #shape!: Shape;
  #layout!: Layout;
  #states: Float64Array | null = null;
  #zoomed = 0;
  #hovered: number | null = null;
  /** What is seen from left to right, of what all took. */
  #seen: [number, number] = [0, 1];
  #animation = 0;
  #paint = new Paint();
  #colours: readonly string[] = [];
  #isFound: Uint8Array | null = null;
  #small = 0;
  /** How many frames above the first fork are one row; 0: none are. */
  #chain = 0;
  #isChainOpen = false;
  #drawnOf = '';
  readonly #canvas = h('canvas');
  readonly #outline = h('div', {class: 'outline', hidden: true});
  readonly #frame = h('div', {id: 'flame', tabindex: 0, role: 'application',
    'aria-label': 'Flame graph. Arrow keys move, Enter zooms, Escape zooms ' +
      'out. The same figures are in the table below.'}, this.#canvas,
  this.#outline);
  readonly #crumbs = h('div', {class: 'crumbs', 'aria-label': 'Zoomed into'});
  readonly #said = h('div', {class: 'sr', 'aria-live': 'polite'});
  readonly #note = h('p', {class: 'm3 small'});

  constructor(readonly app: App) {
    this.#canvas.addEventListener('mousemove', (event) => this.#hover(
      this.#at(event), event.clientX + 14, event.clientY + 16));
    this.#canvas.addEventListener('mouseleave', () => this.#hover(null));
    this.#canvas.addEventListener('click', (event) => {
      const node = this.#at(event);
      if (node === CHAIN) {
        this.#isChainOpen = true;
        this.#hover(null);
        this.app.draw();
      } else if (node !== null) {
        this.#zoom(node);
      }
    });
    addEventListener('scroll', () => {
      if (this.#frame.isConnected) {
        this.#paintAll();
      }
    }, {passive: true});
  }

  get #isByPackage(): boolean {
    const {query: {colour}, selection} = this.app;
    return colour === 'package' || selection.measure !== '';
  }

  get isZoomed(): boolean {
    return this.#zoomed !== 0;
  }

  draw(place: HTMLElement): void {
    const {app} = this;
    const {query, model} = app;
    if (app.doc !== this.#doc) {
      this.#doc = app.doc;
      this.#shapes.clear();
      this.#drawnOf = '';
    }
    const key = [query.side, query.fold, query.flip].join();
    let shape = this.#shapes.get(key);
    if (shape === undefined) {
      shape = shapeOf(model, query.fold, query.flip);
      this.#shapes.set(key, shape);
    }
    if (key !== this.#drawnOf) {
      this.#drawnOf = key;
      this.#zoomed = 0;
    }
    this.#shape = shape;
    const {weights} = app;
    // What shrank has no width.
    this.#layout = layOut(model, shape, app.selection.measure
      ? weights.map((its) => Math.max(0, its)) : weights);
    this.#states = null;
    this.#hovered = null;
    this.#paint = new Paint();
    this.#colours = colouringOf(model).colours;
    this.#isFound = query.q ? model.matching(query.q) : null;
    if (this.#layout.totals[this.#zoomed]! <= 0) {
      this.#zoomed = 0;
    }
    if (this.#layout.totals[0]! <= 0) {
      place.replaceChildren(nothingLeft(app));
      return;
    }
    this.#seen = this.#range();
    this.#chain = this.#isChainOpen ? 0 : this.#chainLength();
    place.replaceChildren(this.#tools(), this.#crumbs, this.#frame,
      this.#note, this.#said, this.#table());
    this.#drawCrumbs();
    this.#paintAll();
  }

  #tools(): HTMLElement {
    const {app: {query, model}, app} = this;
    const {memory} = model.doc;
    const isTime = !app.selection.measure;
    return h('div', {class: 'tools'}, ...memory ? [
      h('span', {class: 'm2 label'}, 'Width'),
      measures(app, !memory.is_all)] : [],
      ...!isTime ? [] : [h('span', {class: 'm2 label'}, 'Colour'),
      choices('Colour', [
        {text: 'By package', isChosen: query.colour === 'package',
          tip: 'My code in strong colours, libraries pale',
          choose: () => app.ask({colour: 'package'})},
        {text: 'By state', isChosen: query.colour === 'state',
          tip: 'What each function was doing: the colours of the bar on top',
          choose: () => app.ask({colour: 'state'})}])],
      choices('Direction', [
        {text: 'Callers on top', isChosen: !query.flip,
          tip: 'From the thread down to what it called',
          choose: () => app.ask({flip: false})},
        {text: 'Callees on top', isChosen: query.flip,
          tip: 'Start with the functions that took the time, then who ' +
            'called them', choose: () => app.ask({flip: true})}]),
      choices('Libraries', [
        {text: 'All frames', isChosen: !query.fold,
          tip: 'Each library function', choose: () => app.ask({fold: false})},
        {text: 'Fold libraries', isChosen: query.fold,
          tip: 'Of each library keep the function that was called and the ' +
            'last one', choose: () => app.ask({fold: true})}]),
      h('span', {class: 'pkgs'}, ...this.#isByPackage
        ? colouringOf(model).legend.map(([colour, text]) => h('span', {},
          h('span', {class: 'sw', 'style.background': `var(--${colour})`}),
          text))
        : ['The strip under each name is coloured by state']));
  }

  #drawCrumbs(): void {
    const way = [];
    for (let node = this.#zoomed; ; node = this.#shape.parents[node]!) {
      way.unshift(node);
      if (node === 0) {
        break;
      }
    }
    const total = this.#layout.totals[0]!;
    const {measure} = this.app.selection;
    const found: (Node | string)[] = [];
    for (const node of way) {
      if (node) {
        found.push(h('span', {class: 'sep'}, '›'));
      }
      found.push(h('button', {type: 'button', onclick: () => this.#zoom(node),
        title: node ? this.#name(node) : null},
      node ? this.#name(node) : `${measure ? WORDS[measure].name : 'all'} ${
        this.app.said(total)}`));
    }
    const its = this.#layout.totals[this.#zoomed]!;
    found.push(h('span', {class: 'm3 hint'}, this.#zoomed
      ? `${this.app.amount(its)}, ${percent(its, total)} of all`
      : measure ? 'By where it was allocated, not by what ' +
        'refers to it. Click a frame to zoom in' : 'Click a frame to zoom in'));
    this.#crumbs.replaceChildren(...found);
  }

  #name(node: number): string {
    return this.app.model.names[this.#shape.functions[node]!]!;
  }

  #range(): [number, number] {
    const begin = this.#layout.begins[this.#zoomed]!;
    return [begin, begin + this.#layout.totals[this.#zoomed]!];
  }

  #zoom(node: number): void {
    this.#zoomed = node;
    this.#hover(null);
    this.#drawCrumbs();
    const from = this.#seen, to = this.#range();
    cancelAnimationFrame(this.#animation);
    if (matchMedia('(prefers-reduced-motion:reduce)').matches) {
      this.#seen = to;
      this.#paintAll();
      return;
    }
    const began = performance.now();
    const step = (now: number) => {
      const done = Math.min(1, Math.max(0, now - began) / ANIMATION_MS);
      const part = 1 - (1 - done) ** 3;
      this.#seen = [from[0] + (to[0] - from[0]) * part,
        from[1] + (to[1] - from[1]) * part];
      this.#paintAll();
      if (done < 1) {
        this.#animation = requestAnimationFrame(step);
      }
    };
    step(began);
  }

  /** Frames that have all the time, one below the other, of no code of mine. */
  #chainLength(): number {
    const {rows, functions, parents} = this.#shape;
    const {totals} = this.#layout;
    const {origin} = this.app.model.doc.functions;
    let length = 0;
    for (let node = 0; ; length++) {
      const next = rows[length + 1]?.find((its) => totals[its]! > 0);
      if (next === undefined || parents[next] !== node ||
          totals[next]! < totals[0]! * (1 - Number.EPSILON * 8) ||
          origin[functions[next]!] === MINE) {
        break;
      }
      node = next;
    }
    return length < LEAST_CHAIN ? 0 : length;
  }

  #rowOf(depth: number): number {
    return this.#chain === 0 || depth === 0 ? depth
      : Math.max(1, depth - this.#chain + 1);
  }

  #depthOf(row: number): number {
    return this.#chain === 0 || row <= 1 ? row : row + this.#chain - 1;
  }

  /** The node and its ancestors, which stay above it over the whole width. */
  #ancestors(): Set<number> {
    const found = new Set<number>();
    for (let node = this.#zoomed; node !== 0;) {
      node = this.#shape.parents[node]!;
      found.add(node);
    }
    return found;
  }

  /** Draw the rows that are in sight. */
  #paintAll(): void {
    const width = this.#frame.clientWidth;
    const nRows = this.#rowOf(this.#shape.rows.length - 1) + 1;
    const height = nRows * ROW_PX;
    this.#frame.style.height = `${height}px`;
    const {top} = this.#frame.getBoundingClientRect();
    const first = Math.max(0, Math.floor(-top / ROW_PX));
    const last = Math.min(nRows - 1,
      Math.ceil((innerHeight - top) / ROW_PX));
    if (!width || last < first) {
      return;
    }
    this.#canvas.style.top = `${first * ROW_PX}px`;
    const pen = fit(this.#canvas, width, (last - first + 1) * ROW_PX);
    pen.textBaseline = 'middle';
    this.#small = 0;
    const ancestors = this.#ancestors();
    for (let row = first; row <= last; row++) {
      const y = (row - first) * ROW_PX;
      if (this.#chain && row === 1) {
        this.#paintChain(pen, width, y);
      } else {
        this.#paintRow(pen, this.#depthOf(row), y, width, ancestors);
      }
    }
    this.#note.textContent = this.#small
      ? `${plural(this.#small, 'smaller frame')}: zoom in` : '';
  }

  #chainText(): string {
    const {rows} = this.#shape;
    const {totals} = this.#layout;
    const name = (depth: number) => this.#name(
      rows[depth]!.find((its) => totals[its]! > 0)!);
    return `${this.#chain} frames: ${name(1)} … ${name(this.#chain)}`;
  }

  #paintChain(pen: CanvasRenderingContext2D, width: number, y: number): void {
    const paint = this.#paint;
    pen.fillStyle = paint.colour('bg-2');
    pen.beginPath();
    pen.roundRect(0, y, width - 1, ROW_PX - 1, 3);
    pen.fill();
    pen.font = `400 12px ${paint.font}`;
    pen.fillStyle = paint.colour('ink-2');
    pen.fillText(this.#chainText(), 6, y + ROW_PX / 2, width - 12);
  }

  #paintRow(pen: CanvasRenderingContext2D, depth: number, y: number,
    width: number, ancestors: ReadonlySet<number>): void {
    const row = this.#shape.rows[depth]!;
    const {begins, totals} = this.#layout;
    const [from, to] = this.#seen;
    const scale = width / (to - from);
    if (depth <= this.#shape.depths[this.#zoomed]!) {
      const node = row.find((its) => its === this.#zoomed ||
        ancestors.has(its));
      if (node !== undefined && ancestors.has(node)) {
        this.#paintFrame(pen, node, 0, width, y, true);
        return;
      }
    }
    for (let i = indexAt(row, begins, from); i < row.length; i++) {
      const node = row[i]!;
      const x = (begins[node]! - from) * scale;
      if (x > width) {
        break;
      }
      const its = totals[node]! * scale;
      if (its < LEAST_PX) {
        // What is too small to be told apart is one, of a pixel.
        const last = indexAt(row, begins,
          from + (Math.floor(x) + 1) / scale, i);
        if (begins[row[last]!]! > begins[node]! || its > 0) {
          this.#small += last - i + 1;
          pen.fillStyle = this.#paint.colour('bg-3');
          pen.fillRect(x, y, 1, ROW_PX - 1);
        }
        i = last > i && totals[row[last]!]! * scale >= LEAST_PX
          ? last - 1 : last;
      } else if (x + its > 0) {
        this.#paintFrame(pen, node, x, its, y, false);
      }
    }
  }

  #paintFrame(pen: CanvasRenderingContext2D, node: number, x: number,
    width: number, y: number, isAncestor: boolean): void {
    const {model} = this.app;
    const paint = this.#paint;
    const its = this.#shape.functions[node]!;
    const isMine = node !== 0 && model.doc.functions.origin[its] === MINE;
    const isByPackage = this.#isByPackage;
    const isDim = this.#isFound !== null && (
      node === 0 || !this.#isFound[its]);
    const x0 = Math.max(0, x);
    const x1 = Math.min(this.#frame.clientWidth, x + width) -
      (width > 3 ? 1 : 0);
    const alpha = isDim ? DIM : isAncestor ? ANCESTOR : 1;
    pen.globalAlpha = alpha;
    pen.fillStyle = node === 0 ? paint.colour('bg-3')
      : paint.colour(isByPackage ? this.#colours[its]! : 'bg-3');
    pen.beginPath();
    pen.roundRect(x0, y, Math.max(0.6, x1 - x0), ROW_PX - 1,
      width > 6 ? 3 : 0);
    pen.fill();
    if (!isByPackage && x1 - x0 > 1) {
      this.#paintStates(pen, node, x, width, y);
    }
    if (x1 - x0 > TEXT_PX) {
      pen.font = `${isMine ? 600 : 400} 12px ${paint.font}`;
      pen.fillStyle = isByPackage && isMine ? '#fff'
        : paint.colour(isMine ? 'ink' : 'lib-ink');
      const middle = y + (isByPackage ? ROW_PX : ROW_PX - STRIP_PX) / 2;
      const room = x1 - x0 - 12;
      const text = this.#fitting(pen, node ? this.#name(node) : 'all', room,
        node);
      pen.fillText(text, x0 + 6, middle);
      if (isByPackage && room - pen.measureText(text).width > SHARE_PX) {
        pen.font = `400 11px ${paint.font}`;
        pen.globalAlpha = alpha * 0.68;
        pen.textAlign = 'right';
        pen.fillText(percent(this.#layout.totals[node]!,
          this.#layout.totals[0]!), x1 - 6, middle);
        pen.textAlign = 'left';
      }
    }
    pen.globalAlpha = 1;
  }

  /** Names lose their module first, then their class, then their end. */
  #fitting(pen: CanvasRenderingContext2D, name: string, room: number,
    node: number): string {
    const qualname = node ? this.app.model.doc.functions.qualname[
      this.#shape.functions[node]!]! : name;
    for (const text of [name, qualname,
      qualname.slice(qualname.lastIndexOf('.') + 1)]) {
      if (pen.measureText(text).width <= room) {
        return text;
      }
    }
    const text = qualname.slice(qualname.lastIndexOf('.') + 1);
    let low = 1, high = text.length;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (pen.measureText(`${text.slice(0, middle)}…`).width <= room) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return `${text.slice(0, low)}…`;
  }

  #partsOf(node: number): Part[] {
    const {model, weights} = this.app;
    const {length} = model.doc.states;
    this.#states ??= statesOf(model, this.#shape, weights);
    return partsBy(this.app, this.#states.subarray(
      node * length, (node + 1) * length));
  }

  #paintStates(pen: CanvasRenderingContext2D, node: number, x: number,
    width: number, y: number): void {
    const total = this.#layout.totals[node]!;
    pen.save();
    pen.clip();
    let at = x;
    for (const {css, value} of this.#partsOf(node)) {
      const its = value / total * width;
      pen.fillStyle = this.#paint.state(css);
      pen.fillRect(at, y + ROW_PX - STRIP_PX, its, STRIP_PX);
      at += its;
    }
    pen.restore();
  }

  #at({clientX, clientY}: MouseEvent): number | null {
    const {left, top, width} = this.#frame.getBoundingClientRect();
    const visible = Math.floor((clientY - top) / ROW_PX);
    if (this.#chain && visible === 1) {
      return CHAIN;
    }
    const depth = this.#depthOf(visible);
    const row = this.#shape.rows[depth];
    if (row === undefined) {
      return null;
    }
    if (depth < this.#shape.depths[this.#zoomed]!) {
      const ancestors = this.#ancestors();
      return row.find((node) => ancestors.has(node)) ?? null;
    }
    const [from, to] = this.#seen;
    const x = from + (clientX - left) / width * (to - from);
    const node = row[indexAt(row, this.#layout.begins, x)]!;
    const {begins, totals} = this.#layout;
    return x >= begins[node]! && x < begins[node]! + totals[node]!
      ? node : null;
  }

  #hover(node: number | null, x = 0, y = 0): void {
    const isOther = node !== this.#hovered;
    this.#hovered = node;
    this.#drawOutline();
    const tip = byId('tip');
    if (node === null) {
      tip.classList.remove('on');
      return;
    }
    if (isOther) {
      tip.replaceChildren(...node === CHAIN
        ? ['All of the time was in these. Click to see each.']
        : this.#card(node));
      tip.classList.add('on');
    }
    putCard(tip, x, y);
  }

  #drawOutline(): void {
    const node = this.#hovered;
    this.#outline.hidden = node === null || node === CHAIN;
    if (node === null || node === CHAIN) {
      return;
    }
    const width = this.#frame.clientWidth;
    const [from, to] = this.#seen;
    const scale = width / (to - from);
    const left = (this.#layout.begins[node]! - from) * scale;
    const right = left + this.#layout.totals[node]! * scale;
    const {style} = this.#outline;
    style.top = `${this.#rowOf(this.#shape.depths[node]!) * ROW_PX}px`;
    style.left = `${Math.max(0, left)}px`;
    style.width = `${Math.max(2, Math.min(width, right) -
      Math.max(0, left))}px`;
  }

  #card(node: number): HTMLElement[] {
    const {app, app: {model}} = this;
    const {totals, selfs} = this.#layout;
    const all = totals[0]!, total = totals[node]!, self = selfs[node]!;
    const its = this.#shape.functions[node]!;
    const {functions} = model.doc;
    const parts = this.#partsOf(node);
    const [, calls, each] = model.doc.calls?.functions.find(
      ([number]) => node > 0 && number === its) ?? [];
    return [h('h3', {}, node ? this.#name(node) : 'all'),
      h('div', {class: 'm2'}, !node ? '' : functions.origin[its] === MINE
        ? `${model.fileOf(its)}:${functions.first_line[its]}`
        : model.doc.packages[functions.package[its]!] || 'C'),
      bar(app, parts, total),
      h('dl', {}, h('dt', {}, 'Total'), h('dd', {}, app.amount(total)),
        h('dd', {class: 'm2'}, percent(total, all)),
        h('dt', {}, 'Self'), h('dd', {}, app.amount(self, total)),
        h('dd', {class: 'm2'}, percent(self, all)),
        ...calls ? [h('dt', {}, 'Calls'), h('dd', {}, count(calls)),
          h('dd', {class: 'm2'}, 'in all')] : [],
        ...each && !app.selection.measure ? [h('dt', {}, 'Each'),
          h('dd', {class: 'two'}, each)] : [],
        ...list(app, parts))];
  }

  press({key}: KeyboardEvent): boolean {
    if (key === 'Escape' && this.#zoomed) {
      this.#zoom(this.#shape.parents[this.#zoomed]!);
      return true;
    }
    if (document.activeElement !== this.#frame) {
      return false;
    }
    const node = Math.max(0, this.#hovered ?? this.#zoomed);
    if (key === 'Enter') {
      this.#zoom(node);
      return true;
    }
    const next = this.#beside(node, key);
    if (next === null) {
      return ['ArrowUp', 'ArrowDown', 'ArrowLeft', 'ArrowRight'].includes(key);
    }
    const {left, top, width} = this.#frame.getBoundingClientRect();
    const [from, to] = this.#seen;
    const y = top + (this.#rowOf(this.#shape.depths[next]!) + 1) * ROW_PX + 4;
    if (y > innerHeight - ROW_PX || y < 100) {
      scrollBy(0, y - innerHeight / 2);
    }
    this.#hover(next, left + 8 + Math.max(0,
      (this.#layout.begins[next]! - from) / (to - from) * width),
    y);
    this.#said.textContent = `${this.#name(next)}, ` +
      `${this.app.amount(this.#layout.totals[next]!)}, ` +
      percent(this.#layout.totals[next]!, this.#layout.totals[0]!);
    return true;
  }

  /** The largest callee, the caller, or the sibling that a key leads to. */
  #beside(node: number, key: string): number | null {
    const {parents, rows, depths} = this.#shape;
    const {totals} = this.#layout;
    const depth = depths[node]!;
    if (key === 'ArrowUp') {
      return node ? parents[node]! : null;
    }
    const siblings = (row: Uint32Array | undefined, parent: number) => (
      [...row ?? []].filter((its) => its !== 0 && parents[its] === parent &&
        totals[its]! > 0));
    if (key === 'ArrowDown') {
      return siblings(rows[depth + 1], node).sort(
        (a, b) => totals[b]! - totals[a]!)[0] ?? null;
    }
    const step = {ArrowLeft: -1, ArrowRight: 1}[key];
    const all = siblings(rows[depth], parents[node]!);
    return step === undefined ? null : all[all.indexOf(node) + step] ?? null;
  }

  #table(): HTMLElement {
    const details = h('details', {}, h('summary', {class: 'm2'},
      'The same as a table'));
    details.addEventListener('toggle', () => {
      if (details.open && details.childElementCount === 1) {
        details.append(this.#functions(AT_MOST));
      }
    });
    return details;
  }

  #functions(top: number): HTMLElement {
    const {app, app: {model}} = this;
    const {doc} = model;
    const all = functionSums(model, app.weights);
    const shown = all.slice(0, top);
    const total = this.#layout.totals[0]!;
    // What calls took is time.
    const counts = new Map((app.selection.measure ? []
      : doc.calls?.functions ?? []).map(
      ([number, calls, each]) => [number, {calls, each}]));
    const table = h('div', {}, h('table', {'aria-label': 'Functions by time'},
      h('thead', {}, h('tr', {},
        head('Total', 'In the function and in all that it called.', 'r'),
        h('th'), head('Self', 'In the function itself.', 'r'), h('th'),
        ...counts.size ? [head('Calls', 'Counted, of the whole recording.',
          'r'), head('Each', 'Total by outermost calls, of the whole ' +
          'recording.', 'r')] : [],
        head('Function'), head('Package'))),
      h('tbody', {}, ...shown.map(({its, total: sum, self}) => h('tr', {},
        h('td', {class: 'r'}, app.amount(sum, total)),
        h('td', {class: 'r m2'}, percent(sum, total)),
        h('td', {class: 'r'}, app.amount(self, total)),
        h('td', {class: 'r m2'}, percent(self, total)),
        ...counts.size ? [
          h('td', {class: 'r'}, counts.has(its)
            ? count(counts.get(its)!.calls) : ''),
          h('td', {class: 'r m2'}, counts.get(its)?.each ?? '')] : [],
        h('td', {}, h('code', {}, model.names[its]!)),
        h('td', {class: 'm2'}, doc.functions.origin[its] === MINE ? 'my code'
          : doc.packages[doc.functions.package[its]!]!))))));
    if (all.length > top && top < MOST_ROWS) {
      table.append(link(`Show more of ${plural(all.length, 'function')}`,
        () => table.replaceWith(this.#functions(MOST_ROWS))));
    }
    return table;
  }
}

interface FunctionSum {
  readonly its: number;
  readonly total: number;
  readonly self: number;
}

/** What functions took, with all that they called, each stack once. */
function functionSums(model: Model, weights: Float64Array): FunctionSum[] {
  const parents = model.doc.column('node_parent');
  const functions = model.doc.column('node_function');
  const {selfs, totals} = nodeSums(model, parents, null, weights);
  const sums = new Map<number, {its: number, total: number, self: number}>();
  // In preorder, the functions above a node are those of the way to it.
  const way: number[] = [];
  const onWay = new Map<number, number>();
  const leave = () => {
    const its = functions[way.pop()!]!;
    onWay.set(its, onWay.get(its)! - 1);
  };
  for (let node = 1; node < parents.length; node++) {
    while (way.length && way[way.length - 1] !== parents[node]) {
      leave();
    }
    way.push(node);
    const its = functions[node]!;
    const above = onWay.get(its) ?? 0;
    onWay.set(its, above + 1);
    if (totals[node] === 0) {
      continue;
    }
    let sum = sums.get(its);
    if (sum === undefined) {
      sums.set(its, sum = {its, total: 0, self: 0});
    }
    sum.total += above ? 0 : totals[node]!;
    sum.self += selfs[node]!;
  }
  return [...sums.values()].sort((a, b) => b.total - a.total);
}

interface Colouring {
  /** Of each function, the name of its colour. */
  readonly colours: readonly string[];
  /** Colours, and what they stand for. */
  readonly legend: readonly (readonly [string, string])[];
}

const colourings = new WeakMap<Model, Colouring>();

/** Modules of mine and packages have colours by their time in the whole
 * profile: so they keep them, whatever is selected. */
export function colouringOf(model: Model): Colouring {
  let found = colourings.get(model);
  if (found === undefined) {
    colourings.set(model, found = newColouring(model));
  }
  return found;
}

function newColouring(model: Model): Colouring {
  const {doc} = model;
  const {origin, package: packages, module} = doc.functions;
  const isLibrary = new Set(packages.filter(
    (_, number) => origin[number] === LIBRARY));
  // What a function is coloured as; '' for the standard library and C.
  const groups = origin.map((its, number) => (
    its === MINE ? `mine ${lastPart(module[number]!)}`
      : !isLibrary.has(packages[number]!) ? ''
        : `library ${doc.packages[packages[number]!]}`));
  const functions = doc.column('node_function');
  const parents = doc.column('node_parent');
  const {totals} = nodeSums(model, parents, null, model.weights(
    {...UNFILTERED, idle: false, measure: ''}));
  const sums = new Map<string, number>();
  for (let node = 1; node < parents.length; node++) {
    const parent = parents[node]!;
    const group = groups[functions[node]!]!;
    if (group && (!parent || groups[functions[parent]!] !== group)) {
      addAt(sums, group, totals[node]!);
    }
  }
  const ranked = [...sums].sort(([, a], [, b]) => b - a).map(([key]) => key);
  const colours = new Map([['', 'p-std']]);
  const legend: [string, string][] = [];
  for (const kind of ['mine ', 'library ']) {
    ranked.filter((group) => group.startsWith(kind)).forEach((group, rank) => {
      const colour = kind === 'mine ' ? mineColour(rank) : libraryColour(rank);
      colours.set(group, colour);
      if (rank < (kind === 'mine ' ? MINE_SHOWN : LIBRARIES_SHOWN)) {
        legend.push([colour, group.slice(kind.length) || 'my code']);
      }
    });
  }
  legend.push(['p-std', 'standard library']);
  if (legend.length > MINE_SHOWN + LIBRARIES_SHOWN) {
    legend.push(['p-other', 'other packages']);
  }
  return {legend, colours: groups.map(
    (group) => colours.get(group) ?? 'p-other')};
}

function lastPart(name: string): string {
  return name.slice(name.lastIndexOf('.') + 1);
}
