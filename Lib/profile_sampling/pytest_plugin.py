"""A plugin of pytest that says where the time of each test goes.

    pytest -p profile_sampling.pytest_plugin --sampleprof
    pytest -p profile_sampling.pytest_plugin --sampleprof-memory

Samples of a test, its fixtures included, have the label 'test' with the
test's node id.  Threads that a test starts are profiled, too, without it.
Workers of pytest-xdist profile themselves and hand their profiles to the
process that started them, which adds them up.

Of memory each test is a session of its own: its peak is what it had in use at
once of what was allocated since it began.  @pytest.mark.sampleprof(peak='200
MB') is a limit for it.
"""

import gc
import io

import profile_sampling
import pytest
from profile_sampling import _files, _formats, _options
from profile_sampling._data import by_memory
from profile_sampling._data.allocations import (
    ALLOCATED, DEFAULT_BYTES, IN_USE, MODE, PEAK)
from profile_sampling._data.by_site import called_name, sites_of
from profile_sampling._data.on_clocks import on_clocks
from profile_sampling._formats import memory
from profile_sampling._formats.sites import TimeColumns, site_text
from profile_sampling._formats.table import MIN_WIDTH, Column, Table, lines
from profile_sampling._formats.words import counted

LABEL = 'test'
_TOP = 10
_FROM_WORKER, _MEMORY_FROM_WORKER = 'sampleprof', 'sampleprof-memory'
_MARK = 'sampleprof'
# Samples below which a test cannot be told from one that allocates nothing.
_LEAST_SAMPLES = 4


def pytest_addoption(parser):
    group = parser.getgroup('sampleprof', 'profile the tests by sampling')
    group.addoption(
        '--sampleprof', action='store_true',
        help='profile the tests, and say at the end which took longest and '
             'what they did')
    group.addoption('--sampleprof-out', metavar='FILE',
                    help='the same, and write the profile; the extension '
                         'chooses its format')
    group.addoption('--sampleprof-rate', metavar='HZ', type=int, default=1000,
                    help='samples per second of each thread (default: '
                         '%(default)s)')
    group.addoption('--sampleprof-memory', nargs='?', metavar='SIZE',
                    const=f'{DEFAULT_BYTES >> 10}K',
                    help='sample allocations instead, a block for each so '
                         'many bytes (default: %(const)s), and say which '
                         'tests had the highest peaks and left most behind')
    group.addoption('--sampleprof-top', metavar='N', type=int, default=_TOP,
                    help='how many tests to list (default: %(default)s)')


def pytest_configure(config):
    config.addinivalue_line('markers', f"{_MARK}(peak='200 MB'): the most that "
                            'a test may have in use at once; with '
                            '--sampleprof-memory')
    is_of_time = config.option.sampleprof or config.option.sampleprof_out
    if not is_of_time and config.option.sampleprof_memory is None:
        return
    try:
        if config.option.sampleprof_top < 1:
            raise ValueError('--sampleprof-top must be 1 or more')
        if is_of_time and config.option.sampleprof_memory is not None:
            raise ValueError('give --sampleprof or --sampleprof-memory: each '
                             'test is a session of its own')
        plugin = (_Plugin if is_of_time else _MemoryPlugin)(config)
    except (OSError, ValueError) as exc:
        raise pytest.UsageError(f'--sampleprof: {exc}') from None
    config.pluginmanager.register(plugin, 'sampleprof-session')


