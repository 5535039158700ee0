"""How variants are configured, and ./python, which make leaves beside the
sources."""

import os
import pathlib
import shutil
import subprocess
import unittest

from ..support.sessions import ProgramTest, environment

ROOT = pathlib.Path(os.path.realpath(__file__)).parents[4]
PYTHON = ROOT / 'python'
IMPORTS = 'import sys, _profile, profile_sampling; print(sys.prefix)'


@unittest.skipUnless(PYTHON.exists() and (ROOT / 'upstream.conf').exists(),
                     './python is not here')
class PythonTest(ProgramTest):

    def output(self, *command):
        done = subprocess.run(command, cwd=self.directory, check=True,
                              env=environment(), text=True,
                              stdout=subprocess.PIPE)
        return done.stdout.strip()

    def test_arguments(self):
        self.assertEqual(
            self.output(PYTHON, '-c', 'import sys; print(sys.argv[1:])',
                        'a b', '', '$c'), "['a b', '', '$c']")

    def test_a_virtual_environment(self):
        made = pathlib.Path(self.directory, 'made here')
        self.output(PYTHON, '-m', 'venv', '--without-pip', made)
        self.assertEqual(self.output(made / 'bin/python', '-c', IMPORTS),
                         str(made))


# Of a configure that found these; the others it does not pass on.
FOUND = """\
ac_cv_env_CC_value=gcc
ac_cv_func_fork=yes
ac_cv_gcc_asm_for_x64=yes
ac_cv_wl_no_as_needed=yes
py_cv_module__sqlite3=yes
"""


@unittest.skipUnless((ROOT / 'Tools/build').exists(), 'Tools is not here')
class AnswersTest(ProgramTest):

    def lay_out(self, root):
        """A checkout whose configure tells what it was given."""
        shutil.copytree(ROOT / 'Tools/build', root / 'Tools/build')
        (root / 'Tools/build/prepare.sh').write_text('')
        for name in 'args', 'release', 'src':
            (root / 'build' / name).mkdir(parents=True)
        (root / 'build/args/stub').write_text('')
        (root / 'build/release/config.log').write_text(FOUND)
        configure = root / 'build/src/configure'
        configure.write_text('#!/bin/sh\ncp "$CONFIG_SITE" answers\n')
        configure.chmod(0o755)

    def test_only_what_configure_would_find_again_is_passed_on(self):
        root = pathlib.Path(self.directory)
        self.lay_out(root)
        subprocess.run(['sh', root / 'Tools/build/variant.sh', 'stub',
                        'configure'], check=True, env=environment(),
                       stdout=subprocess.DEVNULL)
        self.assertEqual((root / 'build/stub/answers').read_text(),
                         'ac_cv_func_fork=yes\n')
