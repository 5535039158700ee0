"""How quickly a page of full tables answers, in Chromium without a window.

The tables are those of "large": random stacks, 35 frames deep.
"""

import statistics
import tempfile
from pathlib import Path

import children
from report import quartiles

# What each step takes at most, in milliseconds.
BARS_MS = {'open': 2000, 'filter': 100, 'flame graph': 1000}
FRAMES_PER_S = 60


def measure(report, options):
    rounds = 1 if options.quick else 5
    with tempfile.TemporaryDirectory() as directory:
        path = str(Path(directory, 'full.pb.gz'))
        made = children.run_json('large_child.py', 'make', path)
        page = children.run_json('page_child.py', 'write', path)
        runs = [children.run_json('page_child.py', 'show', page['path'])
                for _ in range(rounds)]
    report.data['page'] = {'profile': made, 'page': page, 'runs': runs}
    report.say(f'{made["rows of samples"]:,} rows of samples; the page has '
               f'{page["bytes"]:,} bytes and took {page["wall_s"]:.1f} s')
    report.table('A page of full tables: ms, median [quartiles]', ['', 'ms'], [
        [step, '{1:.0f} [{0:.0f} {2:.0f}]'.format(
            *quartiles([run[step] for run in runs]))]
        for step in runs[0] if step != 'frames per second'])
    for step, bar_ms in BARS_MS.items():
        report.bar(f'page: {step}',
                   statistics.median([run[step] for run in runs]),
                   bar_ms, 'ms')
    report.bar('page: time of a frame while zooming', 1000 / statistics.median(
        [run['frames per second'] for run in runs]), 1000 / FRAMES_PER_S, 'ms')
