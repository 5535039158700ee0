"""Real `go tool pprof` reads our files."""

import os
import random
import re

from profile_sampling import Profile

from ..support.builders import Builder, example
from ..support.go_tool import GoTest, top_rows
from ..support.timed import timed


class GoPprofTest(GoTest):

    def report(self, builder, *options):
        path = os.path.join(self.directory.name, 'p.pb.gz')
        builder.profile().save(path)
        return self.run_tool(self.pprof, *options, path)

    def table(self, builder, *options):
        return top_rows(self.report(builder, '-top', *options))

    def test_top(self):
        rows = self.table(example(), '-unit=ns', '-nodefraction=0')
        self.assertEqual(rows, {
            'app.hook': ('700000000ns', '700000000ns'),
            'app.work': ('200000000ns', '1000000001ns'),
            'int.__mul__': ('100000001ns', '100000001ns'),
            '[waiting]': ('990000000ns', '990000000ns'),
            '[GIL wait]': ('60000000ns', '60000000ns'),
            '[lost]': ('1000000ns', '1000000ns'),
            '[GC gen0]': ('1500ns', '1500ns'),
            'app.<module>': ('0', '1990000001ns'),
            'json.load': ('0', '700000000ns'),
            'time.sleep': ('0', '990000000ns'),
            'app.spin': ('0', '60001500ns')})

    def test_a_time_line(self):
        profile = timed(example().profile(), random.Random(1))
        path = os.path.join(self.directory.name, 't.pb.gz')
        again = os.path.join(self.directory.name, 'again.pb.gz')
        profile.save(path)
        for option in '-top', '-tags':
            self.assertEqual(self.run_tool(self.pprof, option, path),
                             self.report(example(), option))
        self.run_tool(self.pprof, '-proto', f'-output={again}', path)
        line = Profile.load(again).timeline
        self.assertEqual(list(line.time_ns), list(profile.timeline.time_ns))
        both = os.path.join(self.directory.name, 'both.pb.gz')
        self.run_tool(self.pprof, '-proto', f'-output={both}', path, path)
        self.assertTrue(Profile.load(both).timeline.is_stale)

    def test_the_default_type_is_the_modes(self):
        # PITFALLS F2.
        b = Builder(mode='cpu').sample('a.f', count=5, cpu_ns=7, wall_ns=9)
        self.assertEqual(self.table(b, '-unit=ns'), {'a.f': ('7ns', '7ns')})
        self.assertEqual(self.table(b, '-unit=ns', '-sample_index=wall'),
                         {'a.f': ('9ns', '9ns')})
        self.assertEqual(self.table(b, '-sample_index=samples'),
                         {'a.f': ('5', '5')})

    def test_names_survive(self):
        # PITFALLS F1: pprof takes <...> for C++ templates.
        names = ['<module>', '<lambda>', 'f.<locals>.<lambda>', '<listcomp>',
                 'operator<', 'int < float', 'int << int',
                 'decimal.Decimal.__add__', 'List[int].get',
                 '_ZN3foo3barEv', 'naïve', 'two words']
        b = Builder()
        for number, name in enumerate(names, 1):
            b.sample([b.function(None, name, '/a.py', number)],
                     wall_ns=1000)
            b.sample([b.function('m', name, '/a.py', number)], wall_ns=1000)
        rows = self.table(b, '-nodefraction=0', '-unit=ns')
        for name in names:
            self.assertEqual(rows.get(name), ('1000ns', '1000ns'), name)
            self.assertEqual(rows.get(f'm.{name}'), ('1000ns', '1000ns'),
                             name)

    def test_labels(self):
        b = Builder()
        b.sample('a.f:1', wall_ns=3_000, labels={'route': '/users/{id}'},
                 task=('Task-1', 12))
        b.sample('a.g:1', wall_ns=1_000, labels={'route': '/', 'user': 'é'})
        b.sample('a.g:1', wall_ns=2_000)
        text = self.report(b, '-tags', '-unit=ns')
        found = {}
        for section in text.split('\n\n'):
            key, _, rows = section.strip().partition(':')
            found[key] = {value: ns for ns, value in re.findall(
                r'(\d+)ns \( ?[\d.]+%\): (.*)', rows)}
        self.assertEqual(found['route'], {'/users/{id}': '3000', '/': '1000'})
        self.assertEqual(found['user'], {'é': '1000'})
        self.assertEqual(found['task name'], {'Task-1': '3000'})
        rows = self.table(b, '-unit=ns', '-tagfocus=route=^/users')
        self.assertEqual(rows, {'a.f': ('3000ns', '3000ns')})

    def test_what_go_merges_keeps_its_instructions(self):
        path = os.path.join(self.directory.name, 'in.pb.gz')
        out = os.path.join(self.directory.name, 'out.pb.gz')
        b = Builder(names=3)
        b.sample('a.f:1@BINARY_OP_ADD_INT+8 op:int.__add__', wall_ns=3_000)
        b.sample('a.f:1@BINARY_OP+8', wall_ns=1_000)
        b.profile().save(path)
        self.run_tool(self.pprof, '-proto', f'-output={out}', path, path)
        row, = Profile.load(out).instructions()
        self.assertEqual(
            (row.instruction_offset, row.self_wall_ns, row.opnames,
             row.deoptimized_count),
            (8, 8_000, (('BINARY_OP_ADD_INT', 2),), 2))

    def test_recursion(self):
        # PITFALLS T9.
        b = Builder().sample('a.main ' + 'a.f ' * 500, wall_ns=1000)
        self.assertEqual(self.table(b, '-unit=ns'),
                         {'a.f': ('1000ns', '1000ns'),
                          'a.main': ('0', '1000ns')})

    def test_what_go_writes_is_read(self):
        path = os.path.join(self.directory.name, 'in.pb.gz')
        out = os.path.join(self.directory.name, 'out.pb.gz')
        profile = example().profile()
        profile.save(path)
        self.run_tool(self.pprof, '-proto', f'-output={out}', path, path)
        merged = Profile.load(out)
        # The same file twice: pprof drops samples without a stack.
        kept_ns = profile.total_wall_ns - 499
        self.assertIn(merged.total_wall_ns,
                      (2 * kept_ns, 2 * profile.total_wall_ns))
        self.assertEqual(merged.mode, 'wall')
        names = {row.function.name for row in merged.functions()}
        self.assertEqual(names, {row.function.name
                                 for row in profile.functions()})
