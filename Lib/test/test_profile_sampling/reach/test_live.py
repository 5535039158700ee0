"""The page of a process that runs, and its profiles by HTTP."""

import contextlib
import gzip
import http.client
import json
import signal
import subprocess
import unittest
from urllib.parse import urlsplit

from profile_sampling import Profile
from test.support import os_helper

from ..support import targets
from ..support.browser import (
    Keys, complaints, needs_browser, wait_for, webdriver)
from ..support.pages import BrowserTest
from .test_top import LIMIT_S, SERVICE, arguments


# The same with requests, one of which does not end.
REQUESTS = SERVICE.replace('ready()', '''
from profile_sampling import request
def hang():
    with request(route="GET /hangs"):
        time.sleep(1000)
def serve():
    while True:
        with request(route="GET /short"):
            time.sleep(0.01)
thread(hang, "hanging"); thread(serve, "serving")
ready()''')


class Page:
    """What a command serves: its address, and what is answered."""

    def __init__(self, client):
        self.client = client
        self.pid, self.address = self._printed()
        self._url = urlsplit(self.address)
        self.token = self._url.query.removeprefix('t=')

    def _printed(self):
        words = self.client.stdout.readline().split()
        return int(words[1]), words[-1]

    def get(self, path, host=None, **headers):
        """Return the status and the body."""
        connection = http.client.HTTPConnection(self._url.netloc,
                                                timeout=LIMIT_S)
        with contextlib.closing(connection):
            connection.request('GET', path, headers=headers | (
                {} if host is None else {'Host': host}))
            response = connection.getresponse()
            return response.status, response.read()

    def mine(self, path):
        return self.get(path, Authorization=f'Bearer {self.token}')


@contextlib.contextmanager
def page_of(pid, *more):
    with subprocess.Popen(arguments('-p', pid, '--page', *more),
                          stdout=subprocess.PIPE, text=True,
                          env=targets._ENVIRONMENT) as client:
        try:
            yield Page(client)
        finally:
            client.send_signal(signal.SIGINT)
            client.wait(LIMIT_S)


class LiveTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.target = cls.enterClassContext(targets.running(SERVICE))
        cls.before = targets.footprint(cls.target.pid)
        cls.page = cls.enterClassContext(page_of(cls.target.pid))

    def loaded(self, path):
        status, body = self.page.mine(path)
        self.assertEqual(status, 200, body)
        with os_helper.temp_cwd():
            with open('p.pb.gz', 'wb') as file:
                file.write(body)
            return Profile.load('p.pb.gz')

    def test_who_may_ask(self):
        for path in '/', '/live', '/debug/pprof/profile?seconds=1', '/x':
            with self.subTest(path):
                self.assertEqual(self.page.get(path)[0], 403)
                self.assertEqual(self.page.get(f'{path}?t=x')[0], 403)
        # A name that somebody else has made mean this machine.
        query = urlsplit(self.page.address).query
        self.assertEqual(self.page.get(f'/?{query}', 'evil.example')[0], 403)
        for host in 'localhost:1', '127.0.0.1', '[::1]:8231':
            self.assertEqual(self.page.get(f'/?{query}', host)[0], 200)
        self.assertNotIn(self.page.token.encode(),
                         self.page.get(f'/?{query}')[1])

    def test_only_the_loopback(self):
        port = urlsplit(self.page.address).port
        with open('/proc/net/tcp') as file:
            at = [line.split()[1] for line in file
                  if line.split()[1].endswith(f':{port:04X}')]
        self.assertEqual(set(at), {f'0100007F:{port:04X}'})

    def test_bad_questions(self):
        for path, status in (
                ('/nothing', 404), ('x://[', 400), ('/live?window=7', 400),
                ('/debug/pprof/heap', 404),
                ('/debug/pprof/profile?seconds=x', 400),
                ('/debug/pprof/profile?seconds=0', 400),
                ('/debug/pprof/profile?seconds=100000', 400)):
            with self.subTest(path):
                self.assertEqual(self.page.mine(path)[0], status)

    def live(self, query):
        """Return the facts of a document."""
        status, body = self.page.mine(f'/live?{query}')
        self.assertEqual(status, 200, body)
        data = gzip.decompress(body)
        return json.loads(data[4:4 + int.from_bytes(data[:4], 'little')])

    def test_changes_and_moments(self):
        facts = self.live('window=10')
        self.assertIsNotNone(facts['timeline'])
        self.assertIn('record_time', facts['columns'])
        self.assertIsNone(self.live('window=300')['timeline'])
        self.assertIsNotNone(self.live('window=300&time=1')['timeline'])
        # Nothing was seen then.
        self.assertIsNone(self.live('window=10&since=1')['live']['changes'])
        for _ in range(5):
            # On a crowded machine nothing may have been seen two seconds ago.
            self.page.mine('/debug/pprof/profile?seconds=5')
            since = int(self.live('window=10')['live']['at']) - 2
            found = self.live(f'window=10&since={since}')['live']['changes']
            if found is not None:
                break
        self.assertEqual(found['moment'], since)
        for states in found['states']:
            self.assertAlmostEqual(sum(states), 3, delta=2)
        for row in found['rows']:
            self.assertAlmostEqual(row['after'] - row['before'],
                                   row['change'], places=6)
            self.assertLess(row['after'], 5)

    def test_as_go_serves_it(self):
        query = f't={self.page.token}'
        status, body = self.page.get(
            f'/debug/pprof/profile?{query}&seconds=2')
        self.assertEqual((status, body[:2]), (200, b'\x1f\x8b'))
        profile = self.loaded('/debug/pprof/profile?seconds=1')
        self.assertIn('spin', {row.function.qualname
                               for row in profile.functions()})
        self.assertGreater(profile.duration_ns, 0.5e9)
        self.assertEqual(self.page.mine('/debug/pprof/')[0], 200)

    def test_all_that_was_seen(self):
        self.page.mine('/debug/pprof/profile?seconds=1')
        profile = self.loaded('/all.pb.gz')
        self.assertEqual(profile.pid, self.target.pid)
        self.assertIn(b'id="profile"', self.page.mine('/all.html')[1])


