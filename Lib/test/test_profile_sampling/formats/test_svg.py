"""Flame graphs: valid XML, true widths, nothing that runs or is fetched."""

import unittest
from xml.etree import ElementTree

from profile_sampling._formats import svg as _svg

from ..support import hard_profiles
from ..support.builders import Builder, example

NS = '{http://www.w3.org/2000/svg}'
# Of all frames together, in pixels.
FULL = 1180
MILLISECOND = 1_000_000


class Frame:

    def __init__(self, group):
        title, rect, *text = group
        self.title = title.text.split('\n')
        self.name = self.title[0]
        self.x, self.y, self.width, self.height = [
            float(rect.get(name)) for name in ('x', 'y', 'width', 'height')]
        self.text = text[0].text if text else ''
        self.class_ = rect.get('class')


class Drawing:

    def __init__(self, builder):
        self.data = _svg.encode(builder.profile()._tables)
        self.root = ElementTree.fromstring(self.data)
        self.frames = [Frame(group) for group in self.root.iter(f'{NS}g')]
        self.notes = [text.text for text in self.root.findall(f'{NS}text')
                      if 'not drawn' in text.text or 'no samples' in text.text]

    def named(self, name):
        found, = [frame for frame in self.frames if frame.name == name]
        return found


class LayoutTest(unittest.TestCase):

    def test_known_answer(self):
        b = Builder()
        b.sample('a.main:1 a.f:2', wall_ns=25 * MILLISECOND, count=3,
                 cpu_ns=20 * MILLISECOND)
        b.sample('a.main:7 C:time.sleep [waiting]', state='waiting',
                 wall_ns=50 * MILLISECOND, count=1)
        b.sample('a.main:7', wall_ns=15 * MILLISECOND, count=1)
        b.sample('', wall_ns=10 * MILLISECOND, state='unsampled')
        drawing = Drawing(b)
        self.assertEqual(
            [(frame.name, frame.x, frame.y, frame.width, frame.class_)
             for frame in drawing.frames],
            [('all', 10, 72, FULL, 'x'),
             ('a.main', 10, 89, 1062, 'p2'),
             ('a.f', 10, 106, 295, 'p2'),
             ('time.sleep', 305, 106, 590, 'c'),
             ('[waiting]', 305, 123, 590, 'b'),
             ('[no frames]', 1072, 89, 118, 'x')])
        self.assertEqual(drawing.named('a.f').title, [
            'a.f', '/src/a.py:1',
            'wall time: 25.000 ms (25.0 %), self 25.000 ms',
            'samples: 3 (50.0 %), self 3',
            'CPU time: 20.000 ms (100.0 %), self 20.000 ms'])
        self.assertEqual([frame.text for frame in drawing.frames],
                         [frame.name for frame in drawing.frames])
        self.assertEqual(drawing.notes, [])

    def test_a_frame_is_as_wide_as_its_share(self):
        for builder in example(), hard_profiles.recursive():
            drawing = Drawing(builder)
            profile = builder.profile()
            pending = [(profile.call_tree(), 0)]
            n_compared = 0
            while pending:
                node, depth = pending.pop()
                width = FULL * node.cum_wall_ns / profile.total_wall_ns
                if width >= 0.5:
                    name = 'all' if node.function is None else (
                        node.function.name)
                    self.assertTrue([
                        frame for frame in drawing.frames
                        if frame.name == name and frame.y == 72 + 17 * depth
                        and abs(frame.width - width) <= 0.011], name)
                    n_compared += 1
                    pending += [(child, depth + 1) for child in node.children]
            self.assertGreater(n_compared, 3)

    def test_no_frame_is_outside_its_caller(self):
        for builder in (example(), hard_profiles.recursive(),
                        hard_profiles.full(2000)):
            rows = {}
            for frame in Drawing(builder).frames:
                rows.setdefault(frame.y, []).append(
                    (frame.x, frame.x + frame.width))
            for y, spans in rows.items():
                spans.sort()
                for (_, end), (begin, _) in zip(spans, spans[1:]):
                    self.assertLessEqual(end, begin + 0.011)
                for begin, end in spans if y > 72 else ():
                    self.assertTrue([
                        True for left, right in rows[y - 17]
                        if left <= begin + 0.011 and end <= right + 0.011])

    def test_text_fits(self):
        b = Builder()
        for number in range(1, 40):
            b.sample([b.function('package.module', 'x' * number)],
                     wall_ns=number * number)
        b.sample([b.function('m', '字' * 300)], wall_ns=9_000)
        n_cut = 0
        for frame in Drawing(b).frames:
            cells = sum([1 + (char == '字') for char in frame.text])
            if frame.text:
                self.assertLessEqual(cells * 7.2, frame.width - 6)
            n_cut += frame.text.endswith('…')
        self.assertGreater(n_cut, 5)

    def test_what_is_not_drawn_is_counted(self):
        b = Builder().sample('a.main', wall_ns=FULL * 1000)
        for number in range(1234):
            b.sample(f'a.main a.f{number}', wall_ns=1)
        drawing = Drawing(b)
        self.assertEqual([frame.name for frame in drawing.frames],
                         ['all', 'a.main'])
        self.assertEqual(drawing.notes, [
            '1,234 frames narrower than 0.5 px are not drawn.'])

    def test_deep_stacks(self):
        drawing = Drawing(hard_profiles.deep())
        self.assertEqual(len(drawing.frames), 1900)
        self.assertEqual(drawing.notes,
                         ['48,102 frames below row 1,900 are not drawn.'])
        self.assertLess(float(drawing.root.get('height')), 32_768)

    def test_what_the_profile_is_about(self):
        b = Builder(mode='cpu')
        b.sample('a.f', cpu_ns=1, wall_ns=9).sample('a.g', cpu_ns=3)
        drawing = Drawing(b)
        self.assertEqual(drawing.named('a.f').width * 3,
                         drawing.named('a.g').width)

    def test_other_values(self):
        b = Builder(mode='alloc', value_types=[('alloc', 'bytes')])
        b.sample('a.f', values=(4096,))
        self.assertEqual(Drawing(b).named('a.f').title[2:],
                         ['alloc: 4.0 KB (100.0 %), self 4.0 KB'])

    def test_negative_values(self):
        b = Builder().sample('a.f', wall_ns=5).sample('a.g', wall_ns=-3)
        with self.assertRaisesRegex(ValueError, 'negative values of wall_ns'):
            Drawing(b)

    def test_no_samples(self):
        drawing = Drawing(Builder())
        self.assertEqual(drawing.frames, [])
        self.assertEqual(drawing.notes, ['There are no samples.'])


class SafetyTest(unittest.TestCase):

    def test_hostile_names(self):
        drawing = Drawing(hard_profiles.hostile())
        names = {frame.name for frame in drawing.frames}
        for name in ('<b>&amp;</b>.<b>&amp;</b>', r'[a\nb]', r'[\udc80]',
                     ']]>', r'\x00\x1b[1m', r'\ufffe', '[no name]',
                     '</script>', 'a"b\'c'):
            self.assertIn(name, names)
        for frame in drawing.frames:
            for line in frame.title:
                self.assertTrue(line.isprintable())
                self.assertLess(len(line), 220)

    def test_nothing_runs_and_nothing_is_fetched(self):
        for builder in example(), hard_profiles.hostile():
            for element in Drawing(builder).root.iter():
                self.assertIn(element.tag.removeprefix(NS), {
                    'svg', 'title', 'style', 'text', 'rect', 'g'})
                self.assertLessEqual(set(element.attrib), {
                    'width', 'height', 'viewBox', 'role', 'font-family',
                    'font-size', 'class', 'x', 'y', 'rx'})
                if element.tag == f'{NS}style':
                    self.assertNotIn('url', element.text)
                    self.assertNotIn('@import', element.text)
