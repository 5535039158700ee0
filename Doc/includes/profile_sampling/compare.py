"""Show which functions gained or lost most time between two profiles.

    ./python compare.py before.pb.gz after.pb.gz
"""

import collections
import sys

from profile_sampling import Profile

TOP = 8


def self_times(profile):
    times = collections.Counter()
    for row in profile.functions():
        times[row.function.name] += row.self_ns(profile.mode)
    return times


def main(before, after):
    before, after = Profile.load(before), Profile.load(after)
    if before.mode != after.mode:
        sys.exit(f'one is a {before.mode} profile, the other of {after.mode}')
    old, new = self_times(before), self_times(after)
    changes = [(new[name] - old[name], name) for name in old | new]
    changes.sort(key=lambda change: abs(change[0]), reverse=True)
    print(f'{"before":>10} {"after":>10} {"change":>10}  function')
    for change, name in changes[:TOP]:
        print(f'{old[name] / 1e6:7.1f} ms {new[name] / 1e6:7.1f} ms '
              f'{change / 1e6:+7.1f} ms  {name}')


main(*sys.argv[1:])
