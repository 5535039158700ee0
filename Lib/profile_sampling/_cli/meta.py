"""What is kept of a program beside its profile: command, host, revision."""

import os

from profile_sampling._cli import redact

# Nothing of the repository is run or written.
_GIT = ('git', '-c', 'core.fsmonitor=false', 'describe', '--always', '--dirty',
        '--abbrev=12', '--exclude=*')
_NO_LOCKS = {'GIT_OPTIONAL_LOCKS': '0'}
# A repository on a disk that does not answer keeps nobody waiting.
_GIT_S = 1
# All of it goes through one variable of the environment, which is bounded.
_MAX_CHARS = 4000
_BRIEF, _FULL = 'brief', 'full'


def add(parser):
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        '--no-meta', action='store_const', const=None, dest='meta',
        default=_BRIEF,
        help='do not keep the command, the host and the revision of the '
             'working directory in the profile')
    group.add_argument(
        '--meta', choices=(_BRIEF, _FULL), default=_BRIEF,
        help='keep all of the command (full), or without what looks like a '
             'secret (default: %(default)s)')


def of(program, options):
    """Return what is to be kept, by name; what is not known is left out."""
    if options.meta is None:
        return {}
    found = {'command': command(program, options),
             'host': os.uname().nodename, 'revision': _revision()}
    return {name: text for name, text in found.items() if text}


def command(program, options):
    """Return the command line as it may be kept."""
    words = program.words
    if options.meta != _FULL:
        # Longer ones would be cut below.
        words = redact.hidden([word[:_MAX_CHARS] for word in words])
    return _line(' '.join(words))


def _line(text):
    text = ' '.join(text.split())
    return text if len(text) <= _MAX_CHARS else f'{text[:_MAX_CHARS]}...'


def _revision():
    """Return the commit of the working directory, '-dirty' if it is changed,
    or None."""
    import subprocess
    try:
        done = subprocess.run(
            _GIT, env=os.environ | _NO_LOCKS, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            timeout=_GIT_S, check=True)
    except (OSError, subprocess.SubprocessError):
        # No git, no repository, or none that can be read: there is nothing
        # to keep.
        return None
    return _line(done.stdout.decode('utf-8', 'replace'))