class _Plugin:
    """What there is of a session of pytest that is profiled."""

    def __init__(self, config):
        self._config = config
        self._is_worker = hasattr(config, 'workerinput')
        self._parts = []
        self._workers = self._lost_workers = 0
        self._fault = None
        self._out = config.option.sampleprof_out
        self._path = None
        if self._out is not None and not self._is_worker:
            _formats.choose(self._out)
            # Tests may change the directory.
            self._path = _formats.fixed(self._out)
            _files.check(self._path())
        self._block = profile_sampling.profile(
            rate_hz=config.option.sampleprof_rate)

    def pytest_sessionstart(self):
        self._block.__enter__()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        with profile_sampling.label(**{LABEL: item.nodeid}):
            return (yield)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node):
        """A worker has ended; one that crashed has no profile."""
        data = getattr(node, 'workeroutput', {}).get(_FROM_WORKER)
        self._workers += 1
        if data is None:
            self._lost_workers += 1
        else:
            self._parts.append(profile_sampling.Profile.load(
                io.BytesIO(data)))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self):
        self._block.__exit__(None, None, None)
        profile = self._block.profile
        if self._is_worker:
            file = io.BytesIO()
            profile.save(file, format='pprof')
            self._config.workeroutput[_FROM_WORKER] = file.getvalue()
            return
        if self._workers:
            # Our own process has only waited for the workers.
            profile = (profile_sampling.Profile.merge(*self._parts)
                       if self._parts else None)
        self._profile = profile
        if self._path is not None and profile is not None:
            try:
                _formats.write(profile._tables, self._path())
            except OSError as exc:
                self._fault = f'{self._out}: {exc.strerror or exc}'

    def pytest_terminal_summary(self, terminalreporter):
        if self._is_worker:
            return
        top = self._config.option.sampleprof_top
        if self._profile is None or LABEL not in self._profile.label_keys:
            terminalreporter.section('no test was sampled')
        else:
            table, tests = table_of(self._profile, top)
            terminalreporter.section(f'{min(top, tests)} slowest of {tests} '
                                     'sampled tests')
            # The name of a test is to be copied: it is not cut.
            longest = max([len(test) for *_, (_, test), _ in table.rows])
            for line in lines(table, max(
                    self._config.get_terminal_writer().fullwidth,
                    MIN_WIDTH + longest)):
                terminalreporter.write_line(line)
        if self._lost_workers:
            terminalreporter.write_line(
                f'{self._lost_workers} of {self._workers} workers crashed: '
                'what they had sampled is lost.', red=True)
        if self._fault is not None:
            terminalreporter.write_line(
                f'The profile was not written: {self._fault}', red=True)
        elif self._out is not None and self._profile is not None:
            terminalreporter.write_line(f'The profile is in {self._out}.')


class _MemoryPlugin:
    """What there is of a session of pytest whose allocations are sampled."""

    def __init__(self, config):
        self._config = config
        self._period = _options.size_bytes(config.option.sampleprof_memory)
        if self._period is None:
            raise ValueError(f'{config.option.sampleprof_memory}: a size such '
                             'as 512K, 64K or 1M')
        self._is_worker = hasattr(config, 'workerinput')
        # Of each test: name, peak and its margin, allocated, left behind; and
        # the lines with most of the peak, and of what is left, each with it.
        self._tests = []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        gc.collect()
        profile_sampling.start(MODE, alloc_bytes=self._period)
        try:
            return (yield)
        finally:
            # What fixtures drop in cycles is not left behind.
            gc.collect()
            tables = profile_sampling.stop()._tables
            whole, *lines = [_of_lines(tables, amount)
                             for amount in (PEAK, PEAK, IN_USE)]
            amounts = whole.whole.amounts
            self._tests.append((
                item.nodeid, *amounts[PEAK][1:], amounts[ALLOCATED][1],
                amounts[IN_USE][1], *[cell for its in lines
                                      for cell in _most_in(its)]))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item):
        result = yield
        mark = item.get_closest_marker(_MARK)
        if mark is not None:
            text = mark.kwargs.get('peak', '')
            limit = _options.size_bytes(text.replace(' ', ''))
            if limit is None:
                pytest.fail(f'@pytest.mark.{_MARK}(peak={text!r}): a size such '
                            "as '200 MB'", pytrace=False)
            its = _of_lines(profile_sampling.snapshot()._tables, PEAK)
            peak = its.whole.bytes(PEAK)
            if peak > limit:
                where, size = _most_in(its)
                pytest.fail(
                    f'peak {memory.amount(its.whole, PEAK)}, limit {text} '
                    f'(@pytest.mark.{_MARK}(peak={text!r})); most at {where} '
                    f'{memory.said(size)}', pytrace=False)
        return result

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node):
        self._tests += map(tuple, getattr(node, 'workeroutput', {}).get(
            _MEMORY_FROM_WORKER, ()))

    def pytest_sessionfinish(self):
        if self._is_worker:
            self._config.workeroutput[_MEMORY_FROM_WORKER] = list(
                map(list, self._tests))

    def pytest_terminal_summary(self, terminalreporter):
        if self._is_worker or not self._tests:
            return
        heading, *lines = memory_report(
            self._tests, self._config.option.sampleprof_top, self._period)
        terminalreporter.section(heading)
        for line in lines:
            terminalreporter.write_line(line)


