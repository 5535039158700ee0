"""The arguments of the command line, and which command they are for."""

import argparse

from profile_sampling._cli import merge, report
from profile_sampling._cli.common import PROG, Failure, say
from profile_sampling._data.values import printable


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message):
        self.exit(2, printable(
            f'{self.prog}: error: {message} (see --help)') + '\n')


def main(arguments=None):
    parser = _Parser(prog=PROG, description='Profiles that the interpreter '
                                            'takes of itself.')
    commands = parser.add_subparsers(metavar='COMMAND', required=True)
    for command in (report, merge):
        command.add(commands)
    options = parser.parse_args(arguments)
    try:
        options.run(options)
    except Failure as exc:
        say(exc)
        return exc.status
    return 0
