"""The language of patterns: that of commands, of profiles and of pages.

This file owns what a pattern may have in it.  It must not know what is
searched.

A pattern is a regular expression of what Python and JavaScript have in common.
_page/pattern.js reads the same language, and gives it the same meaning, which
is Python's.
"""

import re

_PUNCTUATION = r'[!-/:-@[-`{-~]'
_CHARACTER = (rf'(?:\\(?:[nt]|{_PUNCTUATION})'
              r'|(?!&&|~~|\|\|)[^\]\[\\-])')
_ITEMS = rf'(?:{_CHARACTER}(?:-{_CHARACTER})?|\\[dws])+'
_TOKEN = re.compile(
    r'(?P<repeat>(?:[*+?]|\{[0-9]{1,4}(?:,[0-9]{0,4})?\})\??)'
    r'|(?P<open>\((?:\?[:=!])?)(?!\?)'
    r'|(?P<close>\))'
    r'|(?P<between>\|)'
    r'|(?P<assertion>\\b|[$^])'
    rf'|(?P<set>\[(?:\^|(?!\^))(?:-?{_ITEMS}-?|-)\])'
    rf'|(?P<atom>\\(?:[dwsDWSnt]|{_PUNCTUATION})'
    r'|(?!\{(?:[0-9]+,?|,)[0-9]*\})[^\\()[*+?])', re.DOTALL)
_IGNORE_CASE = '(?i)'
_KNOWN = (r'. [a-z] [^a-z] \d \w \s \D \W \S \b \n \t ^ $ | ( ) (?: ) (?= ) '
          r'(?! ) * + ? {m,n}, \ before punctuation, and (?i) at the beginning')


def compiled(text):
    """Return a pattern as a compiled regular expression.

    Raise ValueError for what is none, or has a meaning in one of the two
    languages only.
    """
    _check(text)
    try:
        return re.compile(text)
    except re.error as exc:
        raise _no_expression(text, exc) from None


def _check(text):
    at = len(_IGNORE_CASE) if text.startswith(_IGNORE_CASE) else 0
    # Of each group that is open, whether it can be repeated.
    groups = []
    can_repeat = False
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise ValueError(
                f'{text!r} has in it what is not supported in a pattern, at '
                f'{text[at:at + 4]!r}; a pattern may have {_KNOWN}')
        kind = token.lastgroup
        if kind == 'repeat' and not can_repeat:
            raise _no_expression(text, f'{token[0]} has nothing to repeat')
        if kind == 'open':
            groups.append(token[0] in ('(', '(?:'))
        elif kind == 'close' and not groups:
            raise _no_expression(text, ') closes nothing')
        can_repeat = (kind in ('atom', 'set')
                      or kind == 'close' and groups.pop())
        at = token.end()
    if groups:
        raise _no_expression(text, 'a ) is missing')


def _no_expression(text, reason):
    return ValueError(f'{text!r} is no regular expression: {reason}')
