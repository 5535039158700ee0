// What Python put into the page: read, not computed.
//
// The format is in InternalDocs/profile_sampling/page.md.

export interface Value {
  readonly name: string;
  readonly kind: string;
  readonly unit: string;
}

export interface Card {
  readonly rule: string;
  readonly title: string;
  readonly figure: string;
  readonly text: string;
  readonly go: '' | 'place' | 'gil' | 'loop' | 'timeline' | 'waits' | 'tasks';
  readonly place: number;
  readonly link: string;
}

/** From, to, how many, and what they took: all of it, running, waiting for
 * the loop, waiting for the GIL; in nanoseconds. */
export type Spent = readonly [
  from: number, to: number, count: number, sum: number, running: number,
  loopWait: number, gilWait: number];

export interface Route {
  readonly value: string;
  readonly count: number;
  readonly mean_ns: number;
  readonly p50_ns: number;
  readonly p99_ns: number;
  readonly longest_ns: number;
  readonly times: readonly (readonly [number, number, number])[];
  readonly spent: readonly Spent[];
  readonly awaited: readonly Await[];
  /** What threads did for it that ran none of its tasks, by state. */
  readonly threads: Readonly<Record<string, number>>;
}

/** What tasks awaited, at a line of mine or -1, and how long. */
export interface Await {
  readonly kind: string;
  readonly what: string;
  readonly inside: string;
  readonly place: number;
  readonly ns: number;
}

/** Who held the GIL or the event loop: a line, in a library, or without a
 * line the library. */
export interface Holder {
  readonly name: string;
  readonly place: number;
  readonly how: string;
}

export interface Change {
  readonly name: string | null;
  readonly file: string | null;
  readonly line: number | null;
  readonly qualname: string;
  readonly source: string;
  readonly before: number;
  readonly after: number;
  readonly change: number;
  readonly margin: number | null;
  readonly is_clear: boolean;
  readonly called: string;
  /** Of memory of one process, what of it is still in use; else ''. */
  readonly survived: string;
  readonly tag: '' | 'new' | 'gone';
  readonly place: number;
}

/** Calls that a line made of a function; of the total, both are ''. */
export interface CallChange {
  readonly name: string;
  readonly file: string;
  readonly line: number;
  readonly called: string;
  readonly before: number;
  readonly after: number;
  readonly change: number;
  /** Whether the count differs from run to run. */
  readonly is_sure: boolean;
  readonly tag: '' | 'new' | 'gone';
  readonly place: number;
}

/** Exact calls, beside the time of samples. */
export interface Calls {
  readonly mode: string;
  /** What the head says of them. */
  readonly text: string;
  /** Of a line: its function, how many calls it made and its function had,
   * and what it called: name, from there, from all lines, what one took. */
  readonly lines: readonly (readonly [
    number, number, number, number,
    readonly (readonly [string, number, number, string])[]])[];
  /** Functions, how often they were called, and what one call took. */
  readonly functions: readonly (readonly [number, number, string])[];
  readonly queries: readonly {
    readonly route: string;
    readonly place: number;
    readonly name: string;
    readonly what: string;
    readonly calls: number;
    readonly per: number;
    readonly waited_ns: number;
    readonly ns: number;
    readonly text: string;
  }[];
}

interface Side {
  readonly runs: number;
  readonly duration_ns: number;
  readonly start: string;
}

export interface Changes {
  /** Of memory of one process: how it grew; else ''. */
  readonly lead: string;
  readonly what: string;
  readonly value: Value;
  readonly method: 'sampling' | 'runs';
  /** Whether any row may be chance: of single runs, or without enough CPU. */
  readonly is_doubtful: boolean;
  readonly before: Side;
  readonly after: Side;
  readonly total: Change;
  readonly rows: readonly Change[];
  readonly notes: readonly string[];
  /** What changed of exact calls; null: not all profiles have them. */
  readonly calls: {
    readonly lead: string;
    /** Whether they were asked for, instead of time. */
    readonly is_first: boolean;
    readonly rows: readonly CallChange[];
    readonly total: CallChange;
    readonly notes: readonly string[];
  } | null;
}

/** In threads, how many were there at a time. */
export interface Since extends Changes {
  readonly moment: number;
  readonly length_s: number;
  /** By state, before and now. */
  readonly states: readonly (readonly number[])[];
}

/** A part of the RSS. */
export interface Part {
  readonly name: string;
  readonly bytes: number;
  readonly margin: number | null;
  readonly is_most: boolean;
  readonly known_by: string;
}

/** Sampled allocations; what they were is in columns block_…: rows of a
 * sample, in which step allocated and freed (255: not), how long they lived,
 * and bytes with their variances (…_v). */
export interface Memory {
  /** Whether the profile is of nothing else. */
  readonly is_all: boolean;
  readonly period: string;
  readonly has_moments: boolean;
  /** Lines with less have no name. */
  readonly least_bytes: number;
  readonly least: string;
  readonly margin_unit: number;
  /** The number of the label that is the type, or -1. */
  readonly type: number;
  readonly begin_ns: number;
  readonly step_ns: number;
  readonly n_steps: number;
  readonly quarter: number;
  /** In which step the peak is, or -1, and when since the start. */
  readonly peak: number;
  readonly peak_ns: number;
  readonly limit: number | null;
  readonly goes_on: boolean;
  readonly cards: readonly {
    readonly title: string;
    readonly figure: string;
    readonly a: string;
    readonly text: string;
    readonly go: '' | 'grew' | 'peak' | 'allocated';
    readonly link: string;
  }[];
  /** At the end; the last is the RSS. */
  readonly parts: readonly Part[];
  /** The same bytes at the end of each step; null before the first reading. */
  readonly history: readonly (readonly number[] | null)[];
}

