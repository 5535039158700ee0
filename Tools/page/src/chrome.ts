// What stands above each view, and the keys below: it never changes place.

import type {App, View} from './app';
import {bar, parts, type Part} from './bars';
import {byId, choices, h, link} from './dom';
import {timeText} from './measures';
import {UNFILTERED} from './model';
import {command} from './query';
import {baseName, clock, percent, plural, STATES, time} from './words';

export function drawHead(app: App): void {
  const {model: {doc}, changes} = app;
  const {quality} = doc;
  const facts = changes !== null ? [
    h('span', {class: 'ph'}, h('b', {}, 'before'), ` ${changes.before.start} → `,
      h('b', {}, 'after'), ` ${changes.after.start}`)]
    : [
      doc.live ? h('span', {class: 'ph'}, `PID ${doc.pid}`) : null,
      h('span', {class: 'command', 'data-tip': [doc.command,
        doc.python && `Python ${doc.python}`, doc.start].filter(Boolean)
        .join(', ')}, shortCommand(doc.command) || doc.start),
      doc.live ? null : h('span', {class: 'ph'}, length(doc.length_ns)),
      doc.memory?.is_all ? h('span', {class: 'opt'},
        `memory, a sample per ${doc.memory.period}`)
        : h('span', {class: 'opt', 'data-tip': doc.mode === 'wall'
        ? 'Real time, busy or waiting, of every thread. The other mode is ' +
          'CPU time.' : 'The time that threads had a CPU. The other mode is ' +
          'real time.'}, `${doc.mode === 'cpu' ? 'CPU' : doc.mode} time, ` +
        plural(doc.n_threads, 'thread'))];
  const isGood = quality.word === 'good';
  byId('title').textContent = doc.title || 'Profile';
  document.title = changes !== null ? `${doc.title}: before → after`
    : `${doc.title || 'Profile'}, ${time(doc.length_ns)}`;
  byId('facts').replaceChildren(...facts.filter((one) => one !== null),
    doc.memory?.is_all ? '' : h('span', {class: changes === null ? 'opt ph'
      : 'opt'}, plural(doc.n_samples, 'sample')),
    h('button', {type: 'button', class: isGood ? 'q ph' : 'q poor ph',
      'data-tip': [...quality.texts, doc.calls?.text ?? ''].join(' ').trim(),
      onclick: () => showQuality(app)},
    isGood ? 'Quality good' : `Quality: ${quality.word}`));
}

/** Of long recordings, in minutes. */
function length(ns: number): string {
  return ns < 6e11 ? time(ns) : `${Math.round(ns / 6e10)}\u00a0min`;
}

/** As typed, without the folder that Python is in. */
function shortCommand(command: string): string {
  const [program = '', ...rest] = command.split(' ');
  return /^-|\.py$/.test(program) ? `python ${command}`
    : [baseName(program), ...rest].join(' ');
}

export function drawTabs(app: App, views: readonly View[]): void {
  const {view} = app.query;
  byId('tabs').replaceChildren(...views.map(({name, title}) => h('button', {
    type: 'button', role: 'tab', id: `t-${name}`, 'aria-controls': 'view',
    'aria-selected': String(view === name), tabindex: view === name ? 0 : -1,
    'data-key': `tab ${name}`, onclick: () => app.show(name)}, title)),
  ...(app.changes === null || view === 'diff' ? [] : [choices('Profile', (
    ['before', 'after'] as const).map((side) => ({
    text: side, isChosen: app.query.side === side,
    choose: () => app.ask({side})})))]));
}

export function drawChips(app: App): void {
  const {query} = app;
  const said = command(query, app.model.doc);
  const found: HTMLElement[] = [];
  const add = (text: string, drop: () => void) => found.push(h('span', {
    class: 'chip'}, text, h('button', {type: 'button', onclick: drop,
    'aria-label': `Remove: ${text}`}, '×')));
  if (query.state) {
    add(`state is ${STATES[query.state]!.name}` + (app.selection.measure
      ? ' (does not apply to memory)' : ''), () => app.ask({state: ''}));
  }
  if (query.time) {
    const [begin, end] = query.time;
    const {live, start_time_ns: start} = app.doc;
    add(app.selection.measure ? timeText(app)
      : live ? `time ${clock((start + begin) / 1e9)}–` +
        clock((start + end) / 1e9)
      : `time ${(begin / 1e9).toFixed(1)}–${(end / 1e9).toFixed(1)} s`,
    () => app.ask({time: null}));
  }
  if (query.at >= 0 && app.selection.measure) {
    add(timeText(app), () => app.ask({at: -1}));
  }
  if (query.label) {
    add(query.label.join(' '), () => app.ask({label: null}));
  }
  if (query.q) {
    const sum = app.model.sumMatching(
      app.weights, app.model.matching(query.q));
    add(`name has “${query.q}”, ${app.said(sum)}`, () => app.ask({q: ''}));
  }
  byId('chips').replaceChildren(...found.length === 0 ? [] : [
    h('span', {}, 'Only'), ...found,
    ...(found.length > 1 ? [clearAll(app)] : []),
    h('button', {type: 'button', class: 'link cmd',
      'data-tip': said, onclick: (event) => {
        const button = event.currentTarget as HTMLElement;
        // There is none where a page comes by plain HTTP.
        const clipboard = navigator.clipboard as Clipboard | undefined;
        (clipboard?.writeText(said) ?? Promise.reject()).then(() => {
          button.textContent = 'Copied';
        }, () => {
          dialog('The command that shows the same',
            h('p', {}, h('code', {}, said)));
        });
      }}, 'Copy as command')]);
}

