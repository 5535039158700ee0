"""The difference of two profiles as a value.

This file owns what users see of a difference.  It must not compute anything,
which is the business of _data.
"""


class ProfileDiff:
    """What changed from one profile to another; see Profile.diff().

    before      the Profile that is compared with
    after       the Profile that is compared
    normalized  whether the values of the second are scaled to the totals of
                the first

    Rows have the attributes before, after and delta: a row each, as the
    profile has it, the last with the values after minus those before.  What
    one of the profiles does not have weighs 0 there.
    """

    __slots__ = ('before', 'after', 'normalized', '_difference')

    def __init__(self, before, after, normalized):
        from profile_sampling._data.diff import Difference
        set_slot = object.__setattr__
        set_slot(self, 'before', before)
        set_slot(self, 'after', after)
        set_slot(self, 'normalized', bool(normalized))
        set_slot(self, '_difference', Difference(
            before._tables, after._tables, normalized))

    def __setattr__(self, name, value):
        raise AttributeError('ProfileDiff objects are immutable')

    def functions(self):
        """Return a list of FunctionDiff, the greatest change first.

        Functions are compared by name and kind: a new version moves them
        to other lines.  Several of one name are one row.  The order is by
        the size of the change of self values, then of cumulative ones.
        """
        return self._difference.functions()

    def lines(self):
        """Return a list of LineDiff, the greatest change first.

        Lines are compared by the name of the function and their number,
        which says little about files that were edited in between.
        """
        return self._difference.lines()

    def label_values(self, key):
        """Return a list of LabelDiff, one for each value of a label.

        Raise ValueError for a label that no sample of either has.
        """
        return self._difference.labels(key)

    def save(self, path, *, source=True):
        """Write a page for browsers that compares the two profiles.

        *path* ends in '.html' or '.htm'; it may also be a file object that is
        opened in binary mode.  *source* is as of Profile.save(), for the
        functions of *after*.  Profile.load() reads *after* back
        from it.

        Raise ValueError for another extension, OSError if it cannot be
        written.
        """
        from profile_sampling import _files, _formats
        from profile_sampling._formats import page_of_changes
        is_file = hasattr(path, 'write')
        if is_file:
            _files.check_binary(path)
        elif _formats.choose(path) != 'html':
            raise ValueError('a difference is saved as a page: give a name '
                             "that ends in '.html'")
        data = page_of_changes.of_two(
            self.before._tables, self.after._tables,
            normalized=self.normalized, **_formats.sourcing('html', source))
        if is_file:
            _files.write_to(path, data)
        else:
            _files.replace(_formats.with_pid(path), data)

    def __eq__(self, other):
        if type(other) is not ProfileDiff:
            return NotImplemented
        return (self.normalized == other.normalized
                and self.before == other.before
                and self.after == other.after)

    def __hash__(self):
        return hash((self.before, self.after, self.normalized))

    def __reduce__(self):
        return ProfileDiff, (self.before, self.after, self.normalized)

    def __str__(self):
        from profile_sampling._formats import short
        tables = self.after._tables
        return short.changes(self.functions(), tables.value_types, tables.own)

    def _repr_html_(self):
        """The page, in a notebook."""
        from profile_sampling._formats import notebook
        return notebook.difference(self.before._tables, self.after._tables,
                                   str(self), self.normalized)

    def _repr_pretty_(self, printer, cycle):
        """What IPython prints."""
        printer.text(str(self))

    def __repr__(self):
        return (f'<ProfileDiff before={self.before!r} after={self.after!r} '
                f'normalized={self.normalized}>')
