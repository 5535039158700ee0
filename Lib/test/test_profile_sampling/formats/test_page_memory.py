"""The view Memory of a page: it says what the report of memory says."""

import json
import os
import shlex
import subprocess
import sys
import unittest

from profile_sampling import ProfileDiff
from profile_sampling._data import by_memory, moments, resident
from profile_sampling._data.by_site import sites_of
from profile_sampling._formats import memory, page_of_changes

from ..memory.test_report import growing, service
from ..support.allocating import add_rows
from ..support.browser import complaints, needs_browser, press, webdriver
from ..support.builders import Builder
from ..support.page_documents import document_of
from ..support.pages import BrowserTest

MB = 1 << 20
MEASURES = {'in_use': 'inuse', 'peak': 'peak', 'grew': 'grew',
            'survived': 'survived', 'allocated': 'alloc', 'churn': 'churn'}
LINES = 'Lines by memory'


def spike():
    """An hour: a line keeps 1 MB each 64 s, another has 256 MB from 1,920 s
    to 2,048 s, for one route; a third churns."""
    b = Builder(mode='alloc', python_version='3.13.5', pid=7,
                duration_ns=3600 * 10 ** 9,
                # Where a step of 32 s begins.
                start_time_ns=57_000_000 * 32 * 10 ** 9)
    main, worker = b.thread('main'), b.thread('worker')
    rows, when, readings = [], [], []
    none = 0, 0, 0

    def add(stack, thread, labels, size, kept, peak, *moment):
        rows.append((stack, thread, labels, *[
            (1, its * MB, its << 31) if its else none
            for its in (size, kept, peak)]))
        when.append(moment)
    for at in range(0, 3584, 64):
        add('shop.keep:7 C:json.dumps', main, {'route': '/q',
            'block type': 'str'}, 1, 1, at <= 1920, at, None, 0)
        add('shop.loop:9', main, {'block type': 'list'}, 40, 0, 0, at, None,
            0)
        add('shop.loop:9', main, {'block type': 'list'}, 40, 0, 0, at, at, 2)
        used = at // 64 + 1 + (256 if 1920 <= at < 2048 else 0)
        readings.append((b.facts['start_time_ns'] + at * 10 ** 9, 0, at // 400,
                         (100 + used) * MB, 30 * MB, 20 * MB, 10 * MB,
                         (used + 10) * MB, 40 * MB))
    add('shop.resize:3', worker, {'route': '/i', 'block type': 'bytes'}, 256,
        0, 256, 1920, None, 0)
    add('shop.resize:3', worker, {'route': '/i', 'block type': 'bytes'}, 256,
        0, 0, 1920, 2048, 7)
    add_rows(b, rows, peak_ns=1930 * 10 ** 9, moments=when, readings=readings,
             resident={'rss': 156 * MB, 'files': 30 * MB, 'arenas': 20 * MB,
                       'arenas_used': 10 * MB, 'malloc_used': 66 * MB,
                       'malloc_free': 40 * MB, 'large': 46 * MB,
                       'large_variance': 0, 'has_malloc': 1})
    return b.profile()


class DocumentTest(unittest.TestCase):

    def test_nothing_without_memory(self):
        self.assertIsNone(document_of(Builder().profile()).memory)

    def test_blocks_add_up(self):
        for name, profile in (('spike', spike()), ('growing', growing()),
                              ('service', service().profile()),
                              ('wall', service('wall').profile())):
            document = document_of(profile)
            for column, value in (
                    ('allocated', 'alloc'), ('freed', 'freed'),
                    ('in_use', 'inuse'), ('peak', 'peak')):
                with self.subTest(name, column=column):
                    self.assertEqual(
                        sum(getattr(document, f'block_{column}')),
                        profile.total(f'{value}_space_bytes'))

    def test_moments_are_no_labels(self):
        self.assertEqual(document_of(spike()).label_keys,
                         ['block type', 'route'])

    def test_parts_of_each_moment_add_up(self):
        for profile in spike(), growing():
            its = document_of(profile).memory
            for *parts, whole in filter(None, its['history']):
                self.assertEqual(sum(parts), whole)
            self.assertEqual(len(its['history']), its['n_steps'])
            *parts, whole = [part['bytes'] for part in its['parts']]
            self.assertEqual(sum(parts), whole)

    def test_cards(self):
        cards = document_of(spike()).memory['cards']
        self.assertEqual(
            [(card['title'], card['figure'], card['a']) for card in cards],
            [('It grows, and has not stopped', '55.2 MB', 'hour'),
             ('One route made the peak', '287 MB', ''),
             ('Freed memory is kept by malloc', '40.0 MB', '')][:2])
        self.assertIn('Of what `shop.py:7` allocated nothing was freed',
                      cards[0]['text'])
        self.assertIn('`/i` had 256 MB in use, 256 MB more than at the end. '
                      'Without that moment the highest is 56.0 MB',
                      cards[1]['text'])


