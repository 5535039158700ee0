"""A server that writes a profile every so often, and keeps the last ones."""

import itertools
import threading
import time

import profile_sampling

SECONDS = 1.0       # 60.0 in a real server
FILES = 3


def write_profiles(done):
    profile_sampling.start(rate_hz=100)
    for number in itertools.count():
        is_last = done.wait(SECONDS)
        profile = profile_sampling.snapshot(clear=True)
        profile.save(f'profile.{number % FILES}.pb.gz')
        if is_last:
            profile_sampling.stop()
            return


def serve(seconds):
    """Stand in for the server's own work."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(50_000))
        time.sleep(0.001)


done = threading.Event()
writer = threading.Thread(target=write_profiles, args=(done,))
writer.start()
serve(2.5)
done.set()
writer.join()
