"""The command diff: whether runs differ from others, where, and how surely."""

import re
import shutil
import sys

from profile_sampling._cli import page
from profile_sampling._cli.common import (
    DASHES, Failure, add_format, add_max_bytes, add_mine, add_output,
    add_source, at_least, choose_format, fault, load, refuse_input,
    source_options, value_type, write)
from profile_sampling._data import compare
from profile_sampling._data.runs import (
    CUSTOM, FUNCTION, NOT_LABELS, NOTHING, Question, Run, Target, usual_rows)
from profile_sampling._data.values import did_you_mean
from profile_sampling._formats import CHANGES, changes

REGRESSION, INCONCLUSIVE = 3, 4
_THRESHOLD = re.compile(r'(.*):(\d+(?:\.\d+)?)%', re.DOTALL)


def add(commands):
    parser = commands.add_parser(
        'diff', help='compare profiles of two versions',
        usage='%(prog)s [options] BEFORE AFTER\n'
              '       %(prog)s [options] BEFORE... -- AFTER...',
        description='Compare runs of two versions of a program.  With five '
                    'runs of each or more, what differs is told from chance.',
        epilog='Status: 0 no regression, 3 a gate found one, 4 with '
               '--strict: a gate could not tell; 1 a file could not be read '
               'or written, 2 wrong usage.')
    parser.add_argument('files', metavar='FILE', nargs='+',
                        help='a pprof file; - for stdin')
    add_options(parser)
    parser.set_defaults(run=_run)


def add_options(parser):
    """Add all that show() asks of its options."""
    _add_what(parser)
    parser.add_argument('--gate', metavar='TARGET', dest='gates',
                        action='append', default=[], type=_gate,
                        help='end with status 3 if this got worse: total, '
                             'label:KEY=VALUE or function:NAME (with all '
                             'that it calls); with the increase that counts '
                             'at the end, as in total:3%% (default: 1%% of '
                             'the total, 5%% of others)')
    parser.add_argument('--strict', action='store_true',
                        help='end with status 4 if a gate could not tell')
    parser.add_argument('--top', metavar='N', default=changes.TOP,
                        type=at_least(1, 'positive number'),
                        help='rows of text and Markdown (default: '
                             '%(default)s)')
    add_format(parser, 'text', CHANGES)
    parser.add_argument('--html', action='store_true',
                        help='write a page for browsers (default: beside '
                             'the last AFTER, with the extension .diff.html)')
    parser.add_argument('--open', action='store_true',
                        help='the same, and open it in a browser')
    add_source(parser)
    add_max_bytes(parser)
    add_output(parser)


def _add_what(parser):
    parser.add_argument('--by', metavar='WHAT',
                        help=f'rows: {", ".join(NOT_LABELS)} or the name of '
                             'a label; label:thread is the label of that '
                             'name (default: mine, the lines of my own '
                             'code with what they call, if there are any; '
                             'else function)')
    add_mine(parser)
    parser.add_argument('--cum', action='store_true',
                        help='charge functions for what they called, too')
    parser.add_argument('--value', metavar='NAME',
                        help='what is compared: wall, cpu, ... or its '
                             'name, such as cpu_ns '
                             "(default: the profiles' own clock)")
    scale = parser.add_mutually_exclusive_group()
    scale.add_argument('--share', action='store_true',
                       help='compare shares of all of a run')
    scale.add_argument('--per', metavar='WORK', type=_per,
                       help='compare values per unit of work: custom, what '
                            'sample() counted; KEY=VALUE, what it counted '
                            'with that label; KEY, how many values of that '
                            'label there are')


def _per(text):
    key, equals, value = text.partition('=')
    if text == CUSTOM:
        return CUSTOM
    return (key, value) if equals else (key,)


def _gate(text):
    found = _THRESHOLD.fullmatch(text)
    name, least = (found[1], float(found[2]) / 100) if found else (text, None)
    kind, _, rest = name.partition(':')
    key, equals, value = rest.partition('=')
    if name == 'total':
        return Target(name, None, None,
                      compare.LEAST_OF_TOTAL if least is None else least)
    if least is None:
        least = compare.LEAST_OF_ROW
    if kind == FUNCTION and rest:
        return Target(name, rest, None, least)
    if kind == 'label' and key and equals:
        return Target(name, None, (key, value), least)
    raise ValueError


_per.__name__ = 'unit of work'
_gate.__name__ = 'target of a gate'


