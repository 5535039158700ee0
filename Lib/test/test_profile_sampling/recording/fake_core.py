"""A stand-in for the core, for what the library does around it.

Only the session is pretended: the tables are those of builders.example().
"""

import sys
import types
import unittest
from unittest import mock

from ..support.builders import example


class FakeCore(types.ModuleType):

    def __init__(self):
        super().__init__('_profile')
        self.session = None
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
        return example(mode=session.get('mode', 'wall'),
                       names=session.get('names', 3)).raw()

    def snapshot(self, clear=False):
        self.calls.append(('snapshot', clear))
        if self.session is None:
            raise RuntimeError('no session is running')
        return example().raw()

    def running(self):
        return self.session is not None

    def is_deferred(self):
        return self.running() and self.session.get('defer', False)

    def stats(self):
        return {'ticks': 7}


class ApiTest(unittest.TestCase):
    """A test that has *core* in place of the core."""

    def setUp(self):
        self.core = FakeCore()
        patch = mock.patch.dict(sys.modules, _profile=self.core)
        patch.start()
        self.addCleanup(patch.stop)
