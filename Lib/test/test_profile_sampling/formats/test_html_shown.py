"""Pages in a real browser: every number that they show is the profile's."""

import contextlib
import io
import json
import os
import random
import shlex
import unittest

from profile_sampling import Profile
from profile_sampling._cli.main import main
from profile_sampling._data import by_function, by_gil_holder, by_site, keys
from profile_sampling._data import opcodes as _opcodes
from profile_sampling._data.idle import left_out
from profile_sampling._formats import html as _html

from ..support import hard_profiles
from ..support.browser import complaints, needs_browser, wait_for
from ..support.builders import Builder, example
from ..support.pages import (
    READ_TREE, READY, BrowserTest, idle_threads, in_tasks, named, placed,
    profiles, shown)
from ..support.random_profiles import random_profile


def busy(profile):
    """What a page shows: without threads that had nothing to do."""
    return Profile._from_tables(left_out(profile._tables))


@needs_browser
class NumbersTest(BrowserTest):

    def test_all(self):
        """Each page is opened once: that takes longer than a view."""
        for name, profile in profiles():
            profile = self.show(profile)
            for check in (self.check_functions, self.check_lines,
                          self.check_call_tree, self.check_callers,
                          self.check_labels, self.check_gil):
                with self.subTest(name, check=check.__name__):
                    check(profile)

    def test_idle_time_comes_back(self):
        profile = self.show(idle_threads(), view='functions')
        self.check_functions(profile)
        self.assertEqual(self.text('p.idle'),
                         'idle left out: 4.1us of 7.6us Show')
        self.click('p.idle', 'Show')
        self.assertEqual(self.text('p.idle'), 'idle included Leave out')
        self.check_functions(profile, idle='1')
        self.look(view='sites', idle='1')
        self.assertEqual(sum([row['self'] for row in self.table('sites')]),
                         profile.total_wall_ns)

    def test_full_tables(self):
        """But for the whole call tree, which nobody opens."""
        profile = self.show(hard_profiles.full().profile())
        for check in self.check_functions, self.check_lines, self.check_labels:
            with self.subTest(check.__name__):
                check(profile)
        for query in {'view': 'tree'}, {'view': 'flame'}, {'up': '1'}:
            self.look(**query)
        self.assertRegex(self.text('.note'), 'frames? smaller|^$')

    def check_functions(self, profile, **query):
        self.look(view='functions', **query)
        if not query:
            profile = busy(profile)
        own = profile._tables.own
        margin = by_site.Sites(profile._tables).precision.margin_ns
        records = by_function.running_records(profile._tables)
        self.assertEqual(
            sorted([(row['self'], row['cum'], row['function'],
                     row.get('self_margin'), row.get('cum_margin'))
                    for row in self.table('functions')]),
            sorted([(row.self_values[own], row.cum_values[own],
                     named(row.function), *[
                         margin(its) for its
                         in records.get(row.function, (0, 0))])
                    for row in profile.functions()]))

    def check_lines(self, profile):
        self.look(view='sites')
        sites = by_site.Sites(profile._tables)
        margin = sites.precision.margin_ns
        self.assertEqual(
            sorted([(row['self'], row['site'], row.get('margin'),
                     row['running'])
                    for row in self.table('sites')]),
            sorted([(row.sums.total, placed(row.function, row.line),
                     margin(row.sums.running_records),
                     row.sums.by_state[0])
                    for row in sites.rows]))

    def check_call_tree(self, profile):
        profile = busy(profile)
        own = profile._tables.own
        for up in (), ('1',):
            self.look(view='tree', **{'up': up} if up else {})
            expected = [
                (depth, named(node.function), node.cum_values[own],
                 node.self_values[own])
                for depth, node in profile.call_tree(
                    inverted=bool(up)).walk() if depth]
            self.assertEqual(
                sorted([(level, name, row['cum'], row['self'])
                        for level, name, row in self.run_js(READ_TREE)]),
                sorted(expected), up)

    def check_callers(self, profile):
        profile = busy(profile)
        rows = profile.functions()
        own = profile._tables.own
        for row in rows[:3]:
            function = row.function
            if len([1 for other in rows
                    if other.function.name == function.name]) > 1:
                continue
            self.look(view='sandwich', selected=function.name)
            for table, expected, nobody in (
                    ('callers', profile.callers(function), '[nobody]'),
                    ('callees', profile.callees(function), '[itself]')):
                self.assertEqual(
                    sorted([(row['cum'], row['function'])
                            for row in self.table(table)]),
                    sorted([(row.values[own], nobody if
                             row.function is None else named(row.function))
                            for row in expected
                            if row.function or row.values[own]]), function)

    def check_labels(self, profile):
        tables = profile._tables
        sites = by_site.Sites(tables)
        labels = [*set(profile.label_keys) - {'task_name'}]
        for key in ('thread', 'state', *labels):
            sums = {}
            for value, idle, row in zip(
                    keys.values(tables, key), sites.is_idle,
                    tables.row_tuples()):
                its = sums.setdefault((value, keys.text(value)), [0, 0])
                its[idle] += row[6 + tables.own]
            self.look(view='by', by=key)
            self.assertEqual(
                sorted([(row['self'], row.get('idle', 0),
                         row['value']) for row in self.table('by')]),
                sorted([(busy, idle, shown(text)) for
                        (_, text), (busy, idle) in sums.items()]), key)

    def check_gil(self, profile):
        rows = profile.gil_holders()
        if not rows:
            return
        self.look(view='gil')
        own = by_gil_holder.ranked_by(profile._tables)
        pairs, caused = {}, {}
        for row in rows:
            holder = placed(row.holder.function, row.holder.line)
            if row.holder.callee is not None:
                holder += f' ({named(row.holder.callee)})'
            for sums, key in (
                    (pairs, (placed(row.function, row.line), holder)),
                    (caused, holder)):
                sums[key] = sums.get(key, 0) + row.values[own]
        self.assertEqual(pairs, {
            (row['waiter'], row['holder']): row['wait']
            for row in self.table('gil')})
        self.assertEqual(caused, {
            row['holder']: row['wait'] for row in self.table('gil_caused')})
        self.assertEqual(sum(pairs.values()), sum([
            value for row in self.table('gil_threads')
            for key, value in row.items() if key.startswith('held by ')]))