@needs_browser
class MemoryViewTest(BrowserTest):

    def tearDown(self):
        self.assertEqual(complaints(self.driver), [])

    def figures(self):
        """{line: (figure, margin)} of the table."""
        found = {}
        for figure, margin, _, line, *_ in self.rows(LINES):
            line, _, _ = line.partition(' under')
            found[line] = figure, margin
        return found

    def test_every_measure_is_that_of_the_report(self):
        profile = spike()
        tables = profile._tables
        its = tables.start_time_ns
        for query, window in (({}, None), ({'time': '640-2048'},
                moments.Window(its + 640 * 10 ** 9, its + 2048 * 10 ** 9,
                               None))):
            self.show(profile, **query)
            for measure, amount in MEASURES.items():
                part = window.part(tables, amount) if window else tables
                expected = by_memory.by_line(
                    part, sites_of(part), None, amount,
                    window and window.begin_ns).whole.amounts[amount]
                with self.subTest(measure=measure, query=query):
                    self.look(measure=measure, **query)
                    figure, margin, *_ = self.rows(LINES)[-1]
                    self.assertEqual(figure.replace('+', ''),
                                     f'{expected[1] / MB:,.1f} MB')
                    self.assertEqual(margin.replace('± ', ''), memory.margin(
                        expected[2], ('MB', MB)))

    def test_lines(self):
        self.show(spike())
        self.assertEqual(self.text('#title'), 'Profile')
        self.assertEqual(self.texts('#tabs button'),
                         ['Memory', 'Flame graph'])
        self.assertEqual(self.rows(LINES)[0], [
            '56.0 MB', '± 10.4', '', 'shop.py:7keep→ json.dumpsstr', '+41.0',
            '100 %'])
        self.assertIn('At the end 56.0 MB were in use. shop.py:7 (json.dumps) '
                      'allocated the most of it', self.text('.lead'))
        self.assertIn('RSS 156 MB at the end', self.text('#legend'))

    def test_a_moment_is_clicked(self):
        self.show(spike())
        brush = self.driver.find_element('css selector', '.brush')
        width = brush.size['width']
        webdriver.ActionChains(self.driver).move_to_element_with_offset(
            brush, round(width * (1990 / 3600 - 0.5)), 0).click().perform()
        self.assertRegex(self.text('#chips'), r'at 03:1[23]')
        self.assertEqual(self.rows(LINES)[0][0], '256.0 MB')
        self.assertIn('Python, in use\n287 MB', self.text('#legend'))
        press(self.driver, webdriver.Keys.ESCAPE)
        self.assertEqual(self.rows(LINES)[0][0], '56.0 MB')

    def test_a_time_is_dragged(self):
        self.show(spike())
        brush = self.driver.find_element('css selector', '.brush')
        width = brush.size['width']
        webdriver.ActionChains(self.driver).move_to_element_with_offset(
            brush, -width // 4, 0).click_and_hold().move_by_offset(
            width // 4, 0).release().perform()
        self.assertRegex(self.text('#chips'), r'time 02:5\d–03:0\d')
        self.assertRegex(self.text('.lead'), 'Of .* that were allocated from '
                         '02:5. to 03:0., 1[45].0 MB are still in use at the '
                         'end: 100 % of that from shop.py:7')

    def test_the_command_says_the_same(self):
        self.show(spike())
        for query in ({'measure': 'survived', 'time': '640-2048'},
                      {'measure': 'in_use', 'at': '60'},
                      {'measure': 'peak', 'where': 'route=/i'}):
            with self.subTest(query):
                self.look(**query)
                words = shlex.split(self.run_js(
                    'return document.querySelector("#chips .cmd")'
                    '.dataset.tip'))
                result = subprocess.run(
                    [sys.executable, *words[1:], '--format', 'json'],
                    cwd=os.path.dirname(self.path), capture_output=True,
                    check=True)
                [table] = json.loads(result.stdout)['tables']
                size = table['rows'][-1][
                    f'{MEASURES[query["measure"]]}_bytes']
                self.assertEqual(self.rows(LINES)[-1][0],
                                 f'{size / MB:.1f} MB')

    def test_parts_of_rss(self):
        profile = spike()
        self.show(profile)
        rows = self.rows('Parts of RSS')
        self.assertEqual(
            [(row[0], row[2]) for row in rows],
            [(f'{part.bytes / MB:.1f} MB', part.name)
             for part in resident.parts(profile._tables) if part.bytes])

    def test_source_panel(self):
        self.show(spike(), line='shop.py:7')
        text = self.text('.panel')
        self.assertIn('Line 7 has 56.0 ± 10.4 MB in use: str 100 %. Of 56.0 MB '
                      'that it allocated, 100 % is still in use.', text)
        self.assertIn('Lifetimes of its blocks', text)

    def test_keys_types_and_routes(self):
        self.show(spike())
        press(self.driver, 'm')
        self.assertIn('measure=peak', self.driver.current_url)
        self.assertEqual(self.rows('By type')[0][0], '256.0 MB')
        self.run_js('''document.querySelector(
            'table[aria-label="By route"] .link').click()''')
        self.assertEqual(self.figures()['all'][0], '256.0 MB')
        self.assertIn('route /i', self.text('#chips'))

    def test_beside_time(self):
        b = service(mode='wall')
        b.sample('shop.main:3 shop.quote:107', count=400, wall_ns=500_000_000)
        self.show(b.profile())
        self.assertIn('Memory', self.texts('#tabs button'))
        self.assertEqual(self.rows('Line of my code')[0][1], '500.0 ms')
        self.click('#t-memory')
        self.assertEqual(self.rows(LINES)[0][0], '119.5 MB')
        self.click('#t-flame')
        self.click('.six button', 'In use')
        self.assertRegex(self.text('.crumbs'), 'In use 26[89] MB')
        self.click('.six button', 'Time')
        self.assertIn('all 500 ms', self.text('.crumbs'))

    def test_changes_of_one_process(self):
        before, after = growing(pid=1, seconds=1800), growing(pid=1)
        difference = ProfileDiff([before], [after], value='inuse_space')
        with open(self.path, 'wb') as file:
            file.write(page_of_changes.encode(
                [before._tables], [after._tables], difference._difference))
        self.look()
        self.assertIn('It grew by 60.0 ± 10.7 MB, 120.0 MB an hour: 100.0 % '
                      'at shop.quote:107', self.text('.lead'))
        self.assertEqual(self.rows('Lines by change')[0], [
            'shop.py:107quote', '60.0 MB → 120.0 MB', '+60.0 MB', '± 10.7 MB',
            '', '100 %', 'json.dumps'])
        self.assertIn('Python, in use\n+60.0 MB', self.text('.key2'))
        self.assertIn('Growth alone is no leak', self.text('.note'))

    def test_one_moment(self):
        b = Builder(mode='alloc', duration_ns=10 ** 9)
        b.sample('a.f:1', values=())
        add_rows(b, [('a.f:1', b.thread('main'), {}, *[(1, MB * 9, 0)] * 3)])
        self.show(b.profile())
        self.assertEqual(self.figures()['all'], ('9.0 MB', 'exact'))

    def test_narrow_and_dark(self):
        self.addCleanup(self.driver.execute_cdp_cmd,
                        'Emulation.clearDeviceMetricsOverride', {})
        self.driver.execute_cdp_cmd('Emulation.setDeviceMetricsOverride', {
            'width': 400, 'height': 800, 'deviceScaleFactor': 1,
            'mobile': False})
        self.show(spike(), line='shop.py:7')
        for measure in MEASURES:
            self.look(line='shop.py:7', measure=measure)
            self.assertLessEqual(self.run_js(
                'return document.documentElement.scrollWidth'), 400)
        press(self.driver, 't')
        self.assertNotIn('NaN', self.text('body'))
        press(self.driver, 't')
