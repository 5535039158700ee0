"""The command report: one profile, as text or in another format."""

from profile_sampling import _formats
from profile_sampling._cli.common import (
    Failure, add_format, add_output, choose_format, encoded, load,
    refuse_terminal,
    write)
from profile_sampling._formats import text


def _positive(text):
    number = int(text)
    if number < 1:
        raise ValueError
    return number


_positive.__name__ = 'positive number'


def _percent(text):
    number = float(text)
    if not 0 <= number <= 100:
        raise ValueError
    return number / 100


_percent.__name__ = 'percentage'


def add(commands):
    parser = commands.add_parser(
        'report', help='show a recorded profile',
        description='Show a recorded profile, or convert it.')
    parser.add_argument('file', metavar='FILE',
                        help='a pprof file, or - for stdin')
    add_format(parser, 'text')
    add_output(parser)
    parser.add_argument('--top', metavar='N', type=_positive,
                        default=text.TOP,
                        help='functions per table of the text report '
                             '(default: %(default)s)')
    parser.add_argument('--annotate', action='store_true',
                        help="mark what is not Python in collapsed stacks, "
                             "as flamegraph.pl's --color=java understands")
    parser.add_argument('--min-share', metavar='PERCENT', type=_percent,
                        help='of call graphs (dot), leave out functions with '
                             'less than this (default: 0.5)')
    parser.set_defaults(run=_run)


def _run(options):
    format = choose_format(options, 'text')
    try:
        arguments = {**_formats.annotation(format, options.annotate),
                     **_formats.pruning(format, options.min_share)}
    except ValueError as exc:
        raise Failure(str(exc), 2) from None
    refuse_terminal(format, options.output)
    tables = load(options.file)
    if format == 'text':
        arguments['top'] = options.top
    write(options.output, encoded(tables, format, **arguments))
