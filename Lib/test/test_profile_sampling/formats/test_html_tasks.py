"""Tasks in a page, in a real browser: what they say is the profile's."""

import random
import unittest

from profile_sampling import Profile
from profile_sampling._data import by_site, histogram
from profile_sampling._data.lives import Latency
from profile_sampling._data.on_clocks import on_clocks
from profile_sampling._formats import embedded
from profile_sampling._formats import html as _html
from profile_sampling._formats.pprof import lives as lives_file

from ..profiles.test_task_rows import MS, beside_a_hog, service
from ..support.browser import needs_browser
from ..support.builders import example, message_with
from ..support.pages import BrowserTest, named, placed
from ..support.random_profiles import random_profile
from ..support.timed import timed

# Choose the row of a table that is of a task.
CHOOSE = '''
const table = document.querySelector(`table[data-name="${arguments[0]}"]`);
[...table.querySelectorAll('tbody tr')].find((row) => (
  row.querySelector('[data-key="task"]').textContent === arguments[1])
).click();
'''


def latency(value, roots, times, key='route'):
    """How long requests took, of which each is known."""
    counts = [0] * histogram.most_buckets(histogram.BITS)
    for ns in times:
        counts[histogram.bucket(ns, histogram.BITS)] += 1
    return Latency(key, value, tuple(roots), len(times), sum(times),
                   max(times), histogram.Histogram(histogram.BITS, counts), ())


def requests(*, most=60):
    """Two routes, a background task of one, and what is in no request."""
    rng = random.Random(5)
    b = service()
    mailer = b.task_class('app.mail:50', lives=[4 * MS], steps=3)
    b.sample('app.main:1 app.mail:51 smtp.send:3 [awaiting]',
             task_ns=11 * MS, state='awaiting', task_class=mailer,
             labels={'route': '/'})
    b.sample('app.main:1 app.handle:12', wall_ns=MS, task_ns=MS,
             task_class=1, labels={'route': '/late', 'answered': 'yes'})
    raw = b.raw()
    raw['latencies'] = (
        latency('/', ['app.handle'], [rng.randrange(MS, 90 * MS)
                                      for _ in range(most)]),
        latency('/late', ['app.handle'], [7 * MS + 1]),
        # No sample has met one.
        latency('/never', [], [3]), latency('x', [], [5], key='job'))
    return Profile._from_raw(raw)


def profiles():
    yield 'service', service().profile()
    yield 'hog', beside_a_hog().profile()
    yield 'requests', requests()
    for seed in range(4):
        yield f'random {seed}', random_profile(random.Random(seed),
                                               tasks=True)


