"""Which C files use which.

It is a plain scan of C as PEP 7 has it: the name of a function begins the line
of its definition.

A file uses another if it includes it or names a function that only the other
defines, not counting static ones.  What the macros and inline functions of a
header name is used by who uses these, not by the header: it only declares.
"""

import os
import re

_NOT_CODE = re.compile(
    r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.M)
_AT_LINE_START = re.compile(r'^([A-Za-z_]\w*)\(', re.M)
_HOLDER = re.compile(r'[ \t]*#[ \t]*define[ \t]+(\w+)|([A-Za-z_]\w*)\(')
_TOKEN = re.compile(r'[{}]|[A-Za-z_]\w*')
# What is inside is not a body.
_FOR_CPP = re.compile(r'\bextern\s*{')


def arrows(sources, is_stand_in):
    """Yield (path, line, path, what) for each use of a file by another.

    *sources* is a dict of texts by path.  Raise ValueError for a function
    that two files define, unless one of them is a stand-in.
    """
    for path, text in sources.items():
        for match in _INCLUDE.finditer(text):
            used = _header(match[1], path, sources)
            if used not in (None, path):
                line = text.count('\n', 0, match.start(1)) + 1
                yield path, line, used, 'includes it'
    codes = {path: _code(text) for path, text in sources.items()}
    owner = _owners({path: code for path, code in codes.items()
                     if path.endswith('.c') and not is_stand_in(path)})
    inner = _inner_names({path: code for path, code in codes.items()
                          if path.endswith('.h')})
    for path, code in codes.items():
        if path.endswith('.h'):
            continue
        for line, _, outer in _names(code):
            for name in _reached(outer, inner):
                used = owner.get(name)
                if used not in (None, path):
                    by = '' if name == outer else f' by {outer}'
                    yield path, line, used, f'uses {name}(){by}'


def _header(name, path, sources):
    """Return the path of an included file, or None if it is not ours."""
    beside = os.path.normpath(os.path.join(os.path.dirname(path), name))
    if beside in sources:
        return beside
    found = [other for other in sources if other.endswith(f'/{name}')]
    return found[0] if len(found) == 1 else None


def _code(text):
    """Blank out comments and literals; lines stay where they are."""
    return _NOT_CODE.sub(
        lambda match: re.sub(r'[^\n]', ' ', match[0]), text)


def _owners(codes):
    owner = {}
    for path, code in codes.items():
        for name in _definitions(code):
            other = owner.setdefault(name, path)
            if other != path:
                raise ValueError(f'{name}() is defined in {other} and in '
                                 f'{path}: one of them has to be a stand-in')
    return owner


def _definitions(code):
    """Return the functions that a file defines for others."""
    names = []
    for match in _AT_LINE_START.finditer(code):
        before = re.split(r'[;}\n]\n|\n#[^\n]*\n', code[:match.start()])[-1]
        if re.search(r'\bstatic\b', before):
            continue
        if code[_end_of_parentheses(code, match.end()):].lstrip()[:1] == '{':
            names.append(match[1])
    return names


def _end_of_parentheses(code, position):
    depth = 1
    while depth and position < len(code):
        depth += {'(': 1, ')': -1}.get(code[position], 0)
        position += 1
    return position


def _inner_names(codes):
    """Return {macro or inline function: names in it} of headers."""
    inner = {}
    for code in codes.values():
        for _, holder, name in _names(code):
            inner.setdefault(holder, set()).add(name)
    return inner


def _reached(name, inner):
    """Return a name, and all that it comes to in headers."""
    reached = {name}
    pending = [name]
    while pending:
        new = inner.get(pending.pop(), set()) - reached
        reached |= new
        pending += new
    return reached


def _names(code):
    """Yield (line, holder, name) of what stands in bodies and in macros.

    The holder is the name of the function or macro.  What is between them are
    declarations.
    """
    depth = 0
    is_macro = False
    holder = None
    for number, line in enumerate(code.splitlines(), 1):
        is_directive = is_macro or line.lstrip().startswith('#')
        is_macro = is_directive and line.rstrip().endswith('\\')
        if line.startswith('}'):
            # Braces in two branches of an #if may not match.
            depth = 0
            continue
        if _FOR_CPP.search(line):
            continue
        if match := _HOLDER.match(line):
            holder = match[1] or match[2]
        for token in _TOKEN.findall(line):
            if token in '{}':
                if not is_directive:
                    depth = max(0, depth + (1 if token == '{' else -1))
            elif depth or is_directive:
                yield number, holder, token
