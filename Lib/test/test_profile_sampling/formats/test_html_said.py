"""What a page says in words: findings, faults of its address, what is rounded
and what is only of the whole."""

import random
import unittest

from profile_sampling import Profile
from profile_sampling._data.by_site import Sites
from profile_sampling._formats import header
from profile_sampling._formats.findings import findings

from ..support.browser import (
    complaints, needs_browser, press, wait_for)
from ..support.builders import Builder, example
from ..support.pages import BrowserTest
from ..support.random_profiles import random_profile

OVERHEAD = {'captures': 100, 'overhead_capture_ns': 40_000,
            'overhead_drain_ns': 10_000}


def busy():
    b = Builder(stats=dict(OVERHEAD))
    b.sample('a.main:1 a.f:2', wall_ns=900_000, cpu_ns=900_000, count=900)
    b.sample('a.main:1 a.g:2', wall_ns=100_000, cpu_ns=100_000, count=100)
    return b.profile()


class OverheadTest(unittest.TestCase):

    def overhead(self, profile):
        tables = profile._tables
        return header.quality(tables, Sites(tables))['overhead_share']

    def test_it_is_a_share_of_the_whole(self):
        profile = busy()
        self.assertEqual(self.overhead(profile), 0.05)
        for part in (profile.focus('a.g'), profile.ignore('a.g'),
                     profile.hide('a.g'), profile.focus('a.g').focus('main')):
            self.assertEqual(self.overhead(part), 0.05)
        self.assertEqual(
            self.overhead(profile.focus('a.g') + profile.ignore('a.g')), 0.05)

    def test_a_part_in_a_file(self):
        import io
        file = io.BytesIO()
        part = busy().focus('a.g')
        part.save(file)
        file.seek(0)
        loaded = Profile.load(file)
        self.assertEqual(loaded, part)
        self.assertEqual(self.overhead(loaded), 0.05)


def starved(mode):
    """A thread that had a CPU for 0.6 of a second."""
    b = Builder(mode=mode)
    b.sample('a.main:1 a.f:2', wall_ns=1_000_000_000, cpu_ns=600_000_000,
             count=950)
    b.sample('a.main:1 a.f:3', wall_ns=500_000_000, count=1, state='waiting')
    return b.profile()


class AchievedTest(unittest.TestCase):

    def achieved(self, profile):
        tables = profile._tables
        return header.quality(tables, Sites(tables))['achieved_hz']

    def test_ticks_come_by_the_wall_clock(self):
        for mode in 'wall', 'cpu':
            self.assertEqual(self.achieved(starved(mode)), 950)

    def test_no_more_than_was_asked_for(self):
        b = Builder()
        b.sample('a.f', wall_ns=2_000_000, cpu_ns=2_000_000, count=3)
        self.assertEqual(self.achieved(b.profile()), 1000)

    def test_a_file_without_wall_time(self):
        b = Builder(mode='cpu', value_types=[('samples', 'count'),
                                             ('cpu', 'nanoseconds')])
        b.sample('a.f', values=[90, 100_000_000])
        self.assertEqual(self.achieved(b.profile()), 900)


