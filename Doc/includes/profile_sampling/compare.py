"""Show which functions gained or lost most time between two profiles.

    ./python compare.py before.pb.gz after.pb.gz
"""

import sys

from profile_sampling import Profile

before, after = map(Profile.load, sys.argv[1:])
print(after - before)
