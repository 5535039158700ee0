"""Look whether a staged tree keeps what a distribution promises.

usage: check.py TREE BUILD FLOOR

No file asks for a library that is not glibc's, or for a symbol of a later
glibc than FLOOR; none names the directory BUILD; nothing that was linked in
is visible to others; no link leads out.  Prints each fault and fails if there
was one.  What the interpreter does when it runs is for test.py to find out.
"""

import os
import pathlib
import re
import subprocess
import sys

GLIBC = {'libc.so.6', 'libm.so.6', 'libpthread.so.0', 'libdl.so.2',
         'libutil.so.1', 'librt.so.1', 'ld-linux-x86-64.so.2'}

# One well-known name of each library that is linked in.
HIDDEN = {'BZ2_bzCompress', 'ffi_call', 'lzma_code', 'initscr', 'new_panel',
          'sqlite3_open', 'SSL_new', 'EVP_DigestInit', 'uuid_generate',
          'deflate', 'tgetent', 'el_init', 'strnvis', 'MD5Init'}

# Modules that are there only if the right libraries were found.
MODULES = {'_bz2', '_ctypes', '_curses', '_curses_panel', '_hashlib', '_lzma',
           '_sqlite3', '_ssl', '_uuid', 'readline', 'zlib', '_decimal',
           '_elementtree', '_profile'}


def readelf(*arguments):
    return subprocess.run(['readelf', '-W', *map(str, arguments)], check=True,
                          env=os.environ | {'LC_ALL': 'C'}, text=True,
                          stdout=subprocess.PIPE).stdout


def version(text):
    return tuple(map(int, text.split('.')))


def needed_faults(path):
    dynamic = readelf('-d', path)
    for name in re.findall(r'\(NEEDED\).*\[(.*)\]', dynamic):
        if name not in GLIBC:
            yield f'needs {name}, which is not part of glibc'
    for tag in re.findall(r'\((RPATH|RUNPATH|TEXTREL)\)', dynamic):
        yield f'has a dynamic tag {tag}'


def symbol_faults(path, floor):
    for line in readelf('--dyn-syms', path).splitlines():
        fields = line.split()
        if len(fields) < 8:
            continue
        name, _, of_version = fields[7].partition('@')
        if fields[6] == 'UND':
            match = re.search(r'GLIBC_([0-9.]+)', of_version)
            if match and version(match[1]) > version(floor):
                yield f'asks for {name} of glibc {match[1]}'
        elif name in HIDDEN:
            yield f'shows {name}, which was linked in, to others'


def is_elf(path):
    with path.open('rb') as file:
        return file.read(4) == b'\x7fELF'


def file_faults(path, build, floor):
    if is_elf(path):
        yield from needed_faults(path)
        yield from symbol_faults(path, floor)
    if str(build).encode() in path.read_bytes():
        yield f'names {build}, where it was built'


def link_faults(tree, path):
    if not path.exists():
        yield 'leads nowhere'
    elif not path.resolve().is_relative_to(tree.resolve()):
        yield 'leads out of the tree'


def tree_faults(tree):
    built_in = subprocess.run(
        [tree / 'bin/python3', '-I', '-c',
         'import sys; print(*sys.builtin_module_names)'],
        check=True, text=True, stdout=subprocess.PIPE).stdout.split()
    shared = [path.name.partition('.')[0]
              for path in tree.glob('lib/python3.*/lib-dynload/*.so')]
    for name in sorted(MODULES.difference(built_in, shared)):
        yield f'has no module {name}'


def faults(tree, build, floor):
    elves = 0
    for path in sorted(tree.rglob('*')):
        if path.is_symlink():
            found = link_faults(tree, path)
        elif path.is_file():
            elves += is_elf(path)
            found = file_faults(path, build, floor)
        else:
            found = ()
        for fault in found:
            yield f'{path.relative_to(tree)} {fault}'
    if elves < 10:
        yield f'has {elves} binaries, which cannot be all'
    yield from tree_faults(tree)


def main():
    tree, build, floor = sys.argv[1:]
    found = list(faults(pathlib.Path(tree), pathlib.Path(build), floor))
    for fault in found:
        print(f'check.py: error: {fault}', file=sys.stderr)
    if found:
        raise SystemExit(1)
    print(f'{tree}: needs glibc {floor} and nothing else')


if __name__ == '__main__':
    main()
