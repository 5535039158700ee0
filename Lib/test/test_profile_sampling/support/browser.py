"""A real browser without a window: Chromium, driven by selenium.

Both are the tests' own: Debian's packages chromium and chromium-driver, and
what Tools/test/requirements.txt lists.  Without them the tests are skipped.
"""

import contextlib
import logging
import shutil
import tempfile
import unittest
import warnings

# What it imports leaves filters and handlers behind, and regrtest calls that a
# changed environment.
_handlers = logging._handlerList[:]
with warnings.catch_warnings():
    try:
        from selenium import webdriver
        from selenium.webdriver.common.keys import Keys
        from selenium.webdriver.support.ui import WebDriverWait
    except ImportError:
        webdriver = Keys = None
logging._handlerList[:] = _handlers

DRIVER = shutil.which('chromedriver')
BROWSER = shutil.which('chromium')
TIMEOUT_S = 60
POLL_S = 0.02

needs_browser = unittest.skipIf(
    None in (webdriver, DRIVER, BROWSER),
    'needs selenium, chromium and chromedriver')

_running = []


@contextlib.contextmanager
def browser():
    """A browser with an empty profile of its own, offline but for files."""
    with tempfile.TemporaryDirectory() as directory:
        options = webdriver.ChromeOptions()
        options.binary_location = BROWSER
        for argument in (
                '--headless=new', f'--user-data-dir={directory}',
                # Tests may run as root, and in small containers.
                '--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu',
                '--proxy-server=127.0.0.1:9', '--window-size=1280,900'):
            options.add_argument(argument)
        options.set_capability('goog:loggingPrefs', {'browser': 'ALL'})
        driver = webdriver.Chrome(
            options, webdriver.ChromeService(DRIVER))
        try:
            yield driver
        finally:
            driver.quit()


def browser_of_module():
    """The browser of the test module that runs: to start one takes seconds."""
    if not _running:
        _running.append(unittest.enterModuleContext(browser()))
        unittest.addModuleCleanup(_running.clear)
    return _running[0]


def wait_for(driver, condition):
    """Return the first true value of condition(driver)."""
    return WebDriverWait(driver, TIMEOUT_S, POLL_S).until(condition)


def press(driver, keys):
    """Press keys, for whatever has the focus then."""
    webdriver.ActionChains(driver).send_keys(keys).perform()


def complaints(driver):
    """What the page's console says of faults."""
    return [entry['message'] for entry in driver.get_log('browser')
            if entry['level'] == 'SEVERE']
