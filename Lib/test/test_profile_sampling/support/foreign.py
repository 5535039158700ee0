"""Profiles that name files they have no business with.

Owns the files and names, and what must be true of any page and report of such
a profile.  Used by test_sources and by Tools/fuzz.
"""

import base64
import gzip
import io
import json
import os
import re
import socket

from profile_sampling import Profile
from profile_sampling._data.by_site import Sites
from profile_sampling._formats import tables_of_code

from . import validator
from .builders import Builder

SECRET = 'HUSH'
# What is there to be shown: where each function is.
KNOWN = '''\
def f(x):
    return x + 1


class C:
    def g(self):
        return [y for y in range(9)]
'''
KNOWN_FUNCTIONS = ('f', 1), ('C.g', 6), ('<module>', 1), ('C', 5)
_PRIVATE = f'''\
PASSWORD = "{SECRET}"
def connect():
    return "{SECRET}"
'''
_QUALNAMES = ('<module>', 'f', 'C.g', 'connect', '<lambda>', 'f.<locals>.h',
              '', '\ud800')
_SYSTEM = ('/dev/zero', '/dev/tty', '/dev/stdin', '/dev/full', '/proc/self/mem',
           '/proc/self/environ', '/proc/kmsg', '/etc/passwd', '/', '', '.',
           '..', '~/.ssh/id_ed25519', '\0', 'a\0.py', '/\udc80.py', '\ud800',
           '/' + 'a' * 5000 + '.py', 'a/' * 100_000, '<frozen posixpath>',
           '<frozen /etc/passwd>', '<frozen ...>', '<string>', '<stdin>')


class Files:
    """Files in a directory: inside is what may be shown, outside is not."""

    def __init__(self, directory):
        self.inside = os.path.join(directory, 'inside')
        self.outside = os.path.join(directory, 'outside')
        os.mkdir(self.inside)
        os.mkdir(self.outside)
        self.known = self._file(self.inside, 'known.py', KNOWN)
        self.private = self._file(self.outside, 'private.py', _PRIVATE)
        self.names = [
            self.known, self.private,
            self._file(self.outside, 'key', f'-----BEGIN {SECRET}-----\n'),
            self._file(self.outside, '.env', f'PASSWORD={SECRET}\n'),
            self._file(self.inside, 'binary.py', f'\0{SECRET}\n'),
            self._file(self.inside, 'broken.py', f'def f(:\n{SECRET}\n'),
            self._file(self.inside, 'codec.py', f'# coding: hex\n{SECRET}\n'),
            self._file(self.inside, 'latin.py',
                       '# coding: utf-8\n\xff'.encode('latin-1')),
            self._huge(), self._fifo(), self._socket(),
            self._link('link.py', self.private),
            self._link('zero.py', '/dev/zero'),
            self._link('loop.py', 'loop.py'),
            os.path.join(self.inside, '..', 'outside', 'private.py'),
            os.path.join(self.inside, 'gone.py'),
            os.path.join(self.known, 'member.py'), *_SYSTEM]
        for name in self.inside, self.outside:
            self.names.append(name)
            self.names.append(name + '/.')

    def close(self):
        self._listening.close()

    def _file(self, directory, name, content):
        path = os.path.join(directory, name)
        if isinstance(content, str):
            content = content.encode()
        with open(path, 'wb') as file:
            file.write(content)
        return path

    def _huge(self):
        path = self._file(self.inside, 'huge.py', '')
        os.truncate(path, 1 << 40)
        return path

    def _fifo(self):
        path = os.path.join(self.inside, 'fifo.py')
        os.mkfifo(path)
        return path

    def _socket(self):
        path = os.path.join(self.inside, 's.py')
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(path)
        return path

    def _link(self, name, target):
        path = os.path.join(self.inside, name)
        os.symlink(target, path)
        return path


def profile(functions):
    """Return a Profile as it is loaded: of (file name, qualified name, first
    line, line)."""
    b = Builder(start_time_ns=0)
    for number, (filename, qualname, first_line, line) in enumerate(functions):
        b.sample([(b.function('m', qualname, filename, first_line), line)],
                 wall_ns=1 + number)
    return loaded(b.profile())


def loaded(given):
    """Return a Profile that has been saved and loaded."""
    file = io.BytesIO()
    given.save(file)
    file.seek(0)
    return Profile.load(file)


def any_profile(rng, files):
    """A Profile of some of the names, and how its page is asked for."""
    functions = []
    for _ in range(rng.randrange(1, 12)):
        qualname, first = rng.choice((
            *KNOWN_FUNCTIONS, ('connect', 2),
            (rng.choice(_QUALNAMES), rng.choice((0, 1, 2, 6, 2 ** 31 - 1)))))
        functions.append((rng.choice(files.names), qualname, first,
                          rng.choice((0, 1, first, 9, 2 ** 31 - 1))))
    return profile(functions), rng.choice((True, files.inside, [],
                                           [files.known]))


def embedded(page):
    """Return what a page has of source: a list of objects."""
    packed, = re.findall(
        rb'id="sources">([A-Za-z0-9+/=]*)</script>', page) or (None,)
    if packed is None:
        return []
    return json.loads(gzip.decompress(base64.b64decode(packed)))['functions']


def page_of(profile, **options):
    file = io.BytesIO()
    profile.save(file, 'html', **options)
    return file.getvalue()


def judge(profile, source, files):
    """Raise AssertionError if a page or report shows what it must not.

    Return whether it shows any source.
    """
    library = os.path.dirname(os.path.realpath(os.__file__))
    shown = False
    for function in embedded(page_of(profile, source=source)):
        text = '\n'.join(function['lines'].values())
        validator.check(SECRET not in text, 'a secret is shown', function)
        name = function['filename']
        if function['lines'] and not name.startswith('<frozen '):
            path = os.path.realpath(name)
            validator.check(path.startswith((files.inside + '/', library)),
                            'a foreign file is shown', function)
        shown |= bool(function['lines'])
    tables = profile._tables
    for table in tables_of_code.source(tables, Sites(tables), 100, ''):
        _judge_listing(table)
    return shown


def _judge_listing(table):
    """A terminal may show what is Python and as the profile says."""
    text = '\n'.join([str(cell) for row in table.rows for cell in row])
    for word in '-----BEGIN', 'PASSWORD=', 'root:', 'PATH=':
        validator.check(word not in text, 'what is no Python is shown',
                        table.title)
