// Lines as they are named in all views: each leads to its source.

import type {App} from './app';
import {h} from './dom';

/** A line; what is none of mine leads nowhere. */
export function lineButton(app: App, place: number): HTMLElement {
  const name = app.model.placeName(place);
  return app.model.isOutside(place) ? h('span', {class: 'm2'}, name)
    : h('button', {type: 'button', class: 'f', onclick: () => app.show(
      'mine', {line: app.model.placeKey(place)})}, name);
}

/** The same with its function and its source. */
export function placeLink(app: App, place: number, inside = ''):
  HTMLElement {
  const {model} = app;
  const number = model.doc.places.function[place]!;
  const line = app.side.sources.line(number, model.doc.places.line[place]!);
  return h('div', {class: 'where'}, number < 0 ? model.placeName(place)
    : lineButton(app, place),
  h('span', {class: 'fn'}, model.functionName(place)),
  inside ? h('code', {class: 'm2 beside', title: inside}, inside) : null,
  line ? h('code', {class: 'm3 beside'}, line) : null);
}
