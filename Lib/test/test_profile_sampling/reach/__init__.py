"""Asking a process that runs: the door, dump, top, record -p."""

import os
from test.support import load_package_tests


def load_tests(*args):
    return load_package_tests(os.path.dirname(__file__), *args)
