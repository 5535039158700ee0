"""Texts for -X sampleprof, good and bad, and what must come of any of them.

Used by test_fuzz and by Tools/fuzz.
"""

import subprocess
import sys
import tempfile

from . import sessions, validator

WORDS = ('wall', 'cpu', 'rate_hz', 'out', 'format', 'depth_frames', 'names',
         'signal', 'defer', 'quiet', 'children', 'calls', 'opcodes', 'all',
         'off', 'pprof', 'collapsed', 'text', 'svg', 'profile-json',
         'p.txt', 'p.pb.gz', 'p.svg', '{pid}', '{pid}.pb', '=', '=',
         '=', ',', ',', ',', ',', '0', '1', '-1', '+1', '9', '16', '23',
         '64', '65', '1000', '10000', '10001', '16384', '16385',
         '999999999', '2147483648', '99999999999999999999', ' ', '', '.',
         '\t', '\n', '\r\n', '%s%n', '\x01', '\x7f', 'é', '\u2028',
         '\U0001f600', '\udcff', '\udc80', "'", '"', 'x' * 300, 'WALL',
         'rate_hz=', 'rate_hz=100', 'names=calls', 'names=all',
         'format=text', 'depth_frames=5', 'quiet=1', 'out=p.txt', 'signal=23')

ITEMS = ('rate_hz=100', 'rate_hz=10000', 'names=calls', 'names=all',
         'names=off', 'format=text', 'format=collapsed', 'depth_frames=5',
         'depth_frames=16384', 'quiet=1', 'out=p.txt', 'out={pid}.pb',
         'out=.pb', 'signal=23', 'signal=64', 'opcodes', 'defer=0',
         'defer=1', 'children=0', 'children=1', 'spool=s', 'every=0.1',
         'every=10', 'keep=8K')


def text(rng):
    """A random text; no slash, so that what it writes stays where it is."""
    if rng.random() < 0.4:
        return ','.join(rng.choices(ITEMS, k=rng.randrange(1, 6)))
    return ''.join(rng.choices(WORDS, k=rng.choice((1, 2, 3, 4, 6, 9, 20))))


def judge(text, by_variable=False):
    """Start a program with it; raise AssertionError if that goes wrong.

    Return the program's status: 0, or 2 for a text that was refused.
    """
    env = sessions.environment()
    command = [sys.executable, '-S', '-s']
    if by_variable:
        env['PYTHONSAMPLEPROF'] = text
        source = 'PYTHONSAMPLEPROF: '
    else:
        command += ['-X', f'sampleprof={text}']
        source = '-X sampleprof: '
    with tempfile.TemporaryDirectory() as directory:
        done = subprocess.run([*command, '-c', 'print("ran")'], env=env,
                              cwd=directory, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=120)
    said = done.stderr.decode('utf-8', 'surrogateescape')
    about = repr(text), done.returncode, said
    if done.returncode == 2:
        validator.check(done.stdout == b'', 'the program ran', *about)
        validator.check(said.startswith(source), 'not ours', *about)
        validator.check(len(said) > len(source) + 1, 'no reason', *about)
    else:
        validator.check(done.returncode == 0, 'status', *about)
        validator.check(done.stdout == b'ran\n', 'it did not run', *about)
        validator.check(not said or said.startswith(('sampleprof: ', source)),
                        'not ours', *about)
    validator.check(said.count('\n') <= 1 and said[-1:] in ('', '\n'),
                    'more than one line', *about)
    return done.returncode
