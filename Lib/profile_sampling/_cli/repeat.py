"""Several runs of a program: what a comparison needs.

This file owns the names of their files.  It must not know how one is
recorded.
"""

from profile_sampling import _formats
from profile_sampling._cli import child, program, run
from profile_sampling._cli.common import Failure, say

NUMBER = '{n}'
MAX_RUNS = 10_000


def add(parser):
    parser.add_argument(
        '--repeat', metavar='N', type=program.whole(MAX_RUNS),
        help='run the program so many times, as a child each time; OUT has '
             '{n} for the number of the run')


def run_all(wanted, options, format, output):
    """Record all runs; return the exit status."""
    _check(output, options.repeat)
    for number in range(1, options.repeat + 1):
        path = _formats.with_pid(output).replace(
            NUMBER, _padded(number, options.repeat))
        status = run.to_file(wanted, options, format, path)
        if status:
            say(f'run {number} of "{wanted.name}" failed: no more are begun')
            return child.end_as(status)
    return 0


def _padded(number, largest):
    return f'{number:0{len(str(largest))}}'


def _check(path, runs):
    if NUMBER not in path:
        raise Failure(f'{path} has no {NUMBER} in it, for the number of the '
                      f'run, and there will be {runs}: name the files with '
                      '-o', 2)
    program.check_output(path.replace(NUMBER, _padded(1, runs)))
