"""Running what is measured: child processes, and C compiled at run time."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


class Unavailable(Exception):
    """Something that is needed is not there; the text says the remedy."""


def environment(**extra):
    """A small one, so that nothing of the caller's changes a measurement."""
    return {'PATH': os.environ.get('PATH', '/usr/bin:/bin'), 'LC_ALL': 'C',
            'PYTHONHASHSEED': '0', **extra}


def run_json(script, *args, timeout_s=600):
    """Run a script of this directory with our interpreter; what it prints
    is JSON."""
    command = [sys.executable, '-E', '-s', str(HERE / script),
               *map(str, args)]
    done = subprocess.run(command, env=environment(), capture_output=True,
                          text=True, timeout=timeout_s)
    if done.returncode != 0:
        raise Unavailable(f'{script} {" ".join(map(str, args))} ended with '
                          f'status {done.returncode}:\n{done.stderr.strip()}')
    return json.loads(done.stdout)


def compile_shared(source):
    """Compile a C file of this directory; return (path, directory)."""
    compiler = os.environ.get('CC') or 'cc'
    if shutil.which(compiler.split()[0]) is None:
        raise Unavailable(f'no C compiler ({compiler}); install gcc')
    directory = tempfile.TemporaryDirectory(prefix='bench')
    target = pathlib.Path(directory.name, source).with_suffix('.so')
    done = subprocess.run(
        [*compiler.split(), '-O2', '-Wall', '-shared', '-fPIC', '-pthread',
         str(HERE / source), '-o', str(target)],
        capture_output=True, text=True)
    if done.returncode != 0:
        raise Unavailable(f'{compiler} failed on {source}:\n{done.stderr}')
    return target, directory


def tool(name, package):
    path = shutil.which(name)
    if path is None:
        raise Unavailable(f'{name} is missing; install {package}')
    return path
