"""A command line without what looks like a secret.

No rule finds all secrets.  These hide what has a telling name, in options,
assignments, headers and addresses, and what is written as well-known services
write their tokens.
"""

import re

HIDDEN = '***'
# What a part of a name says: db-password, AWS_SECRET_ACCESS_KEY, authToken.
_TELLING = frozenset({
    'apikey', 'auth', 'authorization', 'bearer', 'cookie', 'cred', 'credential',
    'credentials', 'creds', 'dsn', 'jwt', 'otp', 'pass', 'passphrase',
    'passwd', 'password', 'passwords', 'pw', 'pwd', 'secret', 'secrets',
    'sig', 'signature', 'token'})
# Before 'key', which alone is a name of much else.
_OF_KEYS = frozenset({'access', 'account', 'api', 'encryption', 'private',
                      'secret', 'shared', 'signing', 'storage'})
_APART = re.compile(r'[A-Z]*[a-z]+|[A-Z]+|\d+')
_OPTION = re.compile(r'--?[A-Za-z][\w.-]*')
# A name and its value, in code, a header, an address or an assignment.
_ASSIGNED = re.compile(
    r'''(?P<name>[A-Za-z][\w.-]*)(?P<between>["']?\s*(?:=|:(?!//))\s*)'''
    r'''("[^"]*"|'[^']*'|(?:Bearer|Basic|Token)\s+[^\s"']+|[^\s"'&;,]+)''')
_IN_ADDRESS = re.compile(r'(\b[A-Za-z][\w+.-]*://)[^/\s?#"\']*@')
_TOKEN = re.compile(
    r'\b(?:gh[a-z]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|sk-[\w-]{16,}'
    r'|xox[a-z]-[\w-]{10,}|pypi-[\w-]{16,}|hf_\w{20,}|A[KS]IA[0-9A-Z]{16}'
    r'|AIza[\w-]{30,}|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*'
    # A long number in letters is no word.
    r'|(?=[\w+=-]*\d)(?=[\w+=-]*[A-Za-z])[0-9a-fA-F]{32,}'
    r'|(?=[\w+=]*\d)(?=[\w+=]*[a-z])(?=[\w+=]*[A-Z])[A-Za-z0-9+]{32,}=*)')


def hidden(words):
    """Return the words of a command line with secrets as HIDDEN."""
    shown = []
    is_value = False
    for word in words:
        if is_value and not word.startswith('--'):
            shown.append(HIDDEN)
            is_value = False
            continue
        is_value = bool(_OPTION.fullmatch(word)) and _is_telling(word)
        shown.append(_without_secrets(word))
    return shown


def _without_secrets(text):
    text = _IN_ADDRESS.sub(rf'\1{HIDDEN}@', text)
    parts = []
    at = 0
    while found := _ASSIGNED.search(text, at):
        # What it is of may be an assignment of its own: --env=TOKEN=x.
        parts.append(text[at:found.end('between')])
        at = found.end('between')
        if _is_telling(found['name']):
            parts.append(HIDDEN)
            at = found.end()
    return _TOKEN.sub(HIDDEN, ''.join([*parts, text[at:]]))


def _is_telling(name):
    parts = [part.lower() for part in _APART.findall(name)]
    return (not _TELLING.isdisjoint(parts) or any([
        one in _OF_KEYS and other in ('key', 'keys')
        for one, other in zip(parts, parts[1:])]))