class EndTest(unittest.TestCase):

    def test_the_process_ends(self):
        with targets.running(SERVICE) as target, page_of(target.pid) as page:
            self.assertEqual(
                page.mine('/debug/pprof/profile?seconds=1')[0], 200)
            target.kill()
            target.wait()
            targets.until(lambda: b'"ended"' in page.mine('/sources')[1]
                          or page.mine('/debug/pprof/profile?seconds=1')[0]
                          == 503)
            self.assertEqual(page.mine('/all.pb.gz')[0], 200)
        self.assertEqual(page.client.returncode, 3)

    def test_nothing_is_left(self):
        with targets.running(SERVICE) as target:
            before = targets.footprint(target.pid)
            with page_of(target.pid) as page:
                page.mine('/debug/pprof/profile?seconds=1')
            self.assertEqual(page.client.returncode, 0)
            targets.until(lambda: targets.footprint(target.pid) == before)

    def test_wrong_words(self):
        with targets.running(SERVICE) as target:
            for more in '--json', '--once':
                self.assertEqual(targets.command(
                    'top', '-p', target.pid, '--page', more).returncode, 2)


@needs_browser
class BrowserPageTest(BrowserTest):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        path = cls.enterClassContext(os_helper.temp_dir()) + '/service.py'
        with open(path, 'w') as file:
            file.write(REQUESTS)
        cls.target = cls.enterClassContext(targets.running(
            f'exec(compile(open({path!r}).read(), {path!r}, "exec"))'))
        cls.page = cls.enterClassContext(page_of(cls.target.pid))

    def open(self):
        self.driver.get('about:blank')
        self.driver.get(self.page.address)
        self.until('spin', '#view')

    def until(self, text, selector):
        wait_for(self.driver, lambda driver: text in (self.run_js(
            'return document.querySelector(arguments[0])?.innerText', selector)
            or ''))

    def tearDown(self):
        self.assertEqual(complaints(self.driver), [])

    def test_the_token_leaves_the_address(self):
        self.open()
        self.assertNotIn('t=', self.driver.current_url)
        self.assertIn('service.py', self.text('#view'))
        self.assertEqual(self.texts('.card h2'), ['Slow', 'Where', 'GIL'])
        self.assertTrue(self.driver.title.endswith(
            f'PID {self.target.pid}, live'))

    def test_it_goes_on_until_it_is_paused(self):
        self.open()
        first = self.text('.pill')
        wait_for(self.driver, lambda _: self.text('.pill') != first)
        self.driver.find_element('css selector', 'body').send_keys(' ')
        self.until('Paused at', '.pill')
        shown = self.text('#view')
        # The history goes on.
        before = self.run_js('return document.querySelector(".ax").innerText')
        wait_for(self.driver, lambda _: self.run_js(
            'return document.querySelector(".ax").innerText') != before)
        self.assertEqual(self.text('#view'), shown)
        self.click('.liverow button', 'Go on')
        self.until('Live', '.pill')

    def test_windows_and_views(self):
        self.open()
        for number, text in enumerate(('Flame graph', 'Timeline', 'Waits',
                                       'Slow requests', 'Changes'), 2):
            self.driver.find_element('css selector', 'body').send_keys(
                str(number))
            self.until(text, '[role=tab][aria-selected=true]')
        self.click('.liverow .seg button', 'since you came')
        wait_for(self.driver, lambda _: self.texts(
            '.liverow [aria-pressed=true]') == ['since you came'])

    def press(self, keys):
        self.driver.find_element('css selector', 'body').send_keys(keys)

    def test_requests(self):
        self.open()
        self.press('5')
        self.until('GET /short', '[aria-label="Routes"]')
        self.assertRegex(self.text('#view .lead'),
                         r'^1 request of GET /hangs is under way, for [\d.]+')
        rows = self.rows('Requests under way')
        self.assertIn('GET /hangs', rows[0])
        self.assertIn('hanging', rows[0][-1])

    def test_a_part_of_the_time(self):
        self.open()
        self.press('3')
        self.until('MainThread', '.lanes')
        # Its time is the clock's.
        self.assertRegex(self.texts('.axis span')[0], r'^\d\d:\d\d:\d\d$')
        # By its place: it is made anew each second.
        x, y = map(int, self.run_js(
            'const its = document.querySelector(".brush")'
            '.getBoundingClientRect();'
            'return [its.x + its.width / 2, its.y + its.height / 2]'))
        chain = webdriver.ActionChains(self.driver)
        chain.w3c_actions.pointer_action.move_to_location(x, y)
        chain.click_and_hold().move_by_offset(200, 0).release().perform()
        self.until('Paused at', '.pill')
        self.until('In these', '#view')
        self.assertRegex(self.text('#chips'), r'time \d\d:\d\d:\d\d')
        self.click('.liverow button', 'Go on')
        self.until('Live', '.pill')
        wait_for(self.driver, lambda _: 'In all' in self.text('#view'))

    def test_what_changed(self):
        self.open()
        wait_for(self.driver, lambda _: self.run_js(
            'return document.querySelector(".spark canvas") !== null'))
        self.press(' ')
        self.until('Paused at', '.pill')
        self.click('.liverow button', 'What changed')
        self.until('threads', '#view .lead')
        self.assertRegex(self.text('#view .lead'), r'\d\d:\d\d:\d\d')
        self.until('Figures are threads', '#view')
        marked = self.text('.ax .m')
        self.run_js('document.querySelector(".hit").focus()')
        webdriver.ActionChains(self.driver).send_keys(
            Keys.ARROW_LEFT).perform()
        wait_for(self.driver, lambda _: self.text('.ax .m') != marked)
        self.click('.liverow button', 'Go on')

    def test_share_and_save(self):
        self.open()
        self.click('.liverow button', 'Share as command')
        self.assertIn(f'top -p {self.target.pid} --once', self.text('dialog'))
        self.click('dialog button', 'Close')
        self.click('.liverow button', 'Save as file')
        self.assertIn('.pb.gz', self.text('dialog'))
        self.click('dialog button', 'Close')

    def test_a_phone(self):
        self.addCleanup(self.driver.set_window_size, 1280, 900)
        self.driver.set_window_size(500, 900)
        self.open()
        self.assertLessEqual(self.run_js(
            'return document.documentElement.scrollWidth'), self.run_js(
                'return innerWidth'))


@needs_browser
class LostPageTest(BrowserTest):

    def test_the_command_ends(self):
        with targets.running(SERVICE) as target:
            with page_of(target.pid) as page:
                self.driver.get(page.address)
                wait_for(self.driver, lambda _: 'spin' in self.text('#view'))
                shown = self.text('#view')
            wait_for(self.driver, lambda _: self.run_js(
                'return document.querySelector(".pill.lost, .pill.gone")'
                ' !== null'))
            self.assertIn('spin', self.text('#view'))
        # That nobody answers is said in the console, too.
        complaints(self.driver)


if __name__ == '__main__':
    unittest.main()
