"""Runs one file of CPython's tests in a process of its own.

Owns the command line, the time limit and what the process left behind: its
report, its log, its status.  Knows nothing of other runs of the same file.
"""

import collections
import os
import pathlib
import re
import shlex
import signal
import subprocess
import tempfile
import time
import xml.etree.ElementTree as ElementTree

# What needs no network, no screen and no hours of CPU.  Behind "walltime" is
# what a profiler might break first: interrupted system calls, timers.
RESOURCES = 'curses,subprocess,walltime'
# regrtest's own limit writes the stacks of a test that hangs; ours is for
# a process that does not end.
TIMEOUT_S = 1200
GRACE_S = 300
POLL_S = 0.2
# regrtest: failed, and left something changed that other tests may rely on.
STATUS_FAILED = 2
STATUS_TEXTS = {0: 'ran', STATUS_FAILED: 'failed', 3: 'environment changed',
                4: 'no tests', 130: 'interrupted'}
# The children of a report's testcase.
VERDICTS = {'failure': 'failed', 'error': 'failed', 'skipped': 'skipped',
            'output': 'failed as expected',
            'outcome': 'passed unexpectedly'}
LOGGED_FAILURE = re.compile(r'^(?:FAIL|ERROR): \S+ \(([\w.]+)\)', re.M)
ADDRESS = re.compile(r'\b0x[0-9a-f]+')


def has_ended_itself(state):
    """Whether regrtest came to its end, be the tests good or bad.

    After a crash it does not, nor after a hang, which its own limit ends
    with a status that is not one of these.
    """
    return state in STATUS_TEXTS.values()


class Running:
    """The processes that run, so that an interrupt can end them."""

    def __init__(self):
        self.processes = set()
        self.stopped = False

    def stop(self):
        self.stopped = True
        for process in list(self.processes):
            kill(process)


def kill(process):
    """End a process that has not been waited for, and what it started."""
    if process.returncode is None:
        os.killpg(process.pid, signal.SIGKILL)


def environment(extra):
    """Ours, without the settings of Python that the caller may have."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith('PYTHON')}
    return kept | extra


def run(python, name, log_path, *, extra_environment, wrapper='',
        running):
    """Run the test file *name*; return (state, {case: verdict}, seconds)."""
    with tempfile.TemporaryDirectory(
            prefix='regrtest-', ignore_cleanup_errors=True) as directory:
        xml_path = pathlib.Path(directory, 'junit.xml')
        command = [*shlex.split(wrapper), str(python), '-m', 'test', '-v',
                   '-u', RESOURCES, '--fail-env-changed',
                   '--timeout', str(TIMEOUT_S), '--randseed', '1',
                   '--junit-xml', str(xml_path), '--tempdir', directory,
                   name]
        with open(log_path, 'wb') as log:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                # A TMPDIR of its own: the same test may run beside it.
                env=environment({'TMPDIR': directory} | extra_environment),
                start_new_session=True)
        running.processes.add(process)
        state, seconds = wait(process, log_path)
        running.processes.discard(process)
        log_text = log_path.read_text('utf-8', 'replace')
        cases = read_cases(xml_path, log_text)
    # A failed case says more than that the file has failed.
    if state == STATUS_TEXTS[STATUS_FAILED] and 'failed' in cases.values():
        state = STATUS_TEXTS[0]
    return state, cases, round(seconds, 1)


def wait(process, log_path):
    """Wait for the end; return (what became of it as a whole, seconds).

    The time counts from the first output, so that a wrapper may wait.
    """
    started = None
    seconds = 0
    while (status := process.poll()) is None:
        time.sleep(POLL_S)
        if started is None and log_path.stat().st_size:
            started = time.monotonic()
        if started is not None:
            seconds = time.monotonic() - started
        if seconds > TIMEOUT_S + GRACE_S:
            kill(process)
            process.wait()
            return 'does not end', seconds
    if status < 0:
        return f'killed by {signal.Signals(-status).name}', seconds
    return STATUS_TEXTS.get(status, f'status {status}'), seconds


def read_cases(xml_path, log_text):
    cases = {}
    seen = collections.Counter()
    if xml_path.exists():
        for element in ElementTree.parse(xml_path).iter('testcase'):
            # Without a name if only subtests failed: the log has it.
            name = element.get('name')
            if name is not None:
                name = ADDRESS.sub('0x', name)
                seen[name] += 1
                if seen[name] > 1:
                    name = f'{name} ({seen[name]})'
                cases[name] = verdict(element)
    for name in LOGGED_FAILURE.findall(log_text):
        cases[name] = 'failed'
    return cases


def verdict(element):
    for child in element:
        if child.tag in VERDICTS:
            return VERDICTS[child.tag]
    return 'passed'
