"""The command list: which profiles there are, by revision; or processes."""

import os
import sys

from profile_sampling._cli import screen
from profile_sampling._cli.common import (
    Failure, add_max_bytes, load, show, write_text)
from profile_sampling._data.losses import lost_counts
from profile_sampling._data.values import COUNT, printable
from profile_sampling._formats import PPROF
from profile_sampling._formats.words import date, padded, start, text_width

_HEADS = 'started', 'mode', 'length', 'samples', 'file', 'command'
_NO_REVISION = 'no revision'


def add(commands):
    parser = commands.add_parser(
        'list', help='list the profiles of a directory by revision',
        description='List the pprof files of a directory: by revision of the '
                    'program, the newest first.')
    parser.add_argument('directory', nargs='?', default=os.curdir,
                        metavar='DIRECTORY',
                        help='where they are (default: here)')
    parser.add_argument('--processes', action='store_true',
                        help='list the processes of Python instead, and which '
                             'of them can be asked by dump')
    parser.add_argument('--look', action='store_true',
                        help='ask each of these what it does now')
    parser.add_argument('--json', action='store_true',
                        help='the processes as one object of JSON')
    add_max_bytes(parser)
    parser.set_defaults(run=_run)


def paths(directory):
    """Return the paths of what may be profiles; fail if it cannot be read."""
    try:
        names = os.listdir(directory)
    except OSError as exc:
        raise Failure(f'cannot read {directory}: {exc.strerror}') from None
    found = [os.path.join(directory, name) for name in sorted(names)
             if name.lower().endswith(PPROF) and not name.startswith('.')]
    # Nobody may ever write to a pipe.
    return [path for path in found if os.path.isfile(path)]


def _processes(options):
    import json
    from profile_sampling._reach import listing
    try:
        rows = listing.rows(with_looks=options.look)
    except OSError as exc:
        raise Failure(f'cannot read /proc: {exc.strerror}') from None
    if options.json:
        write_text(json.dumps(listing.as_json(rows)) + '\n')
    else:
        said = listing.render(rows, screen.width_of(None))
        sys.stdout.buffer.write(screen.showable(said, None))
        sys.stdout.buffer.flush()


def _run(options):
    if options.processes:
        return _processes(options)
    profiles, faults = [], []
    for path in paths(options.directory):
        try:
            profiles.append((path, load(path, options.max_bytes)))
        except Failure as exc:
            faults.append(str(exc))
    if not profiles and not faults:
        raise Failure(f'no file in {options.directory} ends in '
                      + ' or '.join(PPROF))
    text = _text(profiles)
    if sys.stdout is not None and sys.stdout.isatty():
        width = screen.width_of(None)
        text = '\n'.join([start(line, width) for line in text.split('\n')])
    write_text(text)
    for fault in faults:
        show(printable(fault) + '\n')
    return 1 if faults else 0


def _text(profiles):
    groups = {}
    for path, tables in sorted(profiles, key=_newest_first):
        revision = tables.meta.get('revision', _NO_REVISION)
        groups.setdefault(revision, []).append(_cells(path, tables))
    widths = [max(map(text_width, column)) for column in zip(
        _HEADS, *[cells for rows in groups.values() for cells in rows])]
    lines = [_line(_HEADS, widths)]
    for revision, rows in groups.items():
        lines += ['', printable(revision)]
        lines += [_line(cells, widths) for cells in rows]
    return '\n'.join(lines) + '\n'


def _newest_first(item):
    path, tables = item
    return -tables.start_time_ns, path


def _cells(path, tables):
    lost = sum(lost_counts(tables.stats).values())
    # Other tools' files may not say how many.
    samples = (f'{tables.total(COUNT.name):,}'
               if COUNT in tables.value_types else '-')
    return [_date(tables.start_time_ns), tables.mode,
            f'{tables.duration_ns / 1e9:,.1f} s',
            f'{samples}, {lost:,} lost' if lost else samples,
            printable(os.path.basename(path)),
            printable(tables.meta.get('command', ''))]


def _line(cells, widths):
    started, mode, length, samples, name, command = cells
    return (f'  {started:<{widths[0]}}  {mode:<{widths[1]}}  '
            f'{length:>{widths[2]}}  {samples:>{widths[3]}}  '
            f'{padded(name, widths[4])}  {command}').rstrip()


def _date(ns):
    return date(ns) if ns else '-'
