"""Pack a tree so that the same files always give the same bytes.

usage: pack.py TREE NAME.tar.gz

Dates come from SOURCE_DATE_EPOCH, owners are root, and the order is that of
the names.  Writes NAME.tar.gz and, beside it, NAME.tar.gz.sha256 in
sha256sum's form.
"""

import gzip
import hashlib
import os
import pathlib
import sys
import tarfile


def normalized(info):
    info.uid = info.gid = 0
    info.uname = info.gname = 'root'
    info.mtime = int(os.environ['SOURCE_DATE_EPOCH'])
    info.mode = 0o755 if info.mode & 0o100 else 0o644
    if info.issym():
        info.mode = 0o777
    return info


def pack(tree, archive):
    """TREE becomes the archive's only directory, under its own name."""
    paths = sorted(tree.rglob('*'), key=lambda path: path.parts)
    with archive.open('wb') as raw, \
            gzip.GzipFile('', 'wb', 9, raw, mtime=0) as packed, \
            tarfile.open(fileobj=packed, mode='w',
                         format=tarfile.GNU_FORMAT) as tar:
        for path in [tree, *paths]:
            name = str(path.relative_to(tree.parent))
            # A second name of a file is a file again: no order of reading
            # may show.
            tar.inodes.clear()
            tar.add(path, name, recursive=False, filter=normalized)


def write_digest(archive):
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    archive.with_name(archive.name + '.sha256').write_text(
        f'{digest}  {archive.name}\n')


if __name__ == '__main__':
    tree, archive = map(pathlib.Path, sys.argv[1:])
    pack(tree, archive)
    write_digest(archive)
