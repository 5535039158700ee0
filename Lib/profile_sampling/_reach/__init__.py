"""What asks a process that runs: who it is, what it says, and how that reads.

A process of this interpreter answers by itself, to a signal; it needs no
option for that, and whoever asks no right to trace it.
"""
