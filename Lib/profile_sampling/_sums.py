"""What a profile adds up to, as rows."""


class Sums:
    """The part of Profile that has to do with rows; see there."""

    __slots__ = ()

    def _shown(self, idle):
        from profile_sampling._data.idle import shown
        return shown(self._tables, idle)

    def functions(self, *, idle=False):
        """Return a list of FunctionRow, the most expensive first.

        The order is by self time on the mode's own clock, then by
        cumulative time, then by name.  A function that is on a stack more
        than once counts once for that stack.

        C functions, operators and pseudo functions have rows of their own;
        their time is not in the self time of the Python function that they
        are in, but in its cumulative time.
        """
        from profile_sampling._data import by_function
        return by_function.functions(self._shown(idle))

    def lines(self, *, idle=False):
        """Return a list of LineRow, the most expensive first.

        The order is that of functions(), then by line.  A line that is on
        a stack more than once counts once for that stack.

        A line has self time only while its own bytecode runs; what its C
        functions and operators took is in its cumulative time, and in that
        of instructions().
        """
        from profile_sampling._data import by_function
        return by_function.lines(self._shown(idle))

    def call_sites(self, *, mine=(), all=False, idle=False):
        """Return a list of CallSiteRow, the most expensive first: what the
        report shows.

        Time is charged to the innermost line of the user's own code, with all
        that it called; two rows at the end are for imports and for what is
        outside of that code.  *mine* are patterns of names and files that are
        the user's, too.  With *all* rows are of the innermost Python
        lines of all code.  So they are without *mine* if hardly any time of
        the profile, or of the one that it is a part of, is the user's.
        Threads that had nothing to do are left out unless *idle* is true.
        """
        from profile_sampling._data import by_site, on_clocks
        return by_site.public_rows(by_site.sites_of(
            on_clocks.on_clocks(self._tables), mine, all, idle))

    def findings(self, *, mine=(), idle=False):
        """Return a list of Finding: what stands out, as the report says it.

        Their attributes are rule, text and numbers, a dict.
        """
        from profile_sampling._data import by_site, on_clocks
        from profile_sampling._formats import findings
        return findings.findings(self._tables, by_site.sites_of(
            on_clocks.on_clocks(self._tables), mine, idle=idle))

    def quality(self):
        """Return how far the profile can be trusted, as report says it: a
        dict of rates, counts and shares, None for what is not known.
        """
        from profile_sampling._data import by_site, on_clocks
        from profile_sampling._formats import header
        return header.quality(self._tables, by_site.sites_of(
            on_clocks.on_clocks(self._tables)))

    def instructions(self, *, idle=False):
        """Return a list of InstructionRow, the most expensive first.

        A row is an instruction at which the innermost Python frame of some
        sample was.  Its weights include what it was in that is not Python:
        the rows add up to all samples with a Python frame.  The order is by
        self time on the mode's own clock, then by name and place.

        Rows tell instructions apart, and specialized from unspecialized
        executions, as well as the profile does: a file keeps both only if
        the session named opcodes.
        """
        from profile_sampling._data import by_instruction
        return by_instruction.rows(self._shown(idle))

    @property
    def label_keys(self):
        """Tuple of the keys of the labels that any sample has, in order.

        They are as for group_by(): 'task', if any was taken in an asyncio
        task, and 'label:task' for a label of that name.
        """
        from profile_sampling._data import by_label
        return tuple(by_label.keys(self._tables))

    def label_values(self, key, *, idle=False):
        """Return a list of LabelRow, one for each value of a label.

        The samples without the label have a row with the value None.  The
        most expensive come first, on the mode's own clock.  The values of
        'task' are the names of asyncio tasks.

        Raise ValueError for a label that no sample has; see label_keys.
        """
        from profile_sampling._data import by_label
        return by_label.rows(self._shown(idle), key)

    def gil_holders(self):
        """Return a list of GILHolderRow: who held the GIL while others
        waited for it, the longest time first.

        A row is of the place of a thread that waited and that of one that
        held the GIL meanwhile.  They add up to the wall time of 'gil_wait'.
        """
        from profile_sampling._data import by_gil_holder
        return by_gil_holder.rows(self._tables)

    def tasks(self):
        """Return a list of TaskRow, one for each class of asyncio tasks, the
        longest lives first.

        Without the value 'task_ns' there are none.
        """
        from profile_sampling._data import by_task
        return by_task.rows(self._tables)

    def tasks_by(self, key):
        """Return a list of TaskLabelRow, one for each value of a label.

        Raise ValueError for a key that nothing has.
        """
        from profile_sampling._data import by_task
        return by_task.rows_of_label(self._tables, key)

    def slow_requests(self, key, share=0.01):
        """Return a list of SlowRequestsRow: what the slowest requests with
        each value of a label did, beside all others.

        The slowest are at least that share of them, and one.  Requests are
        the blocks of request() and what middleware saw.  Values of which all
        requests took about as long are left out, and so are all of a part of
        a profile, since the times of requests are of all of it.

        Raise ValueError for a key that nothing has, and for a share that is
        none.
        """
        from profile_sampling._data import by_task
        return by_task.slow_requests(self._tables, key, share)

    def loop_holders(self):
        """Return a list of LoopHolderRow: what ran in an event loop, or held
        the GIL that it waited for, while tasks waited for the loop, the
        longest delay first.

        They add up to the value 'delay_ns'.
        """
        from profile_sampling._data import by_task
        return by_task.holders(self._tables)

    def call_tree(self, inverted=False, *, by='function', idle=False):
        """Return the root CallNode of the tree of calls.

        The children of a function are what it called.  In an inverted tree
        those of the root are the functions at the leaves of stacks, and
        the children of a function are its callers.  With *by* 'line', what
        a function did at different lines is apart.
        """
        from profile_sampling._data import tree
        return tree.call_tree(self._shown(idle), inverted=inverted, by=by)

    def callers(self, function, *, idle=False):
        """Return a list of CallRow: who called a function.

        *function* is as for filter(); several that match count as one.
        The rows add up to its cumulative values.  None is for stacks that
        begin with it.  Recursive calls are not calls by itself: what counts
        is the outermost.
        """
        from profile_sampling._data import calls
        return calls.callers(self._shown(idle), function)

    def callees(self, function, *, idle=False):
        """Return a list of CallRow: whom a function called.

        *function* is as for filter(); several that match count as one.
        The rows add up to its cumulative values.  None is for the function
        itself, its self values.  Of recursive calls the innermost counts.
        """
        from profile_sampling._data import calls
        return calls.callees(self._shown(idle), function)

    def tables(self):
        """Return all that the profile has as a dict of tables.

        A table is a dict of columns of equal length: an array of 64-bit
        numbers, or a list of texts and None.  Rows refer to rows of other
        tables by their number, from 0; see the documentation for their names.
        """
        from profile_sampling._data import exported
        return exported.exported(self._tables)

    def columns(self, what, *, idle=False):
        """Return a table as a dict of lists of equal length.

        *what* is 'samples', 'functions', 'lines', 'instructions',
        'labels', 'threads', 'states' or 'gil_holders'.  pandas.DataFrame()
        and polars.DataFrame() take the result as it is.

        Raise ValueError for another table.
        """
        from profile_sampling._data import columns
        return columns.columns(self._tables, what, idle)
