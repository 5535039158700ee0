"""Look whether an unpacked interpreter works where it stands.

usage: PREFIX/bin/python3 inside.py WHEELS SCRATCH

Run by the interpreter that is looked at, as whoever it is to work for.
WHEELS is a directory with wheels of other projects and CA.pem, SERVER.pem:
certificates of an authority of our own, see certificates.py.  Nothing is
written but below SCRATCH.  Prints a line for each check that passed and
fails, with the reason, at the first that did not.
"""

import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import textwrap

PREFIX = pathlib.Path(sys.executable).parents[1]
# No path begins with one of these, but where it really stands.
BUILT_FOR = re.compile(r'(?<![\w.)}])(/opt/cpython-sampleprof|/install)'
                       r'(?![\w.-])')

# What each wheel does, which is more than to be there.
WHEELS = {
    'numpy': 'import numpy as np; a = np.random.rand(200, 200);'
             'assert np.allclose(np.linalg.inv(a) @ a, np.eye(200))',
    'pandas': 'import pandas as pd; f = pd.DataFrame({"k": [1, 1, 2],'
              '"v": [1, 2, 3]}); assert list(f.groupby("k").v.sum()) == [3, 3]',
    'uvloop': 'import asyncio, uvloop; uvloop.run(asyncio.sleep(0.05))',
    'greenlet': 'import greenlet; g = greenlet.greenlet(lambda: 42);'
                'assert g.switch() == 42',
    'cryptography': 'from cryptography.fernet import Fernet;'
                    'f = Fernet(Fernet.generate_key());'
                    'assert f.decrypt(f.encrypt(b"x")) == b"x"',
    'psycopg': 'import psycopg; from psycopg import pq;'
               'assert pq.__impl__ == "binary"\n'
               'try: psycopg.connect("host=127.0.0.1 port=1")\n'
               'except psycopg.OperationalError: pass\n'
               'else: raise SystemExit("connected to nothing")',
}

EXTENSION = '''
#include <Python.h>
static PyObject *twice(PyObject *m, PyObject *o)
{ return PyNumber_Add(o, o); }
static PyMethodDef methods[] = {{"twice", twice, METH_O, NULL}, {NULL}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "ours", NULL, 0, methods};
PyMODINIT_FUNC PyInit_ours(void) { return PyModule_Create(&module); }
'''

PROJECT = '''
from setuptools import Extension, setup
setup(name="ours", version="1", ext_modules=[Extension("ours", ["ours.c"])])
'''


def must(truth, reason):
    if not truth:
        raise SystemExit(f'inside.py: error: {sys.executable}: {reason}')


def run(*command, **more):
    """The output of a command that has to succeed."""
    done = subprocess.run(list(map(str, command)), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          **more)
    must(done.returncode == 0,
         f'{command} gave {done.returncode}:\n{done.stdout}')
    return done.stdout


def check_place():
    """It knows where it stands, and of no other place."""
    for name in ('prefix', 'exec_prefix', 'base_prefix'):
        must(getattr(sys, name) == str(PREFIX),
             f'sys.{name} is {getattr(sys, name)}, not {PREFIX}')
    for name, path in sysconfig.get_paths().items():
        must(path.startswith(str(PREFIX)), f'path {name} is {path}')
    for name, value in sysconfig.get_config_vars().items():
        rest = str(value).replace(str(PREFIX), '')
        must(not BUILT_FOR.search(rest), f'variable {name} is {value}')
    for name in ('INCLUDEPY', 'LIBDIR', 'BINDIR', 'LIBPL'):
        path = sysconfig.get_config_var(name)
        must(os.path.isdir(path), f'{name} is {path}, which does not exist')
    must(os.path.isfile(sysconfig.get_config_h_filename()), 'no pyconfig.h')


def check_scripts():
    """What is in bin/ starts the interpreter beside it, through links too."""
    for name in ('pip', 'pip3', 'pydoc3', 'python3-config'):
        must((PREFIX / 'bin' / name).exists(), f'there is no bin/{name}')
    must(str(PREFIX) in run(PREFIX / 'bin/pip', '--version'),
         'pip is of another interpreter')
    must('NAME\n    this' in run(PREFIX / 'bin/pydoc3', 'this'), 'no pydoc')
    if ' ' not in str(PREFIX):
        include = run(PREFIX / 'bin/python3-config', '--includes')
        must(os.path.isdir(include.split()[0][2:]), f'-I is {include}')


