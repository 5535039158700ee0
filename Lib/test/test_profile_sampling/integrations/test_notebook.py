"""The magic %sampleprof in a real kernel, and its output in a browser."""

import html
import importlib.util
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest

from profile_sampling import Profile
from profile_sampling._formats import notebook
from test.support import SHORT_TIMEOUT

from ..support import hard_profiles
from ..support.browser import complaints, needs_browser, wait_for
from ..support.builders import Builder, example
from ..support.imports import modules_loaded_by
from ..support.pages import BrowserTest

# Runs cells in a kernel and writes what came of each: status and outputs.
DRIVER = '''
import json, sys
from jupyter_client.manager import start_new_kernel
manager, client = start_new_kernel(kernel_name='python3')
results = []
try:
    for cell in json.load(sys.stdin):
        outputs = []
        reply = client.execute_interactive(
            cell, timeout=100, output_hook=lambda message: outputs.append(
                [message['msg_type'], message['content']]))
        results.append([reply['content']['status'], outputs])
finally:
    client.stop_channels()
    manager.shutdown_kernel()
json.dump(results, sys.stdout)
'''
CELLS = {
    'load': '%load_ext profile_sampling',
    'function': 'import time\n'
                'def f(seconds):\n'
                '    end = time.monotonic() + seconds\n'
                '    while time.monotonic() < end:\n'
                '        pass\n'
                '    return 7\n',
    # A thread that is there before: it is none of the cell's.
    'thread': 'import queue, threading\n'
              'threading.Thread(target=queue.Queue().get, name="waits",\n'
              '                 daemon=True).start()',
    'cell': '%%sampleprof -r 2000 --mode wall\n'
            'f(0.2)\n'
            'f(0.1)\n',
    'facts': 'import json\n'
             'print(json.dumps({\n'
             '    "rate": _sampleprof.rate_hz,\n'
             '    "roots": sorted({s.stack[-1].function.name\n'
             '                     for s in _sampleprof.samples if s.stack}),\n'
             '    "files": sorted({row.function.filename\n'
             '                     for row in _sampleprof.functions()}),\n'
             '    "names": [row.function.name\n'
             '              for row in _sampleprof.functions()],\n'
             # Others may be listed: those that held the GIL.
             '    "threads": sorted({s.thread.name\n'
             '                       for s in _sampleprof.samples})}))',
    'line': '%sampleprof --rate=5000 -o "a cell.html" f(0.05); print("b  c")',
    'timeline': '%%sampleprof --timeline\nf(0.1)',
    'moments': 'line = _sampleprof.timeline\n'
               'print(len(line), line.is_stale,\n'
               '      _sampleprof.between(0, 10**9).total_wall_ns)',
    'error': '%%sampleprof\nf(0.1)\n1 / 0',
    'after_error': 'print(_sampleprof.total_count)',
    'all': '%sampleprof --all f(0.1)',
    'all_threads': 'print(len(_sampleprof.threads))',
    'nothing': '%sampleprof -r 100',
    'bad_rate': '%sampleprof -r 0 f(0)',
    'bad_option': '%sampleprof --colour=red f(0)',
    'bad_output': '%sampleprof -o a.xyz f(0)',
    'bad_timeline': '%sampleprof --timeline -o a.svg f(0)',
    'await': '%%sampleprof\nimport asyncio\nawait asyncio.sleep(0)',
    'elsewhere': '%sampleprof -o elsewhere.pb.gz import os; os.chdir("/")',
    'begin': 'import profile_sampling; profile_sampling.start(rate_hz=10)',
    'another_session': '%%sampleprof -r 20\nf(0)',
    'stop': 'profile_sampling.stop() and None',
    'unload': '%unload_ext profile_sampling',
    'gone': '%sampleprof f(0)',
}

needs_kernel = unittest.skipIf(importlib.util.find_spec('ipykernel') is None,
                               'needs ipykernel')