function clearAll(app: App): HTMLElement {
  return link('Clear all', () => app.ask({...UNFILTERED, q: ''}));
}

/** Where filters leave nothing. */
export function nothingLeft(app: App): HTMLElement {
  return h('div', {class: 'empty'},
    h('b', {}, 'Nothing is left with these filters.'), clearAll(app));
}

/** The bar on top: total, legend and filter in one. */
export function drawBand(app: App): void {
  const {query, model} = app;
  const sum = model.sum(app.weightsWith({state: '', idle: false}));
  const idle = model.idleTime({...app.selection, state: ''});
  const all = parts(app, sum);
  const whole = sum.total + (query.idle ? idle : 0);
  const shown: Part[] = query.idle && idle > 0
    ? [...all, {name: 'idle', css: 'idle', value: idle}] : all;
  const band = bar(app, shown, whole, 'bandbar');
  [...band.children].forEach((part) => {
    const css = part.className;
    part.classList.toggle('dim', query.state !== '' &&
      css !== `s-${STATES[query.state]!.css}`);
  });
  byId('band').replaceChildren(band);
  byId('legend').replaceChildren(...Object.entries(STATES).flatMap(
    ([state, {name, css, tip}]) => {
      const value = sum.states[model.doc.states.indexOf(state)] ?? 0;
      if (value <= 0 && query.state !== state) {
        return [];
      }
      return [h('button', {
        type: 'button', 'data-key': `state ${state}`,
        'aria-pressed': String(!query.state || query.state === state),
        'data-tip': `${tip} Click: show only this.`,
        onclick: () => app.ask({state: query.state === state ? '' : state})},
      h('span', {class: `sw s-${css}`}), `${name} `,
      h('b', {}, percent(value, whole)))];
    }), ...(idle > 0 ? [idleSwitch(app, idle, sum.total + idle)] : []));
}

function idleSwitch(app: App, idle: number, all: number): HTMLElement {
  const {idle: isShown} = app.query;
  return h('span', {class: 'right'},
    h('span', {class: 'tipped', tabindex: 0, 'data-tip':
      'Idle: a thread with nothing to do (a worker waiting for work, the ' +
      'event loop waiting for requests). Shares on this page are of the ' +
      'time that is shown.'},
    `${isShown ? 'idle included' : 'idle left out'}: ${app.said(idle)} of ` +
    app.said(all)),
    link(isShown ? 'Leave out' : 'Show', () => app.ask({idle: !isShown}),
      {'data-key': 'idle'}));
}

export function drawFoot(views: readonly View[], view: View): void {
  byId('foot').replaceChildren(...[
    [`1–${views.length}`, 'views'], ['/', 'search'], ...view.keys,
    ['?', 'all keys and words']].map(([key, what]) => h('span', {},
    h('kbd', {}, key!), ` ${what}`)));
}

export function dialog(title: string, ...content: Node[]): void {
  const element = byId('dialog') as HTMLDialogElement;
  element.replaceChildren(h('h2', {}, title), ...content,
    h('form', {method: 'dialog'}, h('button', {class: 'link'}, 'Close')));
  element.showModal();
}

function showQuality(app: App): void {
  const {doc} = app.model;
  dialog('How far these figures can be trusted',
    ...[...doc.quality.texts, ...doc.notes].map((text) => h('p', {}, text)));
}

export function showHelp(views: readonly View[]): void {
  const keys = [
    [`1 – ${views.length}`, 'the views'], ['/', 'search; Esc clears it'],
    ['↑ ↓', 'move in a table or in the flame graph (also ← →)'],
    ['Enter', 'open the source, zoom in'],
    ['Esc', 'one step back: zoom out, close the source, drop the chosen time'],
    ['t', 'light or dark']];
  dialog('Keys and words', h('dl', {},
    ...keys.flatMap(([key, what]) => [
      h('dt', {}, h('kbd', {}, key!)), h('dd', {}, what!)]),
    ...Object.values(STATES).slice(0, 7).flatMap(({name, css, tip}) => [
      h('dt', {}, h('span', {class: `sw s-${css}`}), ` ${name}`),
      h('dd', {}, tip)])),
  h('p', {class: 'm2'}, 'Another page of this kind can be dropped here to ' +
    'look at it. Two profiles are compared by ', h('code', {},
    'python -m profile_sampling diff BEFORE AFTER --html'), '.'));
}

