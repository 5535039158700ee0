"""The command report: one profile, as text or in another format."""

from profile_sampling import _formats
from profile_sampling._cli.common import (
    Failure, add_output, choose_format, load, refuse_terminal, write)
from profile_sampling._cli.screen import is_colored, showable, width_of
from profile_sampling._data.by_site import Sites
from profile_sampling._formats import tables_of, text
from profile_sampling._formats.sites import site_table
from profile_sampling._formats.table import MIN_WIDTH

_MORE = 'Also: --functions, --by KEY'


def _at_least(least, name):
    def number(text):
        value = int(text)
        if value < least:
            raise ValueError
        return value
    number.__name__ = name
    return number


def add(commands):
    parser = commands.add_parser(
        'report', help='show a recorded profile',
        description='Show a recorded profile, or convert it.')
    parser.add_argument('file', metavar='FILE',
                        help='a pprof file, or - for stdin')
    parser.add_argument('--format', choices=list(_formats.FORMATS),
                        help='what to make of it (default: by the '
                             'extension of OUT, or text)')
    add_output(parser)
    parser.add_argument('-n', '--top', metavar='N',
                        type=_at_least(1, 'positive number'),
                        default=text.TOP,
                        help='rows of a table (default: %(default)s)')
    parser.add_argument('--width', metavar='N',
                        type=_at_least(MIN_WIDTH, 'number of columns '
                                       f'(at least {MIN_WIDTH})'),
                        help='columns of the text report (default: those '
                             'of the terminal, else 100)')
    parser.add_argument('--annotate', action='store_true',
                        help="mark what is not Python in collapsed stacks, "
                             "as flamegraph.pl's --color=java understands")
    _add_tables(parser.add_argument_group(
        'tables', 'What to show instead of the lines by what they cost; '
        'several may be given.'))
    parser.set_defaults(run=_run)


def _add_tables(group):
    group.add_argument('--functions', action='store_true',
                       help='functions by their self time, with their '
                            'cumulative time')
    group.add_argument('--sort', choices=text.SORTS,
                       help='functions by this')
    group.add_argument('--by', metavar='KEY', action='append', default=[],
                       help='route, task, thread, state, pid or another '
                            'label')


def _run(options):
    format = choose_format(options, 'text')
    try:
        arguments = _formats.annotation(format, options.annotate)
    except ValueError as exc:
        raise Failure(str(exc), 2) from None
    refuse_terminal(format, options.output)
    tables = load(options.file)
    if format == 'text':
        data = _text(tables, options)
    else:
        data = _formats.encode(tables, format, **arguments)
    write(options.output, data)


def _text(tables, options):
    sites = Sites(tables)
    return showable(text.with_tables(
        tables, sites, _tables(tables, sites, options),
        width=options.width or width_of(options.output),
        color=is_colored(options.output), name=options.file,
        more=[_MORE]), options.output)


def _tables(tables, sites, options):
    """Return the tables that are asked for."""
    top = options.top
    shown = []
    if options.functions or options.sort:
        shown.append(tables_of.functions(tables, sites, top,
                                         options.sort or 'self'))
    for key in options.by:
        try:
            shown.append(tables_of.by_key(tables, sites, top, key))
        except ValueError as exc:
            raise Failure(str(exc), 2) from None
    return shown or [site_table(tables, sites, top)]
