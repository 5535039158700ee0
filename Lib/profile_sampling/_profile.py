"""The profile as a value."""

from profile_sampling._data import intake
from profile_sampling._data.tables import Tables
from profile_sampling._data.values import COUNT, NAMES
from profile_sampling._samples import Samples
from profile_sampling._sums import Sums


class Profile(Sums):
    """What a session measured.  Immutable; see start(), stop() and load().

    Weights are measured times, never counts times a period: over a
    session the wall weights of a thread add up to its life in it, and the
    CPU weights to its CPU time.  Times are in nanoseconds.
    """

    __slots__ = ('_tables',)

    def __init__(self):
        raise TypeError('profiles are made by stop(), snapshot(), profile(), '
                        'Profile.load() and Profile.merge()')

    @classmethod
    def _from_raw(cls, raw):
        """The profile of what the core has handed over."""
        return cls._from_tables(intake.tables(raw))

    @classmethod
    def _from_tables(cls, tables):
        self = object.__new__(cls)
        self._tables = tables
        return self

    @property
    def mode(self):
        """'wall' or 'cpu': the clock that the session sampled by.

        Of another tool's file with neither, the kind of its values.
        """
        return self._tables.mode

    @property
    def value_types(self):
        """Tuple of ValueType: what the values of samples and rows measure.

        Those of a session are count, cpu_ns and wall_ns; if there were
        asyncio tasks, task_ns and delay_ns, too.
        """
        return self._tables.value_types

    @property
    def value_type(self):
        """The ValueType that rows are ranked by; see by_value()."""
        return self._tables.value_types[self._tables.own]

    def total(self, value):
        """Return the sum of a value over all samples and threads.

        *value* is as for by_value().  What the program counted itself by
        sample() is not in the total of 'count'.

        Raise ValueError for one that the profile does not have.
        """
        return self._tables.totals[self._tables.schema.number_of(value)]

    @property
    def rate_hz(self):
        """How many ticks per second were asked for."""
        return self._tables.rate_hz

    @property
    def depth_frames(self):
        """How many frames of a stack were kept at most."""
        return self._tables.depth_frames

    @property
    def names(self):
        """What was named beyond Python frames, as start() takes it.

        'all', 'calls', 'opcodes' or 'off'; 'off' also for a file that does
        not tell.
        """
        return NAMES[self._tables.names]

    @property
    def start_time_ns(self):
        """When the session started, since the epoch (time.time_ns())."""
        return self._tables.start_time_ns

    @property
    def duration_ns(self):
        """How long the session was, on the monotonic clock."""
        return self._tables.duration_ns

    @property
    def python_version(self):
        """Version of the interpreter that was profiled; '' if unknown."""
        return self._tables.python_version

    @property
    def pid(self):
        """Number of the process; None: it is unknown, or there are several."""
        return self._tables.pid

    @property
    def threads(self):
        """Tuple of Thread; a loaded profile has those that samples name."""
        return self._tables.threads

    @property
    def meta(self):
        """What the command line says of the program, as a new dict.

        command, host and revision are texts, by these names; the commands
        record, stat and exec give them.  A sum has what all parts agree on.
        """
        return dict(self._tables.meta)

    @property
    def stats(self):
        """What stats() counted in the session, as a new dict."""
        return dict(self._tables.stats)

    @property
    def samples(self):
        """Sequence of Sample; the stacks are made when asked for."""
        return Samples(self._tables)

    @property
    def total_count(self):
        """Sum of the counts of all samples, those of sample() left out."""
        return self._tables.total('count')

    @property
    def total_cpu_ns(self):
        """Sum of the CPU time of all samples, over all threads."""
        return self._tables.total('cpu_ns')

    @property
    def total_wall_ns(self):
        """Sum of the wall-clock time of all samples, over all threads."""
        return self._tables.total('wall_ns')

    @property
    def calls(self):
        """Tuple of CallCount, exact; None: calls were not counted.

        They are of all of the profile that this one is a part of.
        """
        counts = self._tables.counts
        if counts is None or not counts.has_calls:
            return None
        return tuple(counts.calls)

    @property
    def queries(self):
        """Tuple of CallCount: calls of functions that ask a service, a disk or
        the system, by the user's own lines and by route; ('queries' of start()
        and all that counts more)."""
        counts = self._tables.counts
        return () if counts is None else tuple(counts.queries)

    @property
    def timeline(self):
        """The Timeline, which sample was when; None: it was not recorded."""
        return self._tables.timeline

    def save(self, path, format=None, *, source=True, idle=False):
        """Write the profile to a file, whole or not at all.

        *path* may also be a binary file object, or the system's name of an
        open file, such as '/dev/stdout': then what there is in it stays.

        *format* is 'pprof', 'collapsed', 'text', 'speedscope', 'gecko',
        'gecko-gz', 'pstats', 'callgrind', 'dot', 'svg', 'html' or
        'profile-json';
        without it the extension of *path* decides, and what is open gets
        'pprof'.  A page has the
        text of the profile's functions in it, as it is now, unless *source*
        is false; of a profile that was loaded, only from where this program
        imports modules, or from *source* if that is a directory or a list of
        them.  Threads that had nothing to do are only in files that have all
        that there is, pprof, 'profile-json' and 'html', unless *idle* is true.
        The file is its owner's alone.  '{pid}' in *path* stands
        for the number of this process.  A link or another user's file at
        *path* is refused.

        Raise ValueError for a format that is unknown, has no such option or
        cannot show this profile, OSError if it cannot be written.
        """
        from profile_sampling import _files, _formats
        is_file = hasattr(path, 'write')
        if is_file:
            _files.check_binary(path)
            format = format or 'pprof'
        else:
            path = _formats.with_pid(path)
        format = _formats.choose(path, format)
        data = _formats.encode(
            self._tables, format, **_formats.options_of(
                format, source=source, idle=idle))
        if is_file:
            _files.write_to(path, data)
        else:
            _files.replace(path, data)

    @classmethod
    def load(cls, path, *, max_bytes=None):
        """Read a pprof file, one of ours or another tool's, or the page that
        was made of one.

        *path* may also be a binary file object.  Raise ValueError if it is
        not a pprof file, is damaged or needs more memory than *max_bytes*
        (default 512 MiB); OSError if it cannot be read.
        """
        from profile_sampling._formats.pprof import reader
        return cls._from_tables(reader.tables(path, max_bytes))

    @classmethod
    def merge(cls, *profiles, max_bytes=None):
        """Return the sum of profiles, such as those of several processes.

        Threads keep their process, by which group_by('pid') parts them.
        Weights and counters are added up; the duration is the time in which
        at least one of the sessions was running.  The rate is 0 if it was
        not the same in all.

        Raise TypeError for what is no Profile, ValueError for profiles of
        different modes, for none, and if the sum needs more memory than
        *max_bytes* (default 512 MiB).
        """
        from profile_sampling._data.merge import Merger
        merger = Merger(max_bytes)
        for profile in profiles:
            if not isinstance(profile, Profile):
                raise TypeError('each argument must be a Profile, not '
                                f'{type(profile).__name__}')
            merger.add(profile._tables)
        return cls._from_tables(Tables(merger.raw()))

    def filter(self, *, function=None, file=None, state=None, thread=None,
               task=None, labels=None):
        """Return a Profile of the samples that match all that is given.

        function  a name, with or without its module, a Function or a
                  compiled regular expression, for any frame of the stack
        file      a path or a compiled regular expression, for the file of
                  any frame; with *function*, of the same frame
        state     a state, or several in a list
        thread    the name of a thread, its native id or a Thread
        task      the name of an asyncio task
        labels    a mapping of keys to values; None stands for samples
                  without the label

        Raise ValueError for a state that does not exist, and for a label
        that no sample has; TypeError for what is none of the above.
        """
        from profile_sampling._data import select
        return self._from_tables(select.filtered(
            self._tables, function=function, file=file, state=state,
            thread=thread, task=task, labels=labels))

    def focus(self, pattern):
        """Return a Profile of the samples with a frame that matches.

        *pattern* is a regular expression, compiled or as a text.  It is
        searched for in the names of functions and their files.
        """
        from profile_sampling._data import select
        return self._from_tables(select.focused(self._tables, pattern,
                                                matching=True))

    def ignore(self, pattern):
        """Return a Profile of the samples without a frame that matches.

        *pattern* is as for focus(): the two add up to the profile.
        """
        from profile_sampling._data import select
        return self._from_tables(select.focused(self._tables, pattern,
                                                matching=False))

    def hide(self, pattern):
        """Return a Profile without the frames that match.

        *pattern* is as for focus().  All samples stay; the weight of a
        frame that is taken out goes to its caller.
        """
        from profile_sampling._data import shape
        return self._from_tables(shape.shaped(self._tables, hide=[pattern]))

    def fold(self, *what):
        """Return a Profile without some frames, likewise: 'C' (functions),
        'operators', 'pseudo', or what 'stdlib' or 'packages' call within
        themselves.

        Raise ValueError for anything else.
        """
        from profile_sampling._data import shape
        return self._from_tables(shape.shaped(self._tables, fold=what))

    def collapse(self, pattern):
        """Return a Profile without what the frames that match call."""
        from profile_sampling._data import shape
        return self._from_tables(shape.shaped(self._tables,
                                              collapse=[pattern]))

    def root(self, pattern):
        """Return a Profile whose stacks begin at the first frame that
        matches; those without one are empty."""
        from profile_sampling._data import shape
        return self._from_tables(shape.shaped(self._tables, root=[pattern]))

    def where(self, key, pattern):
        """Return a Profile of the samples whose value of *key* matches.

        *key* is as for group_by(), but 'function', and *pattern* as for
        focus().  Raise ValueError for another key.
        """
        from profile_sampling._data import keys, select
        keys.check(self._tables, key)
        return self._from_tables(select.where(self._tables, key, pattern))

    def between(self, begin_ns, end_ns):
        """Return a Profile of a range of time, from its time line.

        It is in nanoseconds since start_time_ns.  A sample that was only
        partly in it weighs that part: ranges that meet add up to their whole.

        Raise ValueError if there is no time line, or the range is none.
        """
        from profile_sampling._data import select
        return self._from_tables(
            select.between(self._tables, begin_ns, end_ns))

    def by_value(self, value):
        """Return the same Profile with another value_type.

        Rows are ranked by it, and files are of it that have one number for a
        stack.  *value* is 'wall', 'cpu', 'samples', or 'task' and 'delay' if
        asyncio tasks were seen; or its name, such as 'cpu_ns'.

        Raise ValueError if it has no such values.
        """
        return self._from_tables(self._tables.by_value(value))

    def in_use(self, *, min_age_s=0):
        """Return a Profile of the memory that is in use at the end.

        *min_age_s*: only of blocks that were allocated so long before, as
        ``report --min-age`` says it.  Raise ValueError if allocations were
        not sampled, or the profile is of several processes.
        """
        from profile_sampling._data import allocations, moments
        tables = self._tables.by_value(
            allocations.space(allocations.IN_USE).kind)
        age_ns = round(min_age_s * 1e9)
        if age_ns < 0:
            raise ValueError(f'min_age_s must not be negative: {min_age_s}')
        tables = moments.Window(None, moments.bounds(tables)[1], age_ns).part(
            tables, allocations.IN_USE)
        return self._from_tables(allocations.part_of_process(
            tables.with_samples([
                number for number, size in enumerate(
                    tables.value_columns[tables.own]) if size])))

    def group_by(self, key):
        """Return a dict of Profiles by the value of *key*.

        *key* is one that report --by takes: 'thread', 'state', 'task', 'file'
        (of the innermost Python function), 'pid' or a label; or 'function',
        the leaf of the stack.  'label:thread' is the label that is called so.  Samples without such
        a value are in the group None.  The most expensive come first;
        together they are the profile.

        Raise ValueError for another key, with those there are.
        """
        from profile_sampling._data import select
        return {value: self._from_tables(tables) for value, tables
                in select.grouped(self._tables, key).items()}

    def diff(self, base, **options):
        """Return a ProfileDiff: what changed from the profile *base*.

        The options are those of ProfileDiff(), which compares several runs,
        too.  Raise ValueError if the profiles measure different things.
        """
        from profile_sampling._difference import ProfileDiff
        return ProfileDiff(base, self, **options)

    def report(self, file=None, *, sort=None, top=None, width=None,
               color='auto', mine=(), all=False, idle=False):
        """Write the text report to a text file, by default sys.stdout.

        sort   'self' or 'cum', or, if calls were counted, 'calls' or
               'per-call': rank functions by that alone
        top    how many lines, or with *sort* functions (default 30)
        width  how many columns (default those of a terminal, else 100)
        color  'always', 'never' or 'auto': on a terminal, without NO_COLOR
        mine   a pattern, or several: code that is yours although it is
               installed, by names of functions and files
        all
               lines of libraries, too, instead of what yours called there
        idle   threads that had nothing to do, too

        Raise TypeError or ValueError for a wrong argument.
        """
        from profile_sampling._formats import terminal
        terminal.write(self._tables, file, sort=sort, top=top,
                       width=width, color=color, mine=mine,
                       all=all, idle=idle)

    def __eq__(self, other):
        """Whether both say the same but for moments, in whatever order."""
        if not isinstance(other, Profile):
            return NotImplemented
        from profile_sampling._data import content
        return content.same(self._tables, other._tables)

    def __hash__(self):
        from profile_sampling._data import content
        return content.digest(self._tables)

    def __add__(self, other):
        """The sum of two profiles.

        As by merge(), but the counters of one session count once: the sum of
        the parts of a profile is the profile.  A profile and itself are no parts:
        p + p has all counters twice, as it has all weights.
        """
        if not isinstance(other, Profile):
            return NotImplemented
        from profile_sampling._data import merge
        return self._from_tables(Tables(
            merge.plus(self._tables, other._tables)))

    def __radd__(self, other):
        # sum() begins with 0.
        if isinstance(other, int) and other == 0:
            return self
        return NotImplemented

    def __sub__(self, other):
        """What changed: p - q is p.diff(q)."""
        if not isinstance(other, Profile):
            return NotImplemented
        return self.diff(other)

    def __str__(self):
        """The report, with fewer lines of the program."""
        from profile_sampling._formats import text
        return text.render(self._tables, top=text.TOP_SHORT)[:-1]

    def _repr_html_(self):
        """The page, in a notebook."""
        from profile_sampling._formats import notebook
        return notebook.output(self._tables)

    def _repr_pretty_(self, printer, cycle):
        """What IPython prints."""
        printer.text(str(self))

    def __repr__(self):
        tables = self._tables
        if COUNT in tables.value_types:
            total = f'samples={self.total_count}'
        else:
            total = (f'{tables.value_types[tables.own].name}='
                     f'{tables.totals[tables.own]}')
        return (f'<Profile mode={self.mode!r} rate_hz={self.rate_hz} '
                f'duration={self.duration_ns / 1e9:.3f}s '
                f'{total} threads={len(self.threads)}>')
