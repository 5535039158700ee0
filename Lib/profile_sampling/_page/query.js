// What is asked of a profile: the query, and how it is spelt.
//
// This file owns the query and its two spellings: the fragment of the address,
// and the options of the command report.  It must not know a profile.
// @ts-check

/**
 * value      name of the type of values that is looked at; '': the profile's
 * where      pairs of a key and a pattern
 * focus, ignore, hide   patterns, as in the command report
 * fold       kinds of frames and origins of code that are left out
 * collapse   patterns of functions that swallow what they call
 * root       pattern of the function that stacks begin at; '': their roots
 * time       range of time that is looked at, 'from,to' in seconds; ''
 * than       range that it is compared with; ''
 * zoom       range that views of time show; '': all
 * lanes      key of what has a lane of its own there
 * lane       value of that key, of the lane that the stack chart shows; ''
 * view       which view is shown
 * selected   name of the function that is selected; ''
 * search     what is looked for, and marked
 * sort       'self' or 'cum'
 * by         key of the pivot
 * up         whether graphs and trees begin at the leaves
 * flip       whether the flame graph grows upwards
 * idle       whether threads that had nothing to do are shown
 * side       of two profiles 'base', or '': the new one
 * scale      how they are compared: 'share', or '': as they are
 *
 * @typedef {object} Query
 * @property {string} value
 * @property {[string, string][]} where
 * @property {string[]} focus
 * @property {string[]} ignore
 * @property {string[]} hide
 * @property {string[]} fold
 * @property {string[]} collapse
 * @property {string} root
 * @property {string} time
 * @property {string} than
 * @property {string} zoom
 * @property {string} lanes
 * @property {string} lane
 * @property {string} view
 * @property {string} selected
 * @property {string} search
 * @property {string} sort
 * @property {string} by
 * @property {boolean} up
 * @property {boolean} flip
 * @property {boolean} idle
 * @property {string} side
 * @property {string} scale
 */

/** @type {Query} */
export const NO_QUERY = Object.freeze({
  value: '', where: [], focus: [], ignore: [], hide: [], fold: [],
  collapse: [], root: '', view: 'flame', selected: '', search: '',
  sort: 'self', by: 'thread', time: '', than: '', zoom: '', lanes: 'thread',
  lane: '', up: false, flip: false, idle: false, side: '', scale: ''});
/** @type {('focus' | 'ignore' | 'hide' | 'fold' | 'collapse')[]} */
const LISTS = ['focus', 'ignore', 'hide', 'fold', 'collapse'];
/** @type {('value' | 'root' | 'view' | 'selected' | 'search' | 'sort' | 'by'
 *          | 'time' | 'than' | 'zoom' | 'lanes' | 'lane' | 'side'
 *          | 'scale')[]} */
const TEXTS = ['value', 'root', 'view', 'selected', 'search', 'sort', 'by',
               'time', 'than', 'zoom', 'lanes', 'lane', 'side', 'scale'];
/** @type {('up' | 'flip' | 'idle')[]} */
const FLAGS = ['up', 'flip', 'idle'];

export const FOLDS = ['C', 'operators', 'pseudo', 'stdlib', 'packages'];

/**
 * @param {Query} query
 * @returns {string}
 */
export function toFragment(query) {
  const params = new URLSearchParams();
  for (const [key, pattern] of query.where) {
    params.append('where', `${key}=${pattern}`);
  }
  for (const name of LISTS) {
    query[name].forEach((text) => params.append(name, text));
  }
  for (const name of TEXTS) {
    if (query[name] !== NO_QUERY[name]) {
      params.set(name, query[name]);
    }
  }
  for (const name of FLAGS) {
    if (query[name]) {
      params.set(name, '1');
    }
  }
  return params.toString();
}

/**
 * @param {string} fragment
 * @returns {Query}
 */
export function fromFragment(fragment) {
  const params = new URLSearchParams(fragment.replace(/^#/, ''));
  const query = {...NO_QUERY};
  for (const name of FLAGS) {
    query[name] = params.has(name);
  }
  query.where = params.getAll('where').flatMap((text) => {
    const at = text.indexOf('=');
    return at > 0 ? [/** @type {[string, string]} */ (
      [text.slice(0, at), text.slice(at + 1)])] : [];
  });
  for (const name of LISTS) {
    query[name] = params.getAll(name);
  }
  for (const name of TEXTS) {
    query[name] = params.get(name) ?? NO_QUERY[name];
  }
  return query;
}

/**
 * A sentence for each part of a fragment that is no part of a query.
 * @param {string} fragment
 */
export function unreadOf(fragment) {
  const known = ['where', ...LISTS, ...TEXTS, ...FLAGS];
  return [...new URLSearchParams(fragment.replace(/^#/, ''))].flatMap(
    ([name, text]) => (!known.includes(name)
      ? [`The address has ${name} in it, which this page does not know.`]
      : name === 'where' && text.indexOf('=') < 1
        ? [`where=${text} in the address has no label and pattern.`] : []));
}

/**
 * What of a query changes the numbers.
 * @param {Query} query
 */
export function partKey(query) {
  const {value, where, focus, ignore, hide, fold, collapse, root, time, idle}
    = query;
  return JSON.stringify(
    [value, where, focus, ignore, hide, fold, collapse, root, time, idle]);
}

/**
 * The options of the command report that show the same part, for a shell.
 * @param {Query} query
 * @param {string} kind of the values, for --value; '': the profile's own
 */
export function toOptions(query, kind) {
  const range = /^([\d.]*),([\d.]*)$/.exec(query.time) ?? [];
  /** @type {[string, string][]} */
  const options = [
    ...listed(query, 'focus'), ...listed(query, 'ignore'),
    ...query.where.map(([key, pattern]) => /** @type {[string, string]} */ (
      ['where', `${key}=${pattern}`])),
    ['from', range[1] ?? ''], ['to', range[2] ?? ''],
    ...listed(query, 'hide'), ...listed(query, 'fold'),
    ...listed(query, 'collapse'), ['root', query.root], ['value', kind]];
  return [...options.filter(([, text]) => text)
    .map(([name, text]) => (
      // Else it would be taken for an option of its own.
      `--${name}${text.startsWith('-') ? '=' : ' '}${quoted(text)}`)),
          ...query.idle ? ['--idle'] : []].join(' ');
}

/**
 * @param {Query} query
 * @param {'focus' | 'ignore' | 'hide' | 'fold' | 'collapse'} name
 */
function listed(query, name) {
  return query[name].map((text) => /** @type {[string, string]} */ (
    [name, text]));
}

/** @param {string} text */
function quoted(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text
    : `'${text.replaceAll("'", `'"'"'`)}'`;
}
