"""Let the text files of an installed interpreter find their neighbours.

The interpreter itself looks beside its own executable; what was written down
when it was built does not.  Owns the files that hold paths: what sysconfig
reads, pkg-config's files, and the scripts in bin/.

usage: relocate.py TREE PREFIX BUILD
"""

import base64
import csv
import hashlib
import pathlib
import pprint
import re
import sys

# Where the source is said to have been, for a debugger.
SOURCE = '/usr/src/cpython-sampleprof'

# A script starts the interpreter beside it.  The shell reads a command in
# the first lines, Python a string.
LAUNCHER = """\
#!/bin/sh
'''exec' "$(dirname -- "$(realpath -- "$0")")/{python}" "$0" "$@"
' '''
"""

# What uv takes for the place of an interpreter that it has not yet moved.  It
# writes the whole file anew with the place where it puts it.
NOWHERE = '/install'

# The values come first, as they are without us, for programs that read the
# file as text.
SYSCONFIG = '''\
{header}
build_time_vars = {variables}

# Paths are of the place where this interpreter now stands.
def _move(variables):
    import os.path
    import re
    here = os.path.dirname(os.path.dirname(os.path.dirname(
        os.path.abspath(__file__))))
    for name, value in variables.items():
        if isinstance(value, str) and {prefix!r} in value:
            variables[name] = re.sub(r'(?<![\\w.)}}]){prefix}(?![\\w.-])',
                                     lambda match: here, value)

_move(build_time_vars)
'''


def scrub(text, build):
    """Take out of a command line what only this one build was made with."""
    # What was given to configure, quoted or not.
    build = re.escape(str(build))
    for pattern in [
        rf' ?--sysroot={build}[^ \'"]*',
        rf' ?-[BLI]{build}/dist/sysroot[^ \'"]*',
        r' ?-ffile-prefix-map=[^ \'"]*',
        r' ?-static-libgcc',
        r' ?-Wl,--exclude-libs,[^ \'"]*',
    ]:
        text = re.sub(pattern, '', text)
    return re.sub(build, SOURCE, text)


def write_sysconfig(path, prefix, build):
    found = {}
    text = path.read_text()
    exec(text, found)
    variables = {
        name: (scrub(value, build).strip().replace(str(prefix), NOWHERE)
               if isinstance(value, str) else value)
        for name, value in found['build_time_vars'].items()}
    # It is a list of what configure was given, most of it gone by now.
    variables['CONFIG_ARGS'] = f"'--prefix={NOWHERE}'"
    path.write_text(SYSCONFIG.format(
        header=text.partition('\n')[0], prefix=NOWHERE,
        variables=pprint.pformat(variables, width=79)))


def write_pkgconfig(path):
    text = re.sub(r'^prefix=.*$', 'prefix=${pcfiledir}/../..',
                  path.read_text(), flags=re.MULTILINE)
    path.write_text(re.sub(r'^(exec_prefix|libdir|includedir)=.*?/?(lib|'
                           r'include|)$', replace_directory, text,
                           flags=re.MULTILINE))


def replace_directory(match):
    name, directory = match.groups()
    return f'{name}=${{prefix}}/{directory}'.rstrip('/')


def launch_beside(path, python):
    """Give a Python script a first line that holds wherever it is."""
    first, _, rest = path.read_bytes().partition(b'\n')
    if first.startswith(b'#!') and b'python' in first:
        path.write_bytes(LAUNCHER.format(python=python).encode() + rest)


def record_of(path):
    """A line of RECORD: the digest and the size of a file."""
    content = path.read_bytes()
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest())
    return 'sha256=' + digest.rstrip(b'=').decode(), str(len(content))


def mend_record(record):
    """Say what scripts are now, and nothing of byte code."""
    rows = []
    packages = record.parent.parent
    with record.open(newline='') as file:
        for name, digest, size in csv.reader(file):
            path = packages / name
            if name.endswith('.pyc'):
                continue
            if digest and '/bin/' in name:
                digest, size = record_of(path)
            rows.append((name, digest, size))
    with record.open('w', newline='') as file:
        csv.writer(file, lineterminator='\n').writerows(sorted(rows))


def relocate(tree, prefix, build):
    # A build for debugging has two names; no order of reading may show.
    python = min(tree.glob('bin/python3.[0-9]*[0-9d]')).name
    for path in tree.glob('lib/python3.*/_sysconfigdata_*.py'):
        write_sysconfig(path, prefix, build)
    for path in tree.glob('lib/pkgconfig/*.pc'):
        if not path.is_symlink():
            write_pkgconfig(path)
    for pattern in ('lib/python3.*/config-*/Makefile', 'bin/*-config',
                    'lib/python3.*/config-*/python-config.py'):
        for path in tree.glob(pattern):
            if not path.is_symlink():
                path.write_text(scrub(path.read_text(), build))
    for path in tree.glob('bin/*'):
        if path.is_file() and not path.is_symlink():
            launch_beside(path, python)
    for record in tree.glob('lib/python3.*/site-packages/*/RECORD'):
        mend_record(record)


if __name__ == '__main__':
    relocate(*map(pathlib.Path, sys.argv[1:]))