def _of_lines(tables, amount):
    """Return the Memory of a test, by an amount."""
    tables = tables.by_value(f'{amount}_space')
    return by_memory.by_line(tables, sites_of(tables), None, amount)


def _most_in(its):
    """Return the line with most of it, in words, and how much that is."""
    row = next(iter([*its.rows, *its.outside]), None)
    if row is None:
        return '', 0
    called = called_name(row.of)
    return (memory.where(row) + (f' ({called})' if called else ''),
            row.bytes(its.amount))


def memory_report(tests, top, period):
    """Iterate over the lines of the report: the heading first."""
    ranked = sorted(tests, key=lambda its: (-its[1], its[0]))
    least = _LEAST_SAMPLES * period
    shown = [its for its in ranked[:top] if its[1] >= least]
    yield f'{len(shown)} largest of {len(tests)} tests, by peak'
    if shown:
        units = [memory.unit_of(max([its[place] for its in shown]))
                 for place in (1, 3, 4)]
        cells = [[('', 'peak', '\N{PLUS-MINUS SIGN}', 'allocated',
                   'left behind'), 'test']]
        for rank, (test, peak, margin, allocated, left, *_) in enumerate(
                shown, 1):
            cells.append([(
                str(rank), memory.figure(peak, units[0]),
                memory.margin(margin, units[0]),
                memory.figure(allocated, units[1]),
                f'+{memory.figure(left, units[2])}' if left >= least else '-'),
                test])
        widths = [max([len(row[place]) for row, _ in cells])
                  for place in range(5)]
        for number, (row, test) in enumerate(cells):
            yield ' '.join([row[0].ljust(widths[0])] + [
                cell.rjust(width + 1) for cell, width
                in zip(row[1:], widths[1:])]) + f'  {test}'
            if number:
                where, size = shown[number - 1][5:7]
                if where:
                    yield (f'      most at {where} '
                           + memory.figure(size, units[0]))
    rest = [its for its in ranked if its not in shown]
    small = sum([its[1] < least for its in rest])
    if rest:
        most = f'of {memory.said(max([its[1] for its in rest]))} or less'
        under = f'under {memory.round_figure(least)}'
        yield (f'{counted(len(rest), "test")} had a peak '
               + (f'{most}, {small} of them {under}' if small < len(rest)
                  else under) + ': too small to be told from nothing'
               * bool(small))
    left = [its for its in tests if its[4] >= least]
    if left:
        test, *_, where, size = max(left, key=lambda its: its[4])
        yield (f'{counted(len(left), "test")} left more than '
               f'{memory.round_figure(least)} behind: {test}'
               + (f', {memory.said(size)} of it from {where}' if where else ''))
    yield ('peak: above what was in use when the test began. left behind: in '
           'use after fixtures and a collection')


def table_of(profile, top):
    """Return (the Table of the slowest tests, how many tests there are).

    Below each is the line that took most of it.
    """
    tests = {test: sites_of(on_clocks(part._tables)) for test, part
             in profile.group_by(LABEL).items() if test is not None}
    names = sorted(tests, key=lambda test: (-tests[test].busy, test))
    tables = on_clocks(profile._tables)
    shared = TimeColumns(tables, sites_of(tables),
                         [tests[test].whole for test in names])
    columns = [*shared.columns, Column(LABEL, LABEL, 'name'),
               Column('most', 'most at', 'below')]
    rows = [(*cells, ('', test), _most_of(tests[test]))
            for cells, test in zip(shared.cells(top), names)]
    return Table(LABEL, '', columns, rows,
                 value_type=tables.value_types[tables.own]), len(names)


def _most_of(sites):
    """Return the line that took most of a test, if any did."""
    rows = sorted(sites.rows, key=lambda row: -row.sums.total)
    return [(site_text(row), row.sums.total) for row in rows[:1]]
