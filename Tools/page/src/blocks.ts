// Sampled allocations: how much of an amount each sample has, at a moment or
// in a part of the time.  As _data/growth.py and _data/moments.py have it.

import type {Document} from './document';
import type {Selection} from './model';

export type Measure =
  'in_use' | 'peak' | 'grew' | 'survived' | 'allocated' | 'churn';

export interface Measured {
  /** Bytes of each sample, and their variance. */
  readonly bytes: Float64Array;
  readonly variances: Float64Array;
}

/** A part of the time in steps, the last one included. */
export interface Steps {
  readonly from: number;
  readonly to: number;
  readonly isPart: boolean;
}

const NEVER = 255;
/** Of lifetimes, in decades: these are below one second. */
const CHURN_LIFETIMES = 5;
export const LIFETIMES = ['0.1 ms', '1 ms', '10 ms', '0.1 s', '1 s', '10 s',
  '100 s', 'longer'];

export class Blocks {
  readonly #samples: ArrayLike<number>;
  readonly #begun: ArrayLike<number>;
  readonly #ended: ArrayLike<number>;
  readonly #lifetimes: ArrayLike<number>;
  readonly #of: Readonly<Record<
    'allocated' | 'freed' | 'in_use' | 'peak',
    readonly [ArrayLike<number>, ArrayLike<number>]>>;

  constructor(readonly doc: Document, readonly nSamples: number) {
    const column = (name: string) => doc.column(`block_${name}`);
    const pair = (name: string) => (
      [column(name), column(`${name}_v`)] as const);
    this.#samples = column('sample');
    this.#begun = column('begun');
    this.#ended = column('ended');
    this.#lifetimes = column('lifetime');
    this.#of = {allocated: pair('allocated'), freed: pair('freed'),
      in_use: pair('in_use'), peak: pair('peak')};
  }

  get last(): number {
    return this.doc.memory!.n_steps - 1;
  }

  /** The steps of a selection. */
  steps({time, at}: Selection): Steps {
    const {step_ns: step, begin_ns: begin} = this.doc.memory!;
    const start = this.doc.start_time_ns - begin;
    const bound = (number: number) => Math.max(
      0, Math.min(this.last, number));
    if (time !== null) {
      return {from: bound(Math.round((start + time[0]) / step)),
        to: bound(Math.round((start + time[1]) / step) - 1), isPart: true};
    }
    return {from: 0, to: at < 0 ? this.last : bound(at), isPart: false};
  }

  /** The time of steps, in nanoseconds since the start. */
  timeOf(from: number, to: number): [number, number] {
    const {step_ns: step, begin_ns: begin} = this.doc.memory!;
    const start = this.doc.start_time_ns - begin;
    return [from * step - start, (to + 1) * step - start];
  }

  /** Whether the peak is in these steps. */
  hasPeak({from, to, isPart}: Steps): boolean {
    const {peak} = this.doc.memory!;
    return !isPart || from <= peak && peak <= to;
  }

  measured(measure: Measure, steps: Steps): Measured {
    const {from, to, isPart} = steps;
    const bytes = new Float64Array(this.nSamples);
    const variances = new Float64Array(this.nSamples);
    const {allocated, freed, in_use: inUse, peak} = this.#of;
    const add = ([values, its]: readonly [ArrayLike<number>,
      ArrayLike<number>], i: number, sign = 1, signOfVariance = sign) => {
      bytes[this.#samples[i]!]! += sign * values[i]!;
      variances[this.#samples[i]!]! += signOfVariance * its[i]!;
    };
    const hasPeak = this.hasPeak(steps);
    const until = measure === 'peak' && !hasPeak ? this.highest(steps) : to;
    const since = measure === 'grew' && !isPart ? this.doc.memory!.quarter
      : from;
    for (let i = 0; i < this.#samples.length; i++) {
      const begun = this.#begun[i]!, ended = this.#ended[i]!;
      const hasEnded = ended !== NEVER;
      if (measure === 'peak' && hasPeak) {
        add(peak, i);
      } else if (measure === 'in_use' || measure === 'peak') {
        if (begun <= until) {
          add(inUse, i);
          if (hasEnded && ended > until) {
            add(freed, i);
          }
        }
      } else if (measure === 'grew') {
        const isNew = begun >= since;
        if (isNew && begun <= to) {
          add(allocated, i);
        }
        if (hasEnded && ended >= since && ended <= to) {
          add(freed, i, -1, isNew ? -1 : 1);
        }
      } else if (measure === 'churn') {
        if (hasEnded && ended >= from && ended <= to &&
            this.#lifetimes[i]! < CHURN_LIFETIMES) {
          add(freed, i);
        }
      } else if (begun >= from && begun <= to) {
        add(allocated, i);
        if (measure === 'survived') {
          add(freed, i, -1);
        }
      }
    }
    return {bytes, variances};
  }

  /** In use at the end of each step, by the numbers that samples have; those
   * with -1 are left out. */
  levels(keys: ArrayLike<number>, nKeys: number): Float64Array[] {
    const {in_use: [inUse], allocated: [allocated], freed: [freed]} = this.#of;
    const ends = new Float64Array(nKeys);
    const found = Array.from({length: nKeys},
      () => new Float64Array(this.last + 1));
    for (let i = 0; i < this.#samples.length; i++) {
      const key = keys[this.#samples[i]!]!;
      if (key >= 0) {
        ends[key]! += inUse[i]!;
        found[key]![this.#begun[i]!]! += allocated[i]!;
        if (this.#ended[i] !== NEVER) {
          found[key]![this.#ended[i]!]! -= freed[i]!;
        }
      }
    }
    found.forEach((its, key) => {
      let level = ends[key]!;
      for (let step = this.last; step >= 0; step--) {
        const change = its[step]!;
        its[step] = Math.max(0, level);
        level -= change;
      }
    });
    return found;
  }

  /** Allocated in each step, and what of it is still in use at the end. */
  flows(isWanted: (sample: number) => boolean): [Float64Array, Float64Array] {
    const {allocated: [allocated], freed: [freed]} = this.#of;
    const all = new Float64Array(this.last + 1);
    const left = new Float64Array(this.last + 1);
    for (let i = 0; i < this.#samples.length; i++) {
      if (isWanted(this.#samples[i]!)) {
        all[this.#begun[i]!]! += allocated[i]!;
        left[this.#begun[i]!]! += allocated[i]! - freed[i]!;
      }
    }
    return [all, left];
  }

  /** What was freed of some samples by lifetime, of what was allocated in
   * these steps. */
  lifetimes({from, to}: Steps, isWanted: (sample: number) => boolean):
    number[] {
    const found = LIFETIMES.map(() => 0);
    for (let i = 0; i < this.#samples.length; i++) {
      if (this.#ended[i] !== NEVER && this.#begun[i]! >= from &&
          this.#begun[i]! <= to && isWanted(this.#samples[i]!)) {
        found[Math.min(this.#lifetimes[i]!, found.length - 1)]! +=
          this.#of.freed[0][i]!;
      }
    }
    return found;
  }

  /** The step with most in use. */
  highest({from, to}: Steps): number {
    const [levels] = this.levels(new Uint8Array(this.nSamples), 1);
    let found = from;
    for (let step = from; step <= to; step++) {
      if (levels![step]! > levels![found]!) {
        found = step;
      }
    }
    return found;
  }
}
