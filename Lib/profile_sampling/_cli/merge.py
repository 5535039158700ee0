"""The command merge: the sum of several profiles."""

import os

from profile_sampling._cli import spooled
from profile_sampling._cli.common import (
    Failure, add_format, add_max_bytes, add_output, add_source, choose_format,
    encoded, fault, load, refuse_input, refuse_terminal, say, source_options,
    write)
from profile_sampling._data import allocations, content
from profile_sampling._data.losses import lost_counts
from profile_sampling._data.merge import Merger
from profile_sampling._data.tables import Tables
from profile_sampling._data.values import COUNT
from profile_sampling._formats import words


# What is said of memory.
_MEMORY = [allocations.space(amount) for amount in (
    allocations.IN_USE, allocations.ALLOCATED)]


def add(commands):
    parser = commands.add_parser(
        'merge', help='add up the profiles of several processes',
        description='Add up profiles.  Each sample gets the number of its '
                    "process as the label 'pid'.")
    parser.add_argument('files', metavar='FILE', nargs='+',
                        help='a pprof file, - for stdin, a pattern for the '
                             'names of several, or a directory of segments')
    add_format(parser, 'pprof')
    add_output(parser)
    add_source(parser)
    add_max_bytes(parser)
    spooled.add(parser)
    parser.set_defaults(run=_run)


def _run(options):
    format = choose_format(options, 'pprof')
    refuse_terminal(format, options.output)
    paths = expanded(options.files)
    if not any(map(spooled.is_one, paths)):
        spooled.refuse_options(options)
    # Nor is the sum of the last time added up.
    refuse_input(options.output, paths)
    merger = Merger(options.max_bytes)
    nameless = 0
    seen = {}
    n_files = 0
    for path, tables in _loaded(paths, options):
        n_files += 1
        if tables.pid is not None:
            first = seen.setdefault(content.digest(tables), path)
            if first != path:
                raise Failure(f'{path} is a copy of {first}', 2)
        try:
            merger.add(tables)
        except ValueError as exc:
            raise Failure(f'{path}: {fault(exc)}') from None
        nameless += tables.pid is None and not tables.processes - {None}
    tables = Tables(merger.raw())
    arguments = source_options(options) if format == 'html' else {}
    write(options.output, encoded(tables, format, **arguments))
    say(_merged(tables, n_files, nameless, options.output))


def _loaded(paths, options):
    for path in paths:
        if spooled.is_one(path):
            yield from spooled.loaded(path, options)
        else:
            yield path, load(path, options.max_bytes)


def _merged(tables, files, nameless, output):
    pids = len(tables.processes - {None})
    lost = sum(lost_counts(tables.stats).values())
    line = (f'merged {words.counted(files, "file")} of '
            f'{words.counted(pids, "process", "processes")}'
            f'{"" if output is None else f" into {output}"}: '
            f'{", ".join(_totals(tables))} in all threads together, '
            f'{lost:,} lost')
    if allocations.has_memory(tables) and pids > 1:
        line += ('; the peaks of memory were at other moments and are not '
                 'added: report each file on its own')
    if nameless:
        line += (f'; {words.counted(nameless, "file")} without the number '
                 'of a process')
    return line


def _totals(tables):
    """Return the totals in words."""
    values = [*zip(tables.value_types, tables.totals)]
    is_of_memory = allocations.has_memory(tables)
    return [words.counted(total, 'sample') if value_type == COUNT else
            f'{words.amount(total, value_type)} {words.title(value_type)}'
            for value_type, total
            in [values[number] for number in words.shown_order(tables)]
            # Peaks were at other moments.
            if not is_of_memory or value_type not in allocations.VALUES
            or value_type in _MEMORY]


def expanded(names):
    """Return the files; a name that is none may be a pattern.

    Fail if one of them is named twice.
    """
    import glob
    paths = []
    for name in names:
        if not os.path.lexists(name) and glob.has_magic(name):
            found = sorted(glob.glob(name))
            if not found:
                raise Failure(f'no file has a name like {name}')
            paths += found
        else:
            paths.append(name)
    _refuse_twice(paths)
    return paths


def _refuse_twice(paths):
    """Add nothing up twice."""
    seen = set()
    for path in paths:
        real = os.path.realpath(path)
        if real in seen:
            raise Failure(f'{path} is named twice', 2)
        seen.add(real)
