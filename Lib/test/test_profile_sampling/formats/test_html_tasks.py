"""Tasks in a page, in a real browser: what they say is the profile's."""

import random
import unittest

from profile_sampling import Profile
from profile_sampling._data import by_site
from profile_sampling._data.on_clocks import on_clocks

from ..profiles.test_task_rows import service
from ..support.browser import needs_browser
from ..support.builders import example
from ..support.pages import BrowserTest, named, placed
from ..support.random_profiles import random_profile


def profiles():
    yield 'service', service().profile()
    for seed in range(4):
        yield f'random {seed}', random_profile(random.Random(seed),
                                               tasks=True)


@needs_browser
class TasksTest(BrowserTest):

    def test_classes(self):
        for name, profile in profiles():
            with self.subTest(name):
                self.show(profile, view='tasks')
                self.assertEqual(
                    sorted([(row['task'], row['life'], row['running'],
                             row['loop_wait'], row['awaiting'])
                            for row in self.table('tasks')]),
                    sorted([(row.name or '[unknown]', row.life_ns,
                             row.running_ns, row.loop_wait_ns,
                             row.awaiting_ns)
                            for row in profile.tasks() if row.life_ns]))

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
                           if row.line else '[no frames]',
                           row.task_class or '[no task]')
                    expected[key] = expected.get(key, 0) + row.delay_ns
                found = {}
                for row in self.table('loop_holders'):
                    key = row['holder'], row['task']
                    found[key] = found.get(key, 0) + row['delay']
                self.assertEqual(sum(found.values()),
                                 profile.total('delay_ns'))
                if name == 'service':
                    self.assertEqual(found, expected)

    def test_facts(self):
        self.show(service().profile())
        facts = self.text('#facts')
        self.assertIn('Tasks: running 16.4 %, loop wait 14.5 %, '
                      'awaiting 69.1 %', facts)
        self.assertIn('running 18.4 %, blocked 81.6 %', facts)
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
