"""Pages: one file that is the same each time, and has the profile in it."""

import base64
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from profile_sampling import Profile
from profile_sampling._formats import html as _html

from ..support import hard_profiles
from ..support.builders import Builder, example

SHELL_BYTES = 100_000
FOLDER = os.path.join(os.path.dirname(_html.__file__), '..', '_page')
NAME_AT_TOP = re.compile(
    r'^(?:export )?(?:async )?(?:const|let|function|class) (\w+)',
    re.MULTILINE)
BLOCK = re.compile(r'<script type="application/octet-stream" id="profile">'
                   r'([A-Za-z0-9+/=]*)</script>')
DATA = re.compile(
    r'<script type="application/octet-stream" id="(?!program")[a-z]+">'
    r'[A-Za-z0-9+/=]*</script>\n')


def page_of(builder):
    return _html.encode(builder.profile()._tables, with_source=False).decode()


def program_of(page):
    packed, = re.findall(r'id="program">([A-Za-z0-9+/=]*)</script>', page)
    return gzip.decompress(base64.b64decode(packed)).decode()


def digest(text):
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def modules():
    for name in sorted(os.listdir(FOLDER)):
        if name.endswith('.js'):
            with open(os.path.join(FOLDER, name), encoding='utf-8') as file:
                yield name, file.read()


class PageTest(unittest.TestCase):

    def test_equal_profiles_are_equal_pages(self):
        self.assertEqual(page_of(example()), page_of(example()))

    def test_the_profile_is_a_pprof_file_in_it(self):
        found, = BLOCK.findall(page_of(example()))
        file = io.BytesIO()
        example().profile().save(file, 'pprof')
        self.assertEqual(base64.b64decode(found), file.getvalue())

    def test_the_shell_is_small(self):
        self.assertLess(len(DATA.sub('', page_of(example()))), SHELL_BYTES)

    def test_all_modules_are_in_it(self):
        page = page_of(example())
        scripts = page + program_of(page)
        names = [name for _, text in modules()
                 for name in NAME_AT_TOP.findall(text)]
        self.assertGreater(len(names), 50)
        for name in names:
            self.assertIn(f' {name}', scripts)

    def test_no_two_modules_have_a_name_in_common(self):
        names = [name for _, text in modules()
                 for name in NAME_AT_TOP.findall(text)]
        self.assertEqual(sorted(set(names)), sorted(names))

    def test_what_is_for_readers_of_the_code_stays_out(self):
        page = page_of(example())
        script = (page.partition('<script type="module">')[2]
                  + program_of(page))
        for text in '\n ', '\n//', '/*', '\nimport', '\nexport', '\n\n':
            self.assertNotIn(text, script)

    def test_each_module_says_what_it_owns(self):
        for name, text in modules():
            with self.subTest(name):
                self.assertRegex(text, r'\A//[^@]*This file owns|'
                                       r'\A// The page.s beginning')
                self.assertIn('\n// @ts-check\n', text)
                lines = text.splitlines()
                self.assertLess(len(lines), 500)
                self.assertLessEqual(max(map(len, lines)), 80)


