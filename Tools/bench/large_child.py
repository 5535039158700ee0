"""One thing done with a large profile, in a process of its own.

    large_child.py make|save|load|protobuf FILE
    large_child.py report|diff FILE [OPTION ...]

Prints JSON: what it took, or null if the package protobuf is not installed.
"""

import json
import random
import resource
import runpy
import sys
import time
from pathlib import Path

FUNCTIONS = 400
ROUTES = 20
LINES = 8
DEPTH_FRAMES = 35
TICK_NS = 1_000_000


def functions(tick):
    """Return functions that call each other along a path, each from one of
    some lines."""
    source = []
    for number in range(FUNCTIONS):
        source.append(f'def f{number}(path, at):\n'
                      '    at += 1\n'
                      '    if at == len(path):\n'
                      f'        return tick({TICK_NS}, {TICK_NS})\n'
                      '    following = path[at]\n')
        source += [f'    if following % {LINES} == {line}:\n'
                   '        return functions[following](path, at)\n'
                   for line in range(LINES)]
    names = {'tick': tick}
    exec(compile(''.join(source), 'made.py', 'exec'), names)
    made = [names[f'f{number}'] for number in range(FUNCTIONS)]
    names['functions'] = made
    return made


def make(path):
    """Sample stacks at random until no more fit in the tables."""
    import _profile
    from profile_sampling import Profile, label
    rng = random.Random(1)
    made = functions(_profile.tick)
    _profile.start(manual=True)
    stack = []
    while not _profile.stats()['lost_table_full']:
        with label(route=f'/{rng.randrange(ROUTES)}'):
            for _ in range(1000):
                shared = rng.randrange(DEPTH_FRAMES) if stack else 0
                stack[shared:] = rng.choices(range(FUNCTIONS),
                                             k=DEPTH_FRAMES - shared)
                made[stack[0]](stack, 0)
    profile = Profile._from_raw(_profile.stop())
    profile.save(path)
    return {'rows of samples': len(profile.samples),
            'bytes in the file': Path(path).stat().st_size}


def save(path):
    from profile_sampling import Profile
    profile = Profile.load(path)
    return timed(lambda: profile.save(f'{path}.again.pb.gz'))


def load(path):
    from profile_sampling import Profile
    return timed(lambda: Profile.load(path))


def report(path, *options):
    # The last format that is given counts.
    return command(path, 'report', path, '--format', 'text', *options)


def diff(path, *options):
    return command(path, 'diff', path, path, '--format', 'text', *options)


def command(path, *args):
    sys.argv[1:] = [*args, '-o', f'{path}.out']

    def run():
        try:
            runpy.run_module('profile_sampling', run_name='__main__')
        except SystemExit as exc:
            assert not exc.code, exc.code
    return timed(run)


def protobuf(path):
    root = Path(__file__).resolve().parents[2]
    sys.path += map(str, root.glob('build/venv/lib/python*/site-packages'))
    from test.test_profile_sampling.support import official
    if official.descriptor_pb2 is None:
        return None
    import gzip
    message = official.profile_class()()
    return timed(lambda: message.ParseFromString(
        gzip.decompress(Path(path).read_bytes())))


def timed(function):
    cpu, wall = time.process_time(), time.monotonic()
    function()
    return {'wall_s': time.monotonic() - wall,
            'cpu_s': time.process_time() - cpu,
            'peak_mb': resource.getrusage(
                resource.RUSAGE_SELF).ru_maxrss / 1024}


if __name__ == '__main__':
    what, path, *options = sys.argv[1:]
    print(json.dumps({'make': make, 'save': save, 'load': load,
                      'report': report, 'diff': diff, 'protobuf': protobuf
                      }[what](path, *options)))
