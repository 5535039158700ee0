"""Doc/, README.md, and what takes their pages apart.

Importing this file skips the importing test file where they are not, as in an
installed Python.
"""

import importlib.util
import itertools
import os
import pathlib
import re
import unittest


def source_tree():
    """Return the directory that holds Doc/ and Tools/; this file is linked."""
    for parent in pathlib.Path(os.path.realpath(__file__)).parents:
        if (parent / 'Tools/docs/pages.py').is_file():
            return parent
    raise unittest.SkipTest('the documentation is not here')


def _load_pages():
    spec = importlib.util.spec_from_file_location(
        'pages', ROOT / 'Tools/docs/pages.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


ROOT = source_tree()
DOC = ROOT / 'Doc'
HOWTOS = sorted(DOC.glob('howto/profile_sampling-*.rst'))
REFERENCE = sorted(DOC.glob('library/profile_sampling*.rst'))
pages = _load_pages()
PROGRAMS = sorted((DOC / pages.INCLUDES).glob('*.py'))


def programs():
    """Return {name: the Python that a page shows, as one program}."""
    found = {'readme': '\n'.join(re.findall(
        '(?ms)^```python$(.*?)^```$', (ROOT / 'README.md').read_text()))}
    for page in [*HOWTOS, *REFERENCE]:
        found[re.sub(r'\W', '_', page.stem)] = pages.python_of(page)
    return {name: source for name, source in found.items() if source}


_DIRECTIVE = re.compile(r'( *)\.\. (module|currentmodule|class|function|method|'
                        r'classmethod|attribute):: +(.*)')


def signatures():
    """Yield (module, dotted name, signature or '') of all that the reference
    describes."""
    for page in REFERENCE:
        lines = page.read_text().replace('\\\n', '').splitlines()
        owner, indent = '', 0
        for at, line in enumerate(lines):
            found = _DIRECTIVE.fullmatch(line)
            if found is None:
                continue
            spaces, kind, first = found.groups()
            if 'module' in kind:
                module = first
                continue
            more = itertools.takewhile(
                lambda line: line.strip() and line.strip()[0] != ':',
                lines[at + 1:])
            for text in first, *more:
                name, bracket, rest = text.strip().partition('(')
                if kind == 'class':
                    owner, indent = name, len(spaces)
                elif len(spaces) > indent and '.' not in name:
                    name = f'{owner}.{name}'
                yield module, name, bracket + rest
