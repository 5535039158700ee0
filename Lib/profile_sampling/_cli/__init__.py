"""The command line: python -m profile_sampling.

This package owns arguments, messages and exit statuses: 0 done, 1 a file
could not be read or written, 2 wrong usage, 3 a gate of diff found a
regression, 4 it could not tell.  It must not compute anything.
"""