def _run(options):
    before, after = _sides(options.files)
    if options.html or options.open:
        options.output = page.place(options.output, after[-1], '.diff')
    refuse_input(options.output, before + after)
    before, after = [((path, load(path, options.max_bytes)) for path in side)
                     for side in (before, after)]
    return show(before, after, options)


def show(before, after, options):
    """Write the difference of two sides; return the exit status.

    A side is an iterable of pairs: the name of a run, for messages, and its
    Tables.  These are let go of one after the other, but for a page.
    """
    format = _format(options)
    if format == 'html':
        before, after = list(before), list(after)
    comparison = _compared(before, after, options)
    if format == 'html':
        data = _page(before, after, comparison, options)
    else:
        data = _encoded(comparison, format, options)
    write(options.output, data)
    if options.html or options.open:
        page.show(options.output, options.open)
    match comparison.verdict():
        case compare.REGRESSION:
            return REGRESSION
        case compare.INCONCLUSIVE if options.strict:
            return INCONCLUSIVE
    return 0


def _format(options):
    if options.html or options.open:
        if options.format not in (None, 'html'):
            raise Failure(f'a page is not {options.format}', 2)
        return 'html'
    return choose_format(options, 'text', CHANGES)


def _sides(files):
    if DASHES in files:
        where = files.index(DASHES)
        before, after = files[:where], files[where + 1:]
        if before and after and DASHES not in after:
            return before, after
    elif len(files) == 2:
        return files[:1], files[1:]
    raise Failure('give two files, or those of each side with -- between '
                  'them (see diff --help)', 2)


def _compared(before, after, options):
    question = None
    sides = [], []
    for side, named in zip(sides, (before, after)):
        for path, tables in named:
            question = question or _question(options, tables)
            try:
                side.append(Run(tables, question, options.mine))
            except ValueError as exc:
                raise Failure(f'{path}: {exc}', 2) from None
    scale = (compare.SHARE if options.share else
             compare.WORK if options.per else compare.PLAIN)
    _check_targets(question, sides, scale)
    try:
        return compare.Comparison(*sides, question, scale)
    except ValueError as exc:
        raise Failure(str(exc), 2) from None


def _question(options, tables):
    value = options.value
    known = (tables.value_types[tables.own] if value is None
             else value_type(tables, value))
    return Question(_by(options, tables), options.cum,
                    known.name if known else value,
                    options.per, tuple(options.gates))


def _by(options, tables):
    """Return what rows are if nothing else is asked for."""
    if options.by is not None:
        return options.by
    if options.cum or options.everything:
        return FUNCTION
    return usual_rows(tables, options.mine)


def _check_targets(question, sides, scale):
    runs = [run for side in sides for run in side]
    for number, target in enumerate(question.targets):
        if all([run.targets[number] == NOTHING for run in runs]):
            raise Failure(f'no sample of any file is in {target.name}', 2)
        if scale == compare.SHARE and target.name == 'total':
            raise Failure('the share of the total cannot change; gate it '
                          'without --share', 2)
    if question.by not in NOT_LABELS and not any(
            [value is not None for run in runs for value in run.rows]):
        raise Failure(f'no sample of any file has the label {question.by!r}'
                      + did_you_mean(question.by, NOT_LABELS), 2)


def _page(before, after, comparison, options):
    from profile_sampling._formats import page_of_changes
    sides = [[tables for _, tables in side] for side in (before, after)]
    try:
        return page_of_changes.encode(*sides, comparison,
                                      max_bytes=options.max_bytes,
                                      **source_options(options))
    except ValueError as exc:
        raise Failure(fault(exc)) from None


def _encoded(comparison, format, options):
    match format:
        case 'markdown':
            text = changes.markdown(comparison, top=options.top)
        case 'text':
            return _text(comparison, options)
        case _:
            from profile_sampling._formats import changes_data
            text = getattr(changes_data, format)(comparison)
    return text.encode()


def _text(comparison, options):
    is_terminal = (options.output is None and sys.stdout is not None
                   and sys.stdout.isatty())
    width, color = None, False
    if options.output is None and sys.stdout is not None:
        import _colorize
        color = _colorize.can_colorize(file=sys.stdout)
    if is_terminal:
        width = shutil.get_terminal_size().columns
    text = changes.text(comparison, top=options.top, width=width, color=color)
    encoding = 'utf-8'
    if options.output is None and sys.stdout is not None:
        encoding = sys.stdout.encoding
    try:
        return text.encode(encoding)
    except UnicodeEncodeError:
        return text.replace('±', '+-').encode(encoding, 'backslashreplace')
