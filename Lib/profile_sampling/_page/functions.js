// The functions of a profile, and what their names and places mean.
//
// This file owns how a function of a pprof file becomes one of ours, as
// _formats/pprof/functions.py does.  It must not know how they are encoded.
// @ts-check

export const PYTHON = 0;
export const C = 1;
export const OPERATOR = 2;
export const PSEUDO = 3;
export const KINDS = ['python', 'C', 'operator', 'pseudo'];
const MAX_MODULE_DEPTH = 64;

/**
 * name is 'module.qualname'; kind is a number in KINDS.
 *
 * @typedef {object} Func
 * @property {string} name
 * @property {string} module
 * @property {string} qualname
 * @property {string} filename
 * @property {number} firstLine
 * @property {number} kind
 */

/** Functions without duplicates, by their names and places. */
export class Functions {
  /** @param {Set<string>} modules that names may begin with */
  constructor(modules) {
    this.modules = modules;
    this.longest = -1;
    for (const name of modules) {
      this.longest = Math.max(this.longest, name.length);
    }
    /** @type {Func[]} */
    this.rows = [];
    /** @type {Map<string, number>} */
    this.numbers = new Map();
    /** @type {Map<string, [number, number][]> | null} */
    this.byPlace = null;
    /** @type {Map<string, number>} */
    this.byName = new Map();
  }

  /**
   * The number of a function of the file.
   * @param {string} name
   * @param {string} filename
   * @param {number} firstLine
   */
  add(name, filename, firstLine) {
    let kind = PYTHON;
    if (!firstLine) {
      if (filename === '<C>') {
        kind = C;
      } else if (filename === '<operator>') {
        kind = OPERATOR;
      } else if (!filename && /^\[[^]*\]$/.test(name)) {
        kind = PSEUDO;
      }
    }
    return this.intern(name, filename, firstLine, kind);
  }

  /**
   * @param {string} name
   * @param {string} filename
   * @param {number} firstLine
   * @param {number} kind
   * @returns {number}
   */
  intern(name, filename, firstLine, kind) {
    const [module, qualname] = kind === PSEUDO ? [null, name]
      : this.split(name);
    if (kind !== PYTHON) {
      filename = '';
      firstLine = 0;
    }
    const key = JSON.stringify([module, qualname, filename, firstLine, kind]);
    let number = this.numbers.get(key);
    if (number === undefined) {
      number = this.rows.push({
        name, module: module ?? '', qualname, filename, firstLine, kind}) - 1;
      this.numbers.set(key, number);
    }
    return number;
  }

  /**
   * The module, if it is known, and the qualified name.
   * @param {string} name
   * @returns {[string | null, string]}
   */
  split(name) {
    const dots = [];
    let at = name.indexOf('.');
    while (at >= 0 && at <= this.longest && dots.length < MAX_MODULE_DEPTH) {
      dots.push(at);
      at = name.indexOf('.', at + 1);
    }
    // The longest that fits: 'a.b' before 'a'.
    for (const dot of dots.reverse()) {
      if (this.modules.has(name.slice(0, dot))) {
        return [name.slice(0, dot), name.slice(dot + 1)];
      }
    }
    return [null, name];
  }

  /**
   * Who held the GIL: *text* is 'function (callee)', *place* 'file:line' if
   * the function is Python.
   * @param {string} text
   * @param {string | undefined} place
   */
  holder(text, place) {
    if (place === undefined) {
      return {func: this.named(text), line: 0, callee: -1};
    }
    let name = text;
    let callee = -1;
    const open = text.endsWith(')') ? text.lastIndexOf(' (') : -1;
    if (open >= 0) {
      name = text.slice(0, open);
      callee = this.named(text.slice(open + 2, -1));
    }
    const colon = place.lastIndexOf(':');
    const digits = place.slice(colon + 1);
    const line = /^[0-9]{1,9}$/.test(digits) ? Number(digits) : 0;
    const filename = colon < 0 ? '' : place.slice(0, colon);
    return {func: this.placed(name, filename, line), line, callee};
  }

  /**
   * The function that begins last before a line of a file.
   * @param {string} name
   * @param {string} filename
   * @param {number} line
   */
  placed(name, filename, line) {
    const {byPlace} = this.indexed();
    const key = JSON.stringify([name, filename]);
    let found = byPlace.get(key);
    if (found === undefined) {
      found = [[0, this.intern(name, filename, 0, PYTHON)]];
      byPlace.set(key, found);
    }
    let best = found[0];
    for (const one of found) {
      if (one[0] <= line) {
        best = one;
      }
    }
    return best[1];
  }

  /** @param {string} name of what is not Python */
  named(name) {
    const {byName} = this.indexed();
    let number = byName.get(name);
    if (number === undefined) {
      number = this.intern(name, '', 0, /^\[[^]*\]$/.test(name) ? PSEUDO : C);
      byName.set(name, number);
    }
    return number;
  }

  /** Only who held the GIL is looked for by name. */
  indexed() {
    if (this.byPlace === null) {
      /** @type {Map<string, [number, number][]>} */
      const byPlace = new Map();
      this.rows.forEach((row, number) => {
        if (row.kind !== PYTHON) {
          if (!this.byName.has(row.name)) {
            this.byName.set(row.name, number);
          }
          return;
        }
        const key = JSON.stringify([row.name, row.filename]);
        const found = byPlace.get(key) ?? [];
        found.push([row.firstLine, number]);
        byPlace.set(key, found);
      });
      for (const found of byPlace.values()) {
        found.sort((one, other) => one[0] - other[0] || one[1] - other[1]);
      }
      this.byPlace = byPlace;
    }
    return {byPlace: this.byPlace, byName: this.byName};
  }
}

/**
 * What orders functions of equal weight.
 * @param {Func | null} one
 * @param {Func | null} other
 */
export function compareFunctions(one, other) {
  if (one === null || other === null) {
    return Number(one !== null) - Number(other !== null);
  }
  return compareTexts(one.name, other.name)
    || compareTexts(one.filename, other.filename)
    || one.firstLine - other.firstLine
    || compareTexts(KINDS[one.kind], KINDS[other.kind]);
}

/**
 * @param {string} one
 * @param {string} other
 */
export function compareTexts(one, other) {
  return one < other ? -1 : Number(one > other);
}
