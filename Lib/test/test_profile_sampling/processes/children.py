"""Running programs that have children, and reading all their profiles."""

import os

from test import support

from ..support.sessions import ProgramTest

COUNT = int(os.environ.get('PROFILE_SAMPLING_CHILDREN', 2))
# Other work may take nearly all of the machine.
TIMEOUT_S = 120 + 3 * COUNT
OPTION = '-Xsampleprof=rate_hz=5000,out={pid}.pb.gz'
NO_THREADS = support.skip_if_sanitizer('it allows no threads in a child',
                                       thread=True)


class ChildrenTest(ProgramTest):

    def profiles(self, suffix='.pb.gz'):
        """All profiles, by the number of the process; each validated."""
        profiles = {}
        for name in self.files():
            if name.endswith(suffix):
                profile = self.load(name)
                self.assertEqual(name, f'{profile.pid}{suffix}')
                profiles[profile.pid] = profile
        return profiles

    def run_program(self, *arguments, option=OPTION, **options):
        """Return the number of its process; its line is all that is on
        stderr."""
        result = self.run_python(option, *arguments, timeout=TIMEOUT_S,
                                 **options)
        self.assertEqual(result.status, 0, result.err)
        said = result.said()
        self.assertEqual(result.err.splitlines(), said)
        self.assertEqual(len(said), 1, said)
        return int(said[0].split()[2].partition('.')[0])

    def run_code(self, code, **options):
        self.file('program.py', code)
        return self.run_program('program.py', **options)