def check_modules():
    """Every module of the standard library, and what was linked in works."""
    import bz2, ctypes, lzma, sqlite3, uuid, zlib, zoneinfo
    left_out = {'idlelib', 'lib2to3', 'tkinter', 'turtle', 'turtledemo',
                'antigravity', 'this', '_tkinter', '_dbm', '_gdbm'}
    for name in sorted(sys.stdlib_module_names - left_out):
        windows = ('_winapi', '_overlapped', '_scproxy', '_wmi', 'msvcrt',
                   'nt', 'winreg', 'winsound', '_msi', 'nturl2path',
                   '_android_support', '_ios_support', '_apple_support')
        if name not in windows and not name.startswith(
                ('_pyrepl', '_test', '_xxtest', 'xx')):
            run(sys.executable, '-c', f'import {name}')
    for codec in (bz2, lzma, zlib):
        must(codec.decompress(codec.compress(b'x' * 999)) == b'x' * 999,
             f'{codec.__name__} does not give back what it got')
    must(ctypes.CDLL(None).abs(-3) == 3, 'ctypes calls no C function')
    must(sqlite3.connect(':memory:').execute('select 6 * 7').fetchone()
         == (42,), 'SQLite cannot count')
    must(uuid.uuid1() != uuid.uuid1(), 'uuid repeats itself')
    if os.path.isdir('/usr/share/zoneinfo/Europe'):
        must(zoneinfo.ZoneInfo('Europe/Berlin').key, 'no time zones')


def check_terminal():
    """curses finds the system's descriptions, and panels are on its screen."""
    program = ('import curses, curses.panel\n'
               'def f(s):\n'
               '  p = curses.panel.new_panel(s.subwin(3, 9, 1, 1))\n'
               '  s.addstr(2, 2, "héllo"); curses.panel.update_panels()\n'
               '  curses.doupdate(); assert curses.panel.top_panel() is p\n'
               'curses.wrapper(f); print("drawn")')
    import pty
    parts = []

    def read(descriptor):
        parts.append(os.read(descriptor, 4096))
        return parts[-1]
    os.environ['TERM'] = 'xterm'
    sys.stdout.flush()
    silent, out = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(out, 1)
    try:
        status = pty.spawn([sys.executable, '-c', program], read,
                           lambda descriptor: b'')
    finally:
        os.dup2(silent, 1)
    output = b''.join(parts)
    must(status == 0 and b'drawn' in output and 'héllo'.encode() in output,
         f'curses ends with {status} and shows {output}')
    run(sys.executable, '-c', 'import readline; readline.parse_and_bind('
        '"bind ^I rl_complete"); assert readline.backend == "editline"')


def check_tls(wheels):
    """A server whose authority the system trusts is trusted, another not."""
    program = pathlib.Path(__file__).with_name('tls.py')
    env = {name: value for name, value in os.environ.items()
           if name not in ('SSL_CERT_FILE', 'SSL_CERT_DIR')}
    trusted = 'INSIDE_TRUSTED' in env
    run(sys.executable, program, wheels, env=env if trusted else
        env | {'SSL_CERT_FILE': f'{wheels}/CA.pem'})
    if not trusted:
        done = subprocess.run([sys.executable, program, wheels], env=env,
                              stderr=subprocess.PIPE, text=True)
        must('CERTIFICATE_VERIFY_FAILED' in done.stderr,
             f'an unknown authority is trusted: {done}')


def make_venv(scratch, wheels):
    run(sys.executable, '-m', 'venv', scratch / 'venv')
    python = scratch / 'venv/bin/python'
    run(python, '-m', 'pip', 'install', '--no-index', '--find-links', wheels,
        '-q', 'setuptools', *WHEELS, 'psycopg-binary')
    must(run(python, '-c', 'import sys; print(sys.base_prefix)').strip()
         == str(PREFIX), 'a venv is of another interpreter')
    return python


def check_wheels(scratch, python):
    """Unmodified wheels work while they are profiled."""
    for name, program in WHEELS.items():
        profile = scratch / f'{name}.pb.gz'
        path = scratch / f'{name}_program.py'
        path.write_text(program)
        run(python, '-X', f'sampleprof=wall,out={profile}', path)
        report = run(python, '-m', 'profile_sampling', 'report', profile)
        must(re.search(r'\b[1-9][0-9,]* samples', report),
             f'no samples of {name}: {report}')
        must('answered late' not in report,
             f'the clock cannot ask what a thread does: {report}')


def check_extension(scratch, python):
    """A C extension can be built, with what sysconfig says."""
    if not any(os.access(os.path.join(directory, 'gcc'), os.X_OK)
               for directory in os.environ['PATH'].split(':')):
        print('no compiler here: no C extension was built')
        return
    source = scratch / 'ours'
    source.mkdir()
    (source / 'ours.c').write_text(EXTENSION)
    (source / 'setup.py').write_text(textwrap.dedent(PROJECT))
    run(python, 'setup.py', '-q', 'build_ext', '--inplace', cwd=source)
    run(python, '-c', 'import ours; assert ours.twice(21) == 42', cwd=source)


def check_untouched():
    """It was used, and nobody could write to it."""
    if os.getuid() != 0:
        must(not os.access(PREFIX / 'lib', os.W_OK), 'it may be written to')


def main():
    wheels, scratch = map(pathlib.Path, sys.argv[1:])
    os.environ['HOME'] = str(scratch)
    check_place()
    check_scripts()
    check_modules()
    check_terminal()
    check_tls(wheels)
    python = make_venv(scratch, wheels)
    check_wheels(scratch, python)
    check_extension(scratch, python)
    check_untouched()
    print(f'{PREFIX}: place, scripts, modules, terminal, TLS, venv, wheels '
          'and extensions are right')


if __name__ == '__main__':
    main()
