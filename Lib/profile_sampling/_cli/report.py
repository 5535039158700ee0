"""The command report: one profile, as text or in another format."""

import os

from profile_sampling import _files, _formats
from profile_sampling._cli import elsewhere, merge, newest, page, spooled
from profile_sampling._cli.history import History
from profile_sampling._cli.common import (
    Failure, add_format, add_idle, add_max_bytes, add_mine, add_output,
    add_source, at_least, choose_format, encoded, load, refuse_input,
    refuse_terminal, say, source_options, summed, write)
from profile_sampling._cli.screen import is_colored, showable, width_of
from profile_sampling._data import (
    allocations, growth, idle, keys, moments, select, shape)
from profile_sampling._data.by_site import sites_of
from profile_sampling._data.counts import ROUTE
from profile_sampling._data.on_clocks import on_clocks
from profile_sampling._formats import (
    memory, report_files, tables_of, tables_of_calls, tables_of_code,
    tables_of_cost, tables_of_counts, tables_of_gil, tables_of_imports,
    tables_of_tasks, tables_of_waits, text)
from profile_sampling._formats.sites import site_table
from profile_sampling._formats.table import MIN_WIDTH
from profile_sampling._formats.words import brief_amount, date, wrapped

_MORE = ('Also:', '--all', '--waits', '--functions', '--tree',
         '--callers PATTERN', '--callees PATTERN', '--by KEY', '--gil',
         '--tasks', '--imports', '--cost', '--opcodes', '--listing PATTERN',
         '--stats')
_KNOWN = _formats.FORMATS | _formats.REPORTS
# In nanoseconds they are in 63 bits.
_MAX_SECONDS = 1 << 33
# What --at knows by name.
_PEAK, _END = _MOMENTS = 'peak', 'end'
# Options that files other than reports cannot follow.
_OF_REPORTS = {
    'top': '--top', 'width': '--width', 'functions': '--functions',
    'sort': '--sort', 'tree': '--tree', 'callers': '--callers',
    'callees': '--callees', 'by': '--by', 'gil': '--gil', 'tasks': '--tasks',
    'waits': '--waits', 'imports': '--imports', 'cost': '--cost',
    'opcodes': '--opcodes', 'listing': '--listing', 'stats': '--stats',
    'memory': '--memory', 'rss': '--rss', 'at': '--at', 'time': '--time',
    'min_age_ns': '--min-age', 'collections': '--collections'}
# Tables that the report of memory does not have.
_OTHER_TABLES = ('functions', 'sort', 'tree', 'callers', 'callees', 'gil',
                 'tasks', 'waits', 'imports', 'cost', 'opcodes', 'listing',
                 'stats', 'calls')
# And those that pages can.
_OF_LINES = {'mine': '--mine', 'all': '--all'}
# Functions that --listing shows.
_LISTINGS = 3


def _condition(text):
    key, equals, pattern = text.partition('=')
    if not key or not equals:
        raise ValueError
    return key, pattern


def _seconds(text):
    """Return nanoseconds, or the Moment of a time of day."""
    if ':' in text:
        return spooled.moment(text)
    seconds = float(text)
    if not 0 <= seconds < _MAX_SECONDS:
        raise ValueError
    return round(seconds * 1e9)


def _at(text):
    return text if text in _MOMENTS else _seconds(text)


def _range(text):
    begin, dots, end = text.partition('..')
    if not dots:
        raise ValueError
    return _seconds(begin), _seconds(end)


_seconds.__name__ = 'number of seconds'
_at.__name__ = 'moment: peak, end, 14:21:30 (UTC) or seconds'
_range.__name__ = 'time such as 14:20..14:27 (UTC) or 60..120, in seconds'
_condition.__name__ = 'KEY=PATTERN'


