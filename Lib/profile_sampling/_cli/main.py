"""The arguments of the command line, and which command they are for."""

import argparse
import re
import signal
import sys

from profile_sampling._cli import (
    child, diff, help, listing, merge, record, report, stat)
from profile_sampling._cli.common import DASHES, PROG, Failure, say
from profile_sampling._data.values import did_you_mean, printable

# What argparse says of a word that is none of several, and of an option.
_CHOICE = re.compile("invalid choice: '(.*)' \\(choose from (.*)\\)")
_QUOTED = re.compile("'?([^', ]+)'?")
_UNRECOGNIZED = 'unrecognized arguments: '
# To these -- means something among the arguments.
_WITH_DASHES = 'record', 'stat', 'exec', 'diff'


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line.

    Options have one name each: a new one is not to change what a script
    means.
    """

    def __init__(self, **options):
        super().__init__(allow_abbrev=False, **options)

    def error(self, message):
        self.exit(2, printable(f'{self.prog}: error: {message}'
                               f'{self._hint(message)} (see --help)') + '\n')

    def _hint(self, message):
        """Return which choice or option a message is likely about."""
        choice = _CHOICE.search(message)
        if choice is not None:
            return did_you_mean(choice[1], _QUOTED.findall(choice[2]))
        if message.startswith(_UNRECOGNIZED):
            given, *_ = message.removeprefix(_UNRECOGNIZED).split()
            return did_you_mean(given.partition('=')[0], [
                option for action in self._actions
                for option in action.option_strings])
        return ''


def main(arguments=None):
    parser = _Parser(prog=PROG, description='Profiles that the interpreter '
                                            'takes of itself.')
    commands = parser.add_subparsers(metavar='COMMAND', required=True)
    for command in (record, stat, report, diff, merge, listing, help):
        command.add(commands)
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] and arguments[0] in _WITH_DASHES:
        arguments = [DASHES if argument == '--' else argument
                     for argument in arguments]
    options, unknown = parser.parse_known_args(arguments)
    if unknown:
        commands.choices.get(arguments[0], parser).error(
            _UNRECOGNIZED + ' '.join(unknown))
    try:
        return options.run(options) or 0
    except Failure as exc:
        say(exc)
        return exc.status
    except KeyboardInterrupt:
        say('interrupted')
        # So that a shell that runs a script sees it.
        return child.end_as(-signal.SIGINT)
