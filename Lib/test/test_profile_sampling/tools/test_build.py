"""./python, the interpreter that make leaves beside the sources."""

import os
import pathlib
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


if __name__ == '__main__':
    unittest.main()
