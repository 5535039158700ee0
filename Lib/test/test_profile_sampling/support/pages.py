"""Pages in a real browser, as a person sees them."""

import os
import tempfile
import unittest
from urllib.parse import urlencode

from .browser import browser_of_module, complaints, wait_for
from .builders import Builder

# The texts of the cells of a table's rows; None where there is no such table.
ROWS = '''
const table = document.querySelector(
  `#view table[aria-label="${arguments[0]}"]`);
return table && [...table.tBodies[0].rows].map(
  (row) => [...row.cells].map((cell) => cell.innerText.replaceAll('\\xa0', ' ')
    .trim().replace(/\\s+/g, ' ')));
'''
READY = """return document.querySelector('#view > *') !== null
    && !document.querySelector('#view').textContent.includes('JavaScript')"""


def idle_threads():
    """Some that wait for work, and some that look like it."""
    b = Builder(duration_ns=1000)
    waiting = b.thread('pool', native_id=7)
    main = b.thread('MainThread', native_id=8)
    b.sample('concurrent.futures.thread._worker:3 [waiting]', wall_ns=990,
             thread=waiting, state='waiting')
    b.sample('a.main:3 a.f:2', wall_ns=500, thread=main)
    b.sample('a.main:3', state='custom', wall_ns=0, count=7, thread=main)
    worker = b.function('multiprocessing.pool', 'worker')
    for call in 'queue.get:7', 'C:time.sleep':
        b.sample([(worker, 3), call, '[waiting]'], wall_ns=100, thread=main,
                 state='waiting')
    for number, (stack, cpu_ns) in enumerate((
            ('a.read:4 C:_socket.socket.recv', 9), ('a.read:5', 0),
            ('a.pack:4', 900), ('a.query:4 C:sqlite3.Cursor.execute', 0),
            ('threading.Thread.run:9 C:_queue.SimpleQueue.get', 0),
            ('threading.Thread.run:9 C:_hashlib.pbkdf2_hmac', 900))):
        b.sample(f'{stack} [waiting]', wall_ns=990, cpu_ns=cpu_ns,
                 thread=b.thread(f'other-{number}'), state='waiting')
    return b.profile()


class BrowserTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        directory = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.path = os.path.join(directory, 'p.html')
        cls.driver = browser_of_module()

    def show(self, profile, **query):
        """Show a profile, or what has save() like one; the query is as in
        the address of the page."""
        profile.save(self.path, 'html')
        self.look(**query)

    def look(self, **query):
        """Show the page that is there with another query."""
        self.driver.get('about:blank')
        self.driver.get(f'file://{self.path}#{urlencode(query)}')
        wait_for(self.driver, lambda driver: driver.execute_script(READY))
        self.assertEqual(complaints(self.driver), [])

    def run_js(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def rows(self, label):
        return self.run_js(ROWS, label)

    def text(self, selector):
        return self.run_js(
            'return document.querySelector(arguments[0]).innerText'
            '.replaceAll("\\xa0", " ")', selector)

    def texts(self, selector):
        return self.run_js(
            'return [...document.querySelectorAll(arguments[0])].map('
            '(one) => one.innerText.replaceAll("\\xa0", " "))', selector)

    def click(self, selector, text=None):
        """Click on what has that text, as a person does."""
        found = [one for one in self.driver.find_elements(
            'css selector', selector)
            if text is None or one.text.replace('\xa0', ' ') == text]
        self.assertTrue(found, (selector, text))
        found[0].click()
