"""A plugin of pytest that says where the time of each test goes.

    pytest -p profile_sampling.pytest_plugin --sampleprof

This file owns the options, the label that samples of a test have, and the
summary.  It must not know how samples are taken.

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
from profile_sampling._formats.sites import site_text
from profile_sampling._formats.words import seconds, share

LABEL = 'test'
_TOP = 10
_WAITS = 'waiting', 'asleep_with_gil'
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
        rows = [] if self._profile is None else rows_of(self._profile)
        top = self._config.option.sampleprof_top
        terminalreporter.section(f'{min(top, len(rows))} slowest of '
                                 f'{len(rows)} sampled tests')
        lines = lines_of(rows[:top])
        terminalreporter.write_line(lines[0])
        for line, (test, *_) in zip(lines[1:], rows):
            terminalreporter.write_line(line)
            terminalreporter.write_line(most_of(self._profile, test))
        if self._lost_workers:
            terminalreporter.write_line(
                f'{self._lost_workers} of {self._workers} workers crashed: '
                'what they had sampled is lost.', red=True)
        if self._fault is not None:
            terminalreporter.write_line(
                f'The profile was not written: {self._fault}', red=True)
        elif self._out is not None and self._profile is not None:
            terminalreporter.write_line(f'The profile is in {self._out}.')


def rows_of(profile):
    """Return (test, wall ns, running, waiting, GIL wait) for each test, the
    slowest first."""
    sums = {}
    for sample in profile.samples:
        test = sample.labels.get(LABEL)
        if test is None:
            continue
        row = sums.setdefault(test, [0, 0, 0, 0])
        row[0] += sample.wall_ns
        if sample.state == 'gil_wait':
            row[3] += sample.wall_ns
        elif sample.state in _WAITS:
            row[2] += sample.wall_ns
        else:
            row[1] += sample.wall_ns
    return sorted([(test, *row) for test, row in sums.items()],
                  key=lambda row: (-row[1], row[0]))


def most_of(profile, test):
    """Return what is said of the line that took most of a test."""
    part = profile.filter(labels={LABEL: test})
    sites = sites_of(on_clocks(part._tables))
    if not sites.rows:
        return '    idle'
    row = max(sites.rows, key=lambda row: row.sums.total)
    return (f'    {share(row.sums.total, sites.busy)} of it at '
            f'{site_text(row)}')


def lines_of(rows):
    """Return the summary as lines."""
    if not rows:
        return ['No test was sampled.']
    heads = 'total', 'running', 'waiting', 'GIL wait'
    cells = [heads, *[[seconds(ns) for ns in times] for _, *times in rows]]
    widths = [max(map(len, column)) for column in zip(*cells)]
    names = ['test', *[test for test, *_ in rows]]
    return ['  '.join([*[f'{cell:>{width}}' for cell, width
                         in zip(row, widths)], name])
            for row, name in zip(cells, names)]
