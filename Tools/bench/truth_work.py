"""The kinds of work of truth.py: each takes about the time it is asked for,
in a way that is known.

An amount is calibrated once: work(amount) must not look at a clock itself,
or the clock would be part of what is measured.
"""

import ctypes
import hashlib
import random
import re
import time
import zlib

CALIBRATION_NS = 30_000_000

# Looked up without releasing the GIL, as PyDLL does: a C extension that
# blocks while it holds it.
_usleep = ctypes.PyDLL(None).usleep

# Below the size at which hashlib releases the GIL.
_SMALL_BLOCK = bytes(1024)
# Far above.
_LARGE_BLOCK = bytes(1 << 20)

_random = random.Random(7)
_NUMBERS = [_random.random() for _ in range(400_000)]
_BASE, _MODULUS = 3 ** 200, 2 ** 521 - 1


def python_loop(amount):
    x = 1
    for i in range(amount):
        x = (x * 5 + i) & 0xffff
    return x


def python_calls(amount):
    def step(x):
        return x + 1
    x = 0
    for _ in range(amount):
        x = step(x)
    return x


def hash_small(amount):
    """Many short C functions, which keep the GIL."""
    digest = hashlib.sha256()
    for _ in range(amount):
        digest.update(_SMALL_BLOCK)
    return digest


def power(exponent):
    """One long C function, which keeps the GIL."""
    return pow(_BASE, exponent, _MODULUS)


def sort(numbers):
    """The same, and touches memory."""
    return sorted(numbers)


def hash_large(amount):
    """Burns CPU in C without the GIL."""
    digest = hashlib.sha256()
    for _ in range(amount):
        digest.update(_LARGE_BLOCK)
    return digest


def sleep_holding(amount_us):
    return _usleep(amount_us)


def sleep_releasing(amount_s):
    time.sleep(amount_s)


def mixed(amounts):
    """All in one call: its line is charged with the sum."""
    python_loop(amounts[0])
    sleep_releasing(amounts[1])
    power(amounts[2])
    sleep_holding(amounts[3])


# C functions that are called directly; their answer is asked for by name.
call_sorted = sorted
call_sum = sum
call_join = ''.join
call_fullmatch = re.compile('(?:a|b)*').fullmatch
call_sha256 = hashlib.sha256
call_compress = zlib.compress
call_sleep = time.sleep
CALLEES = {
    'call_sorted': 'builtins.sorted',
    'call_sum': 'builtins.sum',
    'call_join': 'str.join',
    'call_fullmatch': 're.Pattern.fullmatch',
    'call_sha256': '_hashlib.openssl_sha256',
    'call_compress': 'zlib.compress',
    'call_sleep': 'time.sleep',
}
_WORDS = [str(number) for number in _NUMBERS]
_BYTES = ''.join(_WORDS[:50_000]).encode()


def _per_ms(function, start):
    """How much of an amount takes a millisecond."""
    amount = start
    while True:
        begin_ns = time.thread_time_ns()
        function(amount)
        spent_ns = time.thread_time_ns() - begin_ns
        if spent_ns > CALIBRATION_NS:
            return amount * 1e6 / spent_ns
        amount *= 2


def _exponent(bits):
    """pow() takes time in proportion to the bits of its exponent."""
    return (1 << max(1, int(bits))) - 1


class Work:
    """Turns planned milliseconds into amounts, calibrating when needed."""

    def __init__(self):
        self._rates = {}

    def _amount(self, function, ms, start=1):
        if function not in self._rates:
            self._rates[function] = _per_ms(function, start)
        return max(1, round(self._rates[function] * ms))

    def plan(self, kind, ms):
        """The function and the argument that take about `ms`."""
        return globals()[kind], getattr(self, '_plan_' + kind)(ms)

    def _plan_python_loop(self, ms):
        return self._amount(python_loop, ms, 10_000)

    def _plan_python_calls(self, ms):
        return self._amount(python_calls, ms, 10_000)

    def _plan_hash_small(self, ms):
        return self._amount(hash_small, ms, 1000)

    def _plan_hash_large(self, ms):
        return self._amount(hash_large, ms)

    def _plan_power(self, ms):
        return _exponent(self._amount(_power_of_bits, ms, 1000))

    def _plan_sort(self, ms):
        # n log n is close enough to n: the truth is measured, not planned.
        count = self._amount(_sort_of_count, ms, 10_000)
        return (_NUMBERS * (count // len(_NUMBERS) + 1))[:count]

    def _plan_call(self, function, ms, make, start=1000):
        """For a C function: make(size) is its argument."""
        size = self._amount(_Sized(function, make), ms, start)
        return make(size)

    def _plan_call_sorted(self, ms):
        return self._plan_call(sorted, ms, _of_size(_NUMBERS))

    def _plan_call_sum(self, ms):
        return self._plan_call(sum, ms, range)

    def _plan_call_join(self, ms):
        return self._plan_call(call_join, ms, _of_size(_WORDS))

    def _plan_call_fullmatch(self, ms):
        return self._plan_call(call_fullmatch, ms, _of_size('abba'))

    def _plan_call_sha256(self, ms):
        return self._plan_call(call_sha256, ms, bytes)

    def _plan_call_compress(self, ms):
        return self._plan_call(call_compress, ms, _of_size(_BYTES))

    def _plan_call_sleep(self, ms):
        return ms / 1000

    def _plan_sleep_holding(self, ms):
        return int(ms * 1000)

    def _plan_sleep_releasing(self, ms):
        return ms / 1000

    def _plan_mixed(self, ms):
        part_ms = ms / 4
        return (self._plan_python_loop(part_ms), part_ms / 1000,
                self._plan_power(part_ms), int(part_ms * 1000))


class _Sized:
    """The work of a C function on an argument of a size.  To make it is in the
    calibration, so the work takes a little less than planned."""

    def __init__(self, function, make):
        self.function, self.make = function, make

    def __eq__(self, other):
        return self.function == other.function

    def __hash__(self):
        return hash(self.function)

    def __call__(self, size):
        return self.function(self.make(size))


def _of_size(items):
    def make(size):
        return (items * (size // len(items) + 1))[:size]
    return make


def _power_of_bits(bits):
    return power(_exponent(bits))


def _sort_of_count(count):
    return sort((_NUMBERS * (count // len(_NUMBERS) + 1))[:count])
