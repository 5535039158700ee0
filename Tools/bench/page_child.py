"""Writes the page of a profile, or shows one in a browser and says how long
each step took, in milliseconds."""

import json
import os
import sys
import time
from pathlib import Path

# What an expression takes until the page has been drawn.
_TIMED = '''
const done = arguments[arguments.length - 1];
const began = performance.now();
%s;
requestAnimationFrame(() => setTimeout(() => done(performance.now() - began)));
'''
_ZOOMED = '''
const done = arguments[arguments.length - 1];
const canvas = document.querySelector('#flame canvas');
const {left, top} = canvas.getBoundingClientRect();
const began = performance.now();
let frames = 0;
const step = () => {
  if (frames % 10 === 0) {
    canvas.dispatchEvent(new MouseEvent('click', {
      clientX: left + 200, clientY: top + (frames % 20 ? 12 : 84)}));
  }
  if (++frames < 60) {
    requestAnimationFrame(step);
  } else {
    done(60_000 / (performance.now() - began));
  }
};
requestAnimationFrame(step);
'''
_STEPS = {
    'filter': 'document.querySelector("#legend button").click()',
    'no filter': 'document.querySelector("#legend button").click()',
    'flame graph': 'document.querySelector("#t-flame").click()',
    'callees on top': 'document.querySelectorAll(".seg button")[3].click()',
    'waits': 'document.querySelector("#t-waits").click()',
}


def write(path):
    from profile_sampling import Profile
    profile = Profile.load(path)
    page = path.replace('.pb.gz', '.html')
    began = time.monotonic()
    profile.save(page, source=False)
    return {'path': page, 'wall_s': time.monotonic() - began,
            'bytes': os.path.getsize(page)}


def show(path):
    root = Path(__file__).resolve().parents[2]
    sys.path += map(str, root.glob('build/venv/lib/python*/site-packages'))
    from test.test_profile_sampling.support.browser import browser, wait_for
    with browser() as driver:
        driver.get('about:blank')
        began = time.monotonic()
        driver.get(f'file://{path}')
        wait_for(driver, lambda driver: driver.execute_script(
            'return document.querySelector("#view tr")'))
        found = {'open': 1000 * (time.monotonic() - began)}
        for step, script in _STEPS.items():
            found[step] = driver.execute_async_script(_TIMED % script)
            if step == 'flame graph':
                found['frames per second'] = driver.execute_async_script(
                    _ZOOMED)
        return found


if __name__ == '__main__':
    what, path = sys.argv[1:]
    print(json.dumps({'write': write, 'show': show}[what](path)))
