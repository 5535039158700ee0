"""Runs a module that ends in unittest.main(), and reports as pytest does.

    PYTHON unittest_junit.py MODULE --junitxml=FILE

The module is __main__ and alone in its process.  One that has no unittest
tests leaves no report; the exit status is the module's own.
"""

import os
import runpy
import sys
import unittest
import xml.etree.ElementTree as ElementTree

verdicts = {}


class Result(unittest.TextTestResult):

    def addSuccess(self, test):
        super().addSuccess(test)
        verdicts[test] = None

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        verdicts[test] = None

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        verdicts[test] = 'failure'

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        verdicts[test] = 'skipped'

    def addFailure(self, test, err):
        super().addFailure(test, err)
        verdicts[test] = 'failure'

    def addError(self, test, err):
        super().addError(test, err)
        verdicts[test] = 'error'

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err:
            verdicts[test] = 'failure'


def write(path):
    suite = ElementTree.Element('testsuite')
    for test, verdict in verdicts.items():
        # Of a failed setUpClass() the id is all there is.
        group, _, name = test.id().rpartition('.')
        case = ElementTree.SubElement(suite, 'testcase', classname=group,
                                      name=name)
        if verdict:
            ElementTree.SubElement(case, verdict)
    ElementTree.ElementTree(suite).write(path)


def main():
    module, junit = sys.argv[1], sys.argv[2].removeprefix('--junitxml=')
    process = os.getpid()
    unittest.TextTestRunner.resultclass = Result
    del sys.argv[1:]
    # This directory is of no concern to the tests.
    del sys.path[0]
    try:
        runpy.run_module(module, run_name='__main__', alter_sys=True)
    finally:
        # A child that a test forked may come here, too.
        if verdicts and os.getpid() == process:
            write(junit)


main()
