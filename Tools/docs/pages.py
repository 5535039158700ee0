"""Run what the pages of Doc/ show: their commands and their Python.

    ./python Tools/docs/pages.py PAGE...            check the pages
    ./python Tools/docs/pages.py --record PAGE...   write down new output

A block of "console" is run line by line in an empty directory that holds
the programs of Doc/includes/profile_sampling and ./python.  A block of
Python is run after those before it on the page, and after "testsetup".
Other blocks, such as "shell-session", are for a person to try.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

INCLUDES = 'includes/profile_sampling'
TIMEOUT_SECONDS = 300

_DIRECTIVE = re.compile(r'( *)\.\. (code-block|testsetup)::(.*)')
_PROMPT = '$ '
# A table leaves out columns in which there is nothing, or for which there is
# no room.
_HEADINGS = ('#', 'waited')
_COLUMNS_OF_SOME_RUNS = ('native', 'waiting', 'GIL', 'CPU', 'wait', 'GC',
                         'asleep', 'idle', 'how', '\N{PLUS-MINUS SIGN}')
# Below a table is what its marks mean, of those that this run has.
_MARK = re.compile(r'(\[\w+\]|~): ')
_MISSING = re.compile(r"ModuleNotFoundError: No module named '(\w+)")


class Failure(Exception):
    """A command or a block does not do what the page says."""


class NeedsPackage(Exception):
    """A package that is not of the standard library is not here."""


class Block:
    """A literal block of a page.

    kind    what it is: 'console', 'python', 'none', ...
    first   index of its first line on the page
    lines   its lines, without their indent
    indent  how far the block is indented
    """

    def __init__(self, kind, first, lines):
        filled = [line for line in lines if line.strip()]
        self.kind = kind
        self.first = first
        self.indent = min(len(line) - len(line.lstrip()) for line in filled)
        self.lines = [line[self.indent:] for line in lines]

    def commands(self):
        """Return [[command, its output lines], ...] of a console block."""
        commands = []
        for line in self.lines:
            if line.startswith(_PROMPT):
                commands.append([line.removeprefix(_PROMPT), []])
            else:
                commands[-1][1].append(line)
        return commands


def blocks(text):
    """Return the literal blocks of a page, in order."""
    found = []
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        kind, indent = _opening(lines[at])
        at += 1
        if kind is None:
            continue
        first = at
        while at < len(lines) and (
                not lines[at].strip() or _indent(lines[at]) > indent):
            at += 1
        body = lines[first:at]
        while body and (not body[0].strip()
                        or body[0].strip().startswith(':')):
            body.pop(0)
            first += 1
        while body and not body[-1].strip():
            body.pop()
        if body:
            found.append(Block(kind, first, body))
    return found


def _opening(line):
    """Return the kind and the indent of the block that a line opens."""
    match = _DIRECTIVE.fullmatch(line)
    if match:
        indent, name, language = match.groups()
        kind = 'python' if name == 'testsetup' else language.strip()
        return kind, len(indent)
    if line.endswith('::') and not line.lstrip().startswith('.. '):
        return 'python', _indent(line)
    return None, 0


def _indent(line):
    return len(line) - len(line.lstrip())


class Place:
    """A directory in which the commands of one page are run."""

    def __init__(self, doc, python=sys.executable):
        self._python = python
        self._temporary = Path(tempfile.mkdtemp(prefix='pages.'))
        # What reports show of a long path is its end.
        self.path = self._temporary / 'doc/examples'
        self.path.mkdir(parents=True)
        for program in sorted((doc / INCLUDES).glob('*.py')):
            shutil.copy(program, self.path)
        # Not a link: an environment is found by the path of its python.
        wrapper = self.path / 'python'
        wrapper.write_text(f'#!/bin/sh\nexec {python} "$@"\n')
        wrapper.chmod(0o755)

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        shutil.rmtree(self._temporary)

    def run(self, command):
        """Run a command line; return the lines of its output."""
        env = {name: value for name, value in os.environ.items()
               if not name.startswith('PYTHON')}
        done = subprocess.run(
            ['sh', '-c', command], cwd=self.path, env=env, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=TIMEOUT_SECONDS)
        missing = _MISSING.search(done.stdout)
        if missing and missing[1] not in sys.stdlib_module_names:
            raise NeedsPackage(missing[1])
        if done.returncode:
            raise Failure(f'{command}: status {done.returncode}\n'
                          f'{done.stdout}')
        return done.stdout.replace(self._python, './python').splitlines()

    def run_python(self, source):
        (self.path / '_page.py').write_text(source)
        return self.run('./python _page.py')


def python_of(page):
    """Return the Python of a page as one program."""
    return '\n\n'.join(['\n'.join(block.lines) for block
                        in blocks(page.read_text()) if block.kind == 'python'])


def check_commands(page, place):
    """Run the commands of a page and compare their output."""
    for block in blocks(page.read_text()):
        if block.kind == 'console':
            for command, shown in block.commands():
                _compare(command, shown, place.run(command))


def _compare(command, shown, printed):
    """Numbers differ from run to run; so lines without any are compared."""
    printed = {_plain(line) for line in printed}
    for line in shown:
        mark = _MARK.match(line.strip())
        if mark and not any(mark[1] in words.split() for words in printed):
            continue
        if line.strip() and not re.search(r'\d', line) \
                and _plain(line) not in printed:
            raise Failure(f'{command}: does not print {line!r} any more; see '
                          '"./python Tools/docs/pages.py --record"')


def _plain(line):
    words = line.split()
    if words[:1] == ['Quality:']:
        words = words[:1]       # it depends on what else the machine does
    elif words and words[0] in _HEADINGS:
        words = [word for word in words if word not in _COLUMNS_OF_SOME_RUNS]
    return ' '.join(words)


def record(page, place):
    """Replace the output on a page by what the commands print now.

    A command without output on the page stays so.
    """
    lines = page.read_text().splitlines()
    for block, commands in reversed(_run_all(page, place)):
        new = []
        for command, shown, printed in commands:
            new.append(_PROMPT + command)
            new += '\n'.join(printed).rstrip().split('\n') if shown else []
        indent = ' ' * block.indent
        lines[block.first:block.first + len(block.lines)] = [
            (indent + line).rstrip() for line in new]
    page.write_text('\n'.join(lines) + '\n')


def _run_all(page, place):
    return [(block, [(command, shown, place.run(command))
                     for command, shown in block.commands()])
            for block in blocks(page.read_text()) if block.kind == 'console']


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('pages', metavar='PAGE', nargs='+', type=Path)
    parser.add_argument('--record', action='store_true',
                        help='write what commands print onto the page')
    options = parser.parse_args()
    doc = Path(__file__).resolve().parents[2] / 'Doc'
    status = 0
    for page in options.pages:
        with Place(doc) as place:
            try:
                if options.record:
                    record(page, place)
                else:
                    check_commands(page, place)
                    place.run_python(python_of(page))
            except (Failure, NeedsPackage) as exc:
                print(f'{page}: {type(exc).__name__}: {exc}')
                status = 1
            else:
                print(f'{page}: done')
    return status


if __name__ == '__main__':
    sys.exit(main())
