"""What stubs say of the public names is so, and values are values."""

import importlib.util
import itertools
import os
import pathlib
import pickle
import random
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import profile_sampling
from profile_sampling import Finding

from ..support.builders import Builder, example
from ..support.timed import timed

# What stubtest finds and is meant so: attributes cannot be set, though the
# stubs spare themselves a property each; and what only the package calls.
_MEANT = re.compile(
    r"""is.read-only.at.runtime | __all__ | pytest_plugin
    | profile_sampling\._\S+.failed.to.find.stubs
    | (AllocationRecord|Batch|CallNode|Finding|Rows|Sample|SampleRecord
       |Subscription|Timeline|Viewer)\.__init__
    | Rows\.add | Timeline\.(columns|of_rows|untimed) | ValueType\.which
    | Viewer\.__call__""", re.VERBOSE)
# What the reader of README.md has.
_GIVEN = """\
from typing import Any
import profile_sampling
from profile_sampling.middleware import ASGIMiddleware
app: Any
work: Any
send: Any
serve: Any
"""


@unittest.skipIf(importlib.util.find_spec('mypy') is None,
                 'the mypy package is not installed')
class CheckedTest(unittest.TestCase):
    """mypy finds the stubs true, and the examples of the documents well
    typed."""

    def setUp(self):
        self.stubs = pathlib.Path(self.enterContext(
            tempfile.TemporaryDirectory()))
        package = pathlib.Path(profile_sampling.__file__).parent
        for stub in package.rglob('*.pyi'):
            copy = self.stubs / stub.relative_to(package.parent)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(stub, copy)

    def run_mypy(self, *arguments):
        """Return the lines of what it finds."""
        result = subprocess.run(
            [sys.executable, '-m', *map(str, arguments)], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            cwd=self.enterContext(tempfile.TemporaryDirectory()),
            env=os.environ | {'MYPYPATH': str(self.stubs)})
        self.assertIn(result.returncode, (0, 1), result.stdout)
        return result.stdout.splitlines()

    def test_stubs(self):
        lines = self.run_mypy('mypy.stubtest', 'profile_sampling', '--concise')
        self.assertEqual(
            [line for line in lines if not _MEANT.search(line)], [])

    def test_examples(self):
        from ..support import documents
        examples = pathlib.Path(self.enterContext(
            tempfile.TemporaryDirectory()))
        programs = documents.programs()
        programs['readme'] = _GIVEN + programs['readme']
        for name, source in programs.items():
            (examples / f'page_{name}.py').write_text(source)
        # Other packages are Any, so that it does not matter which are there.
        lines = self.run_mypy(
            'mypy', '--check-untyped-defs', '--allow-redefinition',
            '--disable-error-code=var-annotated', '--no-site-packages',
            '--ignore-missing-imports', *examples.iterdir(), *documents.PROGRAMS)
        self.assertEqual(lines, [
            'Success: no issues found in '
            f'{len(programs) + len(documents.PROGRAMS)} source files'])


class ValuesTest(unittest.TestCase):

    def test_values(self):
        """What methods return compares, prints and is pickled."""
        profile = example().profile()
        for make in (
                lambda p: p, lambda p: p.samples[0], lambda p: p.threads[0],
                lambda p: p.call_tree(), lambda p: p.call_tree(inverted=True),
                lambda p: p.call_tree(by='line').children[0],
                lambda p: p.call_sites()[0], lambda p: p.functions()[0],
                lambda p: p.value_type, lambda p: timed(p, random.Random(1)).timeline,
                lambda p: (p - p).rows[0], lambda p: p.findings(),
                lambda p: Finding('gc', 'GC', ['GC is 9 %'], 9, 0.09)):
            value, copy = make(profile), pickle.loads(pickle.dumps(
                make(profile)))
            with self.subTest(value=value):
                self.assertEqual(copy, value)
                self.assertEqual(repr(copy), repr(value))
                self.assertNotIn('object at 0x', repr(value))
                if not isinstance(value, list):
                    self.assertEqual(hash(copy), hash(value))

    def test_trees_differ(self):
        trees = [Builder().sample(stack, wall_ns=1).profile().call_tree()
                 for stack in ('a.f:1 a.g:1', 'a.f:1 a.h:1', 'a.f:1')]
        self.assertEqual(trees[0], trees[0])
        for one, other in itertools.permutations(trees, 2):
            self.assertNotEqual(one, other)