def add(commands):
    parser = commands.add_parser(
        'report', help='show a recorded profile',
        description='Show a recorded profile, or convert it.')
    parser.add_argument('files', metavar='FILE', nargs='*',
                        help='a pprof file, - for stdin, a pattern for the '
                             'names of several, which are added up, or a '
                             'directory: all processes of the newest run in '
                             'it (default: this directory)')
    add_format(parser, 'text', _KNOWN)
    add_output(parser)
    parser.add_argument('-n', '--top', metavar='N',
                        type=at_least(1, 'positive number'),
                        help=f'rows of a table (default: {text.TOP}, of '
                             'which text has those with 0.5 %% or more)')
    parser.add_argument('--width', metavar='N',
                        type=at_least(MIN_WIDTH, 'number of columns '
                                       f'(at least {MIN_WIDTH})'),
                        help='columns of the text report (default: those '
                             'of the terminal, else 100)')
    parser.add_argument('--html', action='store_true',
                        help='write a page for browsers that shows the '
                             'profile and has it in it (default: beside FILE)')
    parser.add_argument('--open', action='store_true',
                        help='the same, and open it in a browser')
    add_mine(parser)
    add_idle(parser)
    add_source(parser)
    add_max_bytes(parser)
    spooled.add(parser, has_range=True)
    _add_tables(parser.add_argument_group(
        'tables', 'What to show instead of the lines by what they cost.  '
        'Several may be given.  NAME is a regular expression for names of '
        'functions.'))
    _add_parts(parser.add_argument_group(
        'parts', 'What to look at.  PATTERN is a regular expression for '
        'names of functions and their files.'))
    parser.set_defaults(run=_run, by_process=False, head=(), window=None)


def _add_tables(group):
    group.add_argument('--functions', action='store_true',
                       help='functions by their self time, with their '
                            'cumulative time')
    group.add_argument('--sort', choices=text.SORTS,
                       help='functions by this')
    group.add_argument('--calls', action='store_true',
                       help='queries, and exact calls if they were counted, '
                            'by line')
    group.add_argument('--tree', action='store_true',
                       help='functions below those that called them')
    group.add_argument('--callers', metavar='PATTERN', action='append',
                       default=[], help='who called a function')
    group.add_argument('--callees', metavar='PATTERN', action='append',
                       default=[], help='whom a function called')
    group.add_argument('--by', metavar='KEY', action='append', default=[],
                       help='task, thread, state, file, pid or a label, such '
                            'as route; label:task is the label of that name')
    group.add_argument('--gil', action='store_true',
                       help='who waited for the GIL while who held it')
    group.add_argument('--waits', action='store_true',
                       help='what threads waited for, and who held the GIL; '
                            'with --tasks, what tasks or requests awaited, '
                            'and who held their event loop')
    group.add_argument('--imports', action='store_true',
                       help='what imports took, by package')
    group.add_argument('--cost', action='store_true',
                       help='whether threads that wanted a CPU had one, and '
                            'what the profiler itself took')
    group.add_argument('--tasks', action='store_true',
                       help='what asyncio tasks spent their lives in, and '
                            'who held their loop; with --by, the same by '
                            'its KEY')
    group.add_argument('--opcodes', action='store_true',
                       help='instructions, and how they were specialized')
    group.add_argument('--listing', metavar='PATTERN', action='append',
                       default=[], help='the source of a function, or of '
                                        'those of a file, with what each '
                                        'line cost')
    group.add_argument('--memory', action='store_true',
                       help='what lines have in use, as samples of '
                            'allocations say; with --by, the same by its KEY '
                            '(the default where nothing else was sampled)')
    group.add_argument('--rss', action='store_true',
                       help='of what the memory of the process consisted at '
                            'the end')
    group.add_argument('--at', metavar='MOMENT', type=_at,
                       help='memory in use at peak, at the end, at 14:21:30 '
                            '(UTC) or so many seconds after the beginning')
    group.add_argument('--time', metavar='BEGIN..END', type=_range,
                       help='memory that was allocated, grew, survived, '
                            'churned or was in use at the end or the peak of '
                            'a part of the time, such as 14:20..14:27 (UTC) '
                            'or 60..120')
    group.add_argument('--min-age', metavar='SEC', type=_seconds,
                       dest='min_age_ns',
                       help='memory of blocks that were allocated that long '
                            'before the end, or before that moment')
    group.add_argument('--collections', action='store_true',
                       help='what the garbage collector did, where '
                            'allocations were sampled: pauses, and what it '
                            'freed, by generation and line')
    group.add_argument('--stats', action='store_true',
                       help='all counters of the session')


