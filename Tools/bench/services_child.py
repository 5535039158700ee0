"""One service, which knows the answer, for a profiler to find it.

    python services_child.py SERVICE BURST_MS PROFILER RATE_HZ SECONDS
                             LONGEST_S

Prints 'ready' when its work is planned, waits for a line of input, serves
until bursts have taken SECONDS, or LONGEST_S have passed, prints JSON (see
found()), and waits for a line again.  If PROFILER is 'ours', it is sampled
by its own interpreter meanwhile, and has measured before what ticks take of
it; what others see of it before and after is a thread that waits.
"""

import ctypes
import json
import random
import sys
import time

import services_burst
from services_waits import SERVICES

# Other profilers may want another interpreter, which has none of it.
if sys.argv[3:4] == ['ours']:
    import profile_sampling
    import services_own_time

# Waits of bursts of 1.2 ms, which are busy a third to a half of the time;
# those of others are in proportion.
SHORTEST_WAIT, LONGEST_WAIT = 0.3 / 1.2, 3 / 1.2
WARM_UP_BURSTS = 20
# What ticks take is measured before, in so much of the time of the run.
OWN_TIME_PART = 0.4
PR_SET_PTRACER = 0x59616d61
PR_SET_PTRACER_ANY = ctypes.c_ulong(-1)


def let_trace():
    """Allow profilers that are not our parents, where the kernel asks."""
    ctypes.CDLL(None).prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0)


class Service:
    def __init__(self, name, burst_ms):
        self.serve = SERVICES[name]
        self.bursts = services_burst.Bursts(burst_ms, name)
        self.rng = random.Random(f'{name} {burst_ms}')
        self.shortest_s = burst_ms / 1000 * SHORTEST_WAIT
        self.longest_s = burst_ms / 1000 * LONGEST_WAIT

    def run(self, seconds, longest_s, lengths=services_burst.LENGTHS,
            between_bursts=lambda: None):
        """Serve until bursts of these lengths took `seconds`; return the
        Bursts."""
        bursts = self.bursts
        bursts.begin(lengths)
        end_ns = time.perf_counter_ns() + int(longest_s * 1e9)

        def wait_s():
            return self.rng.uniform(self.shortest_s, self.longest_s)

        def work():
            between_bursts()
            bursts()

        def enough():
            return (bursts.total_ns >= seconds * 1e9
                    or time.perf_counter_ns() >= end_ns)

        self.serve(work, wait_s, enough)
        return bursts


def found(profile):
    """What the profile says of the six lines: wall_ns, cpu_ns and counts."""
    rows = {row.line: row for row in profile.lines()
            if row.function.filename == services_burst.FILENAME
            and row.function.qualname == services_burst.FUNCTION}
    return {key: [getattr(rows.get(line), f'cum_{key}', 0)
                  for line in services_burst.LINES]
            for key in ('wall_ns', 'cpu_ns', 'count')}


def main():
    name, burst_ms, profiler = sys.argv[1:4]
    rate_hz = int(sys.argv[4])
    seconds, longest_s = map(float, sys.argv[5:])
    service = Service(name, float(burst_ms))
    for _ in range(WARM_UP_BURSTS):
        service.bursts()
    result = {}
    if profiler == 'ours':
        result['own_share'] = services_own_time.own_share(
            service, rate_hz, seconds * OWN_TIME_PART,
            longest_s * OWN_TIME_PART)
    let_trace()
    print('ready', flush=True)
    sys.stdin.readline()
    begin_ns, begin_cpu_ns = time.perf_counter_ns(), time.process_time_ns()
    if profiler == 'ours':
        profile_sampling.start('wall', rate_hz=rate_hz)
    bursts = service.run(seconds, longest_s)
    cpu_ns = time.process_time_ns() - begin_cpu_ns
    if profiler == 'ours':
        profile = profile_sampling.stop()
        result |= {'found': found(profile), 'stats': profile.stats}
    result |= {'true_wall_ns': bursts.wall_ns,
               'calibrated_cpu_ns': bursts.cpu_ns, 'bursts': bursts.count,
               'cpu_ns': cpu_ns,
               'elapsed_ns': time.perf_counter_ns() - begin_ns}
    print(json.dumps(result), flush=True)
    sys.stdin.readline()


if __name__ == '__main__':
    main()