@needs_browser
class SaidTest(BrowserTest):

    def test_achieved_rate(self):
        for mode in 'wall', 'cpu':
            self.show(starved(mode))
            for value in 'wall_ns', 'cpu_ns':
                self.look(value=value)
                self.assertIn('950 of 1,000 Hz', self.text('#facts'))

    def faults(self):
        return [fault.text for fault in self.driver.find_elements(
            'css selector', '.fault')]

    def found(self):
        return [finding.text.removesuffix(' show') for finding
                in self.driver.find_elements('css selector', '.finding')]

    def test_overhead_of_parts(self):
        self.show(busy(), focus='a.g')
        self.assertIn('overhead 5.0 %', self.text('#facts'))
        self.show(busy().focus('a.g'))
        self.assertIn('overhead 5.0 %', self.text('#facts'))

    def test_findings(self):
        b = Builder()
        b.sample('app.f:7 C:time.sleep', wall_ns=900, state='waiting')
        b.sample('app.f:8', wall_ns=100, count=1)
        tables = self.show(b.profile())._tables
        self.assertEqual(self.found(), [
            finding.text for finding in findings(tables, Sites(tables))])
        self.assertEqual(len(self.found()), 2)
        self.look(focus='app')
        self.assertEqual(self.found(), [])

    def test_a_finding_leads_to_its_lines(self):
        b = Builder()
        b.sample('a.f:7 C:time.sleep', wall_ns=900, state='waiting')
        b.sample('a.f:8', wall_ns=100)
        self.show(b.profile())
        self.assertEqual(self.found()[0], 'waiting is 90.0 % of the time; '
                         '100.0 % of it at a.f:7 (time.sleep)')
        self.click('[data-rule="waiting"]', 'show')
        self.assertEqual([row['site'] for row in self.table('sites')],
                         ['a.f:7'])

    def test_a_blocked_loop_leads_to_what_tasks_waited_for(self):
        b = Builder()
        task = {'task': ('T', 1), 'state': 'waiting'}
        b.sample('a.g:7 C:time.sleep', wall_ns=300, task_ns=300, **task)
        # A thread that works for the task.
        b.sample('a.f:8 C:time.sleep', wall_ns=900,
                 thread=b.thread('worker'), **task)
        self.show(b.profile())
        self.click('[data-rule="loop_blocked"]', 'show')
        self.assertEqual([row['site'] for row in self.table('sites')],
                         ['a.g:7'])

    def test_faults_of_an_address(self):
        self.show(example().profile())
        for query, words in (
                ({'view': 'pie'}, 'no view "pie"'),
                ({'value': 'joules'}, 'no value "joules"'),
                ({'view': 'by', 'by': 'route'}, 'no label "route"'),
                ({'sort': 'name'}, 'no order "name"'),
                ({'fold': ['C', 'D']}, 'no kind of frames "D"'),
                ({'selected': 'x.y'}, 'no function "x.y"'),
                ({'side': 'base'}, 'no second profile "base"'),
                ({'where': 'state'}, 'where=state in the address'),
                ({'colour': 'red'}, 'has colour in it')):
            self.look(**query)
            fault, = self.faults()
            self.assertIn(words, fault)
            # What there is instead is shown below.
            self.assertTrue(self.driver.find_elements(
                'css selector', '#view table, #view .flame'))

    def test_labels_with_names_of_other_keys(self):
        self.show(Builder().sample(
            'app.f:1', wall_ns=10, task=('Task-1', 1),
            labels={'task': 'import', 'thread': 'north'}).profile())
        for key, value in (('task', 'Task-1'), ('thread', 'MainThread'),
                           ('label:task', 'import'),
                           ('label:thread', 'north')):
            self.look(view='by', by=key)
            self.assertEqual(self.faults(), [])
            self.assertEqual([row['value'] for row in self.table('by')],
                             [value])
            for pattern, rows in (value, 1), ('nix', 0):
                self.look(view='sites', where=f'{key}={pattern}')
                self.assertEqual(len(self.table('sites')), rows)

    def test_states_are_spelt_as_in_tables(self):
        self.show(example().profile())
        for pattern in '^gil_wait$', 'GIL wait', '(?i)^Gil.wait':
            self.look(view='by', by='state', where=f'state={pattern}')
            self.assertEqual(self.faults(), [])
            self.assertEqual([row['value'] for row in self.table('by')],
                             ['gil_wait'])

    def test_patterns_that_commands_refuse(self):
        self.show(example().profile())
        for pattern in r'\Aapp', '(?<n>app)', '[^]':
            self.look(focus=pattern)
            fault, = self.faults()
            self.assertIn('supported in a pattern', fault)

    def test_a_step_takes_the_faults_back(self):
        self.show(example().profile(), colour='red')
        self.click('.tabs', 'Functions')
        self.assertEqual(self.faults(), [])

    def test_good_addresses_have_no_faults(self):
        self.show(random_profile(random.Random(2)))
        for query in ({}, {'view': 'by', 'by': 'route'},
                      {'value': 'wall_minus_cpu_ns'}, {'up': 1, 'flip': 1},
                      {'sort': 'cum', 'fold': ['C', 'stdlib']}):
            self.look(**query)
            self.assertEqual(self.faults(), [])

    def test_what_is_rounded_says_so(self):
        for ns, is_rounded in ((2**53 - 10, False), (2**53 + 1, True)):
            self.show(Builder().sample('a.f:1', wall_ns=ns).profile())
            self.assertEqual('Rounded: ' in self.text('#facts'), is_rounded)

    def test_the_call_tree_is_open_to_what_is_searched_for(self):
        b = Builder()
        for number in range(30):
            b.sample(f'a.main:1 a.f{number}:1 a.g{number}:1 a.h{number}:1',
                     wall_ns=1000 - number)
        self.show(b.profile(), view='tree', search='h29')
        names = [name.text for name in self.driver.find_elements(
            'css selector', '.match')]
        self.assertEqual(names, ['a.h29'])

    def test_search_while_typing(self):
        self.show(example().profile(), view='functions')
        self.driver.find_element('css selector',
                                 'input[type="search"]').click()
        # The box may be a new one after each letter.
        for letter in 'json':
            press(self.driver, letter)
        wait_for(self.driver, lambda driver: driver.execute_script(
            "return location.hash.includes('search=json')"))
        self.assertEqual([row['function'] for row
                          in self.table('functions')], ['json.load'])
        # It has the focus and the cursor's place.
        press(self.driver, '.l')
        wait_for(self.driver, lambda driver: driver.execute_script(
            "return location.hash.includes('search=json.l')"))
        # One step, however many letters.
        self.driver.back()
        self.assertEqual(self.run_js('return location.hash'),
                         '#view=functions')
        self.assertEqual(complaints(self.driver), [])


if __name__ == '__main__':
    unittest.main()