@needs_kernel
class KernelTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.directory = cls.enterClassContext(tempfile.TemporaryDirectory())
        result = subprocess.run(
            [sys.executable, '-c', DRIVER], input=json.dumps([*CELLS.values()]),
            stdout=subprocess.PIPE, text=True, timeout=SHORT_TIMEOUT * 4,
            cwd=cls.directory, check=True, env=os.environ | {
                name: cls.directory for name in (
                    'HOME', 'IPYTHONDIR', 'JUPYTER_RUNTIME_DIR',
                    'JUPYTER_DATA_DIR', 'JUPYTER_CONFIG_DIR')})
        cls.results = dict(zip(CELLS, json.loads(result.stdout)))

    def printed(self, name):
        return ''.join([content['text'] for kind, content
                        in self.results[name][1] if kind == 'stream'])

    def value(self, name):
        """The last value that a cell shows, by its types."""
        return [content['data'] for kind, content in self.results[name][1]
                if kind == 'execute_result'][-1]

    def test_all_ends_well(self):
        bad = {'error', 'gone', 'another_session'}
        self.assertEqual({name for name, (status, _) in self.results.items()
                          if status != 'ok' and not self.printed(name)
                          .startswith('UsageError')} - bad, set())

    def test_the_value_is_the_profile(self):
        data = self.value('cell')
        self.assertIn('Wall profile of Python', data['text/plain'])
        self.assertIn('<iframe', data['text/html'])
        # As without the magic, and nothing for the other expression.
        values = [content['data']['text/plain'] for kind, content
                  in self.results['cell'][1] if kind == 'execute_result']
        self.assertEqual(values[:-1], ['7'])

    def test_cells_have_names_and_the_notebook_is_left_out(self):
        facts = json.loads(self.printed('facts'))
        self.assertEqual(facts['rate'], 2000)
        self.assertIn('__main__.<In[4]>', facts['names'])
        self.assertIn('__main__.f', facts['names'])
        self.assertLess({'In[2]', 'In[4]'}, set(facts['files']))
        self.assertIn('__main__.<In[4]>', facts['roots'])
        # What shows the value of an expression is called by the cell.
        self.assertFalse([name for name in facts['roots']
                          if name.startswith(('ipykernel', 'runpy'))])
        self.assertEqual(facts['threads'], ['MainThread'])

    def test_the_source_of_cells_is_in_the_page(self):
        data = self.value('cell')['text/html']
        self.assertIn('id=&quot;sources&quot;', data)
        path = os.path.join(self.directory, 'a cell.html')
        profile = Profile.load(path)
        self.assertEqual(profile.rate_hz, 5000)
        self.assertEqual(profile.meta['command'], 'In[6]')

    def test_a_statement(self):
        self.assertEqual(self.printed('line'), 'b  c\n')

    def test_a_time_line(self):
        records, is_stale, wall_ns = self.printed('moments').split()
        self.assertGreater(int(records), 0)
        self.assertEqual(is_stale, 'False')
        # The cell runs for 0.1 s of the clock's time.
        self.assertGreater(int(wall_ns), 90_000_000)

    def test_what_a_cell_raises(self):
        status, outputs = self.results['error']
        self.assertEqual(status, 'error')
        self.assertEqual([content['ename'] for kind, content in outputs
                          if kind == 'error'], ['ZeroDivisionError'])
        self.assertGreater(int(self.printed('after_error')), 10)

    def test_a_cell_that_changes_the_directory(self):
        Profile.load(os.path.join(self.directory, 'elsewhere.pb.gz'))

    def test_a_block_that_cannot_begin(self):
        _, outputs = self.results['another_session']
        self.assertEqual([content['ename'] for kind, content in outputs
                          if kind == 'error'], ['RuntimeError'])

    def test_all_threads(self):
        self.assertGreater(int(self.printed('all_threads')), 3)

    def test_what_is_wrong(self):
        for name, words in (('nothing', 'no statement to profile'),
                            ('bad_rate', 'a whole number from 1 to 10000'),
                            ('bad_option', '--colour'),
                            ('bad_output', 'cannot tell the format'),
                            ('bad_timeline', 'svg file has no time line'),
                            ('await', 'await is only profiled in functions')):
            self.assertIn('UsageError: ', self.printed(name))
            self.assertIn(words, self.printed(name))

    def test_it_goes_again(self):
        self.assertIn('not found', self.printed('gone'))


