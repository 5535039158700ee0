"""Patterns mean the same to commands and to pages, or are refused by both."""

import itertools
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from profile_sampling import _formats
from profile_sampling._data import pattern

NODE = shutil.which('node')
PAGE = os.path.join(os.path.dirname(os.path.dirname(_formats.__file__)),
                    '_page')

GOOD = (
    '', 'app', 'app.view', r'app\.view', '^app', 'view$', '^app.view$', '.',
    'a|b', '(a|b)c', '(?:ab)+', 'ab*', 'ab+?', 'a??b', 'a{2}', 'a{1,}',
    'a{1,2}', 'a{0,2}?b', '[a-z]', '[^a-z]', '[-a]', '[a-]', '[-]',
    '[a-z_-]', r'[\w.]+', r'[^\w.]', r'[\d\s]', r'[a\-z]', r'[\]\[]', '[.]',
    '[(]', '[a^]', '[^^]', '[$|]', '[&|~]', r'\d', r'\D', r'\w+', r'\W', r'\s',
    r'\S+', r'\bview\b', r'\bü', r'\n', r'\t', '^(?!app)', 'a(?=p)', '()',
    '(|a)', '/users/{id}', '{', '}', '{}', 'a{', 'a{b}', ']', r'\{', r'\}',
    r'\/', r'\-', r'\_', r'\"', r'\.', '-', '(?i)APP', '(?i)äß',
    '(?i)[a-z]+$', '(?i)[^A-Z]', '(?i)i', '(?i)ı', '(?i)[i]', '(?i)ς', '(?i)',
    '(?i)k', '(?i)[h-j]$', '😀', '[😀-😂]', '^.$', '^..$', 'a.b', '<module>',
    "it's", '"', 'C\\+\\+', r'\[without\]', '^/users', 'ﬁ', r'^\d+$', '"#%,:;')
BAD = (
    '(', ')', '(a', 'a)', '[', '[]', '[a', '*', '+a', '?', 'a**', 'a*+',
    'a{2}{3}', 'a{,3}', '{,}', '{3}', '(*a)', '(?=a)*', '^*', r'\b+', '|*',
    r'\Aapp', r'app\Z', r'\z', r'\p{L}', r'\1', r'(a)\1', r'\x41', r'\u0041',
    r'\B', r'\a', r'\f', r'\N{DIGIT ONE}', '\\', '[a\\', r'[\b]', r'[\W]',
    r'[\D]', '[a-b-c]', r'[a-\d]', r'[\w-a]', '[z-a]', '[^]', '[[]', '[a&&b]',
    '[a||b]', '[a~~b]', '[a--b]', '(?P<n>a)', '(?P=n)', '(?<n>a)', '(?<=a)b',
    '(?<!a)b', '(?s).', '(?x)a b', '(?m)^a', '(?-i:a)', '(?i:a)', '(?i)(?i)a',
    'a(?i)', '(?#a)', '(?>a)', '(?(1)a|b)', 'a{3,2}', 'a{99999999999999999999}')
TEXTS = (
    '', 'app', 'app.view', 'APP.View', 'Aapp', 'app\n', '\napp', 'a\nb',
    'a\rb', 'a\u2028b', 'view', 'preview', 'a', 'aa', 'aaa', 'ab', 'abb', 'c',
    'ac', 'bc', 'z', 'Z', '_', '-', '.', '^', '$', '|', '&', '~', '(', '[', ']',
    '{', '}', '{}', 'a{', 'a{b}', '/users/{id}', '/users/7', '/health', '7',
    '٣', '²', '½', 'Ⅷ', 'ä', 'Ä', 'ü', 'xü', 'ß', 'ẞ', 'ς', 'σ', 'Σ', 'i',
    'I', 'ı', 'İ', 'k', '\u212a', 'ſ', 's', 'ﬁ', 'e\u0301', ' ', '\xa0',
    '\u3000', '\ufeff', '\x1c', '\x85', '\t', '\v', '\\', '/', '"', "it's",
    '😀', '😁', '𝒳', '<module>', 'C++', '[without]', '変数', 'a-b', '"#%,:;',
    'äß', 'ÄẞX', 'a.b', 'a b')
PROGRAM = '''
import {readFileSync} from 'node:fs';
import {compiled} from './pattern.js';
const [patterns, texts] = JSON.parse(readFileSync(0));
console.log(JSON.stringify(patterns.map((pattern) => {
  try {
    const found = compiled(pattern);
    return texts.map((text) => found.test(text));
  } catch (error) {
    return error.message;
  }
})));
'''


def in_python(text):
    """What is found in each text, or why the pattern is refused."""
    try:
        found = pattern.compiled(text)
    except ValueError as exc:
        return str(exc)
    return [found.search(one) is not None for one in TEXTS]


def in_page(patterns):
    """The same of all patterns, by the page's own program."""
    with tempfile.TemporaryDirectory() as directory:
        shutil.copy(os.path.join(PAGE, 'pattern.js'), directory)
        for name, text in (('package.json', '{"type": "module"}'),
                           ('test.js', PROGRAM)):
            with open(os.path.join(directory, name), 'w') as file:
                file.write(text)
        result = subprocess.run(
            [NODE, 'test.js'], input=json.dumps([patterns, TEXTS]),
            capture_output=True, text=True, cwd=directory)
        if result.returncode:
            raise AssertionError(result.stderr)
        return json.loads(result.stdout)


class PatternTest(unittest.TestCase):

    def test_they_mean_what_they_mean_to_re(self):
        for text in GOOD:
            with self.subTest(pattern=text):
                self.assertEqual(in_python(text), [
                    re.search(text, one) is not None for one in TEXTS])

    def test_what_is_no_pattern(self):
        for text in BAD:
            with self.subTest(pattern=text):
                self.assertRegex(in_python(text), (
                    'is no regular expression: |has in it what is not '
                    'supported in a pattern, at '))

    @unittest.skipIf(NODE is None, 'needs node')
    def test_pages_do_the_same(self):
        patterns = GOOD + BAD
        for text, here, there in zip(patterns, map(in_python, patterns),
                                     in_page(patterns)):
            with self.subTest(pattern=text):
                if isinstance(here, str):
                    self.assertIsInstance(there, str)
                    self.assertEqual(reason(here), reason(there))
                    continue
                self.assertIsInstance(there, list, there)
                self.assertEqual(
                    *[list(itertools.compress(TEXTS, found))
                      for found in (here, there)])


def reason(message):
    """What is said, without the pattern and the engine's own words."""
    return re.search('has in it|is no regular expression', message)[0]


if __name__ == '__main__':
    unittest.main()
