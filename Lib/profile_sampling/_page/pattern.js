// The language of patterns: that of commands, of profiles and of pages.
//
// This file owns what a pattern may have in it, as _data/pattern.py does, and
// what that is in JavaScript.  It must not know what is searched.
// @ts-check

const PUNCTUATION = '[!-\\/:-@\\[-`{-~]';
const CHARACTER = `(?:\\\\(?:[nt]|${PUNCTUATION})`
  + '|(?!&&|~~|\\|\\|)[^\\]\\[\\\\-])';
const ITEM = `${CHARACTER}(?:-${CHARACTER})?|\\\\[dws]`;
const TOKEN = new RegExp(
  '(?<repeat>(?:[*+?]|\\{[0-9]{1,4}(?:,[0-9]{0,4})?\\})\\??)'
  + '|(?<open>\\((?:\\?[:=!])?)(?!\\?)'
  + '|(?<close>\\))'
  + '|(?<between>\\|)'
  + '|(?<assertion>\\\\b|[$^])'
  + `|(?<set>\\[(?:\\^|(?!\\^))(?:-?(?:${ITEM})+-?|-)\\])`
  + `|(?<atom>\\\\(?:[dwsDWSnt]|${PUNCTUATION})`
  + '|(?!\\{(?:[0-9]+,?|,)[0-9]*\\})[^\\\\()\\[*+?])', 'suy');
const ITEMS = new RegExp(`${ITEM}|-`, 'gu');
const IGNORE_CASE = '(?i)';
const LANGUAGE = '. [a-z] [^a-z] \\d \\w \\s \\D \\W \\S \\b \\n \\t ^ $ | ( ) '
  + '(?: ) (?= ) (?! ) * + ? {m,n}, \\ before punctuation, and (?i) at the '
  + 'beginning';
// What Python means by them.
const CLASSES = {
  d: '\\p{Nd}', w: '\\p{L}\\p{N}_',
  s: '\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f'
    + '\\u205f\\u3000'};
const WORD = `[${CLASSES.w}]`;
const ASSERTIONS = {
  '^': '^', '$': '(?=\\n?$)',
  '\\b': `(?:(?<=${WORD})(?!${WORD})|(?<!${WORD})(?=${WORD}))`};

/**
 * What finds a pattern in a text.  Raise an Error with a sentence for a text
 * that is no pattern, or has a meaning in one of the two languages only.
 * @param {string} text
 * @returns {{test: (text: string) => boolean}}
 */
export function compiled(text) {
  const ignoresCase = text.startsWith(IGNORE_CASE);
  const source = translated(text, ignoresCase);
  try {
    const expression = new RegExp(source, ignoresCase ? 'iu' : 'u');
    return ignoresCase ? {test: (name) => expression.test(dotted(name))}
      : expression;
  } catch (error) {
    throw noExpression(text, /** @type {Error} */ (error).message);
  }
}

/**
 * @param {string} text
 * @param {boolean} ignoresCase
 */
function translated(text, ignoresCase) {
  TOKEN.lastIndex = ignoresCase ? IGNORE_CASE.length : 0;
  // Of each group that is open, whether it can be repeated.
  const groups = /** @type {boolean[]} */ ([]);
  let canRepeat = false;
  let source = '';
  while (TOKEN.lastIndex < text.length) {
    const at = TOKEN.lastIndex;
    const found = TOKEN.exec(text);
    if (found === null) {
      throw new Error(
        `'${text}' has in it what is not supported in a pattern, at '${
          text.slice(at, at + 4)}'; a pattern may have ${LANGUAGE}`);
    }
    const [token] = found;
    const is = /** @type {Record<string, string | undefined>} */ (
      found.groups);
    if (is.repeat && !canRepeat) {
      throw noExpression(text, `${token} has nothing to repeat`);
    }
    canRepeat = Boolean(is.atom || is.set);
    if (is.open) {
      groups.push(token === '(' || token === '(?:');
    } else if (is.close) {
      const group = groups.pop();
      if (group === undefined) {
        throw noExpression(text, ') closes nothing');
      }
      canRepeat = group;
    }
    source += is.atom ? atom(token, ignoresCase)
      : is.set ? set(token, ignoresCase)
      : is.assertion ? ASSERTIONS[/** @type {'^'} */ (token)] : token;
  }
  if (groups.length) {
    throw noExpression(text, 'a ) is missing');
  }
  return source;
}

/**
 * @param {string} token
 * @param {boolean} ignoresCase
 */
function atom(token, ignoresCase) {
  if (token === '.') {
    return '[^\\n]';
  }
  const known = /^\\([dws])$/i.exec(token);
  if (known) {
    const name = /** @type {'d'} */ (known[1].toLowerCase());
    return `[${name === known[1] ? '' : '^'}${CLASSES[name]}]`;
  }
  return character(token, ignoresCase);
}

/**
 * @param {string} token
 * @param {boolean} ignoresCase
 */
function set(token, ignoresCase) {
  const start = token.startsWith('[^') ? 2 : 1;
  const items = token.slice(start, -1).match(ITEMS) ?? [];
  return `${token.slice(0, start)}${items.map((item) => {
    const known = /^\\([dws])$/.exec(item);
    if (known) {
      return CLASSES[/** @type {'d'} */ (known[1])];
    }
    const range = /^(\\?.)-(\\?.)$/su.exec(item);
    return range ? `${character(range[1], false)}-${character(range[2], false)}`
      : character(item, ignoresCase);
  }).join('')}]`;
}

/**
 * A character, or what stands for one.
 * @param {string} token
 * @param {boolean} ignoresCase
 */
function character(token, ignoresCase) {
  if (/^\\[nt]$/.test(token)) {
    return token;
  }
  const text = token.length > 1 && token.startsWith('\\') ? token.slice(1)
    : token;
  return /[\\^$.*+?()[\]{}|/-]/.test(text)
    ? `\\x${text.charCodeAt(0).toString(16)}`
    : ignoresCase ? dotted(text) : text;
}

/** Python does not tell these apart without case; @param {string} text */
function dotted(text) {
  return text.replace(/[\u0130\u0131]/g, 'i');
}

/**
 * @param {string} text
 * @param {string} reason
 */
function noExpression(text, reason) {
  return new Error(`'${text}' is no regular expression: ${reason}`);
}
