"""The source text of a process's program, as that process sees its files.

A file that has changed since the process began is not what it runs: then
there is no text.
"""

import os
import time

_MAX_BYTES = 4 << 20


class Sources:
    """Lines of source, by file and number."""

    def __init__(self, process):
        self._root = f'/proc/{process.pid}/root'
        self._cwd = f'/proc/{process.pid}/cwd'
        self._began = time.time() - process.up_s
        self._files = {}

    def line(self, filename, number):
        """Return a line without its indentation, or ''."""
        lines = self.lines(filename)
        return lines[number - 1].strip() if 0 < number <= len(lines) else ''

    def lines(self, filename):
        """Return all lines of a file, none if there is no text."""
        lines = self._files.get(filename)
        if lines is None:
            lines = self._files[filename] = self._read(filename)
        return lines

    def _read(self, filename):
        if filename.startswith('<'):
            return []
        for path in self._paths(filename):
            try:
                with open(path, 'rb') as file:
                    known = os.fstat(file.fileno())
                    if known.st_mtime > self._began + 1:
                        return []
                    text = file.read(_MAX_BYTES)
            except OSError:
                continue
            return text.decode('utf-8', 'replace').splitlines()
        return []

    def _paths(self, filename):
        if filename.startswith('/'):
            return self._root + filename, filename
        return f'{self._cwd}/{filename}',
