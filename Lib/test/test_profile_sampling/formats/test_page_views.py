"""What a page shows, in a real browser: it is what the profile says."""

import json
import os
import random
import shlex
import subprocess
import sys

from profile_sampling import Profile, ProfileDiff
from profile_sampling._data.by_site import sites_of
from profile_sampling._formats import tables_of_waits

from ..support import hard_profiles
from ..support.browser import (
    Keys, complaints, needs_browser, press, wait_for, webdriver)
from ..support.builders import Builder, example
from ..support.pages import BrowserTest, idle_threads
from ..support.random_profiles import random_profile
from ..support.timed import with_records
from .test_count_tables import shop
from .test_page_document import requests

S = 1_000_000_000
VIEWS = 'mine', 'flame', 'time', 'waits', 'slow'


def service(**facts):
    """Ten seconds of a service: the answers of these tests follow from it."""
    b = Builder(duration_ns=10 * S, mode='wall', **facts)
    main = b.thread('MainThread', native_id=1)
    pool = b.thread('pool', native_id=2)
    b.sample('shop.serve:3 shop.orders:62 C:sqlite3.Cursor.execute [waiting]',
             wall_ns=4 * S, count=4000, thread=main, state='waiting',
             labels={'route': 'GET /orders'})
    b.sample('shop.serve:3 shop.orders:62 shop.price:7', wall_ns=2 * S,
             cpu_ns=2 * S, count=2000, thread=main,
             labels={'route': 'GET /orders'})
    b.sample('shop.serve:3 shop.quote:31 [GIL~wait]', wall_ns=S, count=1000,
             thread=main, state='gil_wait', labels={'route': 'POST /quote'},
             holder=(pool, 'shop.resize:21 C:zlib.compress'))
    b.sample('shop.resize:21 C:zlib.compress', wall_ns=S, cpu_ns=S,
             count=1000, thread=pool, state='native')
    b.sample('concurrent.futures.thread._worker:3 [waiting]', wall_ns=9 * S,
             thread=pool, state='waiting')
    return b


def with_moments():
    """The same: orders in the first six seconds, all else after them."""
    profile = service().profile()
    samples = list(profile.samples)
    records = []
    at = 0
    for number, sample in enumerate(samples):
        wall_ns = sample.values[[
            its.name for its in profile.value_types].index('wall_ns')]
        if sample.labels:
            at += wall_ns
        moment = at if sample.labels else 10 * S
        records.append((moment, number, sample.values[0], 0, wall_ns))
    return with_records(profile, records)


def shown(row):
    """(share, time, name of the line) of a row of My code."""
    share, time, _, line, *_ = row
    return share, time, line


LINES = [('50.0 %', '4.00 s', 'shop.py:62orders'),
         ('25.0 %', '2.00 s', 'shop.py:7price'),
         ('12.5 %', '1.00 s', 'shop.py:31quote'),
         ('12.5 %', '1.00 s', 'shop.py:21resize')]


class ViewTest(BrowserTest):

    def lines(self):
        return [shown(row) for row in self.rows('Line of my code')
                if len(row) > 1]

    def states(self):
        return self.texts('#legend button[aria-pressed]')

    def tearDown(self):
        self.assertEqual(complaints(self.driver), [])