@needs_browser
class PageTest(BrowserTest):

    def test_parts(self):
        profile = self.show(random_profile(random.Random(5)),
                            view='functions')
        for part, query in (
                (profile.focus(r'a\.f'), {'focus': r'a\.f'}),
                (profile.ignore('b'), {'ignore': 'b'}),
                (profile.hide(r'^a\.'), {'hide': r'^a\.'}),
                (profile.filter(state='waiting').hide('sorted'),
                 {'where': 'state=^waiting$', 'hide': 'sorted'}),
                (profile.focus('nothing'), {'focus': 'nothing'})):
            with self.subTest(query):
                self.look(view='functions', **query)
                own = part._tables.own
                self.assertEqual(
                    sorted([(row['self'], row['cum'], row['function'])
                            for row in self.table('functions')]),
                    sorted([(row.self_values[own], row.cum_values[own],
                             named(row.function))
                            for row in part.functions()]))

    def test_the_command_shows_the_same(self):
        """By the options that the page names."""
        self.show(in_tasks(), view='functions')
        for query in ({'fold': ['C', 'operators']}, {'fold': 'pseudo'},
                      {'fold': 'stdlib'}, {'fold': 'packages'},
                      {'root': 'run_until_complete', 'hide': 'select'},
                      {'collapse': '_run_once', 'value': 'count'},
                      {'focus': r"it's|work", 'fold': 'stdlib'},
                      {'ignore': '-x'},
                      {'where': 'state=running|waiting', 'ignore': ' x',
                       'value': 'cpu_ns'}, {'value': 'task_ns'}):
            with self.subTest(query):
                self.look(view='functions', **query)
                shown = [(row['self'], row['cum'], row['function'])
                         for row in self.table('functions')]
                self.assertTrue(shown)
                self.assertEqual(sorted(shown), sorted(
                    self.reported(self.text('#chips code'))))

    def reported(self, command):
        """Yield (self, cum, function) of what the command says."""
        name, *options = shlex.split(command)
        out = io.TextIOWrapper(io.BytesIO(), 'utf-8')
        with contextlib.redirect_stdout(out):
            main([name, self.path, *options, '--functions', '--format',
                  'json', '-n', '9999'])
        out.seek(0)
        table, = json.load(out)['tables']
        for row in table['rows']:
            own, cum = [row.get(f'{key}_ns', row.get(key))
                        for key in ('self', 'cum')]
            yield own, cum, shown(row['function']) or '[no name]'

    def test_a_step_shows_what_opening_the_page_does(self):
        self.show(random_profile(random.Random(5)))
        for view in ('flame', 'sites', 'functions', 'tree', 'sandwich', 'by',
                     'gil', 'quality'):
            with self.subTest(view):
                self.look(view=view)
                stepped = self.text('#view')
                self.open_page(f'view={view}')
                wait_for(self.driver, lambda driver:
                         driver.execute_script(READY))
                self.assertEqual(self.text('#view'), stepped)

    def test_all_types_of_values(self):
        profile = self.show(example().profile())
        for number, name in enumerate(('count', 'cpu_ns', 'wall_ns')):
            self.look(view='functions', value=name)
            self.assertEqual(
                sorted([(row['self'], row['cum'])
                        for row in self.table('functions')]),
                sorted([(row.self_values[number], row.cum_values[number])
                        for row in profile.functions()]))
        self.look(view='functions', value='wall_minus_cpu_ns')
        self.assertEqual(
            sorted([row['cum'] for row in self.table('functions')]),
            sorted([row.cum_wall_ns - row.cum_cpu_ns
                    for row in profile.functions()]))

    def test_what_a_search_matches(self):
        profile = self.show(example().profile(), search='JSON')
        self.assertEqual(
            int(self.run_js("return document.querySelector('.found')"
                            ".dataset.value")),
            profile.focus('json').total_wall_ns)

    def test_what_is_folded_goes_to_the_callers(self):
        self.show(example().profile(), view='functions',
                  fold=['C', 'operators', 'pseudo'])
        rows = {row['function']: row for row in self.table('functions')}
        self.assertEqual(rows['app.work']['self'], 300_000_001)
        self.assertEqual(rows['app.<module>']['self'], 990_000_000)
        self.assertNotIn('time.sleep', rows)

    def test_what_is_idle_stays_idle(self):
        for query in ({}, {'hide': '_worker|read'}, {'root': 'a.main'},
                      {'fold': ['C', 'pseudo']}):
            with self.subTest(**query):
                self.show(idle_threads(), view='sites', **query)
                self.assertIn(', 4.1us of it idle and left out',
                              self.text('#facts'))

    def test_a_flame_graph_by_keys(self):
        profile = self.show(example().profile(), view='flame')
        nodes = {}
        for _, node in profile.call_tree().walk():
            name = 'all' if node.function is None else node.function.name
            nodes.setdefault(name, []).append(
                (node.cum_wall_ns, node.self_wall_ns))
        flame = self.driver.find_element('css selector', '.flame')
        seen = set()
        for key in '\ue010' * 0 + '\ue015\ue014\ue015\ue015\ue013\ue014':
            flame.send_keys(key)
            said = self.run_js(
                "const said = document.querySelector('.said');"
                'return [said.firstChild.data.split("\\n")[0],'
                ' Number(said.dataset.cum), Number(said.dataset.self)]')
            self.assertIn(tuple(said[1:]), nodes[said[0]])
            seen.add(said[0])
        self.assertGreater(len(seen), 2)

    def test_transforms_and_undo(self):
        self.show(example().profile(), view='functions', selected='app.work')
        self.click('#selected', 'Focus')
        self.assertIn('focus=', self.driver.current_url)
        self.assertEqual(
            {row['function'] for row in self.table('functions')},
            {'app.<module>', 'app.work', 'json.load', 'app.hook',
             'int.__mul__'})
        self.click('#selected', 'Collapse')
        rows = {row['function']: row for row in self.table('functions')}
        self.assertEqual(set(rows), {'app.<module>', 'app.work'})
        self.assertEqual(rows['app.work']['self'], 1_000_000_001)
        self.click('#selected', 'Root')
        self.assertEqual([row['function'] for row
                          in self.table('functions')], ['app.work'])
        for expected in 2, 5, 11:
            self.click('#chips', 'undo')
            wait_for(self.driver, lambda _: len(
                self.table('functions')) == expected)

    def test_a_query_that_is_none(self):
        for query in ({'focus': '('}, {'where': 'nothing=1'},
                      {'search': '/(/'}, {'view': 'none', 'by': '?'},
                      {'value': 'no', 'fold': 'x', 'sort': 'y'}):
            self.show(example().profile(), **query)
            fault = self.run_js("return document.querySelector('.fault')"
                                "?.textContent ?? ''")
            self.assertTrue(fault, query)

    def test_source(self):
        with open(os.path.join(os.path.dirname(self.path), 'a.py'), 'w',
                  encoding='utf-8') as file:
            file.write('def f(x):\n    x = g(x)\n    return x * 7\n')
        b = Builder(names=3)
        f = b.function('a', 'f', file.name, 1)
        call = f, 2, 9, 4, _opcodes.number('CALL_PY_EXACT_ARGS')
        b.sample([call, b.function('a', 'g')], wall_ns=500_000)
        for name, count in ('BINARY_OP_MULTIPLY_INT', 3), ('BINARY_OP', 1):
            b.sample([(f, 3, 12, 8, _opcodes.number(name)),
                      b.function('int', '__mul__', kind=2)], count=count,
                     wall_ns=count * 1_000_000)
        profile = b.profile()
        with open(self.path, 'wb') as file:
            file.write(_html.encode(profile._tables, with_source=True))
        self.look(view='source', selected='a.f')
        rows = self.table('source')
        self.assertEqual(
            [(row['line'], row['self'], row['cum'], row['source'])
             for row in rows],
            [(1, '', '', 'def f(x):'), (2, '', 500_000, '    x = g(x)'),
             (3, 4_000_000, 4_000_000, '    return x * 7'),
             ('', 4_000_000, '', ' ' * 11 + '^ BINARY_OP, 75% specialized '
              '(BINARY_OP_MULTIPLY_INT), 25% deoptimized, '
              'in int.__mul__ 100%')])
        cum = {row.line: row.cum_wall_ns for row in profile.lines()
               if row.function.name == 'a.f'}
        self.assertEqual(cum, {row['line']: row['cum'] for row in rows
                               if row['cum'] != ''})

    def test_a_row_of_the_labels_is_a_filter(self):
        profile = self.show(random_profile(random.Random(2)), view='by',
                            by='route')
        value, = [row['value'] for row in self.table('by')
                  if row['value'] == '/x']
        self.run_js("[...document.querySelectorAll('tbody tr')].find((row) =>"
                    " row.lastChild.textContent === arguments[0]).click()",
                    value)
        self.assertEqual(
            [row['self'] + row.get('idle', 0) for row in self.table('by')],
            [profile.filter(labels={'route': '/x'})._tables.totals[
                profile._tables.own]])

    def test_keys(self):
        self.show(example().profile(), selected='app.work')
        body = self.driver.find_element('css selector', 'body')
        for keys_, text in (('3', 'view=functions'), ('f', 'focus='),
                            ('c', 'collapse='), ('l', 'up=1'),
                            ('i', 'flip=1'), ('v', 'value=count')):
            body.send_keys(keys_)
            self.assertIn(text, self.driver.current_url)
        for _ in range(6):
            body.send_keys('u')
        wait_for(self.driver, lambda driver:
                 '=' not in driver.current_url.replace('selected=', ''))
        # There is nothing more to undo: the page stays.
        body.send_keys('u')
        body.send_keys('?')
        self.assertTrue(self.run_js(
            "return document.querySelector('dialog').open"))
        # Nobody sees what other keys would do behind it.
        address = self.driver.current_url
        self.driver.switch_to.active_element.send_keys('42f?')
        self.assertEqual(self.driver.current_url, address)

    def test_another_file(self):
        other = os.path.join(os.path.dirname(self.path), 'other.pb.gz')
        hard_profiles.recursive().profile().save(other)
        self.show(example().profile(), view='functions')
        self.choose('pprof file', other)
        wait_for(self.driver, lambda driver:
                 '10 samples' in self.text('#facts'))
        self.look(view='functions')
        self.assertIn('1,047 samples', self.text('#facts'))

    def test_a_saved_page_works_again(self):
        profile = self.show(example().profile(), view='functions')
        text = self.run_js('return document.documentElement.outerHTML')
        with open(self.path, 'w', encoding='utf-8') as file:
            file.write(f'<!DOCTYPE html>\n{text}')
        self.assertEqual(Profile.load(self.path), profile)
        self.look(view='functions')
        self.assertEqual(len(self.table('functions')),
                         len(profile.functions()))
        self.assertEqual(self.run_js(
            "return document.querySelectorAll('dialog').length"), 1)

    def test_libraries_fold_into_what_entered_them(self):
        b = Builder()
        mine = b.function('m', 'f')
        first, inner = [b.function(
            'json', name, '/usr/lib/python3.13/json/x.py')
            for name in ('loads', 'scan')]
        c = b.function('_json', 'scan', kind=1)
        b.sample([mine, first, inner, c], wall_ns=4)
        b.sample([mine, first, inner, mine], wall_ns=3)
        self.show(b.profile(), view='functions', fold='stdlib')
        expected = {'json.loads': (4, 7), 'm.f': (3, 7)}
        self.assertEqual({row['function']: (row['self'], row['cum'])
                          for row in self.table('functions')}, expected)
        # Built from source: the place of a module that is known tells.
        b = Builder()
        mine = b.function('m', 'f', '/home/me/m.py')
        first = b.function('threading', 'run', '/src/Lib/threading.py')
        inner = b.function('json', 'scan', '/src/Lib/json/x.py')
        b.sample([first, inner, mine], wall_ns=3)
        b.sample([first, inner], wall_ns=4)
        self.show(b.profile(), view='functions', fold='stdlib')
        self.assertEqual({row['function']: (row['self'], row['cum'])
                          for row in self.table('functions')},
                         {'threading.run': (4, 7), 'm.f': (3, 3)})

    def test_a_phone(self):
        self.driver.set_window_size(400, 800)
        self.addCleanup(self.driver.set_window_size, 1280, 900)
        self.show(hard_profiles.hostile().profile())
        for view in 'flame', 'functions', 'sites', 'by', 'sandwich':
            self.look(view=view)
            self.assertLessEqual(*self.run_js(
                'return [document.documentElement.scrollWidth, innerWidth]'),
                view)

    def test_deep_stacks(self):
        self.show(hard_profiles.deep().profile())
        self.assertGreater(self.run_js(
            "return document.querySelector('.sizer').offsetHeight"), 900_000)
        self.look(view='tree')
        self.look(view='tree', up='1')
        self.look(up='1')

    def test_what_the_header_says(self):
        self.show(example().profile())
        facts = self.text('#facts')
        for text in ('Wall profile of Python', '2 threads', '1,047 samples',
                     'waiting 48.3 %', '3 samples lost (ring full 3)'):
            self.assertIn(text, facts)

    def test_a_thread_that_only_held_the_gil_is_not_counted(self):
        b = Builder()
        main, other = b.thread('MainThread'), b.thread('other')
        b.sample('a.f [GIL~wait]', wall_ns=1, thread=main, state='gil_wait',
                 holder=(other, 'a.g:3'))
        self.show(b.profile())
        self.assertIn('1 thread,', self.text('#facts'))

    def test_a_damaged_page_says_so(self):
        page = _html.encode(example().profile()._tables)
        with open(self.path, 'wb') as file:
            file.write(page.replace(b'H4sI', b'AAAA', 1))
        self.open_page()
        wait_for(self.driver, lambda driver: driver.execute_script(READY))
        self.assertIn('cannot show its profile', self.text('.fault'))
        self.assertTrue(complaints(self.driver))


if __name__ == '__main__':
    unittest.main()
