"""Time on pages in a real browser: ranges have the numbers of between()."""

import random
import unittest
from unittest import mock

from profile_sampling import Profile
from profile_sampling._data import by_gil_holder, by_site, timeline

from ..support import hard_profiles
from ..support.browser import complaints, needs_browser, wait_for
from ..support.builders import Builder, example
from ..support.pages import READY, BrowserTest, named, placed, profiles
from ..support.random_profiles import random_profile
from ..support.timed import timed, with_records

SECOND = 1_000_000_000
# Below a cent of a full record's cost; see the tests of formats.
MANY = 200_000
# Is every plot drawn?  That gives a canvas the size of its box, which comes
# with the browser's next picture; before, it is 300 wide.
SHOWN = '''
const plots = [...document.querySelectorAll('.plot canvas')];
return plots.length > 0 && plots.every(
  (canvas) => canvas.width > 0 && canvas.width === Math.round(
    canvas.parentElement.clientWidth * (devicePixelRatio || 1)));
'''
# Whether anything was drawn on a canvas.
COLORS = '''
const canvas = document.querySelector(`.plot-${arguments[0]}`);
const {data} = canvas.getContext('2d').getImageData(
  0, 0, canvas.width, canvas.height);
return new Set(new Uint32Array(data.buffer)).size;
'''


def seconds(ns):
    return f'{ns // SECOND}.{ns % SECOND:09}'


def timed_profiles():
    rng = random.Random(11)
    yield 'example', timed(example().profile(), rng)
    yield 'hostile', timed(hard_profiles.hostile().profile(), rng)
    yield 'recursive', timed(hard_profiles.recursive().profile(), rng)
    for seed in range(4):
        yield f'random {seed}', timed(random_profile(random.Random(seed)), rng)


class TimeTest(BrowserTest):

    def look_at_time(self, **query):
        profile = self.look(view='time', **query)
        wait_for(self.driver, lambda driver: driver.execute_script(SHOWN))
        self.assertEqual(complaints(self.driver), [])
        return profile

    def functions(self, **query):
        self.look(view='functions', **query)
        return sorted([(row['self'], row['cum'], row['function'])
                       for row in self.table('functions')])

    @staticmethod
    def own(profile):
        own = profile._tables.own
        return sorted([(row.self_values[own], row.cum_values[own],
                        named(row.function)) for row in profile.functions()])


