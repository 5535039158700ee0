"""The arguments of the command line, and which command they are for."""

import argparse
import re
import sys

from profile_sampling import _core
from profile_sampling._cli import elsewhere
from profile_sampling._cli.common import (
    DASHES, PROG, Failure, say, write_text)
from profile_sampling._data.values import did_you_mean, printable

# What argparse says of a word that is none of several, and of an option.
_CHOICE = re.compile("invalid choice: '(.*)' \\(choose from (.*)\\)")
_QUOTED = re.compile("'?([^', ]+)'?")
_UNRECOGNIZED = 'unrecognized arguments: '
_RECORDING = 'record', 'stat', 'exec', 'run', 'dump'
_OF_COMMAND = 'argument COMMAND: '
# To these -- means something among the arguments.
_WITH_DASHES = *_RECORDING, 'diff'


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line.

    Options have one name each: a new one is not to change what a script
    means.
    """

    def __init__(self, **options):
        super().__init__(allow_abbrev=False, **options)

    def error(self, message):
        said = (self._elsewhere(message)
                or f'{message}{self._hint(message)} (see --help)')
        self.exit(2, printable(f'{self.prog}: error: {said}') + '\n')

    def _elsewhere(self, message):
        """Return what is said of a word of other profilers, or None."""
        choice = _CHOICE.search(message)
        if choice is not None and message.startswith(_OF_COMMAND):
            return elsewhere.of_command(choice[1])
        if message.startswith(_UNRECOGNIZED):
            return next(filter(None, map(
                elsewhere.of_option,
                message.removeprefix(_UNRECOGNIZED).split())), None)
        return None

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


class _Version(argparse.Action):
    """Finds the version out when it is asked for."""

    def __call__(self, parser, *_):
        write_text(f'{_version()}\n')
        parser.exit()


def main(arguments=None):
    parser = _Parser(prog=PROG, description='Profiles that the interpreter '
                                            'takes of itself.')
    parser.add_argument('--version', action=_Version, nargs=0,
                        help='say which version this is')
    commands = parser.add_subparsers(metavar='COMMAND', required=True)
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        found = _commands(*arguments[:1])
    except ImportError as exc:
        say(exc)
        return 1
    for command in found:
        command.add(commands)
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
        return _interrupted()


def _version():
    python = '.'.join(map(str, sys.version_info[:3]))
    if _core.is_there():
        return f'profile_sampling of CPython {python}'
    from importlib import metadata
    try:
        version = f" {metadata.version('profile-sampling')}"
    except metadata.PackageNotFoundError:
        version = ''
    return f'profile_sampling{version} on Python {python}, reading only'


def _commands(command=None):
    """Return all commands; or this one alone, of which the first line has to
    be there at once.  Raise ImportError if it cannot be had."""
    if _core.is_there() and command == 'dump':
        from profile_sampling._cli import dump
        return dump,
    if _core.is_there() and command == 'top':
        from profile_sampling._cli import top
        return top,
    recording = _recording(command)
    from profile_sampling._cli import diff, listing, merge, report
    return *recording, report, diff, merge, listing


def _recording(command=None):
    """Return the commands that record; raise ImportError if this one does and
    there is nothing to record with."""
    if _core.is_there():
        from profile_sampling._cli import cprofile, dump, record, stat, top
        return record, stat, dump, top, cprofile
    if command in _RECORDING:
        _core.load()
    return ()


def _interrupted():
    try:
        import signal
        from profile_sampling._cli import child
    except ImportError:
        # As shells say it, on a system without signals to end by.
        return 130
    # So that a shell that runs a script sees it.
    return child.end_as(-signal.SIGINT)
