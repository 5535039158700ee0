// The page: reads what is in it, and draws what is asked for.

import {App, type Side, type View} from './app';
import {Tip} from './bars';
import {changes} from './changes';
import {
  drawBand, drawChips, drawFoot, drawHead, drawTabs, showHelp,
} from './chrome';
import {parse, readBlock} from './document';
import {byId, h} from './dom';
import {flame} from './flame';
import {isLive, Live, withKeys, type Fresh} from './live';
import {drawRss, memory} from './memory';
import {mine} from './mine';
import {Model} from './model';
import {fromAddress, WINDOWS} from './query';
import {slow} from './slow';
import {Sources} from './source';
import {timeline} from './timeline';
import {waits} from './waits';
import {roundShares} from './words';

const SEARCH_DELAY_MS = 120;
const RESIZE_DELAY_MS = 80;

async function start(): Promise<void> {
  if (isLive()) {
    await startLive(new Live());
    return;
  }
  const [data, base, sources] = await Promise.all(
    ['document', 'base', 'sources'].map(readBlock));
  if (!data) {
    throw new Error('there is no profile in this page');
  }
  const sideOf = (bytes: ArrayBuffer): Side => {
    const doc = parse(bytes);
    return {model: new Model(doc), sources: new Sources(doc, sources ?? null)};
  };
  const after = sideOf(data);
  const app = new App(after.model.doc,
    {after, before: base ? sideOf(base) : null});
  // Of memory alone there is no time.
  const views = [...app.doc.memory?.is_all ? [memory, flame]
    : [mine, flame, timeline, waits, slow, memory], changes].filter(
    ({isThere}) => isThere(app));
  app.query = fromAddress(location.hash.slice(1), app.doc);
  setTheme(theme());
  app.draw = () => draw(app, views);
  app.draw();
  listen(app, views);
}

async function startLive(live: Live): Promise<void> {
  const sides = ({doc, sources}: Fresh) => ({
    after: {model: new Model(doc), sources: new Sources(doc, sources)},
    before: null});
  setTheme(theme());
  const first = await live.first();
  const app = new App(first.doc, sides(first));
  const views = withKeys([mine, flame, timeline, waits, slow, changes]);
  app.query = fromAddress(location.hash.slice(1), app.doc);
  app.isHeld = () => views.find(
    ({name}) => name === app.query.view)?.isHeld?.(app) ?? false;
  app.draw = () => {
    roundShares(app.query.window === WINDOWS[0]![0]);
    draw(app, views);
    live.draw();
    live.need(app.query.view);
  };
  live.begin(app, (fresh) => {
    app.doc = fresh.doc;
    app.sides = sides(fresh);
    app.draw();
  });
  app.draw();
  listen(app, views);
  document.addEventListener('keydown', (event) => {
    if (event.target instanceof Element && !event.ctrlKey && !event.metaKey &&
        !event.altKey && !event.target.matches('input, button') &&
        !(byId('dialog') as HTMLDialogElement).open &&
        live.press(event.key)) {
      event.preventDefault();
    }
  });
}

function draw(app: App, views: readonly View[]): void {
  const view = views.find(({name}) => name === app.query.view) ?? views[0]!;
  const key = document.activeElement?.closest<HTMLElement>('[data-key]')
    ?.dataset.key;
  drawHead(app);
  drawTabs(app, views);
  drawChips(app);
  byId('bands').hidden = view.name === 'diff';
  if (view.name !== 'diff') {
    (view.name === 'memory' || app.doc.memory?.is_all ? drawRss
      : drawBand)(app);
  }
  drawFoot(views, view);
  const place = byId('view');
  place.setAttribute('aria-label', view.title);
  place.dataset.view = view.name;
  view.draw(app, place);
  const search = byId('q') as HTMLInputElement;
  if (document.activeElement !== search) {
    search.value = app.query.q;
  }
  document.documentElement.style.setProperty('--head',
    `${document.querySelector('header')!.offsetHeight}px`);
  if (key !== undefined && !document.activeElement?.closest('[data-key]')) {
    [...document.querySelectorAll<HTMLElement>('[data-key]')].find(
      ({dataset}) => dataset.key === key)?.focus({preventScroll: true});
  }
}

