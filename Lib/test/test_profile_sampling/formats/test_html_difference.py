"""Pages that compare: every number is that of Profile.diff(), and what is said
of several runs is what the command diff says."""

import io
import os
import random
import unittest

from profile_sampling import Profile, ProfileDiff

from ..profiles.test_task_rows import service
from ..support import hard_profiles
from ..support.browser import complaints, needs_browser, wait_for
from ..support.builders import Builder, example
from ..support.pages import READ_TREE, READY, BrowserTest, named
from ..support.random_profiles import random_profile
from .test_html_tasks import latency


def before():
    b = Builder(duration_ns=1_000_000)
    b.sample('a.main:3 a.f:12', wall_ns=500, cpu_ns=400, count=5)
    b.sample('a.main:4 a.old:22 C:len', wall_ns=300, cpu_ns=300, count=3)
    b.sample('a.main:5 a.g:31', wall_ns=200, state='waiting',
             labels={'route': '/a'})
    return b.profile()


def after():
    b = Builder(duration_ns=1_000_000)
    for name, line in ('main', 11), ('f', 21), ('g', 41):
        b.function('a', name, first_line=line)
    main, f, g = range(3)
    b.sample([(main, 13), (f, 32)], wall_ns=900, cpu_ns=700, count=9)
    b.sample([(main, 15), (g, 71)], wall_ns=150, state='waiting',
             labels={'route': '/b'})
    b.sample('a.main:3 a.new:1', wall_ns=50, count=1)
    return b.profile()


def pairs():
    """Profiles to be compared, by their names."""
    yield 'by hand', before(), after()
    yield 'nothing', Builder().profile(), example().profile()
    yield 'itself', example().profile(), example().profile()
    yield ('recursive', hard_profiles.recursive().profile(),
           example().profile())
    yield ('hostile', hard_profiles.hostile().profile(),
           hard_profiles.hostile().sample(
               'a.f:1', wall_ns=10_000_000).profile())
    alike = {}
    for seed in range(12):
        profile = random_profile(random.Random(seed))
        alike.setdefault((profile.mode, profile.value_types), []).append(
            (seed, profile))
    for (seed, one), (other_seed, other), *_ in alike.values():
        yield f'random {seed}, {other_seed}', one, other


def by_path(profile, inverted):
    """{path of (name, kind): cumulative values}, alike paths added up."""
    own = profile._tables.own
    found = {}
    path = []
    for depth, node in profile.call_tree(inverted=inverted).walk():
        if depth:
            path[depth - 1:] = [(node.function.name, node.function.kind)]
            key = tuple(path)
            found[key] = found.get(key, 0) + node.cum_values[own]
    return found


class PageTest(unittest.TestCase):

    def test_equal_differences_are_equal_pages(self):
        pages = []
        for _ in range(2):
            file = io.BytesIO()
            after().diff(before()).save(file)
            pages.append(file.getvalue())
        self.assertEqual(*pages)

    def test_it_loads_as_what_is_new(self):
        file = io.BytesIO()
        example().profile().diff(before()).save(file)
        file.seek(0)
        plain = io.BytesIO()
        example().profile().save(plain)
        plain.seek(0)
        self.assertEqual(Profile.load(file), Profile.load(plain))

    def test_source_can_be_left_out(self):
        for source in True, False:
            file = io.BytesIO()
            after().diff(before()).save(file, source=source)
            self.assertEqual(b'id="sources"' in file.getvalue(), source)


class DifferenceTest(BrowserTest):

    def compare(self, base, now, **query):
        """Open the page; return both profiles as files have them."""
        now.diff(base).save(self.path)
        self.look(**query)
        return [self.loaded(base), self.loaded(now)]

    def loaded(self, profile):
        file = io.BytesIO()
        profile.save(file)
        file.seek(0)
        return Profile.load(file)


