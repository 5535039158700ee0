"""Pages in a real browser, and the profiles that they are to show."""

import _interpreters
import asyncio
import http.server
import json
import os
import random
import tempfile
import textwrap
import threading
import unittest
import urllib.request
from urllib.parse import urlencode

import profile_sampling
from profile_sampling import Profile
from profile_sampling._data.on_clocks import on_clocks
from profile_sampling._data.values import printable

from . import hard_profiles
from .browser import browser_of_module, complaints, wait_for
from .builders import Builder, example
from .random_profiles import random_profile

# Of a table: all its rows, as {key of a cell: its number, or its text}.
READ_TABLE = '''
const table = document.querySelector(`table[data-name="${arguments[0]}"]`);
const more = table.parentElement.querySelector('.more');
while (more !== null && !more.hidden) {
  more.click();
}
return [...table.querySelectorAll('tbody tr')].map((row) => (
  Object.fromEntries([...row.querySelectorAll('td')].map((cell) => [
    cell.dataset.key ?? 'name',
    cell.dataset.value === undefined ? cell.textContent
      : Number(cell.dataset.value)]))));
'''
# Of the call tree, all its rows: (level, name, {key of a cell: its number}).
# Each root is opened with all below it, and closed again: every step makes all
# rows anew that are open.
READ_TREE = '''
const body = document.querySelector('#view tbody');
const found = [];
let more;
while ((more = body.querySelector('tr:not([data-node]) button')) !== null) {
  more.click();
}
const roots = [...body.querySelectorAll('[aria-level="1"]')];
const press = (key) => body.dispatchEvent(new KeyboardEvent('keydown', {key}));
roots[0]?.click();
for (const {dataset: {node}} of roots) {
  press('*');
  let one = body.querySelector(`[data-node="${node}"]`);
  do {
    found.push([
      Number(one.getAttribute('aria-level')),
      one.querySelector('td.text').lastChild.data,
      Object.fromEntries([...one.querySelectorAll('[data-key]')].map(
        ({dataset: {key, value}}) => [key, Number(value)]))]);
    one = one.nextElementSibling;
  } while (one !== null && one.matches('[data-node]:not([aria-level="1"])'));
  press('ArrowLeft');
  press('ArrowDown');
}
return found;
'''
READY = ("return document.querySelector("
         "'#view table, #view .flame, #view .plot, .fault')")

# Take a step to another query.  The page has shown it when the event comes,
# which it has heard of before.
STEP = '''
const [fragment, done] = arguments;
if (location.hash.slice(1) === fragment) {
  done(false);
} else {
  document.getElementById('view').replaceChildren();
  addEventListener('hashchange', () => done(true), {once: true});
  location.hash = fragment;
}
'''


def work(number):
    return sum([value * value for value in range(number)])


async def waits():
    await asyncio.gather(*[asyncio.sleep(0.02) for _ in range(3)])
    work(20_000)


def threaded():
    with profile_sampling.profile(rate_hz=2000) as block:
        threads = [threading.Thread(target=work, args=[200_000])
                   for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return block.profile


def in_tasks():
    with profile_sampling.profile(rate_hz=2000) as block:
        asyncio.run(waits())
    return block.profile


def in_interpreters():
    interpreter = _interpreters.create('isolated')
    try:
        with profile_sampling.profile(rate_hz=2000) as block:
            _interpreters.exec(interpreter, textwrap.dedent("""
                def work_there():
                    sum([value * value for value in range(200_000)])
                work_there()
                """))
            work(200_000)
    finally:
        _interpreters.destroy(interpreter)
    return block.profile


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    """Serves the standard library, as the demo does."""

    def __init__(self, *args):
        super().__init__(*args, directory=os.path.dirname(json.__file__))

    def log_message(self, *args):
        pass


def served():
    def ask(url):
        for _ in range(10):
            with urllib.request.urlopen(url) as answer:
                answer.read()

    with (http.server.ThreadingHTTPServer(('127.0.0.1', 0), QuietHandler)
          as server, profile_sampling.profile(rate_hz=2000) as block):
        url = f'http://127.0.0.1:{server.server_port}/'
        threads = [threading.Thread(target=server.serve_forever, args=[0.01]),
                   *[threading.Thread(target=ask, args=[url + name])
                     for name in ('', 'decoder.py', 'encoder.py')]]
        for thread in threads:
            thread.start()
        for thread in threads[1:]:
            thread.join()
        server.shutdown()
        threads[0].join()
    return block.profile


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
        # What the file held that is open.
        cls.opened = None

    def show(self, profile, **query):
        """Show a profile; return it as a file has it, and as views show it
        that are not of tasks."""
        profile.save(self.path)
        self.look(**query)
        return Profile._from_tables(on_clocks(
            Profile.load(self.path)._tables))

    def look(self, **query):
        """Show the page that is there with another query.

        If it is open already, that is a step from the query before, which is
        five times as fast.
        """
        fragment = urlencode(query, doseq=True)
        if self.content() != self.opened or not self.step(fragment):
            self.open_page(fragment)
        wait_for(self.driver, lambda driver: driver.execute_script(READY))
        self.assertEqual(complaints(self.driver), [])

    def step(self, fragment):
        """Return whether the query was another one before."""
        return self.driver.execute_async_script(STEP, fragment)

    def open_page(self, fragment=''):
        self.driver.get('about:blank')
        self.driver.get(f'file://{self.path}#{fragment}')
        type(self).opened = self.content()

    def content(self):
        with open(self.path, 'rb') as file:
            return file.read()

    def run_js(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def click(self, place, text):
        """Click on a button as a person does: of other steps Chromium
        forgets the oldest."""
        button, = [button for button in self.driver.find_elements(
            'css selector', f'{place} button') if button.text == text]
        button.click()

    def choose(self, name, path):
        """Choose another file on the page, which is not that of its own file
        any more."""
        type(self).opened = None
        self.driver.find_element(
            'css selector', f'input[aria-label="{name}"]').send_keys(path)

    def table(self, name):
        return self.run_js(READ_TABLE, name)

    def text(self, selector):
        return self.run_js('return document.querySelector(arguments[0])'
                           '.textContent', selector)


def profiles():
    """All that a view has to show, by their names."""
    yield 'example', example().profile()
    yield 'recursive', hard_profiles.recursive().profile()
    yield 'hostile', hard_profiles.hostile().profile()
    yield 'idle', idle_threads()
    yield 'threads', threaded()
    yield 'tasks', in_tasks()
    yield 'interpreters', in_interpreters()
    yield 'http server', served()
    yield 'nothing', Builder().profile()
    for seed in range(3):
        yield f'random {seed}', random_profile(random.Random(seed))


def named(function):
    return shown(function.name) or '[no name]'


def shown(text):
    return printable(text)


def placed(function, line):
    if function is None:
        return '[no frames]'
    return shown(function.name + (f':{line}' if line else '')) or '[no name]'
