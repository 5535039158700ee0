"""Samples on their way to a callback of the program."""
