"""Sessions and labels: what a program does to be profiled.

This package owns how a profile comes about.  It must not know what is in
one, nor any file format.
"""