export interface Facts {
  readonly schema: string;
  readonly title: string;
  readonly command: string;
  /** Of the command that shows the same lines. */
  readonly options: readonly string[];
  readonly mode: string;
  readonly value: Value;
  readonly duration_ns: number;
  readonly length_ns: number;
  readonly start_time_ns: number;
  readonly start: string;
  readonly rate_hz: number;
  readonly python: string;
  readonly pid: number | null;
  readonly n_threads: number;
  readonly n_samples: number;
  readonly margin: number | null;
  readonly quality: {readonly word: string; readonly texts: readonly string[]};
  readonly states: readonly string[];
  /** What the report decides by, too. */
  readonly rules: {
    readonly nowhere: readonly string[];
    readonly hardly: number; readonly mostly: number;
    readonly slowest: number;
  };
  readonly files: readonly string[];
  readonly packages: readonly string[];
  readonly functions: {
    readonly module: readonly string[];
    readonly qualname: readonly string[];
    readonly file: readonly number[];
    readonly first_line: readonly number[];
    readonly kind: readonly number[];
    readonly origin: readonly number[];
    readonly package: readonly number[];
  };
  readonly threads: readonly string[];
  readonly label_keys: readonly string[];
  readonly label_sets: readonly (readonly (readonly [number, string])[])[];
  readonly route: number;
  readonly is_mine: boolean | null;
  readonly places: {
    readonly function: readonly number[]; readonly line: readonly number[];
  };
  readonly libraries: readonly string[];
  readonly holders: readonly (Holder | null)[];
  readonly waits: readonly ({
    readonly name: string; readonly kind: string;
  } | null)[];
  readonly cards: readonly Card[];
  /** What stands out, too, and has no card. */
  readonly also: readonly Card[];
  readonly requests: {
    readonly key: string;
    readonly rows: readonly Route[];
    readonly has_loop: boolean;
  } | null;
  /** Packages, and what their imports took. */
  readonly imports: readonly (readonly [string, number])[];
  readonly awaited: {
    readonly of_requests: boolean;
    readonly took_ns: number;
    readonly rows: readonly Await[];
    readonly left_out: readonly (readonly [string, number])[];
  } | null;
  readonly calls: Calls | null;
  readonly timeline: {
    readonly resolution_ns: number; readonly is_stale: boolean;
  } | null;
  readonly changes: Changes | null;
  readonly memory: Memory | null;
  /** Of a process that runs: what is so now, in seconds since 1970. */
  readonly live?: {
    readonly at: number;
    readonly threads: number;
    readonly up_s: number;
    readonly ended: string;
    readonly silent_since: number | null;
    /** What changed since the moment that was asked for; null: nothing was
     * seen before it; 0: none was. */
    readonly changes: Since | null | 0;
    /** The oldest first: its age, route, the number of its line or -1, a state
     * or '', and what it does. */
    readonly requests: readonly (readonly [
      number, string, number, string, string])[];
    /** Second by second: how long it was, and how many threads were in each
     * state. */
    readonly history: readonly (readonly number[])[];
  };
  readonly notes: readonly string[];
}

const ARRAYS = {
  u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, back: Uint32Array,
  i32: Int32Array, f64: Float64Array,
};
type Numbers =
  Uint8Array | Uint16Array | Uint32Array | Int32Array | Float64Array;

/** Facts, and columns by their names. */
export interface Document extends Facts {
  readonly column: (name: string) => Numbers;
  readonly has: (name: string) => boolean;
}

const COLUMNS_BEGIN_AT = 8;
export const SCHEMA = 'profile_sampling.page/1';

/** Of a block of the page; null if it has none of that name. */
export async function readBlock(name: string): Promise<ArrayBuffer | null> {
  const block = document.getElementById(name);
  if (block === null) {
    return null;
  }
  const text = atob(block.textContent ?? '');
  const packed = new Uint8Array(text.length);
  for (let i = 0; i < packed.length; i++) {
    packed[i] = text.charCodeAt(i);
  }
  const stream = new Blob([packed]).stream();
  return new Response(
    stream.pipeThrough(new DecompressionStream('gzip'))).arrayBuffer();
}

export function parse(data: ArrayBuffer): Document {
  const size = new DataView(data).getUint32(0, true);
  const facts = JSON.parse(new TextDecoder().decode(
    new Uint8Array(data, 4, size)));
  if (facts.schema !== SCHEMA) {
    throw new Error(`this is a document of the kind ${facts.schema}`);
  }
  const begin = Math.ceil((4 + size) / COLUMNS_BEGIN_AT) * COLUMNS_BEGIN_AT;
  const known = new Map<string, Numbers>();
  for (const [name, [type, offset, length]] of Object.entries(
    facts.columns as Record<string, [keyof typeof ARRAYS, number, number]>)) {
    const column = new ARRAYS[type](data, begin + offset, length);
    // How far back in the same column what is meant is.
    for (let i = 0; type === 'back' && i < column.length; i++) {
      column[i] = i - column[i]!;
    }
    known.set(name, column);
  }
  return {
    ...facts,
    has: (name: string) => known.has(name),
    column: (name: string) => {
      const column = known.get(name);
      if (column === undefined) {
        throw new Error(`there is no column ${name}`);
      }
      return column;
    },
  };
}
