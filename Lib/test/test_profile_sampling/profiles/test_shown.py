"""Profiles as shown: report(), str() and in notebooks."""

import contextlib
import html.parser
import io
import re
import unittest
from test.support import os_helper

from profile_sampling import _formats

from ..support.builders import Builder, example

COLOR = re.compile(r'\x1b\[[0-9;]*m')


class Terminal(io.StringIO):

    def isatty(self):
        return True


def report(profile, **options):
    file = io.StringIO()
    profile.report(file, **options)
    return file.getvalue()


def headings(text):
    return [line.partition(',')[0] for line in text.splitlines()
            if line.startswith('Functions by')]


class ReportTest(unittest.TestCase):

    def setUp(self):
        self.profile = example().profile()
        environ = self.enterContext(os_helper.EnvironmentVarGuard())
        environ.unset('NO_COLOR', 'FORCE_COLOR', 'PYTHON_COLORS')
        environ.set('TERM', 'xterm')
        self.environ = environ

    def test_it_is_that_of_the_command(self):
        self.assertEqual(report(self.profile).encode(), _formats.encode(
            self.profile._tables, 'text'))

    def test_stdout(self):
        with contextlib.redirect_stdout(io.StringIO()) as file:
            self.profile.report()
        self.assertEqual(file.getvalue(), report(self.profile))
        with contextlib.redirect_stdout(None), \
                self.assertRaisesRegex(ValueError, 'stdout is closed'):
            self.profile.report()

    def test_sort(self):
        self.assertEqual(headings(report(self.profile)), [])
        self.assertEqual(headings(report(self.profile, sort='self')),
                         ['Functions by self time'])
        self.assertEqual(headings(report(self.profile, sort='cum')),
                         ['Functions by cumulative time'])

    def test_color(self):
        plain = report(self.profile)
        self.assertNotIn('\x1b', plain)
        colored = report(self.profile, color='always')
        self.assertEqual(COLOR.sub('', colored), plain)
        for colors, styles in [
                ({'TERM': 'xterm'}, ['1;43;30mrun', '1mapp.work:11',
                                     '1;31m48.3%']),
                ({'TERM': 'xterm-256color', 'COLORFGBG': '0;15'}, [
                    '48;5;172;38;5;16mrun', '1;38;5;62mapp.work:11',
                    '1;38;5;130m48.3%'])]:
            for name, value in colors.items():
                self.environ.set(name, value)
            colored = report(self.profile, color='always')
            for style in styles:
                self.assertIn(f'\x1b[{style}\x1b[0m', colored)
            # Solarized has its ground where others have bright black.
            self.assertNotRegex(colored, r'\x1b\[(9|10)\d')
        self.assertTrue(colored.startswith('Wall profile of Python'))

    def is_colored(self, file, color='auto'):
        self.profile.report(file, color=color)
        return '\x1b' in file.getvalue()

    def test_color_on_terminals_alone(self):
        self.assertFalse(self.is_colored(io.StringIO()))
        self.assertTrue(self.is_colored(Terminal()))
        self.assertFalse(self.is_colored(Terminal(), 'never'))
        self.environ.set('NO_COLOR', '1')
        self.assertFalse(self.is_colored(Terminal()))
        self.assertTrue(self.is_colored(Terminal(), 'always'))

    def test_as_wide_as_the_terminal(self):
        self.environ.set('COLUMNS', '70')
        for file, least, most in ((Terminal(), 60, 70),
                                  (io.StringIO(), 71, 100)):
            self.profile.report(file, color='never')
            self.assertIn(max(map(len, file.getvalue().splitlines())),
                          range(least, most + 1))

    def test_what_a_file_cannot_show(self):
        b = Builder()
        b.sample('a.größe:1', wall_ns=5)
        data = io.BytesIO()
        file = io.TextIOWrapper(data, encoding='ascii')
        b.profile().report(file)
        file.flush()
        self.assertIn(b'a.gr\\xf6\\xdfe', data.getvalue())


class ShortTest(unittest.TestCase):

    def test_str(self):
        text = str(example(python_version='3.13.5').profile())
        lines = text.splitlines()
        self.assertTrue(lines[0].startswith(
            'Wall profile of Python 3.13.5, 2.00s, 2 threads'))
        self.assertRegex(text, r'\n1  48.3% .* app.<module>:2 +time.sleep\n')
        self.assertFalse(text.endswith('\n'))

    def test_str_has_five_lines_of_the_program(self):
        b = Builder()
        for number in range(8):
            b.sample(f'a.f{number}', wall_ns=100 - number)
        text = str(b.profile())
        self.assertEqual(text.count('a.f'), 5)
        self.assertIn('\n... 3 more lines', text)

    def test_hostile_names(self):
        b = Builder()
        b.sample([b.function('a', '\x1b[31m<script>\n', '/<b>.py')],
                 wall_ns=5)
        text = str(b.profile())
        self.assertNotIn('\x1b', text)
        shown = b.profile()._repr_html_()
        self.assertNotIn('\x1b', shown)
        self.assertNotIn('<script', shown)
        self.assertIn('&lt;script&gt;\\n', shown)

    def test_html(self):
        attributes_of = {'iframe': {'title', 'sandbox', 'style', 'srcdoc'}}
        tags, opened = [], []

        class Parser(html.parser.HTMLParser):
            def handle_starttag(self, tag, attributes):
                tags.append(tag)
                for name, value in attributes:
                    assert name in attributes_of.get(tag, {'style'}), name
                if tag != 'br':
                    opened.append(tag)

            def handle_endtag(self, tag):
                assert opened.pop() == tag, tag

        for profile in example().profile(), Builder().profile():
            Parser().feed(profile._repr_html_())
            self.assertEqual(opened, [])
        # Nothing is fetched, and what runs is in a frame.
        self.assertEqual(set(tags), {'div', 'p', 'pre', 'iframe'})