def _add_parts(group):
    group.add_argument('--focus', metavar='PATTERN', action='append',
                       default=[], help='only stacks with such a frame')
    group.add_argument('--ignore', metavar='PATTERN', action='append',
                       default=[], help='only stacks without such a frame')
    group.add_argument('--where', metavar='KEY=PATTERN', action='append',
                       type=_condition, default=[],
                       help='only samples whose KEY, as of --by, matches: '
                            '--where route=^/users')
    group.add_argument('--hide', metavar='PATTERN', action='append',
                       default=[], help='leave such frames out; their time '
                                        'goes to their callers')
    group.add_argument('--fold', metavar='WHAT', action='append', default=[],
                       choices=shape.FOLDS,
                       help='leave out these, likewise: C (functions), '
                            'operators, pseudo(-frames), what stdlib or '
                            'packages call within themselves')
    group.add_argument('--collapse', metavar='PATTERN', action='append',
                       default=[], help='leave out what such frames call')
    group.add_argument('--root', metavar='PATTERN', action='append',
                       help='begin stacks at the first such frame')
    group.add_argument('--value', metavar='VALUE',
                       help='another kind of values: wall, cpu, samples; '
                            'in_use, allocated and peak, of memory, and '
                            'grew, survived and churn; '
                            'task, the lives of asyncio tasks, and delay, '
                            'how long they waited for their loop; or their '
                            'name, such as cpu_ns')
    group.add_argument('--from', metavar='SEC', type=_seconds, dest='begin_ns',
                       help='what was later than so many seconds after the '
                            'beginning (record --timeline); of a directory of '
                            'segments, than 03:08:40 or '
                            '2026-11-29T03:08:40 (UTC)')
    group.add_argument('--to', metavar='SEC', type=_seconds, dest='end_ns',
                       help='what was earlier than that')


def _run(options):
    if options.html or options.open:
        _page(options)
        return
    format = choose_format(options, 'text', _KNOWN)
    is_report = format == 'text' or format in _formats.REPORTS
    try:
        arguments = {}
        if format == 'html':
            arguments |= source_options(options) | _whose(options)
    except ValueError as exc:
        raise Failure(str(exc), 2) from None
    if not is_report:
        _refuse_options(options, format)
    elif options.calls:
        _refuse_parts(options)
    refuse_terminal(format, options.output)
    paths, whole = _whole(options)
    path = _named(paths)
    try:
        tables = _part(whole, options)
        options.idle = _shows_idle(tables, options)
        arguments |= _formats.options_of(format, idle=options.idle)
        if is_report:
            _check_keys(whole, options)
            data = _report(tables, path, format, options)
        elif format in _formats.WITHOUT_IDLE and not options.idle:
            data = encoded(tables, format, **arguments)
            _say_idle(tables)
        else:
            data = encoded(tables, format, **arguments)
    except ValueError as exc:
        raise Failure(str(exc), 2) from None
    write(options.output, data)


def _refuse_parts(options):
    """Fail if calls are wanted of a part: they are of the whole recording."""
    if set(options.by) - {ROUTE}:
        raise Failure('calls are not counted by thread, task or moment: '
                      '--calls without --by, or --by route for queries', 2)
    if options.begin_ns is not None or options.end_ns is not None:
        raise Failure('calls are of the whole recording, not of a part of it.'
                      "  Count a part:  with profile(calls='python')", 2)


def _say_idle(tables):
    """Say how much a file for a viewer does not have: no line of it can."""
    total = tables.totals[tables.own]
    ns = total - idle.shown(tables).totals[tables.own]
    if ns:
        type_ = tables.value_types[tables.own]
        say(f'{brief_amount(ns, type_)} of {brief_amount(total, type_)} are '
            'idle and left out (--idle)')


