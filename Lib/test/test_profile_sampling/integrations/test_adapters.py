"""The adapters of the documentation to what shows a profile: pyinstrument,
pstats and its viewers."""

import html
import io
import os
import pstats
import re
import subprocess
import sys
import tempfile
import unittest

from profile_sampling._data.values import Frame, Function, Thread

from ..support.packages import contained
from . import adapters
from .adapters import SECOND_NS, example

pyinstrument_session = example('pyinstrument_session')
pstats_file = example('pstats_file')

recording = None
made = {}


def setUpModule():
    """One run of the work feeds all adapters."""
    global recording
    unittest.enterModuleContext(contained())
    made.update({'pstats': pstats_file.Stats(),
                 'pstats of cpu': pstats_file.Stats('cpu')})
    if pyinstrument_session is not None:
        made['pyinstrument'] = pyinstrument_session.Recorder()
    recording = adapters.Recording(*made.values())


def tearDownModule():
    global recording
    recording = None
    made.clear()


class AdapterTest(unittest.TestCase):

    def assertClose(self, got, expected, what=None):
        """Equal but for the rounding of floats."""
        self.assertAlmostEqual(got, expected, delta=1e-6 * abs(expected) + 1,
                               msg=what)


@unittest.skipIf(pyinstrument_session is None,
                 'the pyinstrument package is not installed')
class PyinstrumentTest(AdapterTest):

    def setUp(self):
        self.session = made['pyinstrument'].session()

    def times(self, frame, sums, above=()):
        """Add up {function: time} of a tree; a recursion counts once."""
        name = frame.identifier.partition('\0')[0]
        if name not in above:
            sums[name] = sums.get(name, 0) + frame.time
        for child in frame.children:
            self.times(child, sums, {name, *above})
        return sums

    def test_totals(self):
        self.assertClose(
            sum([time for _, time in self.session.frame_records]) * SECOND_NS,
            recording.total())
        self.assertClose(self.session.cpu_time * SECOND_NS,
                         recording.total('cpu_ns'))
        self.assertEqual(self.session.sample_count, recording.total('count'))

    def test_tree(self):
        root = self.session.root_frame()
        root.self_check()
        times = self.times(root, {})
        for name in adapters.NAMES:
            self.assertClose(times[name] * SECOND_NS, recording.of(name), name)
        threads = {frame.identifier for frame in root.children}
        self.assertLessEqual({'MainThread', 'server'}, threads)

    def test_timeline_is_in_order(self):
        # Of waits, which stand still, samples come before those of the
        # running time around them.
        recorder = pyinstrument_session.Recorder()
        recorder([Moment('waits', 30), Moment('waits', 60)])
        recorder([Moment('runs', 10), Moment('runs', 20), Moment('runs', 50)])
        self.assertEqual(
            [(stack[-1].partition('\0')[0], seconds)
             for stack, seconds in recorder.session().frame_records],
            [('runs', 4.0), ('waits', 2.0), ('runs', 2.0), ('waits', 2.0)])