function theme(): string {
  let known: string | null = null;
  try {
    known = localStorage.getItem('theme');
  } catch {
    // A browser may forbid it to files.
  }
  return known ?? (matchMedia('(prefers-color-scheme:dark)').matches
    ? 'dark' : 'light');
}

function setTheme(name: string): void {
  document.documentElement.dataset.theme = name;
}

function changeTheme(app: App): void {
  const other = document.documentElement.dataset.theme === 'dark'
    ? 'light' : 'dark';
  setTheme(other);
  try {
    localStorage.setItem('theme', other);
  } catch {
    // Likewise: it is forgotten.
  }
  app.draw();
}

function later(run: () => void, delay_ms: number): () => void {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(run, delay_ms);
  };
}

function listen(app: App, views: readonly View[]): void {
  new Tip(byId('tip'));
  const search = byId('q') as HTMLInputElement;
  search.addEventListener('input', later(
    () => app.ask({q: search.value.trim()}, false), SEARCH_DELAY_MS));
  byId('theme').addEventListener('click', () => changeTheme(app));
  byId('help').addEventListener('click', () => showHelp(views));
  addEventListener('resize', later(() => app.draw(), RESIZE_DELAY_MS));
  addEventListener('popstate', () => {
    app.query = fromAddress(location.hash.slice(1), app.doc);
    app.draw();
  });
  document.addEventListener('keydown', (event) => press(app, views, event));
}

function press(app: App, views: readonly View[], event: KeyboardEvent): void {
  const search = byId('q') as HTMLInputElement;
  const {key, target} = event;
  if (target === search) {
    if (key === 'Escape') {
      search.value = '';
      search.blur();
      app.ask({q: ''}, false);
    }
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey ||
      (byId('dialog') as HTMLDialogElement).open) {
    return;
  }
  const number = views.findIndex(({name}) => name === app.query.view);
  const view = views[number];
  const element = target instanceof Element ? target : document.body;
  const step = {ArrowLeft: -1, ArrowRight: 1}[key];
  const isTab = element.matches('[role=tab]');
  if (views[Number(key) - 1]) {
    app.show(views[Number(key) - 1]!.name);
  } else if (key === '/') {
    search.focus();
  } else if (key === '?') {
    showHelp(views);
  } else if (key === 't') {
    changeTheme(app);
  } else if (isTab && step) {
    app.show(views[(number + step + views.length) % views.length]!.name);
    byId(`t-${app.query.view}`).focus();
  } else if (view?.press?.(app, event)) {
    // It was that view's.
  } else if (key === 'Escape') {
    back(app);
  } else if (key === 'Enter' && element.matches('tr[tabindex]')) {
    (element as HTMLElement).click();
  } else if (key === 'ArrowUp' || key === 'ArrowDown') {
    if (!moveRow(element, key === 'ArrowDown' ? 1 : -1)) {
      return;
    }
  } else {
    return;
  }
  event.preventDefault();
}

/** One step back: what was chosen last is dropped. */
function back(app: App): void {
  const {line, time, state, label, q, at} = app.query;
  app.ask(line ? {line: ''} : time ? {time: null} : at >= 0 ? {at: -1} : q ? {q: ''}
    : state ? {state: ''} : label ? {label: null} : {});
}

function moveRow(element: Element, step: number): boolean {
  const rows = [...byId('view').querySelectorAll<HTMLElement>('tr[tabindex]')];
  const at = rows.findIndex((row) => row === element);
  const next = rows[at < 0 ? 0
    : Math.max(0, Math.min(rows.length - 1, at + step))];
  next?.focus();
  return next !== undefined;
}

start().catch((error: unknown) => {
  byId('view').replaceChildren(h('div', {class: 'empty', role: 'alert'},
    h('b', {}, 'This page cannot be shown.'), String(error)));
});
