"""The stub says of the public names what they are."""

import ast
import inspect
import itertools
import os
import pickle
import random
import unittest

import profile_sampling
from profile_sampling import Finding

from ..support.builders import Builder, example
from ..support.timed import timed

_PACKAGE = os.path.dirname(profile_sampling.__file__)
_NAMES = {*profile_sampling.__all__, *profile_sampling._ROWS,
          *profile_sampling._VALUES, *profile_sampling._PARTS}
# What C code takes has no signature; not for programs is what rows are made of.
_NOT_COMPARED = {'Task.__init__', 'SampleRecord.__init__', 'Rows.__init__',
                 'Batch.__init__', 'Rows.add', 'ValueType.which',
                 'Batch.counted_tasks', 'Timeline.columns',
                 'Timeline.untimed', 'Timeline.of_rows',
                 'Subscription.__init__', 'Sample.__init__',
                 'CallNode.__init__', 'Timeline.__init__',
                 'Finding.__init__', 'Finding.row'}


def _stub():
    with open(os.path.join(_PACKAGE, '__init__.pyi')) as file:
        return ast.parse(file.read())


def _parameters(function):
    arguments = function.args
    return [argument.arg for argument in (
        *arguments.posonlyargs, *arguments.args,
        *filter(None, [arguments.vararg]), *arguments.kwonlyargs,
        *filter(None, [arguments.kwarg]))]


class StubTest(unittest.TestCase):

    def setUp(self):
        self.nodes = {node.name: node for node in _stub().body
                      if isinstance(node, (ast.ClassDef, ast.FunctionDef))}

    def test_names(self):
        self.assertLessEqual(_NAMES, set(self.nodes))
        for name in self.nodes:
            if name[:1] != '_':
                getattr(profile_sampling, name)

    def check_parameters(self, name, function, node):
        if name in _NOT_COMPARED:
            return
        try:
            signature = inspect.signature(function)
        except ValueError:
            return
        with self.subTest(name):
            self.assertEqual(
                [parameter for parameter in signature.parameters
                 if parameter not in ('self', 'cls')],
                [parameter for parameter in _parameters(node)
                 if parameter not in ('self', 'cls')])

    def test_parameters(self):
        for name, node in self.nodes.items():
            if isinstance(node, ast.FunctionDef):
                self.check_parameters(
                    name, getattr(profile_sampling, name), node)
            elif name in _NAMES:
                for its in node.body:
                    if (isinstance(its, ast.FunctionDef)
                            and not its.decorator_list
                            and its.name in vars(getattr(profile_sampling,
                                                         name))):
                        self.check_parameters(
                            f'{name}.{its.name}', getattr(
                                getattr(profile_sampling, name), its.name),
                            its)

    def test_attributes(self):
        for name in sorted(_NAMES):
            its = getattr(profile_sampling, name)
            if not inspect.isclass(its):
                continue
            said = set()
            for base in (name, *[base.id for base in self.nodes[name].bases]):
                for node in self.nodes[base].body:
                    if isinstance(node, ast.FunctionDef):
                        said.add(node.name)
                    elif isinstance(node, ast.AnnAssign):
                        said.add(node.target.id)
            there = {attribute for attribute in dir(its)
                     if attribute[:1] != '_'
                     and f'{name}.{attribute}' not in _NOT_COMPARED}
            with self.subTest(name):
                self.assertLessEqual(there, said)
                if '__slots__' in vars(its):
                    self.assertEqual({
                        attribute for attribute in said - there
                        if attribute[:1] != '_'}, set())


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


if __name__ == '__main__':
    unittest.main()
