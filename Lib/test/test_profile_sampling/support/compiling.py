"""Compiling C in tests, with the compiler and the options of this build.

The extensions see the headers as they are installed.
"""

import importlib.machinery
import importlib.util
import os
import pathlib
import shlex
import shutil
import subprocess
import sysconfig
import unittest

HERE = pathlib.Path(__file__).parent


def words(*names):
    """What the build keeps under these names, as arguments."""
    return [word for name in names
            for word in shlex.split(sysconfig.get_config_var(name) or '')]


def compiler_of(name):
    """The compiler CC or CXX of this build, as arguments; skips without."""
    compiler = words(name)
    if not compiler or shutil.which(compiler[0]) is None:
        raise unittest.SkipTest(f'needs the compiler {name} of this build')
    return compiler


def include_options():
    includes = {sysconfig.get_path('include'),
                os.path.dirname(sysconfig.get_config_h_filename())}
    if sysconfig.is_python_build():
        includes.add(os.path.join(sysconfig.get_config_var('srcdir'),
                                  'Include'))
    return [f'-I{include}' for include in sorted(includes)]


def run_compiler(source, path, *arguments):
    process = subprocess.run(
        [*compiler_of('CC'), '-O1', '-Wall', '-Werror', '-pthread',
         *include_options(), *words('PY_CFLAGS_NODIST'),
         '-o', path, str(HERE / source),
         *arguments], capture_output=True, text=True)
    if process.returncode:
        raise AssertionError(process.stderr)
    return path


def compile_extension(name, directory):
    return run_compiler(f'{name}.c', os.path.join(directory, f'{name}.so'),
                        '-shared', '-fPIC')


def load_extension(name, directory):
    """Compile NAME.c in *directory*, and return it as a module."""
    path = compile_extension(name, directory)
    loader = importlib.machinery.ExtensionFileLoader(name, path)
    spec = importlib.util.spec_from_loader(name, loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def compile_program(name, directory):
    """Compile NAME.c, linked with this interpreter as a library."""
    library_dir = (os.path.dirname(sysconfig.get_config_h_filename())
                   if sysconfig.is_python_build()
                   else sysconfig.get_config_var('LIBPL'))
    library = os.path.join(library_dir, sysconfig.get_config_var('LIBRARY'))
    if not os.path.exists(library):
        raise unittest.SkipTest(f'needs {library}')
    # All of it: extension modules use what the program itself does not.
    return run_compiler(
        f'{name}.c', os.path.join(directory, name),
        '-Wl,--whole-archive', library, '-Wl,--no-whole-archive',
        *words('PY_LDFLAGS', 'PY_LDFLAGS_NODIST', 'LINKFORSHARED', 'LIBS',
               'MODLIBS', 'SYSLIBS'))