@needs_browser
class TasksTest(BrowserTest):

    def rows(self, table, *keys):
        """Cells without a number are None."""
        return [tuple([None if row.get(key) in ('', '-') else row.get(key)
                       for key in keys]) for row in self.table(table)]

    def test_classes(self):
        for name, profile in profiles():
            with self.subTest(name):
                self.show(profile, view='tasks')
                self.assertEqual(
                    self.rows('tasks', 'task', 'life', 'running', 'loop_wait',
                              'awaiting', 'finished', 'mean', 'p50', 'p99',
                              'longest', 'longest_step'),
                    [(row.name or '[unknown]', row.life_ns, row.running_ns,
                      row.loop_wait_ns, row.awaiting_ns, row.finished,
                      row.mean_ns, row.p50_ns, row.p99_ns, row.longest_ns,
                      row.longest_step_ns) for row in profile.tasks()])

    def test_by_labels(self):
        for name, profile in profiles():
            for key in 'route', 'task_name':
                if key not in profile.label_keys:
                    continue
                rows = profile.tasks_by(key)
                if any(row.count for row in rows):
                    rows = sorted([row for row in rows if row.count],
                                  key=lambda row: -row.mean_ns * row.count)
                with self.subTest(name, key=key):
                    self.show(profile, view='tasks',
                              by=key.removesuffix('_name'))
                    self.assertEqual(
                        self.rows('tasks_by', 'value', 'mean', 'p50', 'p99',
                                  'longest', 'count', 'running', 'loop_wait',
                                  'awaiting'),
                        [(row.value or '[without]', row.mean_ns, row.p50_ns,
                          row.p99_ns, row.longest_ns, row.count,
                          *[round(ns / (row.count or 1))
                            for ns in (row.running_ns, row.loop_wait_ns,
                                       row.awaiting_ns)]) for row in rows])

    def test_requests_come_first(self):
        self.show(requests(), view='tasks')
        headings = self.run_js(
            'return [...document.querySelectorAll("#view h2")].map('
            '(one) => one.firstChild.data)')
        self.assertEqual(headings, [
            'Requests by ', 'Tasks by how long they lived',
            'Held the loop while others waited'])
        rows = {row['value']: row for row in self.table('tasks_by')}
        self.assertEqual(set(rows), {'/', '/late', '/never'})
        # What a request started, or did when it was answered.
        self.assertEqual((rows['/']['spawned'], rows['/late']['spawned']),
                         (round(11 * MS / 60), MS))
        self.assertIn('Tasks in no request: 8.0ms', self.text('#view'))
        self.look(view='tasks', by='job')
        self.assertEqual([row['value'] for row in self.table('tasks_by')],
                         ['x'])

    def test_histograms(self):
        for name, profile in profiles():
            self.show(profile, view='tasks')
            classes = {row.function.name: row for row
                       in reversed(profile._tables.task_classes)}
            for row in self.table('tasks'):
                known = classes.get(row['task'])
                if known is None or not known.lives.count:
                    continue
                with self.subTest(name, task=row['task']):
                    self.run_js(CHOOSE, 'tasks', row['task'])
                    self.check_histogram(known.lives)
                    text = self.text('.detail[data-name="tasks"] .note')
                    self.assertIn(f'{row["task"]}: {known.finished:,} ended, ',
                                  text)
                    if known.cancelled:
                        self.assertIn(f'{known.cancelled:,} of them by being '
                                      'cancelled', text)
                    self.assertIn(f'{known.steps:,} step', text)

    def check_histogram(self, lives):
        rows = self.rows('times of task_class', 'first', 'behind', 'count')
        self.assertLessEqual(len(rows), 24)
        self.assertEqual([row[0] for row in rows[1:]],
                         [row[1] for row in rows[:-1]])
        expected = [0] * len(rows)
        for number, count in enumerate(lives.counts):
            if count:
                first, behind = histogram.bounds(number, lives.bits)
                place, = [place for place, row in enumerate(rows)
                          if row[0] <= first and behind <= row[1]]
                expected[place] += count
        self.assertEqual([row[2] for row in rows], expected)
        self.assertEqual(len(self.run_js('return [...document.querySelectorAll'
                                         '(".detail[data-name=tasks] .none"'
                                         ')]')),
                         expected.count(0))

    def test_of_a_part(self):
        profile = requests()
        self.show(profile, view='tasks', by='route',
                  where='task_class=^app.handle$')
        part = profile.filter(labels={'task_class': 'app.handle'})
        self.assertEqual(self.rows('tasks', 'task', 'life', 'finished'),
                         [(row.name, row.life_ns, None)
                          for row in part.tasks()])
        self.assertEqual(
            self.rows('tasks_by', 'value', 'life', 'count'),
            [(row.value or '[without]', row.life_ns, None)
             for row in part.tasks_by('route')])
        self.assertIn('not of a part', self.text('#view'))
        self.assertNotIn('ended', self.text('#facts'))
        # It stays one in a file.
        self.show(part, view='tasks')
        self.assertEqual(self.rows('tasks', 'finished'), [(None,)])

    def test_counters_of_other_samples(self):
        profile = requests()
        comment, = lives_file.comments(profile._tables)
        fields = comment.split(' ')
        fields[3] = str(int(fields[3]) + 1)
        page = _html.encode(profile._tables, with_source=False)
        data = message_with(profile._tables, [' '.join(fields)])
        block = embedded.encoded(data)
        begin = page.index(embedded.BEGIN) + len(embedded.BEGIN)
        with open(self.path, 'wb') as file:
            file.write(page[:begin] + block
                       + page[page.index(b'<', begin):])
        self.look(view='tasks')
        self.assertEqual(self.rows('tasks', 'finished'), [(None,)] * 4)
        self.assertEqual({count for count, in self.rows('tasks_by', 'count')},
                         {None})

    def test_a_range_of_time(self):
        profile = timed(service().profile(), random.Random(1))
        self.show(profile, view='functions', time='0,0.0001')
        self.click('.tabs', 'Tasks')
        self.assertEqual(self.text('#view'), 'The lives of tasks are in no '
                         'time line: All time')
        self.click('#view', 'All time')
        self.assertEqual(len(self.table('tasks')), 3)

    def test_lanes(self):
        profile = timed(requests(), random.Random(1))
        for key in 'task', 'task_class', 'route':
            with self.subTest(key):
                self.show(profile, view='time', lanes=key)
                choice = self.driver.find_element(
                    'css selector', 'select[aria-label="lanes of"]')
                self.assertEqual(choice.get_attribute('value'), key)
                self.assertIn('Stacks of ', self.text('#view'))
                # What is in no task has the last lane, not the first.
                self.assertNotIn('Stacks of [without]', self.text('#view'))

    def test_flame_graph(self):
        for kind in 'task', 'delay':
            with self.subTest(kind):
                self.show(requests(), value=f'{kind}_ns')
                profile = Profile.load(self.path)
                number = [one.kind for one
                          in profile.value_types].index(kind)
                expected = {(node.cum_values[number], node.self_values[number])
                            for _, node in profile.call_tree().walk()}
                flame = self.driver.find_element('css selector', '.flame')
                seen = set()
                for key in '\ue015\ue015\ue014\ue015\ue014':
                    flame.send_keys(key)
                    seen.add(tuple(self.run_js(
                        "const said = document.querySelector('.said');"
                        'return [Number(said.dataset.cum),'
                        ' Number(said.dataset.self)]')))
                self.assertGreater(len(seen), 2)
                self.assertLessEqual(seen, expected)

    def test_awaited(self):
        self.show(service().profile(), view='tasks')
        row = self.table('tasks')[0]
        self.assertEqual(row['awaited'],
                         'db.fetch 30.0ms, lock.acquire 5.0ms')

    def test_holders(self):
        for name, profile in profiles():
            with self.subTest(name):
                self.show(profile, view='tasks')
                expected = {}
                for row in profile.loop_holders():
                    key = (placed(row.function, row.line)
                           if row.line or row.is_gil_wait else '[no frames]',
                           row.task_class or (
                               '[other thread]' if row.is_gil_wait
                               else '[no task]'), row.is_gil_wait)
                    expected[key] = expected.get(key, 0) + row.delay_ns
                found = {}
                for row in self.table('loop_holders'):
                    key = (row['holder'], row['task'],
                           row.get('held') == 'GIL')
                    found[key] = found.get(key, 0) + row['delay']
                self.assertEqual(sum(found.values()),
                                 profile.total('delay_ns'))
                if name in ('service', 'hog'):
                    self.assertEqual(found, expected)

    def test_facts(self):
        self.show(service().profile())
        facts = self.text('#facts')
        self.assertIn('Tasks: 4 ended, running 16.4 %, loop wait 14.5 %, '
                      'awaiting 69.1 %', facts)
        self.assertIn('running 18.4 %, waiting 81.6 %', facts)
        self.assertNotIn('delay', facts)
        self.show(example().profile())
        self.assertNotIn('Tasks', self.text('#facts'))
        self.assertNotIn('Tasks', self.text('.tabs'))

    def test_other_views_are_on_clocks(self):
        for name, profile in profiles():
            for view in 'functions', 'sites', 'by':
                with self.subTest(name, view=view):
                    profile = self.show(profile, view=view)
                    text = self.text('#view')
                    self.assertNotIn('awaiting', text)
                    self.assertNotIn('loop wait', text)
            buttons = self.text('.filters')
            self.assertNotIn('awaiting', buttons)

    def test_value_of_tasks(self):
        for name, profile in profiles():
            with self.subTest(name):
                self.show(profile, view='functions', value='task_ns')
                own = on_clocks(profile.about('task')._tables)
                self.assertEqual(
                    sorted([(row['self'], row['cum'], row['function'])
                            for row in self.table('functions')]),
                    sorted([(row.self_task_ns, row.cum_task_ns,
                             named(row.function)) for row
                            in Profile._from_tables(own).functions()]))
                self.look(view='sites', value='task_ns')
                sites = by_site.Sites(own)
                self.assertEqual(
                    sorted([(row['self'], row['site'])
                            for row in self.table('sites')]),
                    sorted([(row.sums.total, placed(row.function, row.line))
                            for row in sites.rows]))
        self.assertIn('awaiting', self.text('.filters'))

    def test_finding_leads_there(self):
        self.show(service().profile())
        self.click('.finding[data-rule="loop_wait"]', 'show')
        self.assertEqual(self.table('tasks')[0]['task'], 'app.handle')


if __name__ == '__main__':
    unittest.main()
