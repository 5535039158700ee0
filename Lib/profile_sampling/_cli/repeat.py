"""Several runs of a program, or of two in turns: what a comparison needs.

This file owns the order of runs and the names of their files.  It must not
know how one is recorded.

A machine is never as fast in one minute as in the next.  Two programs that
take turns meet the same moods of it; each pair begins with the other one, so
that none always comes second.
"""

import shlex

from profile_sampling import _formats
from profile_sampling._cli import child, program, run
from profile_sampling._cli.common import Failure, format_of, say

NUMBER = '{n}'
MAX_RUNS = 10_000


def add(parser):
    parser.add_argument(
        '--repeat', metavar='N', type=program.whole(MAX_RUNS),
        help='run the program so many times, as a child each time; OUT has '
             '{n} for the number of the run')
    parser.add_argument(
        '--versus', metavar='COMMAND', type=_command,
        help='with --repeat, run this command in turns with the program; '
             'quote it as a whole')
    parser.add_argument(
        '--versus-output', metavar='OUT',
        help='the files of its runs, with {n}')


def _command(text):
    words = shlex.split(text)
    if not words or not words[0]:
        raise ValueError
    return program.Program(words, True)


_command.__name__ = 'command'


def run_all(wanted, options, format, output):
    """Record all runs; return the exit status."""
    sides = [(wanted, output, format)]
    if options.versus is not None:
        if options.versus_output is None:
            raise Failure('name the files of --versus with --versus-output',
                          2)
        versus_format = format_of(options.versus_output, options.format)
        run.check_format(versus_format, options)
        sides.append((options.versus, options.versus_output, versus_format))
    for _, path, _ in sides:
        _check(path, options.repeat)
    if len({path for _, path, _ in sides}) != len(sides):
        raise Failure('both programs would write the same files: choose '
                      'another name for --versus-output', 2)
    for number in range(1, options.repeat + 1):
        for wanted, path, format in sides:
            path = _formats.with_pid(path).replace(
                NUMBER, _padded(number, options.repeat))
            status = run.to_file(wanted, options, format, path)
            if status:
                say(f'run {number} of "{wanted.name}" failed: no more are '
                    'begun')
                return child.end_as(status)
        sides.reverse()
    return 0


def _padded(number, largest):
    return f'{number:0{len(str(largest))}}'


def _check(path, runs):
    if NUMBER not in path:
        raise Failure(f'{path} has no {NUMBER} in it, for the number of the '
                      f'run, and there will be {runs}: name the files with '
                      '-o', 2)
    program.check_output(path.replace(NUMBER, _padded(1, runs)))
