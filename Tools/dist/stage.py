"""Make an installed interpreter one that may stand anywhere.

usage: stage.py TREE PREFIX BUILD SYSROOT

TREE is what `make install` wrote below PREFIX, which no longer matters;
BUILD and SYSROOT are the directories it was compiled in and with, which must
not be seen any more.  Owns what is taken out of the tree and what is put in.
How a file is made to find its neighbours is in relocate.py.
"""

import compileall
import os
import pathlib
import py_compile
import shutil
import subprocess
import sys

import relocate

# Static libraries serve nobody who cannot link as we do; Tk is not among the
# libraries that are linked in, so what needs it would only fail.
TAKEN_OUT = [
    'lib/libpython3*.a',
    'lib/python3.*/config-*/libpython3*.a',
    'lib/python3.*/config-*/*.o',
    'lib/python3.*/idlelib',
    'lib/python3.*/tkinter',
    'lib/python3.*/turtle.py',
    'lib/python3.*/turtledemo',
    'lib/python3.*/lib2to3',
    'bin/idle3*',
]

# Names without a version, which people and other people's images have.
ALIASES = {
    'bin/python': 'python3',
    'bin/pydoc': 'pydoc3',
    'bin/python-config': 'python3-config',
}


def take_out(tree):
    for pattern in TAKEN_OUT:
        for path in tree.glob(pattern):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
    for cache in tree.glob('**/__pycache__'):
        shutil.rmtree(cache)


def install_pip(tree):
    """The pip that this version of CPython comes with."""
    done = subprocess.run(
        [tree / 'bin/python3', '-E', '-s', '-B', '-m', 'ensurepip',
         '--default-pip'], text=True, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT)
    if done.returncode != 0:
        raise SystemExit(f'stage.py: error: no pip:\n{done.stdout}')


def add_aliases(tree):
    for name, target in ALIASES.items():
        (tree / name).unlink(missing_ok=True)
        (tree / name).symlink_to(target)
    # A build for debugging is there once more, under a longer name.
    for path in tree.glob('bin/python3.*d'):
        path.unlink()
        path.symlink_to(path.name.removesuffix('d'))


def add_licences(tree, sysroot):
    """The texts under which the libraries are that were linked in."""
    to = tree / 'share/licenses/cpython-sampleprof'
    to.mkdir(parents=True)
    shutil.copyfile(next(tree.glob('lib/python3.*/LICENSE.txt')),
                    to / 'CPython.txt')
    for text in sorted(sysroot.glob('usr/share/doc/*/copyright')):
        shutil.copyfile(text, to / f'{text.parent.name}.txt')


def is_elf(path):
    with path.open('rb') as file:
        return file.read(4) == b'\x7fELF'


def strip(tree):
    """Lines for a debugger go, names of functions stay."""
    for path in sorted(tree.glob('**/*')):
        if path.is_file() and not path.is_symlink() and is_elf(path):
            path.chmod(0o755)
            subprocess.run(['strip', '--strip-debug', path], check=True)


def compile_all(tree):
    """Byte code that nobody has to write, and that no date makes stale; what
    installing pip wrote, and names this directory, goes."""
    modules = next(tree.glob('lib/python3.*'))
    done = compileall.compile_dir(
        modules, maxlevels=20, quiet=1, force=True,
        stripdir=str(tree), prependdir='/',
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    if not done:
        raise SystemExit(f'stage.py: error: a file in {modules} does not '
                         'compile (the message is above)')


def main():
    tree, prefix, build, sysroot = map(pathlib.Path, sys.argv[1:5])
    debug = 'debug' in sys.argv[5:]
    take_out(tree)
    install_pip(tree)
    relocate.relocate(tree, prefix, build)
    add_aliases(tree)
    add_licences(tree, sysroot)
    if not debug:
        strip(tree)
    compile_all(tree)
    for directory, _, names in os.walk(tree):
        os.chmod(directory, 0o755)
        for name in names:
            path = os.path.join(directory, name)
            if not os.path.islink(path):
                os.chmod(path, 0o755 if os.access(path, os.X_OK) else 0o644)


if __name__ == '__main__':
    main()