@needs_browser
class NumbersTest(DifferenceTest):

    def test_functions(self):
        for name, base, now in pairs():
            for side in '', 'base':
                with self.subTest(name, side=side):
                    base, now = self.compare(base, now, view='functions',
                                             side=side)
                    which = ('after', 'before') if not side else (
                        'before', 'after')
                    self.assertEqual(
                        sorted([(row['self'], row['other'], row['change'],
                                 row['function'])
                                for row in self.table('functions')
                                if row['self'] or row['other']]),
                        sorted([(*[getattr(row, one) for one
                                   in (*which, 'change')],
                                 named(row.function))
                                for row in now.diff(
                                    base, by='function').rows]))

    def test_cumulative(self):
        base, now = self.compare(before(), after(), view='functions',
                                 sort='cum')
        self.assertEqual(
            sorted([(row['cum'], row['other'], row['change'])
                    for row in self.table('functions')]),
            sorted([(row.after, row.before, row.change) for row in now.diff(
                base, by='function', cumulative=True).rows]))

    def test_lines_are_known_by_their_distance_from_the_head(self):
        self.compare(before(), after(), view='sites')
        rows = {row['site']: (row['self'], row['other'], row['change'])
                for row in self.table('sites')}
        self.assertEqual(rows, {
            'a.f:32': (900, 500, 400), 'a.g:71': (150, 200, -50),
            'a.new:1': (50, 0, 50), 'a.old:22': (0, 300, -300)})

    def test_call_tree(self):
        for name, base, now in pairs():
            for up in False, True:
                with self.subTest(name, up=up):
                    base, now = self.compare(base, now, view='tree',
                                             **{'up': 1} if up else {})
                    own, other = [by_path(profile, up)
                                  for profile in (now, base)]
                    self.assertEqual(
                        sorted([(row['cum'], row['other'], row['change'])
                                for _, _, row in self.run_js(READ_TREE)]),
                        sorted([(value, other.get(path, 0),
                                 value - other.get(path, 0))
                                for path, value in own.items()]))

    def test_callers_and_callees(self):
        base, now = self.compare(before(), after(), view='sandwich',
                                 selected='a.main')
        self.assertEqual(
            [(row['function'], row['cum'], row['other'], row['change'])
             for row in self.table('callees')],
            [('a.f', 900, 500, 400), ('a.g', 150, 200, -50),
             ('a.new', 50, 0, 50), ('a.old', 0, 300, -300)])
        self.assertEqual(
            [(row['cum'], row['other']) for row in self.table('callers')],
            [(1100, 1000)])

    def test_labels(self):
        self.compare(before(), after(), view='by', by='route')
        self.assertEqual(
            sorted([(row['value'], row['self'], row['other'], row['change'])
                    for row in self.table('by')]),
            [('/a', 0, 200, -200), ('/b', 150, 0, 150),
             ('[without]', 950, 800, 150)])

    def test_gil(self):
        def held(head, *places):
            b = Builder(duration_ns=1_000_000)
            b.function('a', 'f', first_line=1 + head)
            b.function('a', 'g', first_line=1)
            for name, line, ns, other in places:
                numbers = {'f': 0, 'g': 1}
                b.sample([(numbers[name], line)], wall_ns=ns,
                         state='gil_wait', thread=b.thread(f'pool {ns}'),
                         holder=(b.thread('main'), other))
            return b.profile()
        asleep = 'a.g:7 C:time.sleep'
        base = held(0, ('f', 3, 300, 'a.g:7'), ('g', 5, 90, asleep))
        now = held(10, ('f', 13, 500, 'a.g:7'), ('g', 6, 40, asleep))
        self.compare(base, now, view='gil')
        self.assertEqual(
            [(row['waiter'], row['holder'], row['wait'], row['other'],
              row['change']) for row in self.table('gil')],
            [('a.f:13', 'a.g:7', 500, 300, 200),
             ('a.g:6', 'a.g:7 (time.sleep)', 40, 0, 40),
             ('a.g:5', 'a.g:7 (time.sleep)', 0, 90, -90)])
        self.assertEqual(
            [(row['holder'], row['wait'], row['other'], row['change'])
             for row in self.table('gil_caused')],
            [('a.g:7', 500, 300, 200), ('a.g:7 (time.sleep)', 40, 90, -50)])
        self.assertEqual(
            [(row['waiter'], row['wait'], row['other'], row['change'])
             for row in self.table('gil_threads')],
            [('pool *', 540, 390, 150)])
        # Waits are time, whatever is looked at, and whichever side.
        self.look(view='gil', value='count', side='base')
        self.assertEqual(
            [(row['wait'], row['other'], row['change'])
             for row in self.table('gil_caused')],
            [(300, 500, 200), (90, 40, -50)])

    def test_waits_that_only_the_base_has(self):
        b = Builder(duration_ns=1000)
        b.sample('a.f:1', wall_ns=9, state='gil_wait', thread=b.thread('w'),
                 holder=(b.thread('main'), 'a.g:2'))
        base = b.profile()
        self.compare(base, after(), view='gil')
        self.assertEqual([(row['wait'], row['change'])
                          for row in self.table('gil')], [(0, -9)])
        self.compare(base, base, view='gil', scale='share')
        self.assertEqual([(row['wait'], row['change'])
                          for row in self.table('gil')], [(9, 0)])

    def test_a_label_that_one_side_does_not_have(self):
        self.compare(before(), example().profile(), view='functions',
                     where='route=/a')
        rows = {row['function']: (row['self'], row['other'])
                for row in self.table('functions')}
        self.assertEqual(rows, {'a.g': (0, 200), 'a.main': (0, 0)})

    def test_parts(self):
        base, now = self.compare(before(), after(), view='functions',
                                 focus='^a.f$', value='cpu_ns')
        self.assertEqual(
            [(row['function'], row['self'], row['other'])
             for row in self.table('functions')],
            [('a.f', 700, 400), ('a.main', 0, 0)])

    def test_shares(self):
        self.compare(before(), after(), view='functions', scale='share')
        rows = {row['function']: row for row in self.table('functions')}
        self.assertAlmostEqual(rows['a.f']['change'], 900 - 500 * 1.1)


