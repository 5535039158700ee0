"""Parts of a profile add up to it, whichever way it is cut.

For random profiles, each cut, and the same after it was saved and loaded, or
merged: call sites, functions and lines of the parts are those of the whole.
Whatever follows from the whole, as who was idle, must be kept by the parts.
"""

import json
import os
import random
import tempfile
import unittest
from collections import Counter

from profile_sampling import Profile
from profile_sampling._cli.main import main

from ..support.builders import STATES, Builder, reloaded
from ..support.timed import timed

SEEDS = range(12)
_CODE = 'app.main', 'app.view', 'app.query', 'lib.call', 'app.beat'
# Loops of workers, as they wait for work.
_LOOPS = (
    'threading.Thread.run:9 concurrent.futures.thread._worker:80 '
    'C:_queue.SimpleQueue.get',
    'app.main:3 asyncio.base_events.BaseEventLoop._run_once:9 '
    'selectors.EpollSelector.select:4 C:select.epoll.poll',
    'app.main:9 socketserver.BaseServer.serve_forever:2 '
    'selectors.PollSelector.select:5')
_WAITS = 'C:time.sleep', 'threading.Event.wait:6 C:_thread.lock.acquire', ''


def a_profile(rng, pid, start_ns=0, *, length_ns=2_000_000_000, samples=40,
              has_mine=True):
    b = Builder(pid=pid, duration_ns=length_ns,
                start_time_ns=1_700_000_000_000_000_000 + start_ns)
    _modules(b)
    main = b.thread('MainThread', native_id=pid)
    workers = [b.thread(f'worker {number}') for number in range(3)]
    names = _CODE
    if not has_mine:
        # Hardly any of it is mine, but in some parts nothing else is.
        names = 'lib.call', 'lib.other'
        b.sample('app.main:1', count=1, wall_ns=1, thread=workers[0])
    for _ in range(samples):
        stack = ' '.join([f'{rng.choice(names)}:{rng.randrange(1, 4)}'
                          for _ in range(rng.randrange(5))])
        state = rng.choice(['running', 'native', 'waiting', 'waiting',
                            'cpu_wait', 'gc', 'lost'])
        if state == 'waiting' and rng.randrange(2):
            stack = f'{stack} {rng.choice(_LOOPS)}'
        elif state in ('waiting', 'native'):
            stack = f'{stack} {rng.choice(_WAITS)}'
        ns = rng.randrange(1, length_ns // samples)
        b.sample(stack, count=1, wall_ns=ns, thread=rng.choice([main, *workers]),
                 cpu_ns=ns if state == 'running' else 0, state=state,
                 labels=rng.choice([{}, {'route': '/'}, {'route': '/x'}]),
                 task=rng.choice([None, ('T1', 11), ('T2', 12)]))
    if has_mine and rng.randrange(3):
        # A heartbeat: always there, in a wait at one line, but a moment.
        beat = b.thread('beat')
        busy = rng.randrange(0, length_ns // 60)
        b.sample('app.beat:1', count=1, wall_ns=busy, cpu_ns=0, thread=beat)
        b.sample('app.beat:2 C:time.sleep', count=9,
                 wall_ns=length_ns - busy - rng.randrange(length_ns // 30),
                 thread=beat, state='waiting')
    return b.profile()


def _modules(b):
    """Have modules in files where they are, and names of several dots."""
    frame, function = b._frame, b.function

    def placed(module, qualname, filename=None, first_line=1, kind=0):
        if filename is None and kind == 0:
            filename = {
                'app': '/srv/app.py',
                'lib': '/venv/lib/python3.13/site-packages/lib.py'}.get(
                    module, f'/usr/lib/python3.13/{module}.py')
        return function(module, qualname, filename, first_line, kind)
    b.function = placed

    def dotted(word):
        for module in ('concurrent.futures.thread', 'asyncio.base_events'):
            if isinstance(word, str) and word.startswith(module):
                name, _, line = word.removeprefix(module + '.').partition(':')
                return b.function(module, name), int(line)
        return frame(word)
    b._frame = dotted


def figures(profile, **shown):
    """What profile says of lines and functions, as one Counter."""
    found = Counter()
    for row in profile.call_sites(**shown):
        found['mine', row.function, row.line] += row.total
    for row in profile.call_sites(all=True, **shown):
        place = row.function, row.line
        found['site', *place] += row.total
        for state, ns in row.states.items():
            found['state', *place, state] += ns
    for row in profile.functions(**shown):
        found['self', row.function] += row.self_wall_ns
        found['cum', row.function] += row.cum_wall_ns
        found['cpu', row.function] += row.self_cpu_ns
    for row in profile.lines(**shown):
        found['self', row.function, row.line] += row.self_wall_ns
        found['cum', row.function, row.line] += row.cum_wall_ns
    return +found


def total(figures, what):
    return sum([ns for key, ns in figures.items()
                if key[0] == what and len(key) <= 3])


def cuts(profile, rng):
    """Iterate over (name, parts) of the ways to cut."""
    for key in 'state', 'thread', 'task', 'route', 'file', 'function', 'pid':
        try:
            yield key, list(profile.group_by(key).values())
        except ValueError:
            pass        # no sample has that label
    pattern = rng.choice(['app.main', 'view', 'sleep', 'worker', '_run'])
    yield f'focus {pattern}', [profile.focus(pattern), profile.ignore(pattern)]
    yield 'label', [profile.filter(labels={'route': value}) for value in
                    {sample.labels.get('route') for sample in profile.samples}
                    ] if 'route' in profile.label_keys else [profile]
    states = sorted({sample.state for sample in profile.samples})
    yield 'filter state', [profile.filter(state=state) for state in states]
    if profile.timeline is not None:
        at_ns = rng.randrange(1, profile.duration_ns)
        yield f'time {at_ns}', [profile.between(0, at_ns),
                                profile.between(at_ns, profile.duration_ns)]


class AddsUpTest(unittest.TestCase):

    def check(self, what, parts, whole, **shown):
        sums = sum([figures(part, **shown) for part in parts], Counter())
        wanted = figures(whole, **shown)
        if sums != wanted:
            wrong = {key for key in sums | wanted
                     if sums[key] != wanted[key]}
            key = min(wrong, key=str)
            self.fail(f'{what}: {len(wrong)} figures differ, such as {key}: '
                      f'{sums[key]} in the parts, {wanted[key]} in the whole; '
                      f'sites {total(sums, "site")} and '
                      f'{total(wanted, "site")}')

    def each(self):
        for seed in SEEDS:
            rng = random.Random(seed)
            yield seed, rng, a_profile(rng, 10 + seed % 3,
                                       has_mine=seed % 4 > 0)

    def shown(self):
        """The ways to ask: without what is idle, and with it."""
        return {}, {'idle': True}

    def test_cut(self):
        for seed, rng, profile in self.each():
            for what, parts in cuts(timed(profile, rng), rng):
                with self.subTest(seed=seed, cut=what):
                    self.check(what, parts, profile)

    def test_cut_with_idle(self):
        for seed, rng, profile in self.each():
            for what, parts in cuts(timed(profile, rng), rng):
                with self.subTest(seed=seed, cut=what):
                    self.check(what, parts, profile, idle=True)

    def test_cut_saved_loaded(self):
        for seed, rng, profile in self.each():
            for what, parts in cuts(profile, rng):
                with self.subTest(seed=seed, cut=what):
                    self.check(what, map(reloaded, parts), reloaded(profile))

    def test_saved_is_the_same(self):
        for seed, rng, profile in self.each():
            with self.subTest(seed=seed):
                self.check('saved', [reloaded(profile)], profile)

    def test_two_cuts(self):
        for seed, rng, profile in self.each():
            for what, parts in cuts(profile, rng):
                for more, smaller in cuts(max(parts, key=lambda part:
                                              len(part.samples)), rng):
                    with self.subTest(seed=seed, cut=(what, more)):
                        self.check((what, more), smaller, max(
                            parts, key=lambda part: len(part.samples)))

    def test_merged(self):
        for seed, rng, one in self.each():
            # At the same time, one after the other, or with a gap between.
            after_ns = rng.choice([0, 10 ** 9, 2 * 10 ** 9, 18 * 10 ** 9])
            other = a_profile(rng, rng.choice([one.pid, 99]), after_ns,
                              has_mine=seed % 4 > 0)
            merged = Profile.merge(one, other)
            with self.subTest(seed=seed):
                self.check('merge', [one, other], merged)
                self.check('+', [one, other], one + other)
                self.check('saved', [one, other], reloaded(merged))
            for what, parts in cuts(merged, rng):
                with self.subTest(seed=seed, cut=what):
                    self.check(what, parts, merged)
                    self.check(what, [Profile.merge(*parts)], merged)

    def test_merged_with_one_without_mine(self):
        rng = random.Random(0)
        one, other = [a_profile(rng, 10 + has_mine, has_mine=has_mine)
                      for has_mine in (True, False)]
        merged = Profile.merge(one, other)
        for its in merged, reloaded(merged):
            self.assertIn('Outside my code', [
                row.function.qualname for row in its.call_sites()
                if row.function])
        self.assertNotIn('Outside my code', [
            row.function.qualname for row in reloaded(other).call_sites()
            if row.function])

    def test_same_samples_in_other_shape(self):
        # Nothing of idle time comes in or goes out by hiding frames.
        for seed, rng, profile in self.each():
            busy = total(figures(profile), 'site')
            for shaped in (profile.hide('worker|queue|_run_once'),
                           profile.fold('C'), profile.collapse('_worker'),
                           profile.root('app.view')):
                for its in (shaped, reloaded(shaped)):
                    with self.subTest(seed=seed):
                        self.assertEqual(total(figures(its), 'site'), busy)

    def test_one_rule(self):
        # Functions and lines leave out what lines of the program do.
        def self_ns(profile, **shown):
            return sum([row.self_wall_ns for row in profile.functions(**shown)])
        for seed, _, profile in self.each():
            for shown in self.shown():
                with self.subTest(seed=seed, shown=shown):
                    # What is lost is on no line.
                    found = self_ns(profile.filter(state=[
                        state for state in STATES if state != 'lost']), **shown)
                    sites = profile.call_sites(all=True, **shown)
                    self.assertEqual(found, sum([
                        row.total for row in sites
                        if row.function is not None]))


class CommandTest(unittest.TestCase):
    """The command line says what the API does, of the whole and of parts."""

    def busy(self, path, *options):
        out = os.path.join(os.path.dirname(path), 'out.json')
        main(['report', '--format', 'json', '-n', '999', *options, '-o', out,
              path])
        with open(out) as file:
            said = json.load(file)
        [table] = said['tables']
        self.assertEqual(sum([row['self_ns'] for row in table['rows']])
                         + sum([ns for state, ns
                                in said['profile']['states'].items()
                                if state == 'lost']),
                         said['profile']['busy'])
        return {(row['function'], row['line']): row['self_ns']
                for row in table['rows'] if row['self_ns']}

    def test_where_is_idle(self):
        # It is what is asked for, so it is shown.
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'a.pb.gz')
            profile = a_profile(random.Random(2), 10)
            profile.save(path)
            found = self.busy(path, '--all', '--where', 'state=^idle$')
            self.assertEqual(sum(found.values()), sum(
                [sample.wall_ns for sample in profile.samples
                 if sample.state == 'idle']))
            self.assertGreater(sum(found.values()), 0)

    def test_where(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'a.pb.gz')
            for seed in range(4):
                profile = a_profile(random.Random(seed), 10)
                profile.save(path)
                for options in [], ['--idle'], ['--all'], ['--all', '--idle']:
                    whole = self.busy(path, *options)
                    api = Counter()
                    for row in profile.call_sites(
                            all='--all' in options,
                            idle='--idle' in options):
                        name = row.function and row.function.name
                        api[name, row.line] += row.total
                    self.assertEqual(sum(whole.values()), sum(api.values()))
                    parts = Counter()
                    for state in {sample.state for sample in profile.samples
                                  } - {'lost'}:
                        if state != 'idle' or '--idle' in options:
                            parts.update(self.busy(
                                path, *options, '--where', f'state=^{state}$'))
                    self.assertEqual(parts, Counter(whole))
