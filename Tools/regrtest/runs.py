"""The three runs, and what is kept of each test file in them.

Owns the directory of results, from which a run is taken up again.  Knows
nothing of how the runs are compared.
"""

import functools
import hashlib
import json
import pathlib
import re
import shutil
import subprocess

import testfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
RATE_HZ = 5000
VALIDATOR = ROOT / 'Lib/test/test_profile_sampling/support/validator.py'
# Ours is not part of the comparison: stock does not have it.
OUR_TESTS = 'test_profile_sampling'
SRCDIR = re.compile(r'^srcdir=\s*(\S+)$', re.M)


def built_from(python):
    """The source tree, whose Lib an interpreter uses where it was built."""
    makefile = (python.parent / 'Makefile').read_text()
    return python.parent / SRCDIR.search(makefile)[1]


class Run:
    """One interpreter, sampled or not, and its results so far."""

    def __init__(self, name, python, directory, *, sampled=False):
        self.name = name
        self.python = python
        self.sampled = sampled
        self.directory = directory / name
        self.directory.mkdir(parents=True, exist_ok=True)

    @functools.cached_property
    def interpreter(self):
        """A digest of all that a test's result depends on."""
        digest = hashlib.sha256()
        paths = [self.python, HERE / 'testfile.py']
        built = self.python.parent / 'pybuilddir.txt'
        if built.exists():
            paths += sorted((self.python.parent / built.read_text().strip()
                             ).glob('*.so'))
            source = built_from(self.python)
            # The recipe is a digest of upstream's version, the security
            # patches and our series: of all of Lib but our own files.
            paths += [source / '.recipe',
                      *sorted(source.glob('Lib/profile_sampling/*.py'))]
        if self.sampled:
            digest.update(str(RATE_HZ).encode())
            paths += [HERE / 'profiles.py', VALIDATOR]
        for path in paths:
            digest.update(path.read_bytes())
        return digest.hexdigest()

    def test_names(self):
        listed = subprocess.run(
            [self.python, '-m', 'test', '--list-tests'], check=True,
            env=testfile.environment({}), capture_output=True, text=True)
        return [name for name in listed.stdout.split() if name != OUR_TESTS]

    def path(self, test, suffix):
        return self.directory / f'{test}.{suffix}'

    def attempts(self, test):
        """What is known of a test file with this interpreter."""
        try:
            known = json.loads(self.path(test, 'json').read_text())
        except FileNotFoundError:
            return []
        if known['interpreter'] != self.interpreter:
            return []
        return known['attempts']

    def forget(self, test):
        self.path(test, 'json').unlink(missing_ok=True)

    def attempt(self, test, wrapper, running):
        """Run a test file once more and keep what came of it."""
        attempts = self.attempts(test)
        log = self.path(test, f'{len(attempts) + 1}.log')
        profiles = self.path(test, 'profiles')
        shutil.rmtree(profiles, ignore_errors=True)
        settings = {}
        if self.sampled:
            profiles.mkdir()
            settings['PYTHONSAMPLEPROF'] = (
                f'wall,rate_hz={RATE_HZ},quiet=1,'
                f'out={profiles}/{{pid}}.pb.gz')
        state, cases, seconds = testfile.run(
            self.python, test, log, extra_environment=settings,
            wrapper=wrapper, running=running)
        if running.stopped:
            return
        result = {'state': state, 'seconds': seconds, 'cases': cases}
        if self.sampled:
            result['profiles'] = self.examine(profiles)
        new = self.path(test, 'json.new')
        new.write_text(json.dumps(
            {'interpreter': self.interpreter,
             'attempts': [*attempts, result]}, indent=1))
        new.rename(self.path(test, 'json'))

    def examine(self, profiles):
        """Check the profiles; keep only those that are not valid."""
        done = subprocess.run(
            [self.python, HERE / 'profiles.py', profiles],
            env=testfile.environment({}), stdout=subprocess.PIPE, text=True)
        found = json.loads(done.stdout)
        for path in profiles.iterdir():
            if path.name not in found['invalid']:
                path.unlink()
        if not found['invalid']:
            # A process that outlived its test may still write.
            shutil.rmtree(profiles, ignore_errors=True)
        return found


def three_runs(python, stock, directory):
    return {'stock': Run('stock', stock, directory),
            'off': Run('off', python, directory),
            'sampled': Run('sampled', python, directory, sampled=True)}
