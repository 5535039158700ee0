"""What one sample costs, by the profiler's own counters, in a hot loop under
many frames.

    python depth_child.py NAMES RATE_HZ DEPTH_FRAMES WINDOW_MS WINDOWS

Prints JSON: [[capture_ns, drain_ns, captures], ...], one item per window:
the two are means of one sample.
"""

import json
import sys
import time

import profile_sampling

MARGIN_FRAMES = 100
WARM_UP_WINDOWS = 1


def loop(window_ns):
    """Use up a time while no function is called but the clock."""
    end_ns = time.perf_counter_ns() + window_ns
    total = 0
    while time.perf_counter_ns() < end_ns:
        for i in range(2000):
            total = (total + i * 3) & 0xffff
    return total


def under(depth_frames, function):
    if depth_frames > 0:
        return under(depth_frames - 1, function)
    return function()


def windows(window_ns, count):
    """Means of each window, from the differences of the counters."""
    found = []
    for _ in range(WARM_UP_WINDOWS + count):
        before = profile_sampling.stats()
        loop(window_ns)
        after = profile_sampling.stats()
        delta = {key: after[key] - before[key] for key in after}
        captures = delta['captures']
        handled = captures + delta['captures_merged']
        if captures:
            found.append((delta['overhead_capture_ns'] / handled,
                          delta['overhead_drain_ns'] / captures, captures))
    return found[WARM_UP_WINDOWS:]


def main():
    names = sys.argv[1]
    rate_hz, depth_frames, window_ms, count = map(int, sys.argv[2:])
    sys.setrecursionlimit(depth_frames + MARGIN_FRAMES)
    profile_sampling.start(rate_hz=rate_hz, names=names,
                           depth_frames=depth_frames + MARGIN_FRAMES)
    try:
        # main, under and windows and loop are frames as well.
        found = under(depth_frames - 6,
                      lambda: windows(window_ms * 1_000_000, count))
    finally:
        profile_sampling.stop()
    json.dump(found, sys.stdout)


if __name__ == '__main__':
    main()
