"""The adapters of the documentation: pyinstrument, OpenTelemetry, Pyroscope,
and ddtrace's pprof."""

import gzip
import importlib.util
import os
import tempfile
import time
import unittest

import profile_sampling
from profile_sampling._data.values import Frame, Function, Thread

from ..support import official
from ..support.packages import contained
from ..support.work import busy
from . import adapters
from .adapters import SECOND_NS, example
from .receivers import pyroscope_server, received_by_collector

pyinstrument_session = example('pyinstrument_session')
otel_profiles = example('otel_profiles')
pyroscope_push = example('pyroscope_push')
ddtrace_pprof = example('ddtrace_pprof')

ROUTES = '/a', '/b,{c}=d'
recording = None
made = {}


def setUpModule():
    """One run of the work feeds all adapters."""
    global recording
    unittest.enterModuleContext(contained())
    made['ddtrace'] = ddtrace_pprof.Pprof()
    if pyinstrument_session is not None:
        made['pyinstrument'] = pyinstrument_session.Recorder()
    if otel_profiles is not None:
        made['otel'] = otel_profiles.Exporter('shop', adapters.RATE_HZ)
    recording = adapters.Recording(*made.values())


def tearDownModule():
    global recording
    recording = None
    made.clear()


@unittest.skipIf(pyinstrument_session is None,
                 'the pyinstrument package is not installed')
class PyinstrumentTest(unittest.TestCase):

    def setUp(self):
        self.session = made['pyinstrument'].session()

    def assertClose(self, got, expected, what=None):
        """Equal but for the rounding of floats."""
        self.assertAlmostEqual(got, expected, delta=1e-6 * abs(expected) + 1,
                               msg=what)

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

    def test_odd_samples(self):
        from pyinstrument.renderers import ConsoleRenderer, HTMLRenderer
        samples = adapters.odd_samples()
        recorder = pyinstrument_session.Recorder()
        recorder(samples)
        session = recorder.session()
        self.assertClose(session.root_frame().time * SECOND_NS,
                         sum([sample.wall_ns for sample in samples]))
        for renderer in ConsoleRenderer(show_all=True), HTMLRenderer():
            self.assertIn('odd; ', renderer.render(session))
        self.assertIn(['Thread 2', '[unsampled]'],
                      [stack for stack, _ in session.frame_records])


@unittest.skipIf(otel_profiles is None
                 or importlib.util.find_spec('grpc') is None,
                 'opentelemetry-proto or grpcio is not installed')
class OpenTelemetryTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        request = made['otel'].request()
        cls.request = received_by_collector(request)

    def setUp(self):
        self.look_at(self.request)

    def look_at(self, request):
        self.tables = request.dictionary
        resource, = request.resource_profiles
        self.resource = resource.resource
        scope, = resource.scope_profiles
        self.profiles = {self.string(profile.sample_type.type_strindex):
                         profile for profile in scope.profiles}

    def string(self, number):
        return self.tables.string_table[number]

    def attributes(self, message):
        found = {}
        for number in message.attribute_indices:
            row = self.tables.attribute_table[number]
            key = self.string(row.key_strindex)
            self.assertNotIn(key, found, 'keys must be unique')
            found[key] = getattr(row.value, row.value.WhichOneof('value'))
        return found

    def frames(self, sample):
        for number in self.tables.stack_table[
                sample.stack_index].location_indices:
            location = self.tables.location_table[number]
            line, = location.lines
            function = self.tables.function_table[line.function_index]
            yield ((self.string(function.name_strindex),
                    self.string(function.filename_strindex),
                    function.start_line), line.line,
                   self.attributes(location))

    def test_the_tables_are_valid(self):
        referenced = {}

        def refer(table, numbers):
            referenced.setdefault(table, {0}).update(numbers)
        for profile in self.profiles.values():
            for type_ in profile.sample_type, profile.period_type:
                refer('string', [type_.type_strindex, type_.unit_strindex])
            for sample in profile.samples:
                refer('stack', [sample.stack_index])
                refer('link', [sample.link_index])
                refer('attribute', sample.attribute_indices)
        for stack in self.tables.stack_table:
            refer('location', stack.location_indices)
        for location in self.tables.location_table:
            refer('mapping', [location.mapping_index])
            refer('attribute', location.attribute_indices)
            refer('function', [line.function_index
                               for line in location.lines])
        for function in self.tables.function_table:
            refer('string', [function.name_strindex,
                             function.system_name_strindex,
                             function.filename_strindex])
        for attribute in self.tables.attribute_table:
            refer('string', [attribute.key_strindex,
                             attribute.unit_strindex])
        self.assertEqual(len(referenced), 7)
        for name, numbers in referenced.items():
            table = getattr(self.tables, f'{name}_table')
            first = table[0]
            self.assertEqual(first, '' if name == 'string' else type(first)())
            # All rows are there, none is for nothing, and none is twice.
            self.assertEqual(numbers, set(range(len(table))), name)
            texts = [row if name == 'string'
                     else row.SerializeToString(deterministic=True)
                     for row in table]
            self.assertEqual(len(set(texts)), len(texts), name)

    def test_the_profiles_are_valid(self):
        self.assertEqual(set(self.profiles), {'wall', 'cpu'})
        ids = {profile.profile_id for profile in self.profiles.values()}
        self.assertEqual({len(id_) for id_ in ids}, {16})
        self.assertEqual(len(ids), 2)
        for profile in self.profiles.values():
            self.assertEqual(
                self.string(profile.sample_type.unit_strindex), 'nanoseconds')
            self.assertEqual(profile.period, SECOND_NS // adapters.RATE_HZ)
            self.assertLess(abs(profile.time_unix_nano - time.time_ns()),
                            3600 * SECOND_NS)
            self.assertGreater(profile.duration_nano, 0.6 * SECOND_NS)
            identities = [(sample.stack_index,
                           frozenset(sample.attribute_indices))
                          for sample in profile.samples]
            self.assertEqual(len(set(identities)), len(identities))
            for sample in profile.samples:
                self.assertEqual(len(sample.values), 1)
                self.assertGreater(sample.values[0], 0)

    def test_totals(self):
        for clock, profile in self.profiles.items():
            self.assertEqual(
                sum([sample.values[0] for sample in profile.samples]),
                recording.total(f'{clock}_ns'), clock)

    def test_stacks(self):
        for clock, profile in self.profiles.items():
            sums = {}
            for sample in profile.samples:
                for key in {frame[0] for frame in self.frames(sample)}:
                    sums[key] = sums.get(key, 0) + sample.values[0]
            expected = {}
            for sample in recording.samples:
                ns = getattr(sample, f'{clock}_ns')
                for key in {(frame.function.name, frame.function.filename,
                             frame.function.first_line)
                            for frame in sample.stack if ns}:
                    expected[key] = expected.get(key, 0) + ns
            self.assertEqual(sums, expected)

    def test_frames(self):
        frames = [frame for sample in self.profiles['wall'].samples
                  for frame in self.frames(sample)]
        types = {name: attributes.get('profile.frame.type')
                 for (name, _, _), _, attributes in frames}
        self.assertEqual(types[f'{adapters.__name__}.heavy'], 'cpython')
        self.assertEqual(types['time.sleep'], 'native')
        self.assertIsNone(types['[waiting]'])
        line, = {line for (name, _, _), line, _ in frames
                 if name == f'{adapters.__name__}.naps'}
        self.assertEqual(line, adapters.naps.__code__.co_firstlineno + 1)

    def test_attributes(self):
        sums = {}
        for sample in self.profiles['wall'].samples:
            attributes = self.attributes(sample)
            key = tuple([attributes.get(key) for key in (
                'thread.id', 'thread.name', 'thread.state', 'route',
                'span_id')])
            sums[key] = sums.get(key, 0) + sample.values[0]
        expected = {}
        for sample in recording.samples:
            key = (sample.thread.ident, sample.thread.name, sample.state,
                   sample.labels.get('route'), sample.labels.get('span_id'))
            if sample.wall_ns:
                expected[key] = expected.get(key, 0) + sample.wall_ns
        self.assertEqual(sums, expected)
        self.assertLessEqual(set(ROUTES), {key[3] for key in sums})

    def test_the_next_request_begins_anew(self):
        exporter = otel_profiles.Exporter('shop')
        exporter(recording.samples[:100])
        first, second = exporter.request(), exporter.request()
        profile, _ = second.resource_profiles[0].scope_profiles[0].profiles
        self.assertFalse(profile.samples)
        before, _ = first.resource_profiles[0].scope_profiles[0].profiles
        self.assertTrue(before.samples)
        self.assertEqual(before.time_unix_nano + before.duration_nano,
                         profile.time_unix_nano)

    def test_odd_samples(self):
        samples = adapters.odd_samples()
        exporter = otel_profiles.Exporter('odd')
        exporter(samples)
        self.look_at(received_by_collector(exporter.request()))
        names = {frame[0][0] for sample in self.profiles['wall'].samples
                 for frame in self.frames(sample)}
        self.assertIn('a;\n\\udc81.odd; \\udc80', names)
        empty, = [sample for sample in self.profiles['wall'].samples
                  if not sample.stack_index]
        self.assertEqual(empty.values, [7])
        self.assertEqual(self.attributes(empty)['thread.state'], 'unsampled')
        self.assertEqual(sum([sample.values[0] for sample
                              in self.profiles['wall'].samples]),
                         sum([sample.wall_ns for sample in samples]))


class PyroscopeTest(unittest.TestCase):

    def setUp(self):
        self.server = self.enterContext(pyroscope_server())
        self.url = f'http://127.0.0.1:{self.server.server_port}'

    def pushed(self):
        """{(application, labels): {stack: nanoseconds}}."""
        series = {}
        for path, query, body in self.server.pushes:
            self.assertEqual(path, '/ingest')
            self.assertEqual((query['format'], query['units']),
                             ('folded', 'samples'))
            self.assertLess(int(query['from']), int(query['until']))
            app, brace, rest = query['name'].partition('{')
            self.assertEqual(brace, '{')
            pairs, brace, rest = rest.partition('}')
            self.assertEqual((brace, rest), ('}', ''))
            labels = tuple([tuple(pair.split('='))
                            for pair in pairs.split(',') if pair])
            # What the server multiplies counts by.
            period_ns = SECOND_NS // int(query['sampleRate'])
            stacks = series.setdefault((app, labels), {})
            for line in body.splitlines():
                stack, _, count = line.rpartition(' ')
                stacks[stack] = stacks.get(stack, 0) + int(count) * period_ns
        return series

    def push(self, samples, **options):
        pusher = pyroscope_push.Pusher(self.url, 'shop', **options)
        pusher(samples)
        pusher.push()
        return self.pushed()

    def test_labels(self):
        series = self.push(recording.samples, labels={'region': 'eu/1'})
        sums = {}
        for (app, labels), stacks in series.items():
            labels = dict(labels)
            self.assertEqual(labels['region'], 'eu/1')
            if app == 'shop.wall':
                sums[labels.get('route')] = sum(stacks.values())
        self.assertEqual(sums, {
            None: recording.total() - sum([recording.total(route=route)
                                           for route in ROUTES]),
            '/a': recording.total(route='/a'),
            '/b__c__d': recording.total(route='/b,{c}=d')})

    def test_stacks(self):
        sums = {}
        for (app, _), stacks in self.push(recording.samples).items():
            if app == 'shop.wall':
                for stack, ns in stacks.items():
                    for name in set(stack.split(';')):
                        sums[name] = sums.get(name, 0) + ns
        for name in adapters.NAMES:
            full = name if '.' in name else f'{adapters.__name__}.{name}'
            self.assertEqual(sums[full], recording.of(name), name)

    def test_odd_samples(self):
        samples = adapters.odd_samples()
        series = {labels: stacks for (app, labels), stacks
                  in self.push(samples).items() if app == 'shop.wall'}
        odd = series[('odd__', ' \\udc83\n'),]
        self.assertTrue(any('a_\\udc81.odd_\\udc80' in stack.split(';')
                            for stack in odd))
        self.assertEqual(series[()]['[unsampled]'], 7)
        self.assertEqual(sum([sum(stacks.values())
                              for stacks in series.values()]),
                         sum([sample.wall_ns for sample in samples]))

    def test_pushes_while_the_program_runs(self):
        pusher = pyroscope_push.Pusher(self.url, 'shop', seconds=0.2)
        with profile_sampling.subscribe(
                pusher, batch_seconds=0.05) as subscription:
            busy(0.8)
        n_pushes = len(self.server.pushes)
        pusher.push()
        self.assertGreater(n_pushes, 2)
        stats = subscription.stats()
        self.assertEqual(stats['errors'], 0)
        for clock in 'wall', 'cpu':
            self.assertEqual(
                sum([sum(stacks.values())
                     for (app, _), stacks in self.pushed().items()
                     if app == f'shop.{clock}']), stats[f'{clock}_ns'])

    def test_a_server_that_refuses(self):
        self.server.answer = 500
        with self.assertRaises(OSError):
            self.push(recording.samples)


class DdtraceTest(unittest.TestCase):

    @unittest.skipIf(official.descriptor_pb2 is None, official.WHY_SKIPPED)
    def test_official_reader(self):
        profile = official.profile_class()()
        profile.ParseFromString(gzip.decompress(made['ddtrace'].encode()))
        strings = profile.string_table
        self.assertEqual(
            [(strings[type_.type], strings[type_.unit])
             for type_ in profile.sample_type],
            [('cpu-time', 'nanoseconds'), ('cpu-samples', 'count'),
             ('wall-time', 'nanoseconds'), ('wall-samples', 'count')])
        sums = [sum(values) for values in zip(*[
            sample.value for sample in profile.sample])]
        self.assertEqual(sums[0], recording.total('cpu_ns'))
        self.assertEqual(sums[2], recording.total('wall_ns'))
        self.assertEqual(sums[3], recording.total('count'))
        self.assertTrue(0 < sums[1] < sums[3])

        wall_ns = {}
        for sample in profile.sample:
            labels = {strings[label.key]: strings[label.str] or label.num
                      for label in sample.label}
            self.assertLessEqual(
                set(labels), {'thread id', 'thread native id', 'thread name',
                              'span id', 'route'})
            for item in labels.items():
                wall_ns[item] = wall_ns.get(item, 0) + sample.value[2]
        for route in ROUTES:
            self.assertEqual(wall_ns['route', route],
                             recording.total(route=route))
        # A span's number is unsigned, a label of pprof is not.
        self.assertEqual(wall_ns['span id', adapters.SPAN_ID - 2 ** 64],
                         recording.total(route='/a'))
        server, = {sample.thread for sample in recording.samples
                   if sample.thread.name == 'server'}
        for item in (('thread name', 'server'), ('thread id', server.ident),
                     ('thread native id', server.native_id)):
            self.assertEqual(wall_ns[item], sum([
                sample.wall_ns for sample in recording.samples
                if sample.thread == server]))

    def test_odd_samples(self):
        samples = adapters.odd_samples()
        pprof = ddtrace_pprof.Pprof()
        pprof(samples)
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, 'odd.pb.gz')
            with open(path, 'wb') as file:
                file.write(pprof.encode())
            profile = profile_sampling.Profile.load(path)
        self.assertEqual(profile.total_wall_ns,
                         sum([sample.wall_ns for sample in samples]))
        self.assertLessEqual({'odd; \\udc80', '[unsampled]'}, {
            row.function.qualname for row in profile.functions()})


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