@needs_browser
class FlameTest(DifferenceTest):

    def said(self):
        return self.run_js(
            "const box = document.querySelector('.flame');"
            "box.dispatchEvent(new KeyboardEvent('keydown', {key: 'Home'}));"
            "return document.querySelector('.said').textContent").split('\n')

    def test_net_and_gross(self):
        self.compare(before(), after())
        self.assertEqual(self.said()[1:], [
            'wall 0.001 ms (100.0 %), self 0.000 ms',
            'base 0.001 ms, change +0.1us +10.0%',
            'that is +0.5us and −0.3us in what it calls'])

    def test_what_vanished_is_in_the_shape_of_the_base(self):
        self.compare(before(), after())
        note, = [text for text in self.notes() if 'vanished' in text]
        self.assertIn('1 call of 0.3us vanished', note)
        self.click('#view', "show the base's shape")
        self.assertEqual(self.run_js('return location.hash'), '#side=base')
        note, = [text for text in self.notes() if 'came new' in text]
        self.assertIn('1 call of 0.1us came new', note)

    def notes(self):
        return [note.text for note in self.driver.find_elements(
            'css selector', '#view .note')]


@needs_browser
class RunsTest(DifferenceTest):

    def runs(self, builder, times):
        found = []
        for number, ns in enumerate(times):
            b = Builder(pid=number + 1)
            b.sample(f'a.main:1 a.{builder}:2', wall_ns=ns, count=ns // 1000)
            b.sample('a.main:1 a.same:2', wall_ns=500_000, count=500)
            found.append(b.profile())
        return found

    def write(self, sides, share=False):
        difference = ProfileDiff(*sides, by='function', share=share)
        difference.save(self.path)
        return difference

    def test_margins_are_those_of_python(self):
        sides = [self.runs('f', range(100_000, 105_000, 1000)),
                 self.runs('f', range(200_000, 205_000, 1000))]
        difference = self.write(sides)
        self.look(view='changes')
        first, *rows = self.table('changes')
        self.assertEqual(
            [(row['name'], row['before'], row['after'], row['change'],
              row['margin']) for row in rows],
            [(f'{row.name}:1', row.before, row.after, row.change, row.margin)
             for row in difference.rows])
        self.assertEqual(first['change'], difference.total.change)

    def test_sides_of_other_numbers_of_runs(self):
        self.write([self.runs('f', [100_000, 100_000]),
                    self.runs('f', [200_000])])
        self.look(view='functions')
        row, = [row for row in self.table('functions')
                if row['function'] == 'a.f']
        self.assertEqual((row['self'], row['other'], row['change']),
                         (200_000, 100_000, 100_000))

    def test_shares_and_values_that_were_asked_for(self):
        self.write([self.runs('f', [100_000]), self.runs('f', [200_000])],
                   share=True)
        self.open_page()
        wait_for(self.driver, lambda driver: driver.execute_script(READY))
        self.assertEqual(self.run_js(
            "return document.querySelector('.scale').ariaPressed"), 'true')


def tasks(number):
    """A service that does *number* times as much, and one task that the
    others have not."""
    b = Builder()
    b.thread('MainThread')
    handle = b.task_class('app.handle:10',
                          lives=[number * 50_000, number * 60_000])
    own = b.task_class(f'app.own{number}:30', lives=[1000])
    b.sample('app.main:1 app.handle:12 C:json.dumps', wall_ns=9000,
             task_ns=9000 * number, delay_ns=6000 * number,
             task_class=handle, labels={'route': '/'})
    b.sample('app.main:1 [GIL~wait]', delay_ns=2000 * number, wall_ns=9000,
             state='gil_wait', holder=(0, 'app.hog:7'))
    b.sample(f'app.main:1 app.own{number}:31 [awaiting]', task_ns=700,
             state='awaiting', task_class=own)
    raw = b.raw()
    raw['latencies'] = (latency('/', ['app.handle'], [7000] * number),)
    return Profile._from_raw(raw)


@needs_browser
class TasksTest(DifferenceTest):

    def cells(self, table, *keys):
        return [tuple([row.get(key) for key in keys])
                for row in self.table(table)]

    def test_classes(self):
        base, now = self.compare(tasks(1), tasks(3), view='tasks')
        self.assertEqual(
            self.cells('tasks', 'task', 'life', 'other', 'change'),
            [('app.handle', 27_000, 9000, 18_000), ('app.own3', 700, 0, 700),
             ('app.own1', 0, 700, -700)])
        own, other = [{row.name: row for row in profile.tasks()}['app.handle']
                      for profile in (now, base)]
        self.assertEqual(
            self.cells('tasks', 'finished', 'other_ended', 'mean',
                       'other_mean', 'p99', 'other_p99')[0],
            (2, 2, own.mean_ns, other.mean_ns, own.p99_ns, other.p99_ns))
        self.assertEqual(self.cells('tasks', 'relative_mean')[0],
                         ('+200.0%',))
        # Which one is shown makes no other change of it.
        self.look(view='tasks', side='base')
        self.assertEqual(
            self.cells('tasks', 'task', 'life', 'other', 'change')[0],
            ('app.handle', 9000, 27_000, 18_000))
        self.assertEqual(self.cells('tasks', 'relative_mean')[0],
                         ('+200.0%',))

    def test_histograms(self):
        self.compare(tasks(1), tasks(3), view='tasks')
        rows = self.cells('times of task_class', 'first', 'behind',
                          'new_count', 'base_count')
        for place, number in (2, 3), (3, 1):
            for ns in 50_000 * number, 60_000 * number:
                self.assertTrue([row for row in rows if row[place]
                                 and row[0] <= ns < row[1]])
            self.assertEqual(sum([row[place] for row in rows]), 2)

    def test_requests(self):
        self.compare(tasks(1), tasks(3), view='tasks')
        self.assertEqual(
            self.cells('tasks_by', 'value', 'mean', 'other_mean', 'count',
                       'other_count', 'relative_count'),
            [('/', 7000, 7000, 3, 1, '+200.0%')])

    def test_holders(self):
        self.compare(tasks(1), tasks(3), view='tasks')
        self.assertEqual(
            self.cells('loop_holders', 'holder', 'delay', 'other', 'change'),
            [('app.handle:12', 18_000, 6000, 12_000),
             ('app.hog:7', 6000, 2000, 4000)])
        self.assertEqual(self.cells('loop_holders', 'held'),
                         [('loop',), ('GIL',)])

    def test_values_that_one_does_not_have(self):
        served = service().profile()
        for base, now, text in ((before(), served, 'what is new'),
                                (served, before(), 'the base')):
            base, now = self.compare(base, now, view='functions')
            self.assertIn(f'Only {text} has values of task and delay: they '
                          'are left out', self.text('#facts'))
            self.assertEqual(
                sorted([row['change'] for row in self.table('functions')
                        if row['change']]),
                sorted([row.change for row
                        in now.diff(base, by='function').rows]))
            self.assertNotIn('Tasks', self.text('.tabs'))

    def test_no_finding_leads_where_there_is_nothing(self):
        for base, is_shown in (before(), False), (service().profile(), True):
            self.compare(base, service().profile())
            text = self.text('.finding[data-rule=loop_wait]')
            self.assertEqual(text.endswith('show'), is_shown)


@needs_browser
class FileTest(DifferenceTest):

    def test_a_second_profile_on_an_open_page(self):
        directory = os.path.dirname(self.path)
        for name in 'base.pb.gz', 'base.html':
            with self.subTest(name):
                path = os.path.join(directory, name)
                before().save(path)
                self.show(after())
                self.choose('base', path)
                wait_for(self.driver, lambda driver: 'Compared' in (
                    driver.find_element('id', 'facts').text))
                self.assertIn('how runs differ is not known',
                              self.text('#facts'))
                self.run_js("location.hash = 'view=functions'")
                wait_for(self.driver, lambda driver: driver.execute_script(
                    "return document.querySelector('table')"))
                self.assertEqual(
                    sorted([row['change'] for row
                            in self.table('functions') if row['change']]),
                    sorted([row.change for row in after().diff(
                        before(), by='function').rows]))
                self.assertEqual(complaints(self.driver), [])

    def test_profiles_of_other_values(self):
        path = os.path.join(os.path.dirname(self.path), 'other.pb.gz')
        Builder(mode='cpu').sample('a.f:1', cpu_ns=1).profile().save(path)
        self.show(after())
        self.choose('base', path)
        wait_for(self.driver, lambda driver: driver.find_elements(
            'css selector', '.fault'))
        self.assertIn('cannot be compared', self.text('.fault'))
        self.assertTrue(complaints(self.driver))


if __name__ == '__main__':
    unittest.main()
