"""Which row is where, so that nothing jumps while it is read."""

# Refreshes between two orders; what a row must have more than the one above
# it to pass: of the whole, and of that row.
_EVERY, _POINTS, _LEAD = 5, 0.02, 1.2
# A row that is new and large comes in at once, with a mark.
_LARGE, _MARKED_S = 0.05, 10.0
# What has less is not shown; a row that falls below keeps its place so long.
SMALL, _KEPT_S = 0.005, 15.0


class Order:
    """The order of the rows of one view."""

    def __init__(self):
        self._keys = []
        self._new = {}
        self._seen = {}
        self._age = 0
        self.made_at = None

    def update(self, shares, now, *, is_frozen=False, ranks=None):
        """Take in the shares of rows, {key: share}; return their keys.

        *ranks* are what they are put in order by, if that is more than this.
        """
        for key, share in shares.items():
            if share >= SMALL:
                self._seen[key] = now
        self._keys = [key for key in self._keys
                      if shares.get(key) or self.keeps(key, now)]
        known = set(self._keys)
        fresh = sorted([key for key in shares if key not in known],
                       key=lambda key: -shares[key])
        if self.made_at is None:
            self._keys, self.made_at = fresh, now
            return self._keys
        self._age += 1
        is_due = self._age >= _EVERY and not is_frozen
        for key in fresh:
            if is_due or shares[key] >= _LARGE:
                self._keys.append(key)
                self._new[key] = now
        if is_due:
            self.make(ranks or shares, now)
        return self._keys

    def make(self, shares, now):
        """Put the rows in order."""
        self._age, self.made_at = 0, now
        keys = []
        for key in self._keys:
            place = len(keys)
            while place and _passes(shares.get(key, 0),
                                    shares.get(keys[place - 1], 0)):
                place -= 1
            keys.insert(place, key)
        self._keys = keys

    def again(self):
        """Begin anew with the next update."""
        self.made_at = None
        self._keys, self._new, self._seen = [], {}, {}

    def keeps(self, key, now):
        """Return whether a row is shown whatever it has."""
        return now - self._seen.get(key, -_KEPT_S) < _KEPT_S

    def is_new(self, key, now):
        return now - self._new.get(key, -_MARKED_S) < _MARKED_S


def _passes(share, upper):
    return share >= upper + _POINTS and share >= _LEAD * upper