def _page(options):
    if options.format not in (None, 'html'):
        raise Failure(f'a page is not {options.format}', 2)
    _refuse_options(options, 'html')
    if options.files == ['-']:
        # Known before it is read.
        page.place(options, '-')
    paths, whole = _whole(options)
    output = page.place(options, paths[0])
    try:
        tables = _part(whole, options)
    except ValueError as exc:
        raise Failure(str(exc), 2) from None
    page.save(tables, output, options.open, **source_options(options),
              **_whose(options))


def _whose(options):
    return {'mine': options.mine, 'all': options.all}


def _refuse_options(options, format):
    """Fail if an option is given that means nothing for files of a format."""
    refused = dict(_OF_REPORTS)
    if format == 'html':
        refused['idle'] = '--idle'
    else:
        refused |= _OF_LINES
    for name, option in refused.items():
        if getattr(options, name) not in (None, False, []):
            raise Failure(f'{option} changes nothing in a {format} file: leave '
                          'it out' + (
                              ', the page has a switch for it'
                              if name == 'idle' else
                              ', or write a report with --format json'
                              if format == 'profile-json' else ''), 2)


def _whole(options):
    """Return (paths, tables) of what is to be shown."""
    files = options.files or [os.curdir]
    if len(files) == 1 and spooled.is_one(files[0]):
        history = History()
        tables = spooled.load(files[0], options, history)
        options.head = history.lines()
        options.by_process = len(tables.processes) > 1
        options.begin_ns = options.end_ns = None
        return files, tables
    spooled.refuse_options(options)
    if len(files) == 1 and os.path.isdir(files[0]):
        paths, tables = newest.run_in(files[0], options.max_bytes)
        say(_found(paths))
        options.by_process = len(paths) > 1
        refuse_input(options.output, paths)
        return paths, tables
    paths = merge.expanded(files)
    refuse_input(options.output, paths)
    if len(paths) == 1:
        return paths, load(paths[0], options.max_bytes)
    return paths, summed(((path, load(path, options.max_bytes))
                          for path in paths), options.max_bytes)


def _found(paths):
    what = ('profile here is' if len(paths) == 1 else
            f'run here has {len(paths)} processes:')
    return f'the newest {what} {_named(paths)}'


def _named(paths):
    """Return the names of files in few words."""
    return (paths[0] if len(paths) == 1 else
            f'{paths[0]} and {len(paths) - 1} more')


def _part(tables, options):
    if options.begin_ns is not None or options.end_ns is not None:
        begin_ns = options.begin_ns or 0
        end_ns = options.end_ns
        if end_ns is None:
            end_ns = int(_MAX_SECONDS * 1e9)
        tables = _between(tables, begin_ns, end_ns)
    asked = [_OF_REPORTS[name] for name in ('at', 'time', 'min_age_ns')
             if getattr(options, name) is not None]
    options.memory |= options.rss or options.collections or bool(asked)
    if options.memory and not allocations.has_memory(tables):
        raise Failure(_no_memory(tables, options.files), 2)
    if options.value is None and options.memory:
        options.value = 'in_use'
    if asked:
        tables = _in_window(tables, options, asked)
    if options.value is not None:
        try:
            tables = tables.by_value(memory.kind_of(options.value))
        except ValueError as exc:
            raise Failure(elsewhere.of_value(options.value) or exc,
                          2) from None
    had_samples = bool(len(tables))
    for key, _ in options.where:
        keys.check(tables, key)
    for pattern in options.focus:
        tables = select.focused(tables, pattern, matching=True)
    for pattern in options.ignore:
        tables = select.focused(tables, pattern, matching=False)
    for key, pattern in options.where:
        tables = select.where(tables, key, pattern)
    if options.focus or options.ignore or options.where:
        if options.rss:
            raise Failure('--rss is of the whole process: leave out --focus, '
                          '--ignore and --where', 2)
        if memory.is_about(tables):
            tables = allocations.part_of_process(tables)
    tables = shape.shaped(tables, hide=options.hide, fold=options.fold,
                          collapse=options.collapse, root=options.root)
    if had_samples and not len(tables):
        raise Failure('no sample is like that: see --focus, --ignore and '
                      '--where')
    return tables


