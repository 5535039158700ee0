"""Code, types and modules that are made, run once and dropped."""

import importlib
import os
import sys
import tempfile

OPERATORS = {'_io._IOBase.__enter__', '_io._IOBase.__exit__',
             'dict.__getitem__', 'int.__add__', 'int.__eq__',
             'int.__format__', 'int.__sub__', 'module.__getattribute__',
             'range.__iter__', 'range_iterator.__next__', 'str.__add__',
             'str.join'}
ENTRIES = {'work', 'root_N', '<module>', 'Made_N'}
GENERATED = '<churn N>'
# A class is what __build_class__() has returned, where a collection right after
# it had begun before the session: nothing tells that the call is over.
CALLS = {
    'work': {'builtins.next', 'make', 'import_module', 'program.*',
             'random.*', '_random.*', 'tempfile.*'},
    'make': {'builtins.exec', 'builtins.compile', '<module>', 'str.replace',
             'str'},
    'builtins.exec': {'<module>'},
    '<module>': {'root_N', 'builtins.__build_class__', 'churn_N.Made_N'},
    'builtins.__build_class__': {'Made_N'},
    'root_N': {'branch_N', 'Made_N', 'builtins.sum'},
    'branch_N': {'branch_N', 'leaf_N'},
    'leaf_N': {'builtins.sum', 'range', 'Made_N.method_N', 'churn_N.Made_N'},
    'import_module': {'importlib.*', 'posix.*', 'io.*', '_io.*', 'open',
                      'codecs.*',       # open() without its name
                      'posixpath.*', 'str.*', 'sys.*', 'dict.pop',
                      'genericpath.*'},
}

TEXT = '''
class Made_N:
    def method_N(self):
        return 1 + 1

def leaf_N():
    Made_N().method_N()
    return sum(range(DEPTH))

def branch_N(n):
    if n == 0:
        return leaf_N()
    return branch_N(n - 1)

def root_N():
    branch_N(DEPTH)

root_N()
'''


def make(number, depth):
    text = TEXT.replace('_N', f'_{number}').replace('DEPTH', str(depth))
    exec(compile(text, f'<churn {number}>', 'exec'),
         {'__name__': f'churn_{number}'})


def import_module(number, directory):
    name = f'stress_made_{number}'
    path = os.path.join(directory, name + '.py')
    with open(path, 'w') as file:
        file.write('def f():\n    return 1\nf()\n')
    importlib.invalidate_caches()
    importlib.import_module(name)
    sys.modules.pop(name)
    os.unlink(path)


def work(run):
    rng = run.rng('churn')
    numbers = run.numbers()
    with tempfile.TemporaryDirectory() as directory:
        sys.path.append(directory)
        while not run.over():
            for _ in range(rng.randrange(200)):
                make(next(numbers), rng.choice((0, 5, 100, 300)))
            for _ in range(rng.randrange(3)):
                import_module(next(numbers), directory)
        sys.path.remove(directory)