class TypesTest(unittest.TestCase):

    @unittest.skipUnless(shutil.which('tsc'), 'needs tsc: npm install -g '
                         'typescript')
    def test_the_types_in_comments(self):
        files = [os.path.join(FOLDER, name) for name, _ in modules()]
        result = subprocess.run(
            ['tsc', '--noEmit', '--allowJs', '--checkJs', '--strict',
             '--noUnusedLocals', '--target', 'es2023', '--module', 'es2022',
             '--lib', 'es2023,dom,dom.iterable', '--types', '', *files],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(result.returncode, 0, result.stdout)


class SafetyTest(unittest.TestCase):

    def test_only_what_is_in_the_page_may_run(self):
        page = page_of(hard_profiles.hostile())
        policy, = re.findall(
            r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">',
            page)
        rules = dict(rule.split(' ', 1) for rule in policy.split('; '))
        style, = re.findall('<style>(.*?)</style>', page, re.DOTALL)
        script, = re.findall('<script type="module">(.*?)</script>', page,
                             re.DOTALL)
        self.assertEqual(rules, {
            'default-src': "'none'", 'base-uri': "'none'",
            'form-action': "'none'", 'img-src': 'data:',
            'style-src': f"'sha256-{digest(style)}'",
            'script-src': f"'sha256-{digest(script)}' "
                          f"'sha256-{digest(program_of(page))}'"})

    def test_names_cannot_leave_their_block(self):
        page = page_of(hard_profiles.hostile())
        self.assertEqual(DATA.sub('', page),
                         DATA.sub('', page_of(example())))

    def test_texts_are_only_texts(self):
        for name, text in modules():
            for word in ('innerHTML', 'outerHTML', 'insertAdjacentHTML',
                         'document.write', 'eval(', 'new Function(',
                         'fetch(', 'http:', 'https:'):
                self.assertNotIn(word, text, name)
        self.assertNotRegex(page_of(example()), r'<[^>]* style=')


class LoadTest(unittest.TestCase):

    def load(self, page):
        return Profile.load(io.BytesIO(page))

    def test_a_page_loads_back(self):
        for builder in (example(), Builder(), hard_profiles.hostile(),
                        hard_profiles.recursive(), hard_profiles.deep()):
            profile = builder.profile()
            file = io.BytesIO()
            profile.save(file, 'pprof')
            file.seek(0)
            self.assertEqual(
                self.load(_html.encode(profile._tables)), Profile.load(file))

    def test_a_page_that_a_browser_saved(self):
        page = _html.encode(example().profile()._tables)
        tag = b'<script type="application/octet-stream" id="profile">'
        block = page.partition(tag)[2].partition(b'<')[0]
        saved = (b'<!DOCTYPE html>\n<!-- saved from url=(0014)about:internet '
                 b'-->\n<html><head><title>Profile</title><script '
                 b'id="profile" type="application/octet-stream">'
                 + b'\r\n'.join([block[i:i + 999] for i
                                 in range(0, len(block), 999)])
                 + b'\r\n</script></head><body></body></html>')
        self.assertEqual(self.load(saved), self.load(page))

    def test_through_files(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, 'p.html')
            example().profile().save(path)
            profile = Profile.load(path)
            profile.save(os.path.join(directory, 'p.pb.gz'))
            self.assertEqual(
                Profile.load(os.path.join(directory, 'p.pb.gz')), profile)

    def test_what_is_no_page_of_ours(self):
        page = _html.encode(example().profile()._tables)
        for data, message in (
                (b'<', 'without a profile'),
                (b'<html><p id="profile"></p></html>', 'without a profile'),
                (b'<' + b' ' * 2_000_000, 'without a profile'),
                (page[:page.index(b'H4sI') + 400], 'cut off'),
                (b'<script id="profile">%%%%</script>', 'damaged base64'),
                (b'<script id="profile">AAA</script>', 'damaged base64'),
                (b'<script id="profile"></script>', 'is empty'),
                (b'<script id="profile">PCEtLQ==</script>',
                 'without a profile')):
            with self.assertRaisesRegex(ValueError, message):
                self.load(data)

    def test_memory_is_bounded(self):
        page = _html.encode(hard_profiles.deep().profile()._tables)
        with self.assertRaisesRegex(ValueError, 'bytes of memory'):
            Profile.load(io.BytesIO(page), max_bytes=100_000)

    def test_pages_of_pages(self):
        data = b'<script id="profile">%b</script>'
        page = data % b''
        for _ in range(20):
            page = data % base64.b64encode(page)
        with self.assertRaisesRegex(ValueError, 'is empty'):
            self.load(page)


class SourceTest(unittest.TestCase):

    def sources(self, profile):
        page = _html.encode(profile._tables)
        packed, = re.findall(rb'id="sources">([A-Za-z0-9+/=]*)</script>', page)
        self.assertEqual(Profile.load(io.BytesIO(page)), Profile.load(
            io.BytesIO(_html.encode(profile._tables))))
        return json.loads(gzip.decompress(base64.b64decode(packed)))

    def file(self, text):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        path = os.path.join(directory.name, 'a.py')
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)
        os.utime(path, (1, 1))
        return path

    def test_functions_with_samples(self):
        path = self.file('def f():\n    return 1\n\ndef g():\n    pass\n')
        b = Builder()
        b.sample([(b.function('a', 'f', path, 1), 2)], wall_ns=1)
        data = self.sources(b.profile())
        self.assertEqual(data, {
            'functions': [{'name': 'a.f', 'filename': path, 'first_line': 1,
                           'lines': {'1': 'def f():', '2': '    return 1'},
                           'notes': []}],
            'generic': {}, 'left_out': 0})

    def test_of_a_long_function_what_is_near(self):
        path = self.file('x = 1\n' * 1000)
        b = Builder()
        b.sample([(b.function('a', '<module>', path, 1), 500)], wall_ns=1)
        lines = self.sources(b.profile())['functions'][0]['lines']
        self.assertEqual(list(map(int, lines)), list(range(492, 509)))

    def test_a_file_that_is_not_there(self):
        function, = self.sources(Builder().sample(
            'a.f:3', wall_ns=1).profile())['functions']
        self.assertEqual(function['lines'], {})
        self.assertEqual(function['notes'], [
            'There is no source: No such file or directory.'])

    def test_frozen_modules(self):
        import genericpath
        first = genericpath.isdir.__code__.co_firstlineno
        for version, is_there in (sys.version.split()[0], True), ('3.1', False):
            b = Builder(python_version=version)
            b.sample([(b.function('genericpath', 'isdir',
                                  '<frozen genericpath>', first), first + 3)],
                     wall_ns=1)
            function, = self.sources(b.profile())['functions']
            self.assertEqual(function['lines'].get(str(first)),
                             'def isdir(s):' if is_there else None)

    def test_what_was_typed_is_in_linecache(self):
        import linecache
        self.addCleanup(linecache.cache.pop, 'In[7]', None)
        linecache.cache['In[7]'] = 20, None, ['def f():\n', '    g()\n'], 'x'
        b = Builder()
        b.sample([(b.function('a', 'f', 'In[7]', 1), 2)], wall_ns=1)
        function, = self.sources(b.profile())['functions']
        self.assertEqual(function['lines'], {'1': 'def f():', '2': '    g()'})

    def test_where_functions_end(self):
        path = self.file(
            '@deco(lambda x:\n      x)\nasync def f():\n    """\nno end\n"""\n'
            '    if x: pass\n\n    # still\n    return (\n1)\n\n'
            '# not any more\nclass C:\n    def g(self): return 1\n\n'
            '    def h(self):\n        pass\n')
        for name, first, last in (('f', 1, 11), ('g', 15, 15), ('h', 17, 18)):
            b = Builder()
            b.sample([(b.function('a', name, path, first), first)], wall_ns=1)
            function, = self.sources(b.profile())['functions']
            self.assertEqual([*map(int, function['lines'])],
                             [*range(first, last + 1)], name)

    def test_pages_without_it(self):
        self.assertNotIn('id="sources"', page_of(example()))

    def test_names_of_generic_instructions(self):
        generic = self.sources(example().profile())['generic']
        self.assertEqual(generic['BINARY_OP_MULTIPLY_INT'], 'BINARY_OP')
        self.assertEqual(generic['BINARY_OP'], 'BINARY_OP')
        self.assertNotIn('CALL_KW', generic)

    def test_it_is_bounded(self):
        path = self.file('x = "' + 'y' * 900_000 + '"\n')
        b = Builder()
        for name in 'f', 'g':
            b.sample([(b.function('a', f'<{name}>', path, 1), 1)], wall_ns=1)
        data = self.sources(b.profile())
        self.assertEqual((len(data['functions']), data['left_out']), (1, 1))


if __name__ == '__main__':
    unittest.main()
