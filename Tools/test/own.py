"""CPython's test runner, but what failed runs again one file at a time.

A test of real time that fails beside others and passes alone has met a crowded
machine; one that fails alone is wrong, or what it tests is.
"""

from test.libregrtest import main


class Regrtest(main.Regrtest):

    def _rerun_failed_tests(self, runtests):
        self.num_workers = 1
        return super()._rerun_failed_tests(runtests)


main.Regrtest = Regrtest
main.main(_add_python_opts=True)
