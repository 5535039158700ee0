// A page of a process that runs: asks for its last seconds, again and again.
//
// This file owns when that is, what is drawn of it when, and the rows that
// only such a page has.

import type {App, View} from './app';
import {partsBy} from './bars';
import {dialog} from './chrome';
import {parse, type Document} from './document';
import {append, byId, choices, h, link} from './dom';
import {fit, Paint} from './paint';
import {WINDOWS} from './query';
import {clock} from './words';

const ASK_MS = 1000, HIDDEN_MS = 10_000, LOST_MS = 3000;
/** What takes long to draw is drawn every so often. */
const SLOW_VIEWS_MS = 5000;
/** Of the time at most this much goes into answers. */
const ANSWERING = 0.25;
const LATE_S = 2;
/** Steps of the keys by which a moment is chosen. */
const STEP_S = 5;
const DOT_PX = 4;
const HEIGHT_PX = 44, SECOND_PX = 4, GAP_PX = 0.7;

type Mode = 'live' | 'paused' | 'lost' | 'gone';

export interface Fresh {
  readonly doc: Document;
  readonly sources: ArrayBuffer | null;
}

/** Whether the page has to ask for what it shows. */
export function isLive(): boolean {
  return document.getElementById('live') !== null;
}

export class Live {
  readonly #token: string | null;
  #isPaused = false;
  #failure = '';
  #lastAnswer = 0;
  #drawnAt = 0;
  #timer = 0;
  /** The newest, and the one that is shown. */
  #newest: Fresh | null = null;
  #files = '';
  #needed = '';
  #sources: ArrayBuffer | null = null;
  #app: App | null = null;
  readonly #row = h('div', {class: 'liverow', 'aria-label': 'Live'});
  readonly #pill = h('span', {role: 'status'});
  readonly #canvas = h('canvas', {role: 'img'});
  readonly #axis = h('div', {class: 'ax', 'aria-hidden': 'true'});
  readonly #hit = h('div', {class: 'hit', role: 'slider', tabindex: 0,
    'data-key': 'moment', 'aria-label': 'Moment to compare with', 'data-tip':
    'Height: how many threads were busy; colour: what they did. The window ' +
    'is bright. Click a moment to compare it with now.'});
  /** Of the pixels of the history, and back. */
  #timeAt: (x: number) => number = () => 0;

  constructor() {
    const address = new URL(location.href);
    this.#token = address.searchParams.get('t');
    address.searchParams.delete('t');
    // Whoever looks over a shoulder, or at the history, does not get it.
    history.replaceState(null, '', address);
    byId('bands').before(this.#row,
      h('div', {class: 'spark'}, this.#canvas, this.#hit, this.#axis));
    this.#hit.addEventListener('click', (event) => this.#compare(
      this.#timeAt((event as MouseEvent).offsetX)));
    this.#hit.addEventListener('keydown', (event) => {
      const step = {ArrowLeft: -STEP_S, ArrowRight: STEP_S}[event.key];
      if (step) {
        this.#compare((this.#app!.query.since || this.#facts.at) + step);
        event.preventDefault();
      }
    });
  }

  /** Show what changed since a moment. */
  #compare(moment: number): void {
    this.#app!.show('diff', {since: Math.round(moment)});
    this.#again();
  }

  /** The first answer; waits until there is one. */
  async first(): Promise<Fresh> {
    for (;;) {
      await this.#ask();
      if (this.#newest !== null) {
        return this.#newest;
      }
      byId('view').replaceChildren(h('div', {class: 'empty'},
        h('b', {}, this.#failure || 'The first second is on its way.')));
      await new Promise((resolve) => setTimeout(resolve, ASK_MS));
    }
  }

  /** Go on: show(fresh) has to draw it. */
  begin(app: App, show: (fresh: Fresh) => void): void {
    this.#app = app;
    app.newest = this.#newest!.doc;
    app.pause = () => {
      if (!this.#isPaused) {
        this.#pause();
      }
    };
    this.#drawnAt = Date.now();
    const next = async (): Promise<void> => {
      const before = Date.now();
      await this.#ask();
      const took = Date.now() - before;
      app.newest = this.#newest?.doc ?? null;
      if (this.#mode === 'paused' && byId('view').dataset.view === 'diff' &&
          this.#mayDraw()) {
        app.draw();     // that goes on
      } else if (this.#mode !== 'paused' && this.#newest !== null &&
          this.#mayDraw()) {
        this.#drawnAt = Date.now();
        show(this.#newest);
      } else {
        this.draw();
      }
      if (this.#mode !== 'gone') {
        this.#timer = setTimeout(next, document.hidden ? HIDDEN_MS
          : Math.max(this.#mode === 'lost' ? LOST_MS : ASK_MS - took,
            took / ANSWERING));
      }
    };
    this.#timer = setTimeout(next, ASK_MS);
    this.#again = () => {
      clearTimeout(this.#timer);
      this.#drawnAt = 0;
      void next();
    };
    document.addEventListener('visibilitychange', () => {
      if (!document.hidden) {
        this.#again();
      }
    });
  }

  #again: () => void = () => undefined;

  get #facts(): NonNullable<Document['live']> {
    return this.#newest!.doc.live!;
  }

  get #mode(): Mode {
    return this.#newest !== null && this.#facts.ended ? 'gone'
      : this.#isPaused ? 'paused' : this.#failure ? 'lost' : 'live';
  }

  async #ask(): Promise<void> {
    try {
      const doc = parse(await this.#fetch(this.#question()));
      const files = doc.functions.qualname.join('\n');
      if (files !== this.#files) {
        this.#sources = await this.#fetch('sources');
        this.#files = files;
      }
      this.#newest = {doc, sources: this.#sources};
      this.#failure = doc.live!.silent_since ? 'The process does not answer.'
        : '';
      this.#lastAnswer = Date.now();
    } catch (error) {
      this.#failure = error instanceof Refused ? error.message
        : 'Nobody answers.';
    }
  }

  #question(): string {
    const query = this.#app?.query;
    return `live?window=${query?.window ?? WINDOWS[0]![0]}` + (
      query?.view === 'time' ? '&time=1'
        : query?.view === 'diff' ? `&since=${query.since}` : '');
  }

  /** What is there, decompressed. */
  async #fetch(path: string): Promise<ArrayBuffer> {
    const {body} = await this.#get(path);
    return new Response(body!.pipeThrough(
      new DecompressionStream('gzip'))).arrayBuffer();
  }

  async #get(path: string): Promise<Response> {
    const response = await fetch(path, {cache: 'no-store', headers:
      this.#token === null ? {} : {Authorization: `Bearer ${this.#token}`}});
    if (!response.ok) {
      throw new Refused((await response.text()).trim());
    }
    return response;
  }

  /** Nothing moves while it is read. */
  #mayDraw(): boolean {
    const app = this.#app!;
    const view = byId('view').dataset.view;
    return !document.hidden && getSelection()?.isCollapsed !== false &&
      document.activeElement !== byId('q') &&
      !(byId('dialog') as HTMLDialogElement).open &&
      !byId('tip').classList.contains('on') &&
      document.querySelector('#view table:hover, #flame:hover') === null &&
      !app.isHeld() && !app.isDragged && (Date.now() - this.#drawnAt >= (
      view === 'flame' || view === 'slow' ? SLOW_VIEWS_MS : 0));
  }

  /** A view may need what was not asked for. */
  need(view: string): void {
    const was = this.#needed;
    this.#needed = view;
    if (view !== was && (view === 'time' || view === 'diff')) {
      this.#again();
    }
  }

  press(key: string): boolean {
    if (key === ' ') {
      this.#pause();
    } else if (key === 'w') {
      const at = WINDOWS.findIndex(
        ([window]) => window === this.#app!.query.window);
      this.#choose(WINDOWS[(at + 1) % WINDOWS.length]![0]);
    } else {
      return false;
    }
    return true;
  }

  #pause(): void {
    this.#isPaused = !this.#isPaused;
    if (this.#isPaused) {
      this.#app!.ask({since: Math.round(this.#app!.doc.live!.at)}, false);
      this.draw();
    } else {
      // A part was of what stood still.
      this.#app!.ask({time: null}, false);
      this.#again();
    }
  }

  #choose(window: number): void {
    this.#isPaused = false;
    this.#app!.ask({window, time: null});
    this.#again();
  }

  /** The rows above the bar. */
  draw(): void {
    const mode = this.#mode;
    const shown = this.#app!.doc.live!;
    this.#drawRow(mode);
    this.#pill.className = `pill ${mode}`;
    this.#pill.replaceChildren(h('i'), ...this.#state(mode, shown.at));
    for (const part of [byId('main'), byId('bands')]) {
      part.classList.toggle('stale', mode === 'lost');
    }
    document.title = `${{paused: '‖ ', lost: '! ', gone: '! ', live: ''}[
      mode]}${this.#app!.doc.title}, PID ${this.#app!.doc.pid}, live`;
    this.#drawHistory(shown.at);
  }

  /** What is clicked must not be replaced meanwhile. */
  #drawRow(mode: Mode): void {
    const shown = this.#app!.query.window;
    const drawnOf = [mode, shown, this.#failure].join();
    if (drawnOf === this.#row.dataset.of) {
      return;
    }
    const focus = this.#row.contains(document.activeElement)
      ? (document.activeElement as HTMLElement).dataset.key : undefined;
    this.#row.dataset.of = drawnOf;
    this.#row.replaceChildren(this.#pill);
    append(this.#row, [
      mode !== 'gone' && (mode === 'lost'
        ? button('Try now', 'try', () => this.#again())
        : button(mode === 'paused' ? 'Go on' : 'Pause', 'pause',
          () => this.#pause(), mode === 'paused' ? 'btn main' : 'btn')),
      mode === 'paused' && link('What changed', () => this.#compare(
        this.#app!.query.since), {'data-key': 'live changed'}),
      choices('Window', WINDOWS.map(([window, text]) => ({text,
        isChosen: window === shown,
        choose: () => this.#choose(window)}))),
      h('span', {class: 'note'}, mode === 'paused' ? 'Recording goes on.'
        : mode === 'lost' ? this.#failure
          : mode === 'gone' ? 'These are its last figures.' : ''),
      h('span', {class: 'right'},
        button('Save', 'save', () => this.#save(), 'btn', ' as file'),
        button('Share', 'share', () => this.#share(), 'btn', ' as command'))]);
    if (focus) {
      this.#row.querySelector<HTMLElement>(`[data-key="${focus}"]`)?.focus();
    }
  }

  #state(mode: Mode, at: number): (Node | string)[] {
    const ago = (s: number) => `${Math.round(s)} s`;
    const age = Date.now() / 1000 - at;
    const quiet = (text: string) => h('span', {class: 'm2'}, text);
    if (mode === 'gone') {
      return [`PID ${this.#app!.doc.pid} ${this.#facts.ended}`];
    }
    if (mode === 'lost') {
      return [`No answer for ${ago((Date.now() - this.#lastAnswer) / 1000)}, ` +
        `figures of ${clock(at)}`];
    }
    return mode === 'paused'
      ? [`Paused at ${clock(at)} `, quiet(`${ago(age)} ago`)]
      : age > LATE_S + 1 ? [`Live, ${ago(age)} ago`]
        : ['Live ', quiet(clock(at))];
  }

  /** How many threads were busy, second by second, and what they did. */
  #drawHistory(shownAt: number): void {
    const app = this.#app!;
    const {history, at, threads} = this.#facts;
    const width = this.#canvas.parentElement!.clientWidth;
    const pen = fit(this.#canvas, width, HEIGHT_PX);
    const paint = new Paint();
    const shown = history.slice(-Math.max(1, Math.floor(width / SECOND_PX)));
    const step = width / Math.max(shown.length, 1);
    const inWindow = app.query.window || history.length;
    let end = shown.length;
    const most = Math.max(threads, ...shown.map(
      ([, ...states]) => states.reduce((sum, its) => sum + its, 0)));
    const timeAt = (number: number) => at - shown.slice(number).reduce(
      (sum, [length]) => sum + length!, 0);
    while (end > 0 && timeAt(end) > shownAt + LATE_S / 2) {
      end--;
    }
    shown.forEach(([, ...states], number) => {
      pen.globalAlpha = number >= end - inWindow && number < end ? 1 : 0.55;
      let y = HEIGHT_PX;
      for (const {css, value} of partsBy(app, states)) {
        const height = value / most * HEIGHT_PX;
        pen.fillStyle = paint.state(css);
        y -= height;
        pen.fillRect(number * step, y, Math.max(step - GAP_PX, GAP_PX),
          height);
      }
    });
    pen.globalAlpha = 1;
    pen.fillStyle = paint.colour('accent');
    pen.fillRect(Math.max(0, end - inWindow) * step, 0, 1.5, HEIGHT_PX);
    this.#timeAt = (x) => timeAt(Math.min(shown.length,
      Math.max(0, Math.round(x / step))));
    const before = shown.filter(
      (_, number) => timeAt(number) < app.query.since).length;
    const marked = before === 0 ? [] : this.#drawMark(
      app.query.since, pen, width, before * step);
    this.#canvas.setAttribute('aria-label', 'How many threads were busy, ' +
      `second by second, since ${clock(timeAt(0))}`);
    this.#axis.replaceChildren(
      ...[0, 0.25, 0.5, 0.75, 1].slice(width < 500 ? 3 : 0).filter(
        (share) => share === 1 || shown.length > 60 || share === 0).map(
        (share) => h('span', {'style.left': `${100 * share}%`,
          class: share === 0 ? 'first' : share === 1 ? 'last' : ''},
        clock(timeAt(Math.round(share * shown.length))))), ...marked);
  }

  /** The moment that is compared with; its time for the axis. */
  #drawMark(since: number, pen: CanvasRenderingContext2D, width: number,
    x: number): HTMLElement[] {
    pen.fillRect(x - 0.5, 0, 1, HEIGHT_PX);
    pen.beginPath();
    pen.arc(x, DOT_PX, DOT_PX, 0, 2 * Math.PI);
    pen.fill();
    this.#hit.setAttribute('aria-valuetext', clock(since));
    return [h('span', {class: 'm', 'style.left':
      `${Math.min(96, Math.max(4, 100 * x / width))}%`}, clock(since))];
  }

  #save(): void {
    const {title, pid} = this.#app!.doc;
    const offer = (kind: string, about: string) => h('p', {}, link(
      `${title}.${pid}.${kind}`, () => void this.#download(
        `all.${kind}`, `${title}.${pid}.${kind}`)), ` ${about}`);
    dialog('Save as file', h('p', {class: 'm2'}, 'All that was seen since ' +
      'you came. Filters are not applied: the file has everything.'),
    offer('html', 'This page, standing still; opens from disk.'),
    offer('pb.gz', 'For report, diff, go tool pprof.'));
  }

  async #download(path: string, name: string): Promise<void> {
    try {
      const url = URL.createObjectURL(await (await this.#get(path)).blob());
      h('a', {href: url, download: name}).click();
      setTimeout(() => URL.revokeObjectURL(url), HIDDEN_MS);
    } catch (error) {
      dialog('Not saved', h('p', {}, String(error)));
    }
  }

  #share(): void {
    const {title, pid} = this.#app!.doc;
    const run = 'python -m profile_sampling';
    dialog('Share as command', h('p', {class: 'm2'},
      'Each works in a shell beside the process.'),
    ...([['On a terminal', `${run} top -p ${pid}`],
      ['Once, as text to paste', `${run} top -p ${pid} --once`],
      ['A file of the next 30 s',
        `${run} record -p ${pid} -d 30 -o ${title.replace(/\W+/g, '-')}.html`],
      ['This page, from your machine', location.port
        ? `ssh -L ${location.port}:127.0.0.1:${location.port} HOST`
        : location.href]] as const).map(([what, command]) => h('p', {},
      h('b', {}, what), h('br'), h('code', {}, command))));
  }
}

class Refused extends Error {}

function button(text: string, key: string, onclick: () => void,
  kind = 'btn', more = ''): HTMLElement {
  return h('button', {type: 'button', class: kind, 'data-key': `live ${key}`,
    onclick}, text, more ? h('span', {class: 'lbl'}, more) : null);
}

export function withKeys(views: readonly View[]): readonly View[] {
  return views.map((view) => ({...view, keys: [['Space', 'pause'],
    ['w', 'window'], ...view.keys]}));
}
