"""Very deep stacks: their walks may take longer than a period."""


from ..support.sessions import ProgramTest

BELOW = '''
import sys, time, profile_sampling
sys.setrecursionlimit(10 ** 7)
def below(depth, work):
    return below(depth - 1, work) if depth else work()
profile_sampling.start(rate_hz=10_000)
'''
NUM_FRAMES = 100_000

# To be recorded, each of them is a walk.
SLEEPS = BELOW + f'''
def work():
    for _ in range(20):
        time.sleep(0.001)
below({NUM_FRAMES}, work)
print(profile_sampling.stop().stats['overhead_hooks_ns'] > 0)
'''
# Deadlines are over when a walk is.
COMPUTES = BELOW + f'''
def spin(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass
def work():
    spin(1)
    before = profile_sampling.stats()
    spin(1)
    after = profile_sampling.stats()
    captures, ticks, skipped = [
        after[name] - before[name]
        for name in ('captures', 'ticks', 'captures_skipped')]
    print(captures * 4 < ticks, skipped > captures)
    # No signal handler walks for longer than a few milliseconds.
    print((after['overhead_capture_ns'] - before['overhead_capture_ns'])
          / max(captures, 1) < 5e6)
below({NUM_FRAMES}, work)
'''


class DeepStackTest(ProgramTest):

    def check(self, program, expected):
        result = self.run_python('-c', program)
        self.assertEqual((result.status, result.err, result.out.decode()),
                         (0, '', expected))

    def test_waits(self):
        self.check(SLEEPS, 'True\n')

    def test_computes(self):
        self.check(COMPUTES, 'True True\nTrue\n')
