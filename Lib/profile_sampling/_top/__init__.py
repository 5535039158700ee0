"""The live screen of a process: what it does, second by second.

Profiles of a second come in, lines of a terminal go out.  What is between is
functions of these alone; only terminal.py knows a terminal.
"""
