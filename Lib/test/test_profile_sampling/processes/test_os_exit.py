"""Programs that end by os._exit() have a profile.  PITFALLS L4."""

import os
import unittest

from ..support.sessions import THOROUGH
from .children import ChildrenTest


class ExitTest(ChildrenTest):
    """os._exit()."""

    def run_code(self, code, status, *, profile=True):
        self.file('program.py', code)
        result = self.run_python('-Xsampleprof=out=p.pb.gz', 'program.py')
        self.assertEqual(result.status, status, result.err)
        self.assertEqual(self.files(), ['p.pb.gz'] * profile + ['program.py'])
        said = result.said()
        self.assertEqual((result.err.splitlines(), len(said)),
                         (said, int(profile)))
        return result

    def test_in_a_thread(self):
        self.run_code('import os, threading, time\n'
                      'threading.Thread(target=os._exit, args=(9,)).start()\n'
                      'time.sleep(60)', 9)

    def test_in_atexit(self):
        self.run_code('import atexit, os\natexit.register(os._exit, 9)', 9)

    def test_in_finalization(self):
        # The profile has been written by then.
        self.run_code('import os\n'
                      'class Last:\n'
                      '    def __del__(self, end=os._exit): end(9)\n'
                      'last = Last()', 9)

    def test_in_a_subinterpreter(self):
        self.run_code('import _interpreters\n'
                      'i = _interpreters.create("legacy")\n'
                      '_interpreters.exec(i, "import os; os._exit(9)")',
                      9, profile=False)

    def test_at_the_end_of_a_recursion(self):
        self.run_code('import os\n'
                      'def recurse():\n'
                      '    try:\n'
                      '        recurse()\n'
                      '    except RecursionError:\n'
                      '        os._exit(9)\n'
                      'recurse()', 9)

    def test_in_the_writer(self):
        # As a signal handler could, at any moment.
        hook = ('import os, sys\n'
                'def hook(event, arguments):\n'
                '    if event == "open" and ".tmp" in str(arguments[0]):\n'
                '        os._exit(9)\n'
                'sys.addaudithook(hook)\n')
        for end in 'os._exit(8)', 'sys.exit(8)':
            with self.subTest(end=end):
                self.run_code(hook + end, 9, profile=False)

    def test_while_a_thread_imports(self):
        self.file('slow.py', 'import time\ntime.sleep(60)')
        self.file('program.py',
                  'import os, threading, time\n'
                  'threading.Thread(target=__import__, args=("slow",),'
                  ' daemon=True).start()\n'
                  'time.sleep(0.1)\nos._exit(9)')
        result = self.run_python('-Xsampleprof=out=p.pb.gz', 'program.py')
        self.assertEqual(result.status, 9, result.err)
        self.assertEqual(len(result.said()), 1)

    def test_with_a_tracer(self):
        self.run_code('import os, sys\n'
                      'sys.settrace(lambda *a: print("traced"))\n'
                      'os._exit(9)', 9)

    def test_where_nothing_can_be_written(self):
        os.mkdir(os.path.join(self.directory, 'no'))
        self.file('program.py', 'import os\nos.rmdir("no")\nos._exit(9)')
        result = self.run_python('-Xsampleprof=out=no/p.pb.gz', 'program.py')
        self.assertEqual(result.status, 9)
        self.assertEqual(len(result.said()), 1)
        self.assertIn('cannot write no/p.pb.gz', result.err)

    def test_without_the_package(self):
        self.file('program.py',
                  'import os, sys\n'
                  'sys.modules["profile_sampling"] = None\nos._exit(9)')
        result = self.run_python('-Xsampleprof=out=p.pb.gz', 'program.py')
        self.assertEqual(result.status, 9)
        self.assertIn('sampleprof: the profile was not written', result.err)

    def test_session_of_the_program(self):
        self.file('program.py', 'import os, profile_sampling\n'
                  'profile_sampling.start()\nos._exit(9)')
        result = self.run_python('program.py')
        self.assertEqual((result.status, result.err, self.files()),
                         (9, '', ['program.py']))

    @unittest.skipUnless(THOROUGH, 'takes a minute; -u cpu')
    def test_writer_that_hangs(self):
        self.file('program.py',
                  'import os, sys, threading\n'
                  'class Finder:\n'
                  '    def find_spec(self, *args):\n'
                  '        threading.Event().wait()\n'
                  'sys.meta_path.insert(0, Finder())\n'
                  'os._exit(9)')
        result = self.run_python('-Xsampleprof=out=p.pb.gz', 'program.py',
                                 timeout=120)
        self.assertEqual(result.status, 9)
        self.assertIn('takes too long to write', result.err)


if __name__ == '__main__':
    unittest.main()
