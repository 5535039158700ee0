"""Pages as files: the same each time, safe, and with the profile in them."""

import base64
import gzip
import hashlib
import io
import json
import os
import re
import subprocess
import tempfile
import unittest

from profile_sampling import __file__ as package

from ..support import hard_profiles
from ..support.builders import Builder, example

SHELL_BYTES = 118_000
BLOCK = re.compile(r'<script type="application/octet-stream" id="([a-z]+)">'
                   r'([A-Za-z0-9+/=]*)</script>')
FOLDER = os.path.join(os.path.dirname(package), '_page')
# Of the checkout that this is in, if it is one.
BUILD = os.path.join(os.path.dirname(os.path.realpath(__file__)),
                     *['..'] * 4, 'Tools', 'page', 'build.sh')
ESBUILD = os.path.join(os.path.dirname(BUILD), '..', '..', 'build', 'viewers',
                       'node_modules', '.bin', 'esbuild')


def page_of(profile, **options):
    file = io.BytesIO()
    profile.save(file, 'html', **options)
    return file.getvalue().decode()


def digest(text):
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


class PageTest(unittest.TestCase):

    def test_equal_profiles_are_equal_pages(self):
        self.assertEqual(page_of(example().profile()),
                         page_of(example().profile()))

    def test_the_profile_is_a_pprof_file_in_it(self):
        blocks = dict(BLOCK.findall(page_of(example().profile())))
        file = io.BytesIO()
        example().profile().save(file, 'pprof')
        self.assertEqual(base64.b64decode(blocks['profile']), file.getvalue())

    def test_the_shell_is_small(self):
        shell = BLOCK.sub('', page_of(example().profile()))
        self.assertLess(len(shell.encode()), SHELL_BYTES)


class SafetyTest(unittest.TestCase):

    def test_only_what_is_in_the_page_may_run(self):
        page = page_of(hard_profiles.hostile().profile())
        policy, = re.findall(
            r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">',
            page)
        style, = re.findall(r'<style>(.*?)</style>', page, re.DOTALL)
        script, = re.findall(r'<script type="module">(.*?)</script>', page,
                             re.DOTALL)
        self.assertEqual(policy.split('; '), [
            "default-src 'none'", f"script-src 'sha256-{digest(script)}'",
            f"style-src 'sha256-{digest(style)}'", 'img-src data:',
            "base-uri 'none'", "form-action 'none'"])

    def test_names_are_in_blocks_of_base64_only(self):
        shell = BLOCK.sub('', page_of(example().profile()))
        b = Builder()
        b.sample('</script><script>alert(1)</script>.f:1', wall_ns=1000)
        self.assertEqual(BLOCK.sub('', page_of(b.profile())), shell)

    def test_texts_of_the_document_are_as_they_were(self):
        name = '</script>\u202e\x00"\\\ud800'
        b = Builder()
        b.sample([(b.function('m', name), 3)], wall_ns=1000)
        blocks = dict(BLOCK.findall(page_of(b.profile())))
        data = gzip.decompress(base64.b64decode(blocks['document']))
        size = int.from_bytes(data[:4], 'little')
        facts = json.loads(data[4:4 + size])
        self.assertEqual(facts['schema'], 'profile_sampling.page/1')
        self.assertIn('</script>', str(facts['functions']['qualname']))


class BundleTest(unittest.TestCase):

    def test_no_string_of_html_and_no_style_in_attributes(self):
        with open(os.path.join(FOLDER, 'page.js'), encoding='utf-8') as file:
            script = file.read()
        for forbidden in ('innerHTML', 'outerHTML', 'insertAdjacentHTML',
                          'document.write', 'eval(', 'new Function'):
            self.assertNotIn(forbidden, script)
        with open(os.path.join(FOLDER, 'page.html'), encoding='utf-8') as file:
            self.assertNotIn(' style=', file.read())

    @unittest.skipUnless(os.path.exists(ESBUILD), 'needs a checkout in which '
                         '"make test" has installed the packages of node')
    def test_it_is_current(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, 'page.js')
            result = subprocess.run(
                ['sh', BUILD, path], stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True)
            self.assertEqual(result.returncode, 0, result.stdout)
            with open(path, encoding='utf-8') as new, open(
                    os.path.join(FOLDER, 'page.js'), encoding='utf-8') as old:
                self.assertEqual(new.read(), old.read(), 'run "make page"')
