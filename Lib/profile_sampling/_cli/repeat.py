"""Several runs of a program: what a comparison needs."""

import argparse
import shlex

from profile_sampling import _formats
from profile_sampling._cli import child, program, run
from profile_sampling._cli.common import DASHES, PROG, Failure, say

NUMBER = '{n}'
MAX_RUNS, TURNS = 10_000, 5


def add(parser):
    parser.add_argument(
        '--repeat', metavar='N', type=program.whole(MAX_RUNS),
        help='run the program so many times, as a child each time; OUT has '
             '{n} for the number of the run')
    parser.add_argument(
        '--alternate', action='store_true',
        help='run two programs in turns, BEFORE... -- AFTER..., each so many '
             f'times as --repeat says (default: {TURNS}), as a comparison '
             'wants them; -o NAME writes NAME.before.1.pb.gz and so on')


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


def take_turns(options, output):
    """Record two programs in turns, as a machine is not equally fast all the
    time; return the exit status."""
    sides = {name: _of_side(options, words) for name, words
             in zip(('before', 'after'), _sides(options))}
    runs = options.repeat or TURNS
    if options.output is None or options.format not in (None, 'pprof'):
        raise Failure('name the pprof files with -o NAME: NAME.before.1.pb.gz '
                      'and so on are written', 2)
    stem = output.removesuffix('.gz').removesuffix('.pb')
    names = {name: f'{stem}.{name}.{NUMBER}.pb.gz' for name in sides}
    for path in names.values():
        program.check_output(path.replace(NUMBER, _padded(1, runs)))
    quiet = argparse.Namespace(**vars(options) | {'quiet': True})
    for number in range(1, runs + 1):
        # A B, B A, A B: neither is always the first.
        for name in list(sides)[::1 if number % 2 else -1]:
            status = run.to_file(
                sides[name], quiet, 'pprof',
                names[name].replace(NUMBER, _padded(number, runs)))
            if status:
                say(f'run {number} of {name}, "{sides[name].name}", failed: '
                    'no more are begun')
                return child.end_as(status)
    if not options.quiet:
        patterns = [path.replace(NUMBER, '*') for path in names.values()]
        say(f'wrote {runs} runs of each, in turns. Look: '
            f'{PROG} diff '
            f'{patterns[0]} -- {patterns[1]}')
    return 0


def _sides(options):
    words = options.words if options.program is None else options.program
    words = ['--' if word == DASHES else word for word in words]
    if words.count('--') != 1 or '--' in (words[0], words[-1]):
        raise Failure('name both programs:  record --alternate -o NAME '
                      'BEFORE... -- AFTER...', 2)
    where = words.index('--')
    return words[:where], words[where + 1:]


def _of_side(options, words):
    """Return the Program of one side; a single word is split as a shell does.
    """
    if len(words) == 1:
        words = shlex.split(words[0])
    is_option = words[:1] in (['-m'], ['-c'])
    wanted = program.program_of(argparse.Namespace(**vars(options) | {
        'program': words if is_option else None, 'words': words}))
    program.check_script(wanted)
    return wanted


def _padded(number, largest):
    return f'{number:0{len(str(largest))}}'


def _check(path, runs):
    if NUMBER not in path:
        raise Failure(f'{path} has no {NUMBER} in it, for the number of the '
                      f'run, and there will be {runs}: name the files with '
                      '-o', 2)
    program.check_output(path.replace(NUMBER, _padded(1, runs)))
