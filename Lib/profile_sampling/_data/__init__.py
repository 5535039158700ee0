"""What a profile is made of, and what can be computed from it.

This package owns values, the tables they are kept in, and sums over those.
It must not know any file format, nor how a sample is taken.
"""
