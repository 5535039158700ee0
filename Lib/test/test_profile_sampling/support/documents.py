"""Doc/, README.md, and what takes their pages apart.

Importing this file skips the importing test file where they are not, as in an
installed Python.
"""

import importlib.util
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
