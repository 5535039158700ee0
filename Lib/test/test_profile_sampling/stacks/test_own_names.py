"""Callables that have names of their own, and are no built-in functions."""

import functools
import importlib.util
import os
import subprocess
import sys
import tempfile

from test.support import import_helper

from ..support.compiling import (
    compiler_of, include_options, load_extension)
from ..support.manual import tick
from ..support.packages import contained
from ..support.sessions import Session, SessionTest, below


class NamesTest(SessionTest):

    def check(self, work, expected):
        """*expected*: {name of what work calls: wall time}."""
        with Session(manual=True, names=1) as session:
            work()
        found = {}
        for path, wall_ns in below(session.profile, work).items():
            if wall_ns:
                found[path[0]] = found.get(path[0], 0) + wall_ns
        self.assertEqual(found, expected)


def five():
    tick(5, 0)


def seven():
    tick(7, 0)


class Item:
    """What C code calls, and then the clock ticks."""

    def __getitem__(self, key):
        tick(key, 0)

    def __add__(self, other):
        tick(5, 0)
        return self

    def __mul__(self, other):
        tick(7, 0)
        return self

    def __array_function__(self, func, types, args, kwargs):
        tick(3, 0)


class StandardLibraryTest(NamesTest):

    def test_cache(self):
        @functools.lru_cache(maxsize=1)
        def cached(key):
            tick(key, 0)

        @functools.cache
        def other(key):
            tick(key, 0)

        def work():
            cached(5)
            other(7)
        prefix = f'{__name__}.{type(self).__qualname__}.test_cache.<locals>.'
        self.check(work, {prefix + 'cached': 5, prefix + 'other': 7})

    def test_partial(self):
        of_builtin = functools.partial(tick, 3)
        of_method = functools.partial([Item()].sort, key=lambda _: five())
        of_python = functools.partial(seven)

        def work():
            of_builtin(0)
            of_method()
            of_python()
        self.check(work, {'_profile.tick': 3, 'list.sort': 5,
                          'functools.partial.__call__': 7})

    def test_static_method(self):
        static = staticmethod(five)

        def work():
            static()
        self.check(work, {f'{__name__}.five': 5})

    def test_names_in_the_dict(self):
        class Partial(functools.partial):
            pass
        named, renamed, unnamed = [Partial(five) for _ in range(3)]
        named.__name__ = 'named'
        renamed.__name__ = 'name'
        renamed.__qualname__ = 'Of.renamed'
        renamed.__module__ = 'module'
        unnamed.__name__ = 'name'
        del unnamed.__name__

        def work():
            named()
            renamed()
            unnamed()
        self.check(work, {f'{__name__}.named': 5, 'module.Of.renamed': 5,
                          'functools.partial.__call__': 5})

    def test_names_that_are_no_text(self):
        class Partial(functools.partial):
            pass
        partial = Partial(five)
        partial.__qualname__ = 5
        partial.__name__ = type('Text', (str,), {})('text')

        def work():
            partial()
        self.check(work, {'functools.partial.__call__': 5})


class ExtensionTest(NamesTest):

    @classmethod
    def setUpClass(cls):
        directory = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.module = load_extension('own_names', directory)

    def test_definitions_at_one_address(self):
        def work():
            for name, job in ('first', five), ('second', seven):
                self.module.function(name, 'module')(job)
            self.module.function('second', 'other')(job)
        self.check(work, {'module.first': 5, 'module.second': 7,
                          'other.second': 7})

    def test_names_kept_in_the_object(self):
        kept = self.module.Kept
        functions = [(kept('first', 'Of.first', 'module'), five),
                     (kept('second', None, 'module'), seven),
                     (kept(None, None, 'module'), seven)]

        def work():
            for function, job in functions:
                function(job)
        self.check(work, {'module.Of.first': 5, 'module.second': 7,
                          'own_names.Kept.__call__': 7})


class NumPyTest(NamesTest):

    @classmethod
    def setUpClass(cls):
        with contained():
            cls.numpy = import_helper.import_module('numpy')

    def test_ufuncs(self):
        item = self.numpy.array([Item()], dtype=object)
        add, multiply = self.numpy.add, self.numpy.multiply

        def work():
            for function in add, multiply, add:
                function(item, item)
        self.check(work, {'numpy.add': 10, 'numpy.multiply': 7})

    def test_array_functions(self):
        item = Item()

        def work():
            self.numpy.concatenate([item])
            self.numpy.linalg.norm(item)
        self.check(work, {'numpy.concatenate': 3, 'numpy.linalg.norm': 3})


