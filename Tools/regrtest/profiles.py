"""Checks the profiles that a sampled run of tests has left.

    ./python Tools/regrtest/profiles.py DIRECTORY

Counts the files and the samples in them, checks one in ten chosen at random
and prints what it found as JSON.  Status 1 if a profile is not as it should
be, which is then named, or if there is none.
"""

import collections
import gzip
import json
import pathlib
import random
import sys

from profile_sampling import Profile
from test.test_profile_sampling.support import validator

ONE_IN = 10
SAMPLES = b'# stat samples '
# A program that has no zlib writes its profile as it is.
GZIP = b'\x1f\x8b'
# The main thread lives for the whole session, so its samples, in whatever
# interpreters, have to add up to it; the ends of both are some microseconds
# apart.
TOLERANCE_NS = 2_000_000


def texts(data):
    """The strings of a pprof file, found without decoding the rest."""
    at = 0
    while at < len(data):
        key, at = validator._varint(data, at)
        size, at = validator._varint(data, at)
        if key & 7 == 2:
            if key >> 3 == 6:
                yield data[at:at + size]
            at += size


def count_samples(path):
    data = path.read_bytes()
    if data[:2] == GZIP:
        data = gzip.decompress(data)
    for text in texts(data):
        if text.startswith(SAMPLES):
            return int(text[len(SAMPLES):])
    raise AssertionError('no count of samples')


def check(path):
    validator.check_pprof(path.read_bytes())
    profile = Profile.load(path)
    validator.check_profile(profile)
    wall_ns = collections.Counter()
    for sample in profile.samples:
        wall_ns[sample.thread.native_id] += sample.wall_ns
    longest = max(wall_ns.values())
    validator.check(abs(longest - profile.duration_ns) <= TOLERANCE_NS,
                    'the longest thread has', longest, 'ns of a session of',
                    profile.duration_ns)


def examine(directory):
    paths = sorted(directory.glob('*.pb.gz'))
    chosen = random.sample(paths, -(-len(paths) // ONE_IN))
    found = {'files': len(paths), 'samples': 0, 'checked': len(chosen),
             'invalid': {}}
    for path in paths:
        try:
            found['samples'] += count_samples(path)
            if path in chosen:
                check(path)
        except Exception as exc:
            found['invalid'][path.name] = f'{type(exc).__name__}: {exc}'
    return found


def main():
    found = examine(pathlib.Path(sys.argv[1]))
    print(json.dumps(found))
    return 0 if found['files'] and not found['invalid'] else 1


if __name__ == '__main__':
    sys.exit(main())
