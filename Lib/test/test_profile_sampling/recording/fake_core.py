"""A stand-in for the core, for what the library does around it.

Only the session is pretended: the tables are those of builders.example().
"""

import sys
import types
import unittest
# sys.modules is put back after each test.  If this was imported first in one,
# the interpreter would keep a pointer into a module that is gone.
import unicodedata as _unicodedata      # noqa: F401
from unittest import mock

from ..support.builders import example
from ..support.sessions import _profile


class FakeCore(types.ModuleType):

    def __init__(self):
        super().__init__('_profile')
        self.session = None
        self.blocks = []
        self.calls = []

    def start(self, **options):
        self.calls.append(('start', options))
        if self.session is not None:
            raise RuntimeError('a session is already running')
        self.session = options

    def stop(self):
        self.calls.append(('stop',))
        if self.session is None:
            raise RuntimeError('no session is running')
        session, self.session = self.session, None
        return tables(session)

    def begin_block(self, **options):
        self.calls.append(('begin_block', options))
        self.blocks.append(options)
        return options

    def end_block(self, block):
        self.blocks.remove(block)
        return tables(block)

    def snapshot(self, clear=False):
        self.calls.append(('snapshot', clear))
        if self.session is None:
            raise RuntimeError('no session is running')
        return example().raw()

    def running(self):
        return self.session is not None or bool(self.blocks)

    def stats(self):
        return {'ticks': 7}


def tables(options):
    return example(mode=options.get('mode', 'wall'),
                   names=options.get('names', 3)).raw()


class ApiTest(unittest.TestCase):
    """A test that has *core* in place of the core."""

    def setUp(self):
        self.core = FakeCore()
        patch = mock.patch.dict(sys.modules, _profile=self.core)
        patch.start()
        self.addCleanup(patch.stop)
