"""Pushing profiles to a Pyroscope server, with the program's labels.

    pusher = Pusher('http://pyroscope.example:4040', 'shop')
    with profile_sampling.subscribe(pusher):
        serve()
    pusher.push()

What is pushed are collapsed stacks to /ingest, as application "shop.wall" or
"shop.cpu" and one series for each set of labels: shop.wall{route=/cart}.
"""

import re
import threading
import time
import urllib.parse
import urllib.request

# The server multiplies counts by the period that this rate makes: by 1 ns.
SAMPLE_RATE_HZ = 1_000_000_000
TIMEOUT_SECONDS = 10


class Pusher:
    """A callback for subscribe() that pushes every so often.

    url      the server's, with no path
    app      name of the application
    clocks   which clocks to push: 'wall', 'cpu' or both
    labels   labels for all series, a dict
    seconds  how often to push, by the time of the samples that come in
    """

    def __init__(self, url, app, *, clocks=('wall', 'cpu'), labels=(),
                 seconds=10):
        self._url = url
        self._app = app
        self._clocks = clocks
        self._labels = dict(labels)
        self._seconds = seconds
        self._lock = threading.RLock()
        self._start = time.time()
        self._sums = {}

    def __call__(self, batch):
        with self._lock:
            for sample in batch:
                sums = self._sums.setdefault(
                    sample.key, {'sample': sample, 'wall': 0, 'cpu': 0})
                sums['wall'] += sample.wall_ns
                sums['cpu'] += sample.cpu_ns
        if time.time() >= self._start + self._seconds:
            self.push()

    def push(self):
        """Push what came in since the last time.

        Raise OSError if the server does not take it; then it is lost.
        """
        with self._lock:
            start, self._start = self._start, time.time()
            all_sums, self._sums = self._sums, {}
        for clock in self._clocks:
            series = {}
            for sums in all_sums.values():
                if sums[clock]:
                    sample = sums['sample']
                    name = self._name(clock, sample)
                    stacks = series.setdefault(name, {})
                    stack = collapsed(sample)
                    stacks[stack] = stacks.get(stack, 0) + sums[clock]
            for name, stacks in series.items():
                self._post(name, start, stacks)

    def _name(self, clock, sample):
        labels = self._labels | sample.labels
        pairs = ','.join([f'{label_name(key)}={label_value(value)}'
                          for key, value in sorted(labels.items())])
        return f'{self._app}.{clock}{{{pairs}}}'

    def _post(self, name, start, stacks):
        query = urllib.parse.urlencode({
            'name': name, 'from': int(start), 'until': int(self._start) + 1,
            'format': 'folded', 'units': 'samples',
            'aggregationType': 'sum', 'sampleRate': SAMPLE_RATE_HZ,
            'spyName': 'profile_sampling'}, errors='backslashreplace')
        body = ''.join([f'{stack} {ns}\n'
                        for stack, ns in sorted(stacks.items())])
        request = urllib.request.Request(
            f'{self._url}/ingest?{query}',
            body.encode('utf-8', 'backslashreplace'),
            {'Content-Type': 'text/plain'})
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS):
            pass


def collapsed(sample):
    """The stack as one line, root first."""
    names = [re.sub(r'[;\s]+', '_', frame.function.name)
             for frame in reversed(sample.stack)]
    return ';'.join(names) or f'[{sample.state}]'


def label_name(text):
    """Letters, digits and '_', as the server wants names of labels."""
    return re.sub(r'\W', '_', text, flags=re.ASCII)


def label_value(text):
    """Without what would end a value in the name of a series."""
    return re.sub(r'[{},=]', '_', text)
