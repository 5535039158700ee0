"""Do the pages of InternalDocs/ name what is there?"""

import os
import pathlib
import re
import unittest

FOLDERS = 'Include', 'Lib', 'Modules', 'Patches', 'Python', 'Tools'
# These tell of other projects, and of what was.
OF_OTHERS = 'patches.md', 'pitfalls.md', 'testing.md'
# CPython's own, which is not in this repository.
UPSTREAM = {'_asynciomodule.c'}
THIS = 'test_internal_docs.py'


def _source_tree():
    """Return the directory that holds InternalDocs/; this file is linked."""
    for parent in pathlib.Path(os.path.realpath(__file__)).parents:
        if (parent / 'InternalDocs/profile_sampling').is_dir():
            return parent
    raise unittest.SkipTest('the documentation is not here')


class NamesTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        root = _source_tree()
        sources = [path for folder in FOLDERS
                   for path in (root / folder).rglob('*.*')
                   if path.is_file() and path.name != THIS]
        cls.files = {path.name for path in sources} | UPSTREAM
        cls.words = {word for path in sources for word in re.findall(
            rb'\w+', path.read_bytes())}
        cls.pages = sorted((root / 'InternalDocs/profile_sampling').glob(
            '*.md'))

    def is_there(self, name):
        # Without what all names of the core begin with, where that is plain.
        return any([f'{prefix}{name}'.encode() in self.words for prefix
                    in ('', '_PySampling', '_PySampling_')])

    def test_names(self):
        self.assertTrue(self.pages)
        for page in self.pages:
            if page.name in OF_OTHERS:
                continue
            quoted = re.findall('`([^`]+)`', page.read_text())
            names = {name for text in quoted for name in re.findall(
                r'\b(\w+)(?=\(\))|\b(_Py(?:Sampling|Profile)_\w*\w)\b', text)}
            missing = [name for pair in names for name in pair
                       if name and not self.is_there(name)]
            missing += [file for text in quoted for file in re.findall(
                r'\b[a-z_]+\.(?:c|py|ts|js)\b', text)
                if file not in self.files]
            with self.subTest(page=page.name):
                self.assertEqual(sorted(missing), [])
