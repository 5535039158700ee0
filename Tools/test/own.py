"""CPython's test runner, but what failed runs again one file at a time.

A test of real time that fails beside others and passes alone has met a crowded
machine; one that fails alone is wrong, or what it tests is.  This is the only
second chance that a test has.  It is counted: a line says which files needed
it, and the file that RETRIES names, if the environment has it, gets them.
"""

import os

from test.libregrtest import main


class Regrtest(main.Regrtest):

    def _rerun_failed_tests(self, runtests):
        self.num_workers = 1
        return super()._rerun_failed_tests(runtests)

    def display_summary(self):
        super().display_summary()
        names = self.results.rerun
        print(f'retries: {len(names)} files ran again'
              + ': ' * bool(names) + ', '.join(names))
        if 'RETRIES' in os.environ:
            with open(os.environ['RETRIES'], 'a') as file:
                file.writelines([f'{name}\n' for name in names])


main.Regrtest = Regrtest
main.main(_add_python_opts=True)
