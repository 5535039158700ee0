"""Samples on their way to a callback of the program.

This package owns subscriptions and their batches.  It must not know of
sessions.
"""
