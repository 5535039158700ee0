"""Histograms of durations, with buckets of about equal relative width.

Each octave has 2 ** bits buckets, and below 2 ** bits each number has one of
its own.  So a duration is known to within a share of 2 ** -bits: 12.5 % with
the core's 3 bits, 3.1 % with our 5.
"""

# Of the core's histograms, and of those that are kept in Python.
CORE_BITS, BITS = 3, 5
_ITEM, _ITEM_BYTES = 'I', 4
# A duration has 63 bits.
_MAX_BITS = 63


def bucket(value, bits):
    """Return the number of the bucket of a duration."""
    exponent = max(value.bit_length() - bits - 1, 0)
    return (exponent << bits) + (value >> exponent)


def bounds(number, bits):
    """Return the first duration of a bucket, and the first behind it."""
    exponent = max((number >> bits) - 1, 0)
    first = (number - (exponent << bits)) << exponent
    return first, first + (1 << exponent)


def most_buckets(bits):
    """Return how many buckets durations can have."""
    return bucket((1 << _MAX_BITS) - 1, bits) + 1


class Histogram:
    """How many durations each bucket has.

    bits    2 ** bits buckets are an octave
    counts  list of the counts of buckets, without zeros at its end
    """

    __slots__ = ('bits', 'counts')

    def __init__(self, bits, counts=()):
        self.bits = bits
        self.counts = list(counts)
        while self.counts and not self.counts[-1]:
            self.counts.pop()

    @classmethod
    def of_bytes(cls, bits, data):
        """Read 32-bit counts of the core; raise ValueError if damaged."""
        if len(data) % _ITEM_BYTES or (
                len(data) > _ITEM_BYTES * most_buckets(bits)):
            raise ValueError('a histogram has another length')
        return cls(bits, memoryview(bytes(data)).cast(_ITEM).tolist())

    def plus(self, other):
        """Return the sum of two with the same buckets."""
        longer, shorter = sorted((self.counts, other.counts), key=len,
                                 reverse=True)
        counts = longer.copy()
        for number, count in enumerate(shorter):
            counts[number] += count
        return Histogram(self.bits, counts)

    @property
    def count(self):
        return sum(self.counts)

    def quantile(self, share):
        """Return what that share of the durations is not longer than.

        Within a bucket they are taken to lie evenly.  None of nothing.
        """
        total = self.count
        if not total:
            return None
        wanted = share * total
        before = 0
        for number, count in enumerate(self.counts):
            if count and before + count >= wanted:
                first, behind = bounds(number, self.bits)
                part = max(wanted - before, 0) / count
                return first + round(part * (behind - first - 1))
            before += count
        raise AssertionError('a share is at most 1')

    def __eq__(self, other):
        if type(other) is not Histogram:
            return NotImplemented
        return self.bits == other.bits and self.counts == other.counts

    def __hash__(self):
        return hash((self.bits, *self.counts))

    def __repr__(self):
        return f'<Histogram of {self.count} durations>'
