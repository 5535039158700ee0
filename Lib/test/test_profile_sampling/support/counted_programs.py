"""Programs that call much of the standard library, always as often.

What they import is imported, and cached, before any of them is counted.
"""

import argparse
import ast
import asyncio
import configparser
import contextlib
import copy
import dataclasses
import difflib
import email
import fractions
import heapq
import html.parser
import io
import json
import pickle
import pprint
import random
import shlex
import statistics
import textwrap
import tokenize
import xml.etree.ElementTree as ElementTree

_SOURCE = textwrap.dedent('''
    """A module."""
    import os

    class Shelf(list):
        size: int = 3

        def put(self, *things, at=None, **more):
            for number, thing in enumerate(things):
                if thing in self and not more:
                    continue
                self[number:number] = [thing, lambda: f"{thing!r:>{at}}"]
            return {key: value for key, value in more.items() if value}

    async def fill(shelf):
        async with shelf as one:
            await one.put(1, 2, at=3)
        yield [x async for x in shelf]
    ''') * 4


def unparse():
    ast.unparse(ast.parse(_SOURCE))


def visit():
    list(ast.walk(ast.parse(_SOURCE)))


def tokens():
    list(tokenize.generate_tokens(io.StringIO(_SOURCE).readline))


def json_text():
    json.loads(json.dumps({'a': list(range(50)), 'b': [{'k': None}] * 20},
                          indent=1))


def parse_html():
    class Counter(html.parser.HTMLParser):
        tags = 0

        def handle_starttag(self, tag, attributes):
            self.tags += 1
    Counter().feed('<p class="x">text <b>bold</b> &amp; more</p>\n' * 50)


def compare():
    lines = _SOURCE.splitlines()
    list(difflib.unified_diff(lines, lines[5:40] + lines[60:]))


def add_fractions():
    sum([fractions.Fraction(1, number) for number in range(1, 60)])


def deviation():
    statistics.stdev([fractions.Fraction(number, 3)
                      for number in range(40)])


def pretty():
    pprint.pformat({number: [str(number)] * 9 for number in range(30)})


def fill():
    textwrap.fill(_SOURCE * 3, 60)


def read_config():
    parser = configparser.ConfigParser()
    parser.read_string('[a]\nx=1\ny=%(x)s2\n' + ''.join(
        [f'k{number}=v\n' for number in range(60)]))
    for key in parser['a']:
        parser.get('a', key)


def read_mail():
    email.message_from_string('From: a@example.org\nSubject: x\n\n'
                              + 'body\n' * 40).as_string()


def read_arguments():
    parser = argparse.ArgumentParser(prog='x')
    for number in range(20):
        parser.add_argument(f'--option{number}', type=int)
    parser.parse_args(['--option1', '3', '--option2', '4'])
    parser.format_help()


def sort_records():
    @dataclasses.dataclass(order=True)
    class Record:
        number: int
        text: str = ''
    sorted([Record(number % 7) for number in range(100)])


def merge_heaps():
    list(heapq.merge(*[range(number, 100, 7) for number in range(7)]))


def shuffle():
    source = random.Random(1)
    source.shuffle(list(range(200)))
    [source.randint(1, 9) for _ in range(200)]


def copy_deeply():
    copy.deepcopy({number: [number, {'x': (number,)}]
                   for number in range(60)})


def dump():
    pickle._dumps({number: [number, str(number)] for number in range(60)})


def split():
    shlex.split('a "b c" d ' * 30)


def write_xml():
    root = ElementTree.Element('r')
    for number in range(40):
        ElementTree.SubElement(root, 'c', k=str(number))
    ElementTree.tostring(root)
    root.findall('.//c')


def manage_contexts():
    @contextlib.contextmanager
    def context():
        try:
            yield 1
        except KeyError:
            pass
    for number in range(40):
        with context():
            if number % 3 == 0:
                raise KeyError


async def _tick(times):
    for _ in range(times):
        await asyncio.sleep(0)


async def _run_tasks():
    async with asyncio.TaskGroup() as group:
        for _ in range(10):
            group.create_task(_tick(10))


def run_tasks():
    asyncio.run(_run_tasks())


PROGRAMS = (
    unparse, visit, tokens, json_text, parse_html, compare, add_fractions,
    deviation, pretty, fill, read_config, read_mail, read_arguments,
    sort_records, merge_heaps, shuffle, copy_deeply, dump, split, write_xml,
    manage_contexts, run_tasks)
