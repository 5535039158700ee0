"""A plugin of pytest that says where the time of each test goes.

    pytest -p profile_sampling.pytest_plugin --sampleprof

Samples of a test, its fixtures included, have the label 'test' with the
test's node id.  Threads that a test starts are profiled, too, without it.
Workers of pytest-xdist profile themselves and hand their profiles to the
process that started them, which adds them up.
"""

import io

import profile_sampling
import pytest
from profile_sampling import _files, _formats
from profile_sampling._data.by_site import sites_of
from profile_sampling._data.on_clocks import on_clocks
from profile_sampling._formats.sites import TimeColumns, site_text
from profile_sampling._formats.table import MIN_WIDTH, Column, Table, lines

LABEL = 'test'
_TOP = 10
_FROM_WORKER = 'sampleprof'


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
    group.addoption('--sampleprof-top', metavar='N', type=int, default=_TOP,
                    help='how many tests to list (default: %(default)s)')


def pytest_configure(config):
    if not (config.option.sampleprof or config.option.sampleprof_out):
        return
    try:
        if config.option.sampleprof_top < 1:
            raise ValueError('--sampleprof-top must be 1 or more')
        plugin = _Plugin(config)
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