class OutputTest(unittest.TestCase):

    def test_nothing_of_ipython_is_imported(self):
        loaded = modules_loaded_by('import profile_sampling._notebook')
        self.assertFalse([name for name in loaded
                          if name.startswith('IPython')])

    def test_large_profiles_are_text(self):
        b = Builder()
        rng = random.Random(7)
        for number in range(10_000):
            # What is not much smaller when it is compressed.
            b.sample([b.function('m', f'f{number}',
                                 f'/{rng.randbytes(100).hex()}.py')])
        output = b.profile()._repr_html_()
        self.assertLess(len(output), 20_000)
        self.assertIn('too large for a notebook', output)
        self.assertIn("save('profile.html')", output)
        self.assertIn('<pre>Wall profile', output)

    def test_names_cannot_leave_the_frame(self):
        output = hard_profiles.hostile().profile()._repr_html_()
        self.assertEqual(output.count('<iframe '), 1)
        self.assertEqual(output.count('<script'), 0)
        self.assertIn('sandbox="allow-scripts"', output)

    def test_differences(self):
        profile = example().profile()
        output = profile.diff(profile.focus('json'))._repr_html_()
        self.assertEqual(output.count('<iframe '), 1)
        self.assertIn('id=&quot;base&quot;', output)
        self.assertIn('line of my code, by wall time', output)

    def test_outputs_are_reproducible(self):
        self.assertEqual(example().profile()._repr_html_(),
                         example().profile()._repr_html_())


@needs_browser
class FrameTest(BrowserTest):

    def open(self, output, depth=1):
        with open(self.path, 'w', encoding='utf-8') as file:
            file.write(f'<!DOCTYPE html><title>notebook</title>{output}')
        self.driver.get('about:blank')
        self.driver.get(f'file://{self.path}#place')
        for _ in range(depth):
            self.driver.switch_to.frame(0)
        wait_for(self.driver, lambda driver: driver.find_elements(
            'css selector', '#view table'))

    def filter_and_back(self):
        rows = self.rows('Line of my code')
        self.click('#legend [data-key="state waiting"]')
        self.assertLess(len(self.rows('Line of my code')), len(rows))
        self.click('.chip button')
        return rows

    def test_the_page_works_in_its_frame(self):
        self.open(example().profile()._repr_html_())
        rows = self.filter_and_back()
        self.assertEqual(self.rows('Line of my code'), rows)
        self.assertEqual(complaints(self.driver), [])
        # The notebook around it is as before.
        self.driver.switch_to.default_content()
        self.assertEqual(self.run_js(
            'return [document.title, location.hash, history.length]'),
            ['notebook', '#place', self.run_js('return history.length')])

    def test_in_a_sandbox_with_a_policy(self):
        """As in VS Code, whose notebooks are in such a frame themselves."""
        notebook = (
            '<!DOCTYPE html><meta http-equiv="Content-Security-Policy" '
            'content="default-src \'none\'; script-src \'unsafe-inline\'; '
            'style-src \'unsafe-inline\'; child-src https: data:"><body>'
            + example().profile()._repr_html_())
        self.open('<iframe sandbox="allow-scripts" width="900" height="700" '
                  f'srcdoc="{html.escape(notebook)}"></iframe>', depth=2)
        self.filter_and_back()
        self.assertEqual(complaints(self.driver), [])

    def test_the_frame_cannot_reach_the_notebook(self):
        self.open(example().profile()._repr_html_())
        self.assertEqual(self.run_js(
            'try { return top.document.title; } catch (error) '
            '{ return error.name; }'), 'SecurityError')

    def test_without_frames_there_is_the_report(self):
        output = notebook.output(example().profile()._tables)
        bare = output.partition('<iframe')[0] + '</div>'
        with open(self.path, 'w', encoding='utf-8') as file:
            file.write(f'<!DOCTYPE html>{bare}')
        self.driver.get('about:blank')
        self.driver.get(f'file://{self.path}')
        text = self.driver.find_element('tag name', 'body').text
        self.assertIn('app.work', text)
        self.assertIn('the notebook is not trusted', text)