def _in_window(tables, options, asked):
    """Return what --at, --time and --min-age choose of the memory."""
    amount = _amount_of(options.value)
    if amount is None:
        raise Failure(f'{asked[0]} is of memory, --value {options.value} is '
                      'not', 2)
    if options.at is not None and options.time is not None:
        raise Failure('give --at or --time, not both', 2)
    if amount != allocations.IN_USE and (
            options.at not in (None, _PEAK) or options.min_age_ns is not None):
        raise Failure(f'{asked[0]} is of what is in use, and {options.value} '
                      'is of a time: --time BEGIN..END', 2)
    try:
        moments.check(tables)
        if options.at == _PEAK:
            options.value = 'peak'
        begin_ns, end_ns = [
            None if its in (None, _END, _PEAK) else _ns(tables, its)
            for its in options.time or (None, options.at)]
        if asked != ['--at'] or end_ns is not None:
            options.window = moments.Window(
                begin_ns, end_ns or moments.bounds(tables)[1],
                options.min_age_ns)
            tables = options.window.part(tables, amount)
    except ValueError as exc:
        raise Failure(str(exc), 2) from None
    return tables


def _amount_of(value):
    """Return which amount of memory --value is of, or None."""
    return value if value in growth.DERIVED else memory.NAMES.get(value, next((
        its for its in allocations.AMOUNTS if value in (
            allocations.space(its).kind, allocations.space(its).name)), None))


def _ns(tables, given):
    """Return a moment of a profile in nanoseconds since the epoch."""
    first_ns, last_ns = moments.bounds(tables)
    ns = spooled.of_day(given, first_ns) if isinstance(
        given, spooled.Moment) else first_ns + given
    if not first_ns <= ns <= last_ns:
        raise ValueError(f'that is not in the recording, which is from '
                         f'{date(first_ns)} to {date(last_ns)}')
    return ns


def _shows_idle(tables, options):
    """Return whether what is idle is shown: also if --where state=idle asks
    for nothing else."""
    return options.idle or idle.is_all(tables) and any(
        [key == 'state' for key, _ in options.where])


def _check_keys(whole, options):
    """Raise ValueError if --by names what no sample of the file has.

    A part of it may be just what is without.
    """
    # Those of tasks are others.
    for key in () if options.tasks else options.by:
        keys.check(whole, key)


def _between(tables, begin_ns, end_ns):
    tables = select.between(tables, begin_ns, end_ns)
    if not len(tables):
        raise Failure('there is nothing in this range of time: see --from '
                      'and --to')
    return tables


def _report(tables, path, format, options):
    """Return the report in one of its formats, as bytes."""
    # On a thread's clock there is nothing else.
    threads = on_clocks(tables)
    if _is_of_memory(tables, options):
        return _memory_report(tables, path, format, options)
    sites = sites_of(threads, options.mine, options.all,
                     idle=options.idle)
    is_all = options.top is not None
    options.top = options.top or text.TOP
    shown = (_tables_of_tasks(tables, sites, options)
             + _tables_of_threads(threads, sites, options)
             or _first(tables, threads, sites, options))
    for table in shown if is_all else ():
        table.least_share = 0
    match format:
        case 'json':
            report = report_files.as_json(tables, sites, shown, path)
        case 'tsv':
            report = report_files.as_tsv(shown)
        case 'markdown':
            report = report_files.as_markdown(tables, sites, shown, path)
        case 'text':
            # A file is what save() makes of the profile.
            is_shown = (options.output is None or
                        _files.descriptor(options.output) is not None)
            width = options.width or width_of(options.output)
            return showable(text.with_tables(
                tables, sites, shown, width=width,
                color=is_colored(options.output),
                name=path if is_shown else None, head=options.head,
                more=wrapped(_more(tables), width, ' ') if is_shown
                else ()),
                options.output)
    return report.encode()


