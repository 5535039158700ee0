"""What stubs say of the public names is so, and values are values."""

import array
import ast
import collections.abc
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
import types
import typing
import unittest

import profile_sampling
from profile_sampling import Finding

from ..support.builders import Builder, example
from ..support.random_profiles import random_profile
from ..support.timed import timed
from .test_task_rows import beside_a_hog

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
            '--ignore-missing-imports', *examples.iterdir(),
            *documents.PROGRAMS)
        self.assertEqual(lines, [
            'Success: no issues found in '
            f'{len(programs) + len(documents.PROGRAMS)} source files'])


def _annotations():
    """Return {class: {attribute: its type}} of the stub, and what its names
    are."""
    path = pathlib.Path(profile_sampling.__file__).with_name('__init__.pyi')
    names = {**vars(typing), **vars(collections.abc), 'array': array.array} | {
        name: getattr(profile_sampling, name)
        for name in dir(profile_sampling)}
    found = {}
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ClassDef):
            its = found[node.name] = {}
            for base in node.bases:
                its |= found.get(ast.unparse(base), {})
            its |= {part.target.id: ast.unparse(part.annotation)
                    for part in node.body if isinstance(part, ast.AnnAssign)}
            its |= {part.name: ast.unparse(part.returns) for part in node.body
                    if isinstance(part, ast.FunctionDef)
                    and 'property' in map(ast.unparse, part.decorator_list)}
    return found, names


def _is_of(value, type_):
    """Whether a value is of the type of an annotation."""
    origin, its = typing.get_origin(type_), typing.get_args(type_)
    if type_ is typing.Any:
        return True
    if origin is types.UnionType:
        return any([_is_of(value, one) for one in its])
    if origin is dict:
        return all([_is_of(pair, tuple[its]) for pair in value.items()])
    if origin is tuple and its[-1:] != (...,):
        return len(value) == len(its) and all(map(_is_of, value, its))
    if origin is not None:
        return isinstance(value, origin) and all([
            _is_of(one, its[0]) for one in value])
    return isinstance(value, (int, float) if type_ is float
                      else type_ or types.NoneType)


class ValuesTest(unittest.TestCase):

    def test_attributes_are_of_their_types(self):
        """As the stub has them, which nobody else can compare."""
        annotations, names = _annotations()
        seen = set()

        def check(value):
            if isinstance(value, (list, tuple)):
                for one in value:
                    check(one)
                return
            name = type(value).__name__
            if name in annotations:
                seen.add(name)
                for attribute, text in annotations[name].items():
                    its = getattr(value, attribute)
                    self.assertTrue(
                        _is_of(its, eval(text, names)),
                        f'{name}.{attribute} is {its!r}, no {text}')
                    check(its)

        for profile in (beside_a_hog().profile(), *[
                random_profile(random.Random(seed)) for seed in range(8)]):
            check([*profile.samples, *profile.threads,
                   *(profile - profile).rows])
            for rows in (
                    profile.functions, profile.lines, profile.call_sites,
                    profile.findings, profile.instructions, profile.tasks,
                    profile.gil_holders, profile.loop_holders,
                    lambda: profile.callers('.'), lambda: profile.callees('.'),
                    profile.call_tree):
                check(rows())
            for key in profile.label_keys:
                check(profile.label_values(key))
                check(profile.tasks_by(key))
        self.assertGreater(len(seen), 18, seen)

    def test_values(self):
        """What methods return compares, prints and is pickled."""
        profile = example().profile()
        for make in (
                lambda p: p, lambda p: p.samples[0], lambda p: p.threads[0],
                lambda p: p.call_tree(), lambda p: p.call_tree(inverted=True),
                lambda p: p.call_tree(by='line').children[0],
                lambda p: p.call_sites()[0], lambda p: p.functions()[0],
                lambda p: p.value_type,
                lambda p: timed(p, random.Random(1)).timeline,
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
