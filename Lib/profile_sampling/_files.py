"""Putting a whole file in place, or nothing."""

import errno
import io
import os
import stat

try:
    import resource
except ImportError:
    # A system without limits.
    resource = None

_STREAMS = {'/dev/stdout': 1, '/dev/stderr': 2}
_DESCRIPTORS = '/dev/fd/', '/proc/self/fd/'
# The number of descriptors from which on some are kept, and where they are.
_MANY, _LAST = 1024, 1008
# As many as Linux follows.
_MAX_LINKS = 40
# Windows would change the ends of lines; it has no links that are made for us.
_FLAGS = (os.O_WRONLY | os.O_CREAT | os.O_EXCL
          | getattr(os, 'O_NOFOLLOW', 0) | getattr(os, 'O_BINARY', 0))


def replace(path, data, *, dir_fd=None):
    """Make *path* a file with the content *data*.

    The data is written to a new file beside it, which is renamed, so that at
    any moment *path* is the old file or the new one, whole.  A new file has
    the mode that the umask leaves, one that was there keeps its own.  Links
    of this user and of root are followed, and only a regular file of this
    user is replaced; anything else raises OSError, and so does a directory
    that cannot be written.  A relative path starts at the directory *dir_fd*
    if that is given.

    The system's names of files that are open, such as /dev/stdout, are not
    replaced: the data is written there.
    """
    path = os.fspath(path)
    fd = descriptor(path)
    if fd is not None:
        _write_all(fd, data)
        return
    path, mode = _target_of(path, dir_fd)
    _check_size(path, data)
    fd, temporary = _create(os.path.dirname(path), path, dir_fd)
    try:
        try:
            # Some file systems cannot change it, and have one for all files.
            if (hasattr(os, 'fchmod') and mode not in (
                    None, stat.S_IMODE(os.fstat(fd).st_mode))):
                os.fchmod(fd, mode)
            _write_all(fd, data)
        finally:
            os.close(fd)
        os.replace(temporary, path, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)
    except BaseException:
        try:
            os.unlink(temporary, dir_fd=dir_fd)
        except FileNotFoundError:
            # An interrupt just after the rename.
            pass
        raise


def write_to(file, data):
    """Write *data* to a binary file object."""
    check_binary(file)
    while data:
        written = file.write(data)
        if written is None and isinstance(file, io.RawIOBase):
            raise BlockingIOError(errno.EAGAIN, 'the file is not ready')
        # Not all that has this method says how much it wrote.
        data = data[len(data) if written is None else written:]


def check_binary(file):
    """Raise TypeError for a file object whose content is text."""
    if isinstance(file, io.TextIOBase):
        raise TypeError('a profile is bytes: give a file that is opened in '
                        'binary mode')


class Kept:
    """The directory of a file that is written at the end.

    That of *path* is open as *fd* from the start: a program may have another
    root then.  It may close it, too, and open another with its number.  If
    *fd* is -1 nothing is kept.
    """

    def __init__(self, path, fd):
        self._path = os.path.dirname(path)
        self._directory = fd
        self._identity = _identity(fd)

    def directory_of(self, path):
        """Return the open directory of *path*, or None."""
        identity = _identity(self._directory)
        if (os.path.dirname(path) == self._path and identity is not None
                and identity == self._identity):
            return self._directory
        return None


def out_of_the_way(fd):
    """Return a descriptor of the same file with a number that programs do not
    come to, and close *fd*; -1 where a program may have few.
    """
    from fcntl import F_DUPFD_CLOEXEC, fcntl
    try:
        if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < _MANY:
            return -1
        return fcntl(fd, F_DUPFD_CLOEXEC, _LAST)
    except OSError:
        return -1
    finally:
        os.close(fd)


def open_directory(path):
    """Return a descriptor of a directory; raise OSError if there is none."""
    flags = os.O_DIRECTORY | os.O_CLOEXEC
    try:
        return os.open(path, os.O_RDONLY | flags)
    except PermissionError:
        # One that can be written may be one that cannot be read.
        return os.open(path, os.O_PATH | flags)


def _identity(fd):
    try:
        status = os.fstat(fd)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def descriptor(path):
    """Return the descriptor of the open file that a path names, or None."""
    path = os.fsdecode(path)
    if path in _STREAMS:
        return _STREAMS[path]
    for directory in _DESCRIPTORS:
        number = path.removeprefix(directory)
        if number != path and number.isascii() and number.isdigit():
            return int(number)
    return None


def _write_all(fd, data):
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view):]


def check(path):
    """Raise OSError if replace() would, as far as can be known before."""
    target, _ = _target_of(os.fspath(path), None)
    directory = os.path.dirname(target) or os.curdir
    if not stat.S_ISDIR(os.stat(directory).st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR),
                                 directory)
    if not os.access(directory, os.W_OK | os.X_OK,
                     effective_ids=os.access in os.supports_effective_ids):
        is_read_only = (hasattr(os, 'statvfs') and
                        os.statvfs(directory).f_flag & os.ST_RDONLY)
        number = errno.EROFS if is_read_only else errno.EACCES
        raise OSError(number, os.strerror(number), directory)


def _target_of(path, dir_fd):
    """Return the name of the file to replace, and its mode; None: there is
    none yet, or its directory says what is wrong with it."""
    for _ in range(_MAX_LINKS):
        try:
            status = os.lstat(path, dir_fd=dir_fd)
        except OSError:
            return path, None
        if not stat.S_ISLNK(status.st_mode):
            break
        if status.st_uid not in (0, _user()):
            # In a directory for all, to a file that this user did not mean.
            raise PermissionError(
                errno.EPERM, 'is a symbolic link of another user (uid '
                f'{status.st_uid}) and is not followed; choose another name',
                path)
        path = os.path.join(os.path.dirname(path),
                            os.readlink(path, dir_fd=dir_fd))
    else:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(
            errno.EISDIR, 'is a directory; give the name of a file in it',
            path)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, 'is not a regular file', path)
    if status.st_uid != _user():
        raise PermissionError(
            errno.EPERM, f'belongs to another user (uid {status.st_uid}) '
            'and is not replaced; choose another name', path)
    return path, stat.S_IMODE(status.st_mode) & 0o777


def _user():
    # What Windows says of all files.
    return os.geteuid() if hasattr(os, 'geteuid') else 0


def _check_size(path, data):
    """Raise OSError for more than a file may have.

    A program that does not ignore SIGXFSZ would be ended by the write.
    """
    if resource is None:
        return
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    if limit != resource.RLIM_INFINITY and len(data) > limit:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), path)


def _create(directory, path, dir_fd):
    """Open a new file in *directory*; return its descriptor and name."""
    # Short, so that it fits wherever the name itself does.
    name = f'.sampleprof-{os.urandom(8).hex()}.tmp'
    if isinstance(directory, bytes):
        name = name.encode()
    temporary = os.path.join(directory, name)
    try:
        return os.open(temporary, _FLAGS, 0o666, dir_fd=dir_fd), temporary
    except OSError as exc:
        # The name that the caller knows says more than ours.
        raise OSError(exc.errno, exc.strerror, path) from None
