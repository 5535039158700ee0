"""The command diff: whether runs differ from others, where, and how surely."""

from profile_sampling._cli import page, spooled
from profile_sampling._cli.common import (
    DASHES, Failure, add_format, add_max_bytes, add_mine, add_output,
    add_source, at_least, choose_format, fault, load, refuse_input,
    source_options, write)
from profile_sampling._cli.screen import is_colored, showable, width_of
from profile_sampling._data import diff, growth
from profile_sampling._formats import (
    CHANGES, changes, memory, memory_changes)

REGRESSION, INCONCLUSIVE = 3, 4
# What rows were called before: option, and what it means.
_OLD = {'mine': (diff.LINE, False), 'site': (diff.LINE, True)}


def add(commands):
    parser = commands.add_parser(
        'diff', help='compare profiles of two versions',
        usage='%(prog)s [options] BEFORE AFTER\n'
              '       %(prog)s [options] BEFORE... -- AFTER...',
        description='Compare runs of two versions of a program.  With several '
                    'runs of each, it knows what is chance.',
        epilog='Status: 0 no regression, 3 a gate found one, 4 with '
               '--strict: a gate could not tell; 1 a file could not be read '
               'or written, 2 wrong usage.')
    parser.add_argument('files', metavar='FILE', nargs='+',
                        help='a pprof file, - for stdin, or a directory of '
                             'segments')
    _add_what(parser)
    parser.add_argument('--gate', metavar='TARGET', dest='gates',
                        action='append', default=[],
                        help='end with status 3 if this got worse: total, '
                             'label:KEY=VALUE, line:NAME:LINE or '
                             'function:NAME (with all that it calls); '
                             'counted, calls:NAME, calls:total or '
                             'queries:ROUTE; of memory, in_use, peak or '
                             'allocated; with the increase that counts at the '
                             'end, as in total:3%% or peak:20MB '
                             '(default: 1%% of the total, 0%% of what is '
                             'counted, 5%% of others)')
    parser.add_argument('--strict', action='store_true',
                        help='end with status 4 if a gate could not tell')
    parser.add_argument('-n', '--top', metavar='N', default=changes.TOP,
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
    spooled.add(parser)
    add_output(parser)
    parser.set_defaults(run=_run)


def _add_what(parser):
    parser.add_argument('--by', metavar='WHAT',
                        help='rows: line, of my own code with all that it '
                             'calls (default); function; thread, state, '
                             'task, file, pid or a label, as in report --by')
    add_mine(parser)
    parser.add_argument('--calls', action='store_true',
                        help='compare exact calls instead of time, by line '
                             '(record --calls python)')
    parser.add_argument('--cum', action='store_true',
                        help='functions, charged for what they called, too')
    parser.add_argument('--value', metavar='VALUE',
                        help='what is compared: wall, cpu, in_use, peak, '
                             'allocated, ... or its '
                             'name, such as cpu_ns '
                             "(default: the profiles' own clock)")
    scale = parser.add_mutually_exclusive_group()
    scale.add_argument('--share', action='store_true',
                       help='compare shares of all of a run')
    scale.add_argument('--per', metavar='WORK',
                       help='compare values per unit of work: custom, what '
                            'sample() counted; KEY=VALUE, what it counted '
                            'with that label; KEY, how many values of that '
                            'label there are')


def _run(options):
    before, after = _sides(options.files)
    if not any(map(spooled.is_one, before + after)):
        spooled.refuse_options(options)
    if options.html or options.open:
        if options.format not in (None, 'html'):
            raise Failure(f'a page is not {options.format}', 2)
        options.format = 'html'
        options.output = page.place(options, after[-1], '.diff')
    refuse_input(options.output, before + after)
    format = choose_format(options, 'text', CHANGES)
    question = _question(options)
    if format == 'text' and _is_plain(options) and len(before + after) == 2:
        text = _of_memory(before[0], after[0], options)
        if text is not None:
            write(options.output, text)
            return 0
    # A page has all profiles in it.
    kept = [] if format == 'html' else None
    try:
        difference = diff.Difference(
            *_runs(before, after, question, options, kept), question)
    except ValueError as exc:
        raise Failure(str(exc), 2) from None
    if format == 'html':
        data = _page(kept[:len(before)], kept[len(before):], difference,
                     options)
    elif format == 'text':
        data = showable(changes.text(
            difference, top=options.top, width=width_of(options.output),
            color=is_colored(options.output)), options.output)
    else:
        data = changes.encode(difference, format, top=options.top)
    write(options.output, data)
    if options.html or options.open:
        page.show(options.output, options.open)
    match difference.verdict():
        case diff.REGRESSION:
            return REGRESSION
        case diff.INCONCLUSIVE if options.strict:
            return INCONCLUSIVE
    return 0


def _is_plain(options):
    """Whether nothing is asked for that is not known of memory."""
    return not (options.by or options.cum or options.value or options.share
                or options.per or options.gates or options.calls)


def _of_memory(before, after, options):
    """Return what grew between two snapshots of one process, or None: they
    are no such."""
    if any(map(spooled.is_one, (before, after))):
        return None
    tables = [load(path, options.max_bytes) for path in (before, after)]
    if not memory_changes.fit(*tables):
        return None
    return showable(memory_changes.text(
        *tables, mine=options.mine, all=options.all, top=options.top,
        width=width_of(options.output), color=is_colored(options.output)),
        options.output)


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


def _question(options):
    by, all = _OLD.get(options.by, (options.by, options.all))
    if options.value in growth.DERIVED:
        raise Failure(
            f'{options.value} is of one process, and these are several: '
            'nothing grew from the one to the other. Without --value, diff '
            'says which lines have more in use at the end', 2)
    try:
        return diff.Question(
            by=by or (diff.FUNCTION if options.cum else diff.LINE),
            cum=options.cum, value=options.value and memory.kind_of(
                options.value), share=options.share,
            per=options.per, gates=options.gates, mine=options.mine,
            all=all, calls=options.calls)
    except ValueError as exc:
        raise Failure(str(exc), 2) from None


def _runs(before, after, question, options, kept):
    """Return the Runs of the files of each side."""
    first, sides = None, []
    for side in before, after:
        sides.append([])
        for path in side:
            run = _reduced(path, question, options, kept, first)
            first = first or run
            sides[-1].append(run)
    return sides


def _reduced(path, question, options, kept, first):
    """Return the Run of a file, whose tables are kept only for a page."""
    tables = (spooled.load(path, options) if spooled.is_one(path)
              else load(path, options.max_bytes))
    if kept is not None:
        kept.append(tables)
    try:
        return diff.Run(tables, question, first)
    except ValueError as exc:
        raise Failure(f'{path}: {exc}', 2) from None


def _page(before, after, difference, options):
    from profile_sampling._formats import page_of_changes
    try:
        return page_of_changes.encode(
            before, after, difference, max_bytes=options.max_bytes,
            **source_options(options))
    except ValueError as exc:
        raise Failure(fault(exc)) from None
