"""The command run: a program under the command line of cProfile."""

import pstats
import sys

from profile_sampling._cli import child, gather, meta, program, run
from profile_sampling._cli.common import file_name, flush
from profile_sampling._data import counting_cost, idle
from profile_sampling._data.counts import ALL
from profile_sampling._formats import pstats as pstats_file
from profile_sampling._formats.words import counted

_KEYS = sorted(pstats.Stats.sort_arg_dict_default)


def add(commands):
    parser = commands.add_parser(
        'run', usage='%(prog)s [-o FILE] [-s KEY] PROGRAM [ARGUMENT]...',
        help='run a program and print its functions, as cProfile does',
        description='Run a program as cProfile does: the same options and the '
                    'same table, of all threads.  Calls are counted exactly, '
                    'and times are sampled.')
    program.add_words(parser)
    parser.add_argument('-o', '--outfile', metavar='FILE', type=file_name,
                        help='write a file for pstats, instead of printing')
    parser.add_argument('-s', '--sort', metavar='KEY', choices=_KEYS,
                        default='cumulative',
                        help='what to sort by: ' + ', '.join(_KEYS))
    meta.add(parser)
    parser.set_defaults(run=_run, program=None, mode='wall', rate=1000,
                        depth=None, duration=None, names=None, timeline=False,
                        alloc_bytes=None, calls=ALL, watch=(), max_bytes=None)


def _run(options):
    wanted = program.program_of(options)
    if options.outfile is not None:
        program.check_output(options.outfile)
    program.check_script(wanted)
    return child.end_as(run.saved(wanted, options, gather.Parts(), _save))


def _save(ended, wanted, options, parts):
    """Print the functions, or keep them; return whether there are any."""
    tables = run.merged(wanted, options, parts)
    if tables is None:
        run.say_nothing_written(wanted, parts)
        return False
    if options.outfile is not None:
        parts.save(tables, options.outfile, 'pstats')
    else:
        _print(idle.shown(tables), options.sort)
    return True


class _Stats:
    """What pstats takes for a profiler."""

    def __init__(self, tables):
        self.stats = pstats_file.stats(tables)

    def create_stats(self):
        """They are there."""


def _print(tables, key):
    stats = pstats.Stats(_Stats(tables), stream=sys.stdout)
    stats.strip_dirs().sort_stats(key).print_stats()
    samples = counted(tables.total('count'), 'sample')
    threads = counted(tables.n_sampled_threads, 'thread')
    _, cost_ns = counting_cost.without(tables)
    print(f'   Times are sampled, {samples}.  Calls are exact, of {threads}: '
          'calls and\n   resumes of generators.  Counting took '
          f'{cost_ns / 1e9:.3f} seconds, left out above\n')
    flush()
