// What the page is about, for whoever draws a part of it.

import type {Changes, Document, Value} from './document';
import {Model, type Selection, type Sum} from './model';
import {initial, toAddress, type Query, type ViewName} from './query';
import type {Sources} from './source';
import {amount, BYTES, said} from './words';

export interface Side {
  readonly model: Model;
  readonly sources: Sources;
}

export class App {
  query: Query;
  /** Draws everything again; main.ts sets it. */
  draw: () => void = () => undefined;

  /** Whether what is shown must not be replaced; main.ts sets it. */
  isHeld: () => boolean = () => false;

  /** Of a live page, the newest document, and how it stands still; live.ts
   * sets them. */
  newest: Document | null = null;
  pause: () => void = () => undefined;
  /** A part of the time is being chosen. */
  isDragged = false;

  constructor(public doc: Document,
    public sides: Readonly<Record<Query['side'], Side | null>>) {
    this.query = initial(doc);
  }

  /** A page in a frame, as in a notebook: the history is that of the page
   * around it, which is not ours to fill. */
  readonly #isFramed = top !== self;

  get changes(): Changes | null {
    return this.doc.changes;
  }

  /** Of the profile that the views show; differences have two. */
  get side(): Side {
    return this.sides[this.query.side] ?? this.sides.after!;
  }

  get model(): Model {
    return this.side.model;
  }

  get selection(): Selection {
    const {state, time, label, idle, measure, at, view} = this.query;
    // A moment is of what is in use then, a part of the time of all.
    return {state, time, label, idle, at, measure: view === 'memory'
      ? measure || 'in_use' : view === 'flame' ? measure : ''};
  }

  /** What each sample weighs, of what is selected. */
  get weights(): Float64Array {
    return this.model.weights(this.selection);
  }

  weightsWith(other: Partial<Selection>): Float64Array {
    return this.model.weights({...this.selection, ...other});
  }

  get sum(): Sum {
    return this.model.sum(this.weights);
  }

  /** What amounts of the selection are. */
  get value(): Value {
    return this.selection.measure ? BYTES : this.model.doc.value;
  }

  amount(number: number, scale = number): string {
    return amount(this.value, number, scale);
  }

  said(number: number): string {
    return said(this.value, number);
  }

  /** Ask for something else; *isStep*: Back leads here again. */
  ask(other: Partial<Query>, isStep = true): void {
    const before = this.address;
    this.query = {...this.query, ...other};
    if (this.address !== before && !this.#isFramed) {
      const url = `#${this.address}`;
      if (isStep) {
        history.pushState(null, '', url);
      } else {
        history.replaceState(null, '', url);
      }
    }
    this.draw();
  }

  get address(): string {
    return toAddress(this.query, this.doc);
  }

  show(view: ViewName, other: Partial<Query> = {}): void {
    this.ask({...other, view});
    scrollTo(0, 0);
  }
}

/** A view of the page. */
export interface View {
  readonly name: ViewName;
  readonly title: string;
  /** Keys that only this view has. */
  readonly keys: readonly (readonly [string, string])[];
  readonly isThere: (app: App) => boolean;
  readonly draw: (app: App, place: HTMLElement) => void;
  /** Take a key; return whether it was one of this view's. */
  readonly press?: (app: App, event: KeyboardEvent) => boolean;
  /** Whether something is chosen that other figures would not have. */
  readonly isHeld?: (app: App) => boolean;
}
