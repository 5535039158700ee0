"""The difference of profiles as a value."""


class ProfileDiff:
    """What changed from one profile, or several runs of a program, to others.

    before and after are a Profile each, or several in a list.

    by          what rows are: 'line', the default, for lines of the user's
                own code with all that they call, as in call_sites();
                'function'; or a key of group_by(), such as the name of a label
    cum         whether functions are charged what they called
    value       what is compared, as of Profile.by_value(); by default the
                profiles' own clock
    share       whether shares of all of a profile are compared
    per         values are per unit of that: 'custom', what sample() counted;
                'KEY=VALUE', the same with that label; 'KEY', how many values
                of that label there are
    gates       what must not get worse: 'total', 'function:NAME', with all
                that it calls, or 'label:KEY=VALUE', with the increase that
                counts at the end, such as 'total:3%'; exact counts are
                'calls:NAME', 'calls:total' and 'queries:ROUTE'
    mine, all, idle
                as of call_sites()

    Attributes:

    before, after  tuples of Profile
    value_type     the ValueType of what is compared
    method         how margins are known: 'sampling', one run on a side; or
                   'runs', from how runs differ
    total          the DiffRow of all
    rows           tuple of DiffRow: first what is clear and at least 1 % of
                   the total, each part by size
    gates          tuple of Gate, in the order they were given
    verdict        the worst that these say; None without any

    Raise ValueError if the profiles measure different things.
    """

    def __init__(self, before, after, *, by='line', cum=False, value=None,
                 share=False, per=None, gates=(), mine=(), all=False,
                 idle=False):
        from profile_sampling._data import diff
        self.before, self.after = map(_profiles, (before, after))
        self._difference = found = diff.of_tables(
            *map(_tables, (self.before, self.after)), diff.Question(
                by=by, cum=cum, value=value, share=share, per=per,
                gates=gates, mine=mine, all=all, idle=idle))
        self.value_type = found.value_type
        self.method = found.method
        self.total = found.total
        self.rows = tuple(found.rows)
        self.gates = tuple(found.gates)
        self.verdict = found.verdict()

    def save(self, path, format=None, *, source=True):
        """Write the difference to a file, whole or not at all.

        *format* is 'text', 'json', 'markdown', 'tsv' or 'html', a page for
        browsers; without it the extension of *path* decides.  *path* may also
        be a file object that is opened in binary mode, which gets a page.
        *source* is as of Profile.save(), for the functions of *after*.
        Profile.load() reads the sum of *after* back from a page.

        Raise ValueError for another format, OSError if it cannot be written.
        """
        from profile_sampling import _files, _formats
        is_file = hasattr(path, 'write')
        if is_file:
            _files.check_binary(path)
            format = format or 'html'
        format = _formats.choose(path, format, _formats.CHANGES)
        if format == 'html':
            data = self._page(**_formats.options_of('html', source=source))
        else:
            from profile_sampling._formats import changes
            data = changes.encode(self._difference, format)
        if is_file:
            _files.write_to(path, data)
        else:
            _files.replace(_formats.with_pid(path), data)

    def _page(self, **options):
        from profile_sampling._formats import page_of_changes
        return page_of_changes.encode(
            *map(_tables, (self.before, self.after)), self._difference,
            **options)

    def __str__(self):
        from profile_sampling._formats import changes
        return changes.text(self._difference, top=changes.TOP_SHORT)[:-1]

    def _repr_html_(self):
        """The page, in a notebook."""
        from profile_sampling._formats import notebook
        return notebook.difference(self._page, str(self))

    def _repr_pretty_(self, printer, cycle):
        """What IPython prints."""
        printer.text(str(self))

    def __repr__(self):
        total = self.total
        return (f'<ProfileDiff of {len(self.before)} and {len(self.after)} '
                f'runs: {self.value_type.name} before={total.before} '
                f'after={total.after}>')


def _profiles(side):
    try:
        profiles = (side,) if hasattr(side, '_tables') else tuple(side)
    except TypeError:
        profiles = side,
    for profile in profiles:
        if not hasattr(profile, '_tables'):
            raise TypeError('what is compared must be a Profile or several, '
                            f'not {profile!r}')
    if not profiles:
        raise ValueError('there must be a profile on each side')
    return profiles


def _tables(profiles):
    return [profile._tables for profile in profiles]
