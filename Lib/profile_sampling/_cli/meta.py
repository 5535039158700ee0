"""What is kept of a program beside its profile: command, host, revision.

This file owns how these are found.  It must not know where they are kept.
"""

import os

# Nothing of the repository is run or written.
_GIT = ('git', '-c', 'core.fsmonitor=false', 'describe', '--always', '--dirty',
        '--abbrev=12', '--exclude=*')
_NO_LOCKS = {'GIT_OPTIONAL_LOCKS': '0'}
# A repository on a disk that does not answer keeps nobody waiting.
_GIT_S = 1
# All of it goes through one variable of the environment, which is bounded.
_MAX_CHARS = 4000


def add(parser):
    parser.add_argument(
        '--no-meta', action='store_false', dest='meta',
        help='do not keep the command, the host and the revision of the '
             'working directory in the profile')


def of(program):
    """Return what is known, by name; what is not known is left out."""
    found = {'command': _line(program.name), 'host': os.uname().nodename,
             'revision': _revision()}
    return {name: text for name, text in found.items() if text}


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
