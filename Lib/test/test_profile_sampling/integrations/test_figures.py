"""Figures that appear twice agree: in the terminal, on the page, in pprof,
collapsed stacks and a difference, of programs of well-known packages."""

import collections
import gzip
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest

from profile_sampling import Profile, ProfileDiff

from ..support.official import WHY_SKIPPED, descriptor_pb2, profile_class
from ..support.page_documents import document_of
from ..support.sessions import SessionTest  # noqa: F401, for builds without

SERVICE = '''
import http.client, json, socket, sys, threading, time
import fastapi, uvicorn
sys.path.insert(0, '.')
app = fastapi.FastAPI()

def price(number):
    return sum(each * each for each in range(number))

@app.get('/orders/{number}')
async def orders(number: int):
    return {'price': price(20_000)}

@app.get('/slow')
def slow():
    time.sleep(0.01)
    return json.loads(json.dumps([price(3_000)] * 500))

def ask(port):
    for number in range(30):
        for path in f'/orders/{number}', '/slow':
            with_ = http.client.HTTPConnection('127.0.0.1', port)
            with_.request('GET', path)
            with_.getresponse().read()
            with_.close()

with socket.create_server(('127.0.0.1', 0)) as listener:
    server = uvicorn.Server(uvicorn.Config(app, log_level='error'))
    thread = threading.Thread(target=server.run, args=[[listener]])
    thread.start()
    asking = [threading.Thread(target=ask, args=[listener.getsockname()[1]])
              for _ in range(3)]
    for each in asking: each.start()
    for each in asking: each.join()
    server.should_exit = True
    thread.join()
'''
FRAMES = '''
import numpy, pandas
frame = pandas.DataFrame({
    'key': numpy.arange(200_000) % 50, 'value': numpy.arange(200_000.0)})

def grouped():
    return frame.groupby('key').value.agg(['sum', 'mean'])

def applied():
    return frame.head(3000).apply(lambda row: row.value + 1, axis=1)

for _ in range(5):
    grouped()
    applied()
'''
POOL = '''
import concurrent.futures, multiprocessing

def work(number):
    return sum(each * number for each in range(100_000))

if __name__ == '__main__':
    with concurrent.futures.ProcessPoolExecutor(
            3, multiprocessing.get_context('fork')) as pool:
        print(sum(pool.map(work, range(60))))
'''


def is_there(*names):
    return all([importlib.util.find_spec(name) for name in names])


class FiguresTest(unittest.TestCase):

    def setUp(self):
        self.directory = self.enterContext(tempfile.TemporaryDirectory())
        self.path = os.path.join(self.directory, 'all.pb.gz')

    def python(self, *arguments):
        result = subprocess.run([sys.executable, *arguments],
                                cwd=self.directory, capture_output=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def record(self, text):
        """Return the sum of the profiles of all processes of a program."""
        with open(os.path.join(self.directory, 'shop.py'), 'w') as file:
            file.write(text)
        self.python('-X', 'sampleprof=wall,timeline=1,out={pid}.pb.gz',
                    'shop.py')
        parts = [name for name in os.listdir(self.directory)
                 if name.endswith('.pb.gz')]
        self.python('-m', 'profile_sampling', 'merge', '-o', self.path, *parts)
        return Profile.load(self.path), len(parts)

    def check(self, profile):
        lines = {(row.function.name if row.function else 'Outside my code',
                  row.line): row.total for row in profile.call_sites()}
        total = sum(lines.values())
        self.assertGreater(total, 0)
        self.assertGreater(len(lines), 1)
        self.assertEqual(self.of_terminal(total), lines)
        self.assertEqual(self.of_page(profile), lines)
        self.assertEqual(self.of_difference(profile, total), lines)
        functions = {row.function.name: 0 for row in profile.functions()}
        for row in profile.functions():
            functions[row.function.name] += row.self_wall_ns
        functions['[no frames]'] = total - sum(functions.values())
        for name, (stacks, us) in self.of_collapsed().items():
            self.assertAlmostEqual(1000 * us, functions.pop(name), msg=name,
                                   delta=1000 * stacks)
        # Less than a microsecond is no stack.
        self.assertLess(sum(functions.values()), 1000 * (len(functions) + 1))
        self.assertEqual(self.of_pprof(), total)

    def of_terminal(self, total):
        report = json.loads(self.python(
            '-m', 'profile_sampling', 'report', '--format', 'json',
            '-n', '9999', self.path))
        self.assertEqual(report['profile']['busy'], total)
        table = {its['name']: its for its in report['tables']}['my_code']
        return self.by_line(table['rows'], 'function', 'self_ns')

    def by_line(self, rows, name, value):
        found = collections.Counter()
        for row in rows:
            found[row[name], row['line']] += row[value]
        return +found

    def of_page(self, profile):
        document = document_of(profile)
        self.assertEqual(
            document.timeline and sum(document.record_wall) > 0, True)
        idle = document.states.index('idle')
        sums = document.sums(
            [document.path_place[path] for path in document.sample_path],
            [state != idle for state in document.sample_state])
        return {document.place(place): ns for place, ns in sums.items()}

    def of_difference(self, profile, total):
        difference = ProfileDiff(profile, profile)
        self.assertEqual((difference.total.before, difference.total.after),
                         (total, total))
        self.assertEqual({row.change for row in difference.rows}, {0})
        rows = [{'name': row.name, 'line': row.line, 'ns': row.after}
                for row in difference.rows]
        return self.by_line(rows, 'name', 'ns')

    def of_collapsed(self):
        found = {}
        for line in self.python('-m', 'profile_sampling', 'report', '--format',
                                'collapsed', self.path).decode().splitlines():
            stack, _, value = line.rpartition(' ')
            leaf = stack.rpartition(';')[2]
            stacks, us = found.get(leaf, (0, 0))
            found[leaf] = stacks + 1, us + int(value)
        return found

    def of_pprof(self):
        """The official reader's sum of what is not idle."""
        message = profile_class()()
        with gzip.open(self.path) as file:
            message.ParseFromString(file.read())
        text = message.string_table
        number = [text[its.type] for its in message.sample_type].index('wall')
        return sum([
            sample.value[number] for sample in message.sample
            if not any([text[label.key] == 'state'
                        and text[label.str] in ('idle', 'unsampled', 'lost')
                        for label in sample.label])])


@unittest.skipIf(descriptor_pb2 is None, WHY_SKIPPED)
class ProgramsTest(FiguresTest):

    @unittest.skipUnless(is_there('fastapi', 'uvicorn'),
                         'needs the PyPI packages fastapi and uvicorn')
    def test_fastapi(self):
        profile, _ = self.record(SERVICE)
        self.assertIn('task', profile.label_keys)
        self.check(profile)

    @unittest.skipUnless(is_there('pandas'), 'needs the PyPI package pandas')
    def test_pandas(self):
        profile, _ = self.record(FRAMES)
        self.check(profile)

    def test_process_pool(self):
        profile, parts = self.record(POOL)
        self.assertEqual((parts, len(profile.group_by('pid'))), (4, 4))
        self.check(profile)