@needs_browser
class MyCodeTest(ViewTest):

    def test_lines_and_what_they_were_in(self):
        self.show(service().profile())
        self.assertEqual(self.lines(), LINES)
        self.assertEqual([row[4] for row in self.rows('Line of my code')], [
            'sqlite3.Cursor.execute', 'itself', 'itself', 'zlib.compress'])

    def test_states(self):
        self.show(service().profile())
        self.assertEqual(self.states(), [
            'running\n25.0 %', 'native\n12.5 %', 'waiting\n50.0 %',
            'GIL wait\n12.5 %'])
        label = self.run_js('return document.querySelector('
                            '"#view tbody .bar").getAttribute("aria-label")')
        self.assertEqual(label.replace('\xa0', ' '), 'waiting 100 %')

    def test_idle_is_left_out_until_it_is_asked_for(self):
        self.show(service().profile())
        self.assertIn('idle left out: 9.00 s of 17.0 s', self.text('#legend'))
        self.click('#legend .link', 'Show')
        self.assertEqual(self.lines()[0][:2], ('52.9 %', '9.00 s'))
        self.click('#legend .link', 'Leave out')
        self.assertEqual(self.lines(), LINES)

    def test_all_agrees_with_the_profile(self):
        profiles = [example().profile(), idle_threads(),
                    *[random_profile(random.Random(seed)) for seed in (1, 2)]]
        for number, profile in enumerate(profiles):
            with self.subTest(number):
                self.show(profile, all=1)
                sites = profile.call_sites()
                total = sum([site.total for site in sites])
                shares = [row[0] for row in self.rows('Line of my code')
                          or self.rows('Line') if len(row) > 1]
                self.assertCountEqual(shares, [
                    '100 %' if site.total == total else
                    f'{100 * site.total / total:.1f} %' for site in sites])

    def test_command_without_a_clipboard(self):
        # As where a page comes by plain HTTP.
        self.show(service().profile(), state='waiting')
        self.run_js('Object.defineProperty(navigator, "clipboard", '
                    '{value: undefined})')
        self.click('#chips .cmd', 'Copy as command')
        self.assertIn('--where', self.text('dialog'))

    def test_files_of_one_name(self):
        b = Builder(duration_ns=S)
        for app, seconds in ('shop', 3), ('users', 1):
            view = b.function(f'{app}.views', 'get', f'/srv/{app}/views.py', 1)
            b.sample([(view, 4)], wall_ns=seconds * S)
        self.show(b.profile())
        self.assertEqual(self.lines(), [
            ('75.0 %', '3.00 s', 'shop/views.py:4get'),
            ('25.0 %', '1.00 s', 'users/views.py:4get')])
        # A click chooses that one alone.
        self.run_js('document.querySelectorAll("#view tbody tr")[1].click()')
        self.assertEqual(self.texts('tr[aria-selected=true] .f'),
                         ['users/views.py:4'])
        self.assertIn('took 1.00 s', self.text('#view'))

    def test_idle_is_a_state(self):
        # What the page gives as the command of a view shows it.
        self.show(service().profile(), state='idle')
        self.assertEqual([row[:2] for row in self.lines()],
                         [('100 %', '9.00 s')])

    def test_small_lines_are_one_row(self):
        b = service()
        for line in range(10):
            b.sample(f'shop.small:{line + 100}', wall_ns=S // 1000)
        self.show(b.profile())
        *_, last = self.rows('Line of my code')
        self.assertEqual(last[3], '9 more lines under 0.5 % Show')
        self.click('.rest .link', 'Show')
        self.assertEqual(len(self.lines()), 4 + 10)

    def test_a_flat_profile_shows_its_first_rows(self):
        b = Builder()
        for line in range(300):
            b.sample(f'shop.f:{line + 1}', wall_ns=S // 100)
        self.show(b.profile())
        *rows, last = self.rows('Line of my code')
        self.assertEqual(len(rows), 15)
        self.assertEqual((last[0].replace('\xa0', ' '), last[3]),
                         ('95.0 %', '285 more lines under 0.5 % Show'))
        # A sum of lines is no line's.
        self.assertEqual(len(self.texts('.rest .bar')), 0)

    def test_source(self):
        with open(__file__, encoding='utf-8') as file:
            texts = file.read().split('\n')
        first = texts.index('def service(**facts):') + 1
        b = Builder(duration_ns=S)
        function = b.function(__name__, 'service', __file__, first)
        b.sample([(function, first + 2)], wall_ns=S)
        self.show(b.profile())
        self.assertIn(texts[first + 1].strip(),
                      self.rows('Line of my code')[0][3])
        self.click('#view tbody tr')
        self.assertIn(f'Line {first + 2} took 1.00 s: running 100 %.',
                      self.text('.panel'))
        self.assertEqual(self.texts('.code .hot pre'), [texts[first + 1]])
        self.click('.panel .close')
        self.assertEqual(self.texts('.panel'), [])

    def test_calls(self):
        profile = Profile._from_tables(shop())
        self.show(profile)
        head = 'Calls'
        self.assertIn(head, self.texts('#view thead th'))
        self.assertEqual([row[2] for row in self.rows('Line of my code')][:2],
                         ['4,800', '2,000'])
        self.click('#view thead .link', 'Calls')
        self.assertIn('sort=calls', self.driver.current_url)
        self.click('#view tbody tr')
        self.assertIn('Line 12 made 4,800 calls, 120.0 a call of orders, '
                      'and took', self.text('.panel'))
        self.assertIn('4,800 sql.first, 188 \N{MICRO SIGN}s \N{PLUS-MINUS SIGN} '
                      '3.87 \N{MICRO SIGN}s each', self.text('.panel'))
        self.show(profile, view='slow')
        self.assertIn('Each GET /orders runs 120 queries at shop.orders:12.',
                      self.text('#view'))
        self.assertEqual([row[1:3] for row in self.rows('Queries')],
                         [['4,800', '120.0']])
        # The first row is of no line.
        self.show(Profile._from_tables(shop(queries=40, outside=50)),
                  view='slow')
        self.assertEqual(len(self.rows('Queries')), 2)
        self.assertIn('Each GET /orders runs 1 query at shop.orders:12.',
                      self.texts('#view .lead'))
        self.show(service().profile())
        self.assertNotIn(head, self.texts('#view thead th'))

    def test_cards_lead_to_what_they_say(self):
        self.show(service().profile())
        self.assertEqual(self.texts('.card .t'), [
            'What threads waited for', 'Threads waited for the GIL',
            'The line with the most time'])
        self.click('.card .go', 'See the line')
        self.assertIn('line=shop.py%3A62', self.driver.current_url)
        self.click('.card .go', 'Who held the GIL')
        self.assertEqual(self.run_js(
            'return document.querySelector("#view").dataset.view'), 'waits')

    def test_search(self):
        self.show(service().profile(), q='price')
        self.assertEqual(self.lines(), LINES[1:2])
        self.assertIn('name has “price”, 2.00 s', self.text('#chips'))
        self.look(q='/pri.e|resize/')
        self.assertEqual(self.lines(), [LINES[1], LINES[3]])


@needs_browser
class FilterTest(ViewTest):

    def test_state(self):
        self.show(service().profile())
        self.click('#legend button', 'waiting\n50.0 %')
        self.assertEqual(self.lines(), [('100 %', '4.00 s', LINES[0][2])])
        self.click('.chip button')
        self.assertEqual(self.lines(), LINES)

    def test_label(self):
        self.show(service().profile(), where='route=GET /orders')
        self.assertEqual(self.lines(), [
            ('66.7 %', '4.00 s', LINES[0][2]),
            ('33.3 %', '2.00 s', LINES[1][2])])

    def test_time(self):
        profile = with_moments()
        self.show(profile, time='0-3')
        self.assertEqual(self.lines(), [('100 %', '3.00 s', LINES[0][2])])
        self.look(time='3.5-5')
        part = profile.between(int(3.5e9), 5 * S).filter(
            labels={'route': 'GET /orders'})
        self.assertEqual(sum([float(time[:-2]) for _, time, _
                              in self.lines()]), part.total_wall_ns / S)

    def test_the_command_says_the_same(self):
        self.show(with_moments(), state='waiting', time='1-3',
                  where='route=GET /orders')
        command = self.run_js('return document.querySelector("#chips .cmd")'
                              '.dataset.tip')
        words = shlex.split(command)
        self.assertEqual(words[:4], ['python', '-m', 'profile_sampling',
                                     'report'])
        result = subprocess.run(
            [sys.executable, *words[1:], '--format', 'json'],
            cwd=os.path.dirname(self.path), capture_output=True, check=True)
        table, = [table for table in json.loads(result.stdout)['tables']
                  if table['name'] in ('my_code', 'sites')]
        self.assertEqual([round(row['self_ns'] / S, 2)
                          for row in table['rows']], [2.0])
        self.assertEqual(self.lines(), [('100 %', '2.00 s', LINES[0][2])])

    def test_all_of_an_address_survives(self):
        query = {'view': 'mine', 'state': 'waiting', 'time': '1-3',
                 'where': 'route=GET /orders', 'line': 'shop.py:62',
                 'q': 'orders'}
        self.show(with_moments(), **query)
        before = self.text('body')
        self.assertIn('Line 62 took 2.00 s', before)
        self.driver.refresh()
        self.assertEqual(self.text('body'), before)

    def test_the_address_keeps_what_is_asked_for(self):
        self.show(service().profile())
        self.click('#legend button', 'waiting\n50.0 %')
        self.click('#t-flame')
        self.driver.refresh()
        self.assertEqual(self.run_js(
            'return document.querySelector("#view").dataset.view'), 'flame')
        self.assertIn('state is waiting', self.text('#chips'))
        self.driver.back()
        self.assertEqual(self.lines(), [('100 %', '4.00 s', LINES[0][2])])


@needs_browser
class OtherViewsTest(ViewTest):

    def functions(self):
        self.run_js('document.querySelector("details").open = true')
        self.driver.execute_async_script('setTimeout(arguments[0], 50)')
        return self.rows('Functions by time')

    def test_flame_graph(self):
        profile = service().profile()
        for query in {}, {'flip': 1}, {'fold': 1}, {'colour': 'state'}:
            with self.subTest(query):
                self.show(profile, view='flame', **query)
                self.assertIn('all 8.00 s', self.text('.crumbs'))
                rows = self.functions()
                self.assertEqual(
                    {row[4]: row[0] for row in rows},
                    {'shop.serve': '7.00 s', 'shop.orders': '6.00 s',
                     'sqlite3.Cursor.execute': '4.00 s',
                     'shop.price': '2.00 s', 'shop.quote': '1.00 s',
                     'shop.resize': '1.00 s', 'zlib.compress': '1.00 s'})

    def test_flame_graph_by_keys(self):
        self.show(service().profile(), view='flame')
        self.run_js('document.querySelector("#flame").focus()')
        press(self.driver, Keys.ARROW_DOWN)
        press(self.driver, Keys.ARROW_DOWN)
        press(self.driver, Keys.ENTER)
        self.assertIn('6.00 s, 75.0 % of all', self.text('.crumbs'))
        press(self.driver, Keys.ESCAPE)
        self.assertIn('7.00 s, 87.5 % of all', self.text('.crumbs'))

    def test_calls_of_a_function(self):
        self.show(Profile._from_tables(shop()), view='flame')
        self.run_js('document.querySelector("#flame").focus()')
        press(self.driver, Keys.ARROW_DOWN)
        press(self.driver, Keys.ARROW_DOWN)
        self.assertRegex(self.text('#tip'), r'Calls\s+4,800\s+in all\s+Each\s+'
                         '188 \N{MICRO SIGN}s \N{PLUS-MINUS SIGN} 3.87')
        self.click('#view summary')
        self.assertEqual(
            [row[4:7] for row in wait_for(
                self.driver, lambda _: self.rows('Functions by time'))], [
                ['40', '25.0 ms', 'shop.orders'],
                ['4,800', '188 \N{MICRO SIGN}s \N{PLUS-MINUS SIGN} 3.87 '
                 '\N{MICRO SIGN}s', 'sql.first'],
                ['50', '10.0 ms \N{PLUS-MINUS SIGN} 1.86 ms', 'shop.price']])

    def test_calls_that_changed(self):
        sides = [Profile._from_tables(shop(queries=number))
                 for number in (4800, 4900)]
        self.show(ProfileDiff(*sides))
        self.assertIsNone(self.rows('Calls by change'))
        self.click('.seg button', 'Calls')
        self.assertIn('6,890 \u2192 6,990 (+1.5 %) calls, counted.',
                      self.text('#view .lead'))
        self.assertEqual(self.rows('Calls by change'), [
            ['shop.py:12', '4,800 \u2192 4,900', '+100', 'sql.first'],
            ['3 lines as before', '2,090 \u2192 2,090', '0', ''],
            ['all', '6,890 \u2192 6,990', '+100', '']])
        self.assertIsNone(self.rows('Lines by change'))
        self.click('#view tbody tr')
        self.assertIn('Line 12 made 4,900 calls', self.text('.panel'))

    def test_timeline(self):
        self.show(with_moments(), view='time', lanes='thread')
        self.assertEqual([name.split('\n')[0]
                          for name in self.texts('.lanes .name')],
                         ['MainThread', 'pool'])
        self.run_js('document.querySelector(".brush").focus()')
        press(self.driver, Keys.ARROW_RIGHT)
        self.assertIn('time 0.0–0.5 s', self.text('#chips'))
        press(self.driver, Keys.ARROW_RIGHT)
        self.assertIn('time 0.5–1.0 s', self.text('#chips'))
        press(self.driver, Keys.ESCAPE)
        self.assertEqual(self.text('#chips'), '')

    def test_timeline_is_dragged(self):
        self.show(with_moments(), view='time', lanes='route')
        brush = self.driver.find_element('css selector', '.brush')
        width = brush.size['width']
        webdriver.ActionChains(self.driver).move_to_element_with_offset(
            brush, -width // 4, 0).click_and_hold().move_by_offset(
            width // 4, 0).release().perform()
        self.assertIn('time 2.5–5.0 s', self.text('#chips'))
        self.click('#t-mine')
        self.assertEqual(sum([float(time[:-2]) for _, time, _
                              in self.lines()]), 2.5)

    def test_waits(self):
        self.show(service().profile(), view='waits')
        self.assertEqual(self.rows('Who held the GIL'), [
            ['shop.py:21resizezlib.compress', '', '1.00 s', '100 %', 'shop.py:31']])
        self.assertEqual(self.rows('What was waited for'), [
            ['databasesqlite3.Cursor.execute', '', '4.00 s', '100 %',
             'shop.py:62 4.00 s']])

    def test_waits_of_tasks(self):
        """The figures are those of the report."""
        profile = requests()
        self.show(profile, view='waits')
        tables = profile._tables
        shown, _, *held = tables_of_waits.tasks(
            tables, sites_of(tables), 30)
        for table, label in ((shown, 'What requests awaited'),
                             (*held, 'Who held the event loop')):
            self.assertEqual(
                [float(row[3].split()[0]) for row in self.rows(label)],
                [round(100 * row[1], 1) for row in table.rows[:-1]])
        self.run_js('document.activeElement.blur()')
        self.driver.find_element('css selector', 'body').send_keys('w')
        self.assertIn('waits=threads', self.driver.current_url)

    def test_slow_requests(self):
        profile = requests()
        self.show(profile, view='slow')
        rows = {row[0]: row[1:] for row in self.rows('Routes')}
        for row in profile.tasks_by('route'):
            if row.count:
                self.assertEqual(rows[row.name][0], f'{row.count:,}')
        bars = self.texts('.histo button')
        self.click('.histo button:nth-child(3)')
        self.assertEqual(len(self.texts('.histo button.on')), len(bars) - 2)
        self.click('#view .link', 'Show only / in all views')
        self.assertIn('route /', self.text('#chips'))

    def test_changes(self):
        after = service().sample('shop.new:5', wall_ns=2 * S).profile()
        self.show(ProfileDiff(service().sample(
            'shop.old:9', wall_ns=S, count=1000).profile(), after))
        lead = self.text('.lead')
        self.assertIn('Not sure: 9.00 s → 10.0 s.', lead)
        rows = {row[0]: row[1:3] for row in self.rows('Lines by change')}
        self.assertEqual(rows['shop.py:9oldgone'],
                         ['1.00 s → –', '~ −1.00 s'])
        self.assertEqual(rows['all'], ['9.00 s → 10.00 s', '~ +1.00 s'])
        self.click('#t-mine')
        self.assertEqual(self.lines()[0][1], '4.00 s')
        for view in [*VIEWS, 'diff']:
            self.click(f'#t-{view}')
            self.assertEqual(complaints(self.driver), [])
        self.click('#t-mine')
        self.click('.seg button', 'before')
        self.assertIn('shop.py:9old', [line for *_, line in self.lines()])


@needs_browser
class AnyProfileTest(ViewTest):

    def all_views(self, profile, **query):
        self.show(profile, **query)
        for view in VIEWS:
            with self.subTest(view):
                self.look(view=view, **query)
                yield view

    def test_nothing(self):
        for _ in self.all_views(Builder().profile()):
            self.assertNotEqual(self.text('#view'), '')

    def test_hostile_names_are_texts(self):
        for _ in self.all_views(hard_profiles.hostile().profile()):
            self.assertEqual(self.run_js(
                'return document.querySelectorAll("#view script, #view img")'
                '.length'), 0)

    def test_every_kind_of_value(self):
        profile = example().profile()
        for value in 'wall', 'cpu', 'samples':
            for _ in self.all_views(profile.by_value(value)):
                self.assertNotIn('NaN', self.text('body'))

    def test_another_tools_bytes(self):
        b = Builder(value_types=[('alloc', 'bytes')], mode='alloc')
        b.sample('a.f:3', values=(3 << 20,))
        b.sample('a.g:4', values=(1 << 20,))
        for _ in self.all_views(b.profile()):
            self.assertNotIn('NaN', self.text('body'))
        self.look()
        self.assertEqual([row[:2] for row in self.rows('Line of my code')],
                         [['75.0 %', '3.0 MB'], ['25.0 %', '1.0 MB']])

    def test_the_policy_is_in_force(self):
        self.show(service().profile())
        self.run_js('''const script = document.createElement('script');
                       script.textContent = 'document.title = "seized"';
                       document.head.append(script);''')
        self.assertNotEqual(self.driver.title, 'seized')
        self.assertEqual(len(complaints(self.driver)), 1)

    def test_narrow(self):
        self.addCleanup(self.driver.execute_cdp_cmd,
                        'Emulation.clearDeviceMetricsOverride', {})
        self.driver.execute_cdp_cmd('Emulation.setDeviceMetricsOverride', {
            'width': 400, 'height': 800, 'deviceScaleFactor': 1,
            'mobile': False})
        for _ in self.all_views(with_moments(), line='shop.py:62'):
            self.assertLessEqual(self.run_js(
                'return document.documentElement.scrollWidth'), 400)

    def test_themes(self):
        self.show(service().profile())
        before = self.run_js('return document.documentElement.dataset.theme')
        press(self.driver, 't')
        self.assertNotEqual(self.run_js(
            'return document.documentElement.dataset.theme'), before)
        press(self.driver, 't')

    def test_keys_alone(self):
        self.show(service().profile())
        for number, view in enumerate(VIEWS):
            press(self.driver, str(number + 1))
            self.assertEqual(self.run_js(
                'return document.querySelector("#view").dataset.view'), view)
        press(self.driver, '1')
        press(self.driver, Keys.ARROW_DOWN)
        press(self.driver, Keys.ARROW_DOWN)
        press(self.driver, Keys.ENTER)
        self.assertIn('line=shop.py%3A7', self.driver.current_url)
        press(self.driver, Keys.ESCAPE)
        self.assertNotIn('line=', self.driver.current_url)
        press(self.driver, '?')
        self.assertIn('On a CPU, in Python', self.text('#dialog'))
        press(self.driver, Keys.ESCAPE)
