"""pprof files with the sample types and labels of ddtrace's profiler.

    pprof = Pprof()
    with profile_sampling.subscribe(pprof, rate_hz=100):
        serve()
    pathlib.Path('work.pprof').write_bytes(pprof.encode())

What the program says of its spans comes from labels of these names, with '_'
for a space: label(span_id=7, local_root_span_id=5, trace_endpoint='/cart').
"""

import gzip
import time

SAMPLE_TYPES = (('cpu-time', 'nanoseconds'), ('cpu-samples', 'count'),
                ('wall-time', 'nanoseconds'), ('wall-samples', 'count'))
NUMBERS = {'span id', 'local root span id'}
TEXTS = {'trace type', 'trace endpoint', 'trace resource', 'class name'}


class Pprof:
    """A callback for subscribe() that adds up samples for a pprof file."""

    def __init__(self):
        self._start_time_ns = time.time_ns()
        self._sums = {}

    def __call__(self, batch):
        for sample in batch:
            sums = self._sums.setdefault(sample.key, [sample, 0, 0, 0, 0])
            sums[1] += sample.cpu_ns
            sums[2] += sample.count if sample.cpu_ns else 0
            sums[3] += sample.wall_ns
            sums[4] += sample.count

    def encode(self):
        """Return the file with what came in so far."""
        file = File()
        for name, unit in SAMPLE_TYPES:
            file.add(1, file.value_type(name, unit))
        for sample, *values in list(self._sums.values()):
            places = [(frame.function.qualname if frame.function.filename
                       else frame.function.name,
                       frame.function.filename, frame.line)
                      for frame in sample.stack]
            file.add_sample(places or [(f'[{sample.state}]', '', 0)],
                            values, labels(sample))
        file.data += number(9, self._start_time_ns)
        file.data += number(10, time.time_ns() - self._start_time_ns)
        file.add(11, file.value_type('wall-time', 'nanoseconds'))
        file.data += number(12, 1)
        return file.finish()


def labels(sample):
    """All labels of a sample, by ddtrace's names."""
    thread = sample.thread
    found = {'thread id': thread.ident,
             'thread native id': thread.native_id,
             'thread name': thread.name or str(thread.ident)}
    if sample.task_id is not None:
        found['task id'] = sample.task_id
    if sample.task_name:
        found['task name'] = sample.task_name
    for name, value in sample.labels.items():
        words = name.replace('_', ' ')
        if words in NUMBERS and value.isdecimal():
            found[words] = int(value)
        else:
            found[words if words in TEXTS else name] = value
    return found


class File:
    """A pprof file in the making: each name and place is written once."""

    def __init__(self):
        self.data = bytearray()
        self._strings = {'': 0}
        self._functions = {}
        self._locations = {}

    def add(self, field, payload):
        self.data += nested(field, payload)

    def add_sample(self, places, values, labels):
        sample = nested(1, b''.join([varint(self._location(place))
                                     for place in places]))
        sample += nested(2, b''.join(map(varint, values)))
        for key, value in labels.items():
            is_number = isinstance(value, int)
            sample += nested(3, number(1, self._string(key)) + (
                number(3, value) if is_number
                else number(2, self._string(value))))
        self.add(2, sample)

    def finish(self):
        for text in self._strings:
            self.add(6, text.encode('utf-8', 'backslashreplace'))
        return gzip.compress(bytes(self.data), mtime=0)

    def value_type(self, name, unit):
        return number(1, self._string(name)) + number(2, self._string(unit))

    def _string(self, text):
        return self._strings.setdefault(text, len(self._strings))

    def _location(self, place):
        if place not in self._locations:
            name, filename, line = place
            row = self._locations[place] = len(self._locations) + 1
            self.add(4, number(1, row) + nested(4, number(
                1, self._function(name, filename)) + number(2, line)))
        return self._locations[place]

    def _function(self, name, filename):
        key = name, filename
        if key not in self._functions:
            row = self._functions[key] = len(self._functions) + 1
            self.add(5, number(1, row) + number(2, self._string(name))
                     + number(4, self._string(filename)))
        return self._functions[key]


def varint(value):
    value &= 0xFFFF_FFFF_FFFF_FFFF
    data = bytearray()
    while value > 127:
        data.append(value & 127 | 128)
        value >>= 7
    data.append(value)
    return bytes(data)


def number(field, value):
    return varint(field << 3) + varint(value)


def nested(field, payload):
    return varint(field << 3 | 2) + varint(len(payload)) + payload