class PstatsTest(AdapterTest):

    def setUp(self):
        directory = self.enterContext(tempfile.TemporaryDirectory())
        self.path = os.path.join(directory, 'work.prof')
        made['pstats'].dump_stats(self.path)
        self.stats = pstats.Stats(self.path, stream=io.StringIO())

    def test_totals(self):
        self.assertClose(self.stats.total_tt * SECOND_NS, recording.total())
        cpu = made['pstats of cpu'].create_stats()
        self.assertClose(
            sum([row[2] for row in cpu.values()]) * SECOND_NS,
            recording.total('cpu_ns'))

    def test_functions(self):
        rows = {name: row for (_, _, name), row in self.stats.stats.items()}
        for name in adapters.NAMES:
            key = f'<{name}>' if '.' in name else name
            cc, nc, tt, ct, callers = rows[key]
            self.assertClose(ct * SECOND_NS, recording.of(name), name)
            self.assertEqual(nc, cc)
            self.assertEqual(nc, recording.of(name, 'count'))
            self.assertTrue(callers)
            self.assertClose(sum([caller[3] for caller in callers.values()]),
                             ct, name)
        where = [key for key in self.stats.stats if key[2] == 'heavy']
        code = adapters.heavy.__code__
        self.assertEqual(
            where, [(code.co_filename, code.co_firstlineno, 'heavy')])

    def test_callers_have_the_time_of_all_calls(self):
        for key, (_, _, tt, _, callers) in self.stats.stats.items():
            if callers and tt:
                self.assertLessEqual(
                    sum([caller[2] for caller in callers.values()]),
                    tt + 1e-6, key)

    def test_recursion_counts_once(self):
        b = pstats_file.Stats()
        b([Recursive()])
        rows = {key[2]: row for key, row in b.create_stats().items()}
        self.assertEqual(rows['f'][:4], (1, 1, 2.0, 2.0))
        self.assertEqual({key[2]: value for key, value
                          in rows['f'][4].items()},
                         {'f': (1, 1, 2.0, 2.0), 'main': (1, 1, 0.0, 2.0)})

    def test_gprof2dot(self):
        try:
            import gprof2dot
        except ImportError:
            self.skipTest('the gprof2dot package is not installed')
        result = subprocess.run(
            [sys.executable, gprof2dot.__file__, '-f', 'pstats', '-n', '0',
             '-e', '0', '--color-nodes-by-selftime', self.path],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual((result.returncode, result.stderr), (0, ''))
        for name in adapters.NAMES:
            shares = re.findall(
                rf'label="[^"]*:<?{re.escape(name)}>?\\n([\d.]+)%',
                html.unescape(result.stdout))
            self.assertEqual(len(shares), 1, name)
            self.assertAlmostEqual(
                float(shares[0]),
                recording.of(name) / recording.total() * 100,
                delta=0.01, msg=name)


class OddSamplesTest(AdapterTest):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.samples = adapters.odd_samples()
        cls.wall_ns = sum([sample.wall_ns for sample in cls.samples])

    def test_pstats(self):
        stats = pstats_file.Stats()
        stats(self.samples)
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, 'odd.prof')
            stats.dump_stats(path)
            read = pstats.Stats(path, stream=io.StringIO())
        read.print_stats()
        self.assertClose(read.total_tt * SECOND_NS, self.wall_ns)
        self.assertIn(('~', 0, '[unsampled]'), read.stats)

    @unittest.skipIf(pyinstrument_session is None,
                     'the pyinstrument package is not installed')
    def test_pyinstrument(self):
        from pyinstrument.renderers import ConsoleRenderer, HTMLRenderer
        recorder = pyinstrument_session.Recorder()
        recorder(self.samples)
        session = recorder.session()
        self.assertClose(session.root_frame().time * SECOND_NS, self.wall_ns)
        for renderer in ConsoleRenderer(show_all=True), HTMLRenderer():
            self.assertIn('odd; ', renderer.render(session))
        self.assertIn(['Thread 2', '[unsampled]'],
                      [stack for stack, _ in session.frame_records])


class Moment:
    """A sample of one function, two seconds long."""

    count = 1
    cpu_ns = 0
    wall_ns = 2 * SECOND_NS
    thread = Thread(1, 2, 'Thread', 0)

    def __init__(self, name, time_ns):
        self.key = name
        self.time_ns = time_ns
        function = Function('m', name, '/m.py', 1, 'python')
        self.stack = (Frame(function, 1, 0, -1, 0),)


class Recursive:
    """A sample of main() calling f() calling f(), two seconds long."""

    key = count = 1
    wall_ns = 2 * SECOND_NS
    stack = []

    def __init__(self):
        f, main = [Function('m', name, '/m.py', 1, 'python')
                   for name in ('f', 'main')]
        self.stack = [Frame(function, 1, 0, -1, 0)
                      for function in (f, f, main)]