def _no_memory(tables, files):
    command = tables.meta.get('command', '').partition(' ')[2] or '...'
    now = ('' if tables.pid is None else '\nor from now on, in the process '
           'that runs: python -m profile_sampling record -p '
           f'{tables.pid} --alloc')
    return (f'{_named(files or [os.curdir])} has no memory: it was recorded '
            f'as {tables.mode} time. Record it with both:\n    python -X '
            f'sampleprof={tables.mode},alloc {command}{now}')


def _is_of_memory(tables, options):
    """Return whether the report is that of memory: of an amount of it, and no
    other table is asked for."""
    return memory.is_about(tables) and not any(
        [getattr(options, name) for name in _OTHER_TABLES])


def _memory_report(tables, path, format, options):
    sites = sites_of(tables, options.mine, options.all)
    what = {'top': options.top, 'by': options.by, 'rss': options.rss,
            'collections': options.collections,
            'derived': options.value if options.value in growth.DERIVED
            else None, 'window': options.window}
    if format == 'text':
        is_shown = (options.output is None or
                    _files.descriptor(options.output) is not None)
        return showable(memory.render(
            tables, sites, **what,
            width=options.width or width_of(options.output),
            color=is_colored(options.output),
            name=path if is_shown else None), options.output)
    shown = memory.tables_of(tables, sites, **what)
    if format == 'tsv':
        return report_files.as_tsv(shown).encode()
    write_it = (report_files.as_json if format == 'json'
                else report_files.as_markdown)
    return write_it(tables, sites, shown, path).encode()


def _more(tables):
    return _MORE if tables.counts is None else [
        _MORE[0], '--calls', *_MORE[1:]]


def _first(whole, tables, sites, options):
    """Return the tables of a report that asks for none."""
    shown = [site_table(tables, sites, options.top)]
    shown += tables_of_waits.awaited_by_requests(whole, sites)
    if tables_of_imports.come_first(tables, sites):
        shown[:0] = tables_of_imports.imports(tables, sites, options.top)
    if options.by_process:
        shown.append(tables_of.by_key(tables, sites, options.top, 'pid'))
    return shown


def _tables_of_threads(tables, sites, options):
    """Return the tables that are asked for, but those of tasks.

    Raise ValueError if there is nothing like that.
    """
    top = options.top
    shown = []
    busy = idle.shown(tables, options.idle)
    if options.functions or options.sort:
        shown.append(tables_of.functions(busy, sites, top,
                                         options.sort or 'self'))
    if options.calls:
        shown += tables_of_counts.calls(tables, sites, top)
    if options.tree:
        shown.append(tables_of_calls.tree(busy, top))
    shown += [tables_of_calls.neighbours(busy, sites, top, pattern, True)
              for pattern in options.callers]
    shown += [tables_of_calls.neighbours(busy, sites, top, pattern, False)
              for pattern in options.callees]
    shown += [tables_of.by_key(tables, sites, top, key)
              for key in options.by if not options.tasks]
    if options.waits and not options.tasks:
        shown += tables_of_waits.threads(tables, sites, top)
    if options.imports:
        shown += tables_of_imports.imports(tables, sites, top)
    if options.cost:
        shown += tables_of_cost.cost(tables, sites)
    if options.gil:
        shown += tables_of_gil.gil(tables, top)
    if options.opcodes:
        shown.append(tables_of_code.opcodes(busy, top))
    for pattern in options.listing:
        shown += tables_of_code.source(busy, sites, _LISTINGS, pattern)
    if options.stats:
        shown += [tables_of_code.quality(tables, sites),
                  tables_of_code.counters(tables)]
    return shown


def _tables_of_tasks(tables, sites, options):
    if not options.tasks:
        return []
    if options.waits:
        return tables_of_waits.tasks(tables, sites, options.top)
    if options.by:
        return [table for key in options.by for table in (
            tables_of_tasks.by_label(tables, options.top, key),
            *tables_of_tasks.slow_requests(tables, sites, options.top,
                                           key))]
    return tables_of_tasks.tasks(tables, sites, options.top)
