"""The text report: what a profile says at first sight.

It also runs when the interpreter ends, and so imports nothing else then.
"""

from profile_sampling._data import checks
from profile_sampling._data.by_site import sites_of
from profile_sampling._data.idle import shown as without_idle
from profile_sampling._data.losses import lost_counts
from profile_sampling._data.on_clocks import on_clocks
from profile_sampling._data.values import printable
from profile_sampling._formats import header, memory
from profile_sampling._formats.findings import MOST, findings
from profile_sampling._formats.sites import site_table
from profile_sampling._formats.table import MIN_WIDTH, WIDTH, lines
from profile_sampling._formats.words import said, seconds, wrapped

TOP, TOP_SHORT = 30, 5
# What functions are ranked by.
SORTS = 'self', 'cum', 'calls', 'per-call'


def encode(tables, **options):
    """Return what render() does as bytes."""
    return render(tables, **options).encode()


def render(tables, *, top=None, sort=None, width=WIDTH, color=False,
           name=None, mine=(), all=False, idle=False):
    """Return the report: totals, quality, findings, and the *top* lines of
    the program by what they cost; with *sort*, its functions instead.

    name is that of the file, and stands above all.  Lines are those of code
    that is mine, as patterns in *mine* say, too; with *all*, of all.
    Without *top*, lines with hardly anything are only counted.  With *idle*,
    threads that had nothing to do are like all others.

    Raise ValueError for an option that cannot be.
    """
    if sort is not None:
        checks.one_of('sort', sort, SORTS)
    if top is not None:
        checks.whole('top', top)
    checks.whole('width', width, MIN_WIDTH)
    if sort is None and memory.is_about(tables):
        return memory.render(tables, sites_of(tables, mine, all),
                             top=top, width=width, color=color, name=name)
    threads = on_clocks(tables)
    sites = sites_of(threads, mine, all, idle=idle)
    if sort is None:
        shown = site_table(threads, sites, top or TOP)
    else:
        from profile_sampling._formats.tables_of import functions
        shown = functions(without_idle(threads, idle), sites, top or TOP,
                          sort)
    if top is not None:
        shown.least_share = 0
    return with_tables(tables, sites, [shown], width=width, color=color,
                       name=name)


def with_tables(tables, sites, shown, *, width, color, name=None, head=(),
                more=()):
    """Return a report with these tables; *head* are lines above all but the
    name, *more* are lines at its end."""
    def wrap(parts, separator=', '):
        return wrapped(list(parts), width, separator)
    # Of a file that somebody may have sent: it reaches a terminal.
    result = wrap([printable(name)]) if name else []
    if head:
        result += [*map(printable, head), '']
    result += header.lines(tables, sites, wrap)
    if not any(map(any, tables.value_columns)):
        return '\n'.join([*result, '', *wrap(_nothing(tables), ' ')]) + '\n'
    result += _said(findings(tables, sites), wrap)
    tables = [line for table in shown
              for line in ('', *lines(table, width, color))]
    result += tables
    signs = list(_signs(tables))
    if signs:
        result += ['', *wrap(signs, '; ')]
    if more:
        result += ['', *more]
    return '\n'.join(result) + '\n'


def _said(found, wrap):
    """The lines of findings: the first in full, what else there is."""
    result = [''] * bool(found)
    for finding in found[:MOST]:
        result += wrap(f'* {finding.text}.'.split(' '), ' ')
    if found[MOST:]:
        result += wrap('Also: {}'.format('; '.join([
            f'{finding.title[:1].lower()}{finding.title[1:]} '
            f'{said(finding.ns)}'
            for finding in found[MOST:]])).split(' '), ' ')
    return result


def _signs(lines):
    """Say what signs in lines of tables mean."""
    if any(['\N{PLUS-MINUS SIGN}' in line for line in lines]):
        yield ('\N{PLUS-MINUS SIGN} how far it may be off, in 95 of 100 '
               'profiles')
    # Behind the rank.
    if any([line.lstrip(' 0123456789').startswith('= ') for line in lines]):
        yield '= chance may have ranked these rows'


def _nothing(tables):
    """Say that there are no samples, and the likeliest reason: words."""
    lost = sum(lost_counts(tables.stats).values())
    period_ns = 1_000_000_000 // (tables.rate_hz or 1)
    if lost:
        what = ('the only sample was' if lost == 1
                else f'all {lost:,} samples were')
        why = f'{what} lost (see above)'
    elif tables.duration_ns < period_ns:
        why = (f'the session was shorter ({seconds(tables.duration_ns)}) '
               f'than one period ({seconds(period_ns)}); '
               'raise the rate or profile more work')
    elif tables.stats.get('ticks') == 0:
        why = ('the clock never ticked; the machine was too busy or the '
               'session too short')
    elif tables.mode == 'cpu':
        why = ('no thread used CPU time; the mode wall also shows where '
               'they wait')
    else:
        why = 'no thread ran Python code in the session'
    return f'Nothing was sampled: {why}.'.split(' ')
