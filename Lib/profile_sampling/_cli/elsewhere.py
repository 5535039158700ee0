"""Words that other profilers have for what is called otherwise here."""

from profile_sampling._options import MEMORY_MODES, NO_MEMORY

_RUNNING = ('of a process that runs: record -p PID; what it does now: '
            'dump -p PID')
_LIVE = 'what a process that runs does, second by second: top -p PID'
_PAGE = 'a page with a flame graph: report --html FILE'
_SHOW = 'to look at a profile: report FILE'

_COMMANDS = {
    'attach': _RUNNING, 'live': _LIVE, 'watch': _LIVE,
    'memory': NO_MEMORY, 'alloc': NO_MEMORY,
    'help': '--help, or COMMAND --help',
    'flame': _PAGE, 'flamegraph': _PAGE, 'view': _SHOW, 'open': _SHOW,
    'show': _SHOW}
_OPTIONS = {
    '--pid': _RUNNING, '-p': _RUNNING, '--attach': _RUNNING,
    '--live': _LIVE, '--memory': NO_MEMORY,
    '--native': 'C functions have their names without it',
    '-n': 'C functions have their names without it',
    '--subprocesses': 'child processes leave profiles of their own, and '
                      'record -- COMMAND adds them up',
    '--gil': 'who held the GIL is in every profile: report --gil',
    '--flame': _PAGE, '--flamegraph': _PAGE, '--html': _PAGE,
    '--interval': 'samples are given per second: --rate HZ',
    '-i': 'samples are given per second: --rate HZ'}


def of_command(name):
    """Return what there is instead of a command, or None."""
    return _said('there is no command', name, _COMMANDS)


def of_option(text):
    """Return the same of an option, which may have a value."""
    return _said('there is no option', text.partition('=')[0], _OPTIONS)


def of_value(name):
    """Return what is said of a kind of values, or None."""
    return NO_MEMORY if name in MEMORY_MODES else None


def _said(what, name, known):
    return f'{what} {name}: {known[name]}' if name in known else None