@needs_browser
class NumbersTest(TimeTest):

    def test_functions_of_ranges(self):
        rng = random.Random(12)
        for name, profile in timed_profiles():
            profile = self.show(profile, view='functions')
            for _ in range(2):
                begin, end = sorted(rng.sample(range(2 * SECOND), 2))
                with self.subTest(name, begin=begin, end=end):
                    self.assertEqual(
                        self.functions(
                            time=f'{seconds(begin)},{seconds(end)}'),
                        self.own(profile.between(begin, end)))

    def test_what_is_left_open(self):
        profile = self.show(timed(example().profile(), random.Random(2)))
        self.assertEqual(self.functions(time='0.5,'),
                         self.own(profile.between(SECOND // 2, 1 << 62)))
        self.assertEqual(self.functions(time=',0.5'),
                         self.own(profile.between(0, SECOND // 2)))

    def test_every_view(self):
        part = (SECOND // 10, SECOND)
        for name, profile in timed_profiles():
            with self.subTest(name):
                profile = self.show(profile).between(*part)
                sites = by_site.Sites(profile._tables)
                margin = sites.precision.margin_ns
                self.look(view='sites', time='0.1,1')
                self.assertEqual(
                    sorted([(row['self'], row['site'], row.get('margin'))
                            for row in self.table('sites')]),
                    sorted([(row.sums.total, placed(row.function, row.line),
                             margin(row.sums.running_records))
                            for row in sites.rows]))
                self.look(view='by', by='state', time='0.1,1')
                self.assertEqual(
                    sum([row['self'] + row.get('idle', 0)
                         for row in self.table('by')]),
                    sum(profile._tables.column(6 + profile._tables.own)))
                waits = sum([row.values[2] for row
                             in by_gil_holder.rows(profile._tables)])
                if waits:
                    self.look(view='gil', time='0.1,1')
                    self.assertEqual(sum([
                        row['wait'] for row in self.table('gil')]),
                        waits)

    def test_a_part_that_was_saved(self):
        profile = timed(example().profile(), random.Random(2))
        part = profile.between(SECOND // 2, SECOND)
        self.show(part, view='functions')
        self.assertIn('Time line: from 500.000 ms to 1.000 s of '
                      f'{profile.duration_ns / 1e9:.3f} s',
                      self.text('#facts'))
        self.assertEqual(self.functions(time='0.6,0.7'), self.own(
            profile.between(6 * SECOND // 10, 7 * SECOND // 10)))

    def test_a_range_and_filters(self):
        profile = self.show(timed(random_profile(random.Random(7)),
                                  random.Random(8)))
        state = next(iter({sample.state for sample in profile.samples}))
        self.assertEqual(
            self.functions(time='0.2,1.2', where=f'state=^{state}$'),
            self.own(profile.between(SECOND // 5, 6 * SECOND // 5)
                     .filter(state=state)))

    def test_values_beyond_53_bits(self):
        # The products of values and parts of them have 60 bits.
        b = Builder(duration_ns=4 * SECOND)
        b.sample('a.f:1', wall_ns=3_000_000_019, cpu_ns=2_999_999_929)
        profile = self.show(with_records(b.profile(), [
            (3_500_000_003, 0, 1, 2_999_999_929, 3_000_000_019)]))
        for value in 'cpu_ns', 'wall_ns':
            self.look(view='functions', value=value,
                      time='1.234567891,3.333333337')
            row, = self.table('functions')
            expected, = profile.between(
                1_234_567_891, 3_333_333_337).functions()
            self.assertEqual(row['self'], getattr(expected, f'self_{value}'))

    def test_what_has_no_moments(self):
        b = Builder(value_types=[('samples', 'count'), ('cpu', 'nanoseconds'),
                                 ('alloc', 'bytes'), ('wall', 'nanoseconds')])
        b.sample('a.f:1', values=(1, 2, 4096, 8))
        profile = self.show(with_records(b.profile(), [(10, 0, 1, 2, 8)]))
        self.assertEqual(self.functions(time='0,1'),
                         self.own(profile.between(0, SECOND)))

    def test_changes(self):
        for name, profile in timed_profiles():
            with self.subTest(name):
                profile = self.show(profile)
                self.look_at_time(time='1,2', than='0,0.5')
                now = profile.between(SECOND, 2 * SECOND)
                then = profile.between(0, SECOND // 2)
                own = profile._tables.own
                sums = {}
                for part, place in (now, 0), (then, 1):
                    for row in part.functions():
                        pair = sums.setdefault(row.function, [0, 0])
                        pair[place] += row.self_values[own]
                self.assertEqual(
                    sorted([(row['change'], row['now'], row['then'],
                             row['place'])
                            for row in self.table('changed_functions')]),
                    sorted([(a - 2 * b, a, b, named(function))
                            for function, (a, b) in sums.items()]))
                changes = [abs(row['change'])
                           for row in self.table('changed_sites')]
                self.assertEqual(changes, sorted(changes, reverse=True))


@needs_browser
class ViewTest(TimeTest):

    def test_without_a_time_line(self):
        self.show(example().profile(), view='functions')
        self.open_page('view=time')
        wait_for(self.driver, lambda driver:
                 '--timeline' in self.text('#view'))
        self.assertEqual(complaints(self.driver), [])
        self.look(view='functions', time='0,1')
        self.assertIn('has no time line', self.text('.fault'))

    def test_one_that_another_tool_has_made_stale(self):
        tables = timed(example().profile(), random.Random(1))._tables
        stale = tables.with_timeline(timeline.nothing())
        with mock.patch.object(
                timeline, 'value_numbers', lambda tables: [2, 1, 0]):
            Profile._from_tables(stale).save(self.path)
        self.assertTrue(Profile.load(self.path).timeline.is_stale)
        self.open_page('view=time')
        wait_for(self.driver, lambda driver:
                 'Another tool' in self.text('#view'))
        self.assertEqual(complaints(self.driver), [])
        self.look(view='functions', time='0,1')
        self.assertIn('no time line that is of its', self.text('.fault'))

    def test_all_that_there_is_is_drawn(self):
        rng = random.Random(3)
        kinds = dict(profiles())
        kinds['deep'] = hard_profiles.deep().profile()
        for name in 'hostile', 'idle', 'tasks', 'nothing', 'deep':
            profile = kinds[name]
            with self.subTest(name):
                timed(profile, rng).save(self.path)
                self.look_at_time()
                for plot in 'lanes', 'heat', 'chart':
                    self.assertGreater(
                        self.run_js(COLORS, plot),
                        1 if profile.samples else 0, plot)
                self.look_at_time(lanes='pid', zoom='0.2,0.3', time='0.25,9')
                self.look_at_time(time='5,4', zoom='x,y', lane='\0', than=',')

    def test_a_range_that_is_dragged(self):
        profile = self.show_example()
        for plot in 'lanes', 'heat':
            self.look_at_time()
            canvas = self.driver.find_element('css selector', f'.plot-{plot}')
            width = canvas.size['width']
            from selenium.webdriver import ActionChains
            ActionChains(self.driver).move_to_element_with_offset(
                canvas, -width // 4, 30).click_and_hold().move_by_offset(
                    width // 4, 20).release().perform()
            wait_for(self.driver, lambda driver: 'time=' in driver.current_url)
            begin, end = self.range()
            self.assertLess(abs(begin - SECOND // 2), SECOND // 10, plot)
            self.assertLess(abs(end - SECOND), SECOND // 10, plot)
            self.look_again()
            self.assertEqual(
                sorted([(row['self'], row['cum'], row['function'])
                        for row in self.table('functions')]),
                self.own(profile.between(begin, end)))

    def show_example(self):
        timed(example().profile(), random.Random(5)).save(self.path)
        return Profile.load(self.path)

    def range(self):
        from urllib.parse import parse_qs, urlparse
        time, = parse_qs(urlparse(self.driver.current_url).fragment)['time']
        return [int(whole or 0) * SECOND + int(part.ljust(9, '0'))
                for whole, _, part in [text.partition('.')
                                       for text in time.split(',')]]

    def look_again(self):
        """Go to the functions, with the query that there is."""
        self.click('.tabs', 'Functions')
        wait_for(self.driver, lambda driver: driver.execute_script(READY))

    def test_a_range_by_keys(self):
        profile = self.show_example()
        from selenium.webdriver.common.keys import Keys
        for plot in 'lanes', 'heat', 'chart':
            self.look_at_time()
            box = self.driver.find_element(
                'css selector', f'.plot:has(.plot-{plot})')
            box.send_keys(Keys.HOME, Keys.ARROW_RIGHT)
            box.send_keys(Keys.SHIFT, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT,
                          Keys.NULL, Keys.ENTER)
            wait_for(self.driver, lambda driver: 'time=' in driver.current_url)
            begin, end = self.range()
            self.assertLess(begin, end)
            self.look_again()
            self.assertEqual(
                sorted([(row['self'], row['cum'], row['function'])
                        for row in self.table('functions')]),
                self.own(profile.between(begin, end)), plot)

    def test_buttons(self):
        self.show_example()
        self.look_at_time(time='0.5,1')
        self.click('.time', 'Zoom in')
        self.assertIn('zoom=0.5', self.driver.current_url)
        self.click('.time', 'Zoom out')
        self.click('.time', 'Compare with another range')
        self.assertIn('than=0.5', self.driver.current_url)
        self.assertTrue(self.table('changed_functions'))
        self.click('.time', 'Compare no more')
        self.assertNotIn('than', self.driver.current_url)
        self.look_at_time(time='0.5,1')
        self.click('.time', 'All time')
        self.assertNotIn('time=0', self.driver.current_url)
        self.look_at_time(time='0.5,1')
        self.assertIn('report --from 0.5 --to 1', self.text('#chips'))

    def test_lanes_of_one_name(self):
        b = Builder(duration_ns=SECOND)
        for number in range(2):
            b.sample(f'a.f{number}:1', wall_ns=SECOND - number,
                     thread=b.thread('worker', ident=number))
        with_records(b.profile(), [
            (SECOND - 1, 0, 1, 0, SECOND), (SECOND - 1, 1, 1, 0, SECOND - 1)
            ]).save(self.path)
        from selenium.webdriver import ActionChains
        self.look_at_time()
        for number, y in enumerate((28, 52)):
            canvas = self.driver.find_element('css selector', '.plot-lanes')
            ActionChains(self.driver).move_to_element_with_offset(
                canvas, 0, y - canvas.size['height'] // 2).click().perform()
            wait_for(self.driver, lambda driver: f'Stacks of worker #{number}'
                     in self.text('#view'))
            self.look_at_stacks(f'a.f{number}')

    def look_at_stacks(self, name):
        """The stack chart says what is pointed at."""
        from selenium.webdriver import ActionChains
        chart = self.driver.find_element('css selector', '.plot-chart')
        ActionChains(self.driver).move_to_element_with_offset(
            chart, 5, 5).perform()
        self.assertIn(name, self.text('.plot:has(.plot-chart) + .said'))

    def test_a_lane_that_would_be_empty(self):
        b = Builder(duration_ns=SECOND)
        for name, ns in (('busy', SECOND), ('helper', 20_000)):
            b.sample('a.f:1', wall_ns=ns, thread=b.thread(name),
                     task=(name, 1))
        with_records(b.profile(), [
            (SECOND, 0, 1, 0, SECOND), (SECOND // 2, 1, 1, 0, 20_000)]).save(
            self.path)
        height = "return document.querySelector('.plot-lanes').offsetHeight"
        heights = []
        for query, is_left_out in (
                ({}, True), ({'zoom': '0.4999,0.5001'}, False),
                ({'lanes': 'task'}, False)):
            self.look_at_time(**query)
            self.assertEqual('Without a lane, for it would be empty: helper '
                             '(20.0us)' in self.text('#view'), is_left_out)
            heights.append(self.run_js(height))
        self.assertEqual(heights[1:], [heights[0] + 24] * 2)

    def test_many_lanes(self):
        b = Builder()
        threads = [b.thread(f't{number}') for number in range(40)]
        for thread in threads:
            b.sample('a.f:1', wall_ns=SECOND, thread=thread)
        timed(b.profile(), random.Random(1)).save(self.path)
        self.look_at_time()
        height = "return document.querySelector('.plot-lanes').offsetHeight"
        before = self.run_js(height)
        self.click('#view', '… 24 more lanes')
        self.assertGreater(self.run_js(height), 2 * before)

    def test_a_phone(self):
        self.driver.set_window_size(400, 800)
        self.addCleanup(self.driver.set_window_size, 1280, 900)
        timed(hard_profiles.hostile().profile(), random.Random(1)).save(
            self.path)
        self.look_at_time(time='0.5,1', than='1,1.5')
        self.assertLessEqual(*self.run_js(
            'return [document.documentElement.scrollWidth, innerWidth]'))

    def test_many_records(self):
        rng = random.Random(1)
        profile = hard_profiles.full(2_000).profile()
        each = MANY // len(profile.samples)
        b = Builder(duration_ns=MANY * 1_000_000)
        tables = profile._tables
        rows = array_of(tables, each)
        profile = Profile._from_raw(rows | {
            'duration_ns': b.facts['duration_ns']})
        records = [(1 + rng.randrange(profile.duration_ns), row, 1, 5, 10)
                   for row in range(len(profile.samples))
                   for _ in range(each)]
        with_records(profile, records).save(self.path)
        self.look_at_time()
        self.assertEqual(self.run_js('''
            return document.querySelector('#view').textContent
              .includes(arguments[0])''', f'{len(records):,} records'), True)
        begin = self.run_js('return performance.now()')
        self.click('.tabs', 'Functions')
        self.click('.tabs', 'Time')
        wait_for(self.driver, lambda driver: driver.execute_script(SHOWN))
        self.assertLess(self.run_js('return performance.now()') - begin,
                        10_000)


def array_of(tables, each):
    """The tables with *each* records in each sample."""
    from array import array
    samples = array('q', tables.samples)
    width = tables.sample_columns
    for start in range(0, len(samples), width):
        samples[start + 6:start + 9] = array('q', (each, 5 * each, 10 * each))
    from profile_sampling._data.tables import function_row, thread_row
    return tables.facts() | {
        'functions': list(map(function_row, tables.functions)),
        'frames': tables.frames, 'nodes': tables.nodes,
        'labels': tables.labels,
        'threads': list(map(thread_row, tables.threads)),
        'samples': samples.tobytes()}


if __name__ == '__main__':
    unittest.main()
