"""How Tools/layers judges which files use each other.

A wrong way that it lets pass would stay.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap
import unittest

TOOL = (pathlib.Path(os.path.realpath(__file__)).parents[4]
        / 'Tools' / 'layers' / 'check.py')
if not TOOL.is_file():
    raise unittest.SkipTest('Tools/layers is not here')

PYTHON_PLAN = '''
    [python] Lib/house/
        roof: __init__.py
        left: left/ | right: right.py
        ground: ground.py
'''
C_PLAN = '''
    [c] Python/ Include/
        above: above.c
        below: below*.c below*.h
        faces: /Include/
        stand-ins: below_elsewhere.c
'''
BELOW = '''\
#include "below.h"

static int
helper(void)
{
    return 1;
}

int
_Py_Below(void)
{
    return helper();
}
'''


class LayersTest(unittest.TestCase):

    def check(self, plan, files):
        """Return the faults of a tree; the files are texts by path."""
        with tempfile.TemporaryDirectory() as top:
            for path, text in files.items():
                file = pathlib.Path(top, path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            plan_file = pathlib.Path(top, 'plan.txt')
            plan_file.write_text(textwrap.dedent(plan))
            result = subprocess.run(
                [sys.executable, TOOL, '--plan', plan_file, '--top', top],
                capture_output=True, text=True)
        self.assertEqual(result.stderr, '')
        *faults, last = result.stdout.splitlines()
        self.assertEqual(result.returncode, 1 if faults else 0)
        self.assertTrue(last.startswith(f'{len(files)} files, '), last)
        return faults

    def python(self, plan=PYTHON_PLAN, **files):
        """The keywords are paths without '.py', '__' for '/'."""
        house = {'Lib/house/__init__.py': '', 'Lib/house/ground.py': ''}
        house.update({f'Lib/house/{name.replace("__", "/")}.py': text
                      for name, text in files.items()})
        return self.check(plan, house)

    def c(self, plan=C_PLAN, **files):
        house = {'Python/below.c': BELOW,
                 'Python/below.h': 'extern int _Py_Below(void);\n'}
        house.update({f'Python/{name}.c': text
                      for name, text in files.items()})
        return self.check(plan, house)


class PythonTest(LayersTest):

    def test_up(self):
        for code in ('import house.right', 'from house import right',
                     'from house.right import x', 'from .right import x',
                     'def f():\n    from . import right'):
            with self.subTest(code):
                line = code.count('\n') + 1
                self.assertEqual(self.python(right='', ground=code), [
                    f'Lib/house/ground.py:{line} -> Lib/house/right.py '
                    '(imports it): "right" is above "ground"'])

    def test_circle(self):
        self.assertEqual(self.python(
            left__one='from house.left import two',
            left__two='def f():\n    from house.left import one'), [
            'a circle:',
            '    Lib/house/left/one.py:1 -> Lib/house/left/two.py '
            '(imports it)',
            '    Lib/house/left/two.py:2 -> Lib/house/left/one.py '
            '(imports it)'])

    def test_in_no_package(self):
        self.assertEqual(self.python(cellar=''),
                         ['Lib/house/cellar.py is in no package'])

    def test_known(self):
        plan = PYTHON_PLAN + '    known: ground.py -> right.py\n'
        self.assertEqual(self.python(plan, right='',
                                     ground='import house.right'), [])
        [fault] = self.python(plan, right='')
        self.assertIn('it is gone', fault)


class CTest(LayersTest):

    CALL = 'void\nf(void)\n{\n    _Py_Below();\n}\n'

    def test_call_up(self):
        above = 'int\n_Py_Above(void)\n{\n    return 0;\n}\n'
        below = self.CALL.replace('Below', 'Above')
        self.assertEqual(self.c(above=above, below_too=below), [
            'Python/below_too.c:4 -> Python/above.c (uses _Py_Above()): '
            '"above" is above "below"'])

    def test_what_is_no_call(self):
        above = 'int\n_Py_Above(void)\n{\n    return 0;\n}\n'
        for text in ('extern int _Py_Above(void);\n',
                     '/* _Py_Above() */\n',
                     'void\nf(void)\n{\n    puts("_Py_Above");\n}\n'):
            with self.subTest(text):
                self.assertEqual(self.c(above=above, below_too=text), [])

    def test_call_by_a_macro_of_a_header(self):
        above = 'int\n_Py_Above(void)\n{\n    return 0;\n}\n'
        header = ('static inline int\n_Py_Up(void)\n{\n'
                  '    return _Py_Above();\n}\n'
                  '#define UP() _Py_Up()\n')
        text = self.CALL.replace('_Py_Below', 'UP')
        house = {'Python/above.c': above, 'Python/below_too.h': header}
        # It only declares.
        self.assertEqual(self.check(C_PLAN, house), [])
        self.assertEqual(
            self.check(C_PLAN, house | {'Python/below_too.c': text}),
            ['Python/below_too.c:4 -> Python/above.c '
             '(uses _Py_Above() by UP): "above" is above "below"'])

    def test_circle(self):
        other = self.CALL.replace('f(', '_Py_Other(')
        below = BELOW.replace('return helper()', 'return _Py_Other()')
        faults = self.c(below=below, below_other=other)
        self.assertEqual(faults[0], 'a circle:')
        self.assertEqual(len(faults), 3)

    def test_static_functions_are_nobodys(self):
        self.assertEqual(self.c(above=self.CALL.replace('_Py_Below',
                                                        'helper')), [])

    def test_stand_in(self):
        self.assertEqual(self.c(below_elsewhere=BELOW, above=self.CALL), [])
        [fault] = self.c(below_again=BELOW)
        self.assertIn('_Py_Below() is defined in', fault)


class FramesTest(unittest.TestCase):

    def test_one_file_reads_them(self):
        # Another version of CPython keeps their fields elsewhere.
        top = TOOL.parents[2]
        field = re.compile(r'(?:->|\.)(?:f_executable|f_funcobj|f_globals|'
                           r'instr_ptr|localsplus|current_frame)\b')
        found = [path.relative_to(top).as_posix()
                 for folder in ('Python/sampling', 'Modules/_profile')
                 for path in sorted((top / folder).rglob('*.[ch]'))
                 if field.search(path.read_text())]
        self.assertEqual(found, ['Python/sampling/base/frame.h'])
