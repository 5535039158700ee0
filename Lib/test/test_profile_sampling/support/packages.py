"""Packages that are not of the standard library, in tests."""

import contextlib
import importlib
import logging
import os
import warnings
from unittest import mock


@contextlib.contextmanager
def contained():
    """Take back what packages set for the whole process, when they are
    imported or at work: regrtest runs a file again that leaves such things
    behind."""
    handlers = logging._handlerList[:]
    with warnings.catch_warnings(), mock.patch.dict(os.environ):
        try:
            yield
        finally:
            logging._handlerList[:] = handlers


def optional(name):
    """Import a module that may be missing: return None then."""
    with contained():
        try:
            return importlib.import_module(name)
        except ImportError:
            return None
