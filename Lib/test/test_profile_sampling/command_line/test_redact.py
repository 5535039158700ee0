"""Command lines that are kept in profiles, without secrets."""

import shlex
import sys
import time
import unittest

from profile_sampling._cli import redact

from .recorded import RecordTest

HIDDEN = {
    'app.py --password=hunter2 -v': 'app.py --password=*** -v',
    'app.py --password hunter2 in.txt': 'app.py --password *** in.txt',
    'app.py -token -x1': 'app.py -token ***',
    'app.py --db-password=x --authToken y': 'app.py --db-password=*** '
                                            '--authToken ***',
    'app.py --api-key k --secretKey q': 'app.py --api-key *** --secretKey ***',
    'env AWS_SECRET_ACCESS_KEY=x app': 'env AWS_SECRET_ACCESS_KEY=*** app',
    'docker run --env=TOKEN=abc i': 'docker run --env=TOKEN=*** i',
    'app.py postgres://me:pw@host:5432/db': 'app.py postgres://***@host:5432/db',
    'app.py https://x.y/z?a=1&token=abc&b=2':
        'app.py https://x.y/z?a=1&token=***&b=2',
    "curl -H 'Authorization: Bearer abc.def' https://x":
        'curl -H Authorization: *** https://x',
    "sh -c 'export TOKEN=abc; exec python x.py'":
        'sh -c export TOKEN=***; exec python x.py',
    """app.py --json '{"password": "a b", "user": "me"}'""":
        'app.py --json {"password": ***, "user": "me"}',
    'app.py ghp_abcdefghijklmnopqrstuvwxyz012345': 'app.py ***',
    'app.py AKIAABCDEFGHIJKLMNOP': 'app.py ***',
    'app.py 0123456789abcdef0123456789abcdef': 'app.py ***',
}
KEPT = ('app.py -v in.txt', 'app.py --max-tokens 5 --tokenizer fast',
        '-m pytest tests/test_x.py::TestA::test_b -k not', 'app.py --bypass 3',
        'gunicorn app:app -b 0.0.0.0:8000 --keyfile k.pem',
        'app.py --key name --port 8080 https://example.org/path?q=1',
        'app.py me@example.org --user=me PATH=/bin', '-c print(1)',
        'app.py --author x --passes 3 a_long_name_of_a_file_of_2024_and_more')


class RedactTest(unittest.TestCase):

    def shown(self, command):
        return ' '.join(redact.hidden(shlex.split(command)))

    def test_what_looks_like_a_secret(self):
        for command, expected in HIDDEN.items():
            with self.subTest(command=command):
                self.assertEqual(self.shown(command), expected)

    def test_what_does_not(self):
        for command in KEPT:
            with self.subTest(command=command):
                self.assertEqual(self.shown(command), command)

    def test_long_ones_take_no_time(self):
        begin_s = time.process_time()
        for part in 'a', 'a=', 'x://', 'a1', 'A1b', 'a:b"', 'Bearer ':
            redact.hidden([(part * 4000)[:4000]])
        self.assertLess(time.process_time() - begin_s, 5)


class ProfileTest(RecordTest):

    def command(self, *arguments):
        result = self.run_python('-m', 'profile_sampling', *arguments)
        self.assertEqual(result.status, 3, result.err)
        return self.load('p.pb.gz').meta.get('command'), result.err

    def test_profiles(self):
        program = 'work.py', '--password', 'hunter2', 'x'
        shown = 'work.py --password *** x'
        for head, before in (
                (['record', '-o', 'p.pb.gz'], ''),
                (['record', '-o', 'p.pb.gz', '--', sys.executable],
                 f'{sys.executable} '),
                (['stat', '-o', 'p.pb.gz'], ''),
                (['exec', '-o', 'p.pb.gz'], '')):
            with self.subTest(head=head):
                command, err = self.command(*head, *program)
                self.assertEqual(command, before + shown)
                self.assertNotIn('hunter2', err)
                head[1:1] = ['--meta=full']
                command, _ = self.command(*head, *program)
                self.assertEqual(command, before + ' '.join(program))
                head[1] = '--no-meta'
                self.assertIsNone(self.command(*head, *program)[0])
