"""A program whose tests stand still in time."""

import time
from unittest import mock

PAST_S = 978_307_200        # 2001-01-01


def frozen_time():
    """Replace what libraries for tests replace, as long as the block lasts."""
    return mock.patch.multiple(
        time, time=lambda: float(PAST_S), time_ns=lambda: PAST_S * 10**9,
        monotonic=lambda: 1.0, monotonic_ns=lambda: 10**9,
        perf_counter=lambda: 1.0, perf_counter_ns=lambda: 10**9)
