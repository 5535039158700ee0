"""The text of files that profiles name, whatever these names are.

A name may come from a file that a stranger wrote.  Opening a FIFO would wait
for a writer, some devices act when they are opened, and others never end.
"""

import io
import os
import stat
import sys
import tokenize
import zipimport

MAX_BYTES = 4 << 20
# Linux takes no longer ones, and each part may be asked about.
_MAX_NAME = 4096
# Of directories in a zip file.
_MAX_DEPTH = 64


class Unreadable(Exception):
    """Why a file has no source; the text is a sentence."""


def read(path, *, is_trusted):
    """Return the bytes of a file, and when it was changed, in nanoseconds.

    A path is trusted if this program recorded it itself.  Of such ones, zip
    files are read only if the program imports from them, by what it imports
    them with: this may be its end, when nothing more can be imported.

    Raise Unreadable.
    """
    try:
        if len(path) > _MAX_NAME:
            raise Unreadable('There is no source: the name is too long.')
        try:
            with _regular(path) as file:
                return _bounded(file), os.fstat(file.fileno()).st_mtime_ns
        except (FileNotFoundError, NotADirectoryError):
            archive = _archive(path)
            if archive is None:
                raise
            return _member(archive, path, is_trusted), 0
    except OSError as exc:
        raise Unreadable(f'There is no source: {exc.strerror or exc}.'
                         ) from None
    except ValueError as exc:
        # A name that cannot be one of a file.
        raise Unreadable(f'There is no source: {exc}.') from None


def real(path):
    """Return a path without symbolic links, or None if there is no file."""
    try:
        if len(path) > _MAX_NAME:
            return None
        try:
            return os.path.realpath(path, strict=True)
        except (FileNotFoundError, NotADirectoryError):
            archive = _archive(path)
            if archive is None:
                return None
            # What is in it has no links.
            return os.path.realpath(archive) + os.path.normpath(
                path[len(archive):])
    except (OSError, ValueError):
        return None


def lines(data):
    """Return the lines of source, numbered as the compiler does.

    Raise Unreadable.
    """
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        with io.TextIOWrapper(io.BytesIO(data), encoding) as file:
            return [line.rstrip('\n') for line in file]
    except (SyntaxError, ValueError, LookupError) as exc:
        raise Unreadable(f'The source cannot be read: {exc}.') from None


def _regular(path):
    """Open a regular file; raise OSError for anything else."""
    _check_regular(os.stat(path))
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    file = open(fd, 'rb')
    try:
        # It may be another one by now.
        _check_regular(os.fstat(fd))
    except BaseException:
        file.close()
        raise
    return file


def _check_regular(status):
    if not stat.S_ISREG(status.st_mode):
        raise Unreadable('There is no source: it is not a regular file.')


def _bounded(file):
    # None: a file of the kernel's has nothing to say yet.
    data = file.read(MAX_BYTES + 1) or b''
    if len(data) > MAX_BYTES:
        raise Unreadable('The source is not read: it has more than '
                         f'{MAX_BYTES:,} bytes.')
    return data


def _archive(path):
    """Return the file that stands where a path has a directory, or None."""
    for _ in range(_MAX_DEPTH):
        path = os.path.dirname(path)
        try:
            status = os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            continue
        return path if stat.S_ISREG(status.st_mode) else None
    return None


def _member(archive, path, is_trusted):
    """Return the bytes of a member of a zip file."""
    importer = sys.path_importer_cache.get(archive)
    if isinstance(importer, zipimport.zipimporter):
        try:
            return _bounded(io.BytesIO(importer.get_data(path)))
        except (OSError, EOFError, ImportError) as exc:
            raise _not_in(archive, exc) from None
    if is_trusted:
        raise Unreadable(f'There is no source: {archive} is a file.')
    import zipfile
    import zlib
    name = path[len(archive) + 1:].replace(os.sep, '/')
    try:
        with _regular(archive) as file, zipfile.ZipFile(file) as archived:
            info = archived.getinfo(name)
            # As the importer, which bounds what a byte can become.
            if info.compress_type not in (zipfile.ZIP_STORED,
                                          zipfile.ZIP_DEFLATED):
                raise Unreadable('There is no source: its compression is '
                                 'unknown.')
            with archived.open(info) as member:
                return _bounded(member)
    except (KeyError, RuntimeError, EOFError, zipfile.BadZipFile,
            zlib.error) as exc:
        raise _not_in(archive, exc) from None


def _not_in(archive, exc):
    return Unreadable(f'There is no source in {archive}: {exc}.')