CYTHON_SOURCE = """
def first(job):
    job()

class Group:
    def second(self, job):
        job()

def outer():
    def inner(job):
        job()
    return inner

cdef class Typed:
    def third(self, job):
        job()
"""

PYBIND11_SOURCE = """
#include <pybind11/pybind11.h>
struct Group {
    void second(pybind11::object job) { job(); }
};
PYBIND11_MODULE(compiled, m) {
    m.def("first", [](pybind11::object job) { job(); });
    pybind11::class_<Group>(m, "Group").def(pybind11::init<>())
        .def("second", &Group::second)
        .def_static("third", [](pybind11::object job) { job(); });
}
"""

NANOBIND_SOURCE = """
#include <nanobind/nanobind.h>
struct Group {
    void second(nanobind::object job) { job(); }
};
NB_MODULE(compiled, m) {
    m.def("first", [](nanobind::object job) { job(); });
    nanobind::class_<Group>(m, "Group").def(nanobind::init<>())
        .def("second", &Group::second);
}
"""


class CompiledTest(NamesTest):
    """Modules made by other tools."""

    def load(self, *sources, arguments=()):
        directory = self.enterContext(tempfile.TemporaryDirectory())
        path = os.path.join(directory, 'compiled.so')
        process = subprocess.run(
            [*compiler_of('CXX'), '-O0', '-fPIC', '-shared',
             '-fvisibility=hidden', '-std=c++17', *include_options(),
             *arguments, *sources, '-o', path],
            capture_output=True, text=True)
        if process.returncode:
            raise AssertionError(process.stderr)
        spec = importlib.util.spec_from_file_location('compiled', path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    def source(self, text, name):
        directory = self.enterContext(tempfile.TemporaryDirectory())
        path = os.path.join(directory, name)
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)
        return path

    def test_cython(self):
        self.check_cython()

    def test_cython_for_the_limited_api(self):
        self.check_cython('-DCYTHON_LIMITED_API=1',
                          '-DPy_LIMITED_API=0x030C0000')

    def check_cython(self, *options):
        import_helper.import_module('Cython')
        source = self.source(CYTHON_SOURCE, 'compiled.pyx')
        subprocess.run([sys.executable, '-m', 'cython', '-3', source],
                       check=True)
        module = self.load(source.replace('.pyx', '.c'),
                           arguments=['-x', 'c', '-std=c11', *options])
        group, inner, typed = module.Group(), module.outer(), module.Typed()

        def work():
            module.first(five)
            group.second(five)
            group.second(*[seven])
            inner(seven)
            typed.third(seven)
        self.check(work, {'compiled.first': 5, 'compiled.Group.second': 12,
                          'compiled.outer.<locals>.inner': 7,
                          'compiled.Typed.third': 7})

    def test_pybind11(self):
        pybind11 = import_helper.import_module('pybind11')
        module = self.load(self.source(PYBIND11_SOURCE, 'compiled.cpp'),
                           arguments=[f'-I{pybind11.get_include()}'])
        group = module.Group()

        def work():
            module.first(five)
            group.second(seven)
            group.second(*[seven])
            module.Group.third(five)
        self.check(work, {'compiled.first': 5, 'compiled.Group.second': 14,
                          'compiled.Group.third': 5})

    def test_nanobind(self):
        nanobind = import_helper.import_module('nanobind')
        robin_map = os.path.join(os.path.dirname(nanobind.__file__), 'ext',
                                 'robin_map', 'include')
        module = self.load(
            self.source(NANOBIND_SOURCE, 'compiled.cpp'),
            os.path.join(nanobind.source_dir(), 'nb_combined.cpp'),
            arguments=[f'-I{nanobind.include_dir()}', f'-I{robin_map}'])
        group = module.Group()

        def work():
            module.first(five)
            group.second(seven)
        self.check(work, {'compiled.first': 5, 'compiled.Group.second': 7})
