"""Starting and ending sessions."""

from profile_sampling import _core
from profile_sampling._options import checked, checked_calls, with_hints
from profile_sampling._profile import Profile
from profile_sampling._recording import latencies
from profile_sampling._recording.counting import Counting

# Who counts its calls.
_countings = []


@with_hints
def start(mode='wall', *, rate_hz=1000, depth_frames=None, names=None,
          signal=None, defer=False, timeline=False, calls=None,
          alloc_bytes=None):
    """Start a session that samples all threads of this process.

    mode          what the profile is about: 'wall', the time that passes,
                  'cpu', the time on a CPU (both are measured either way),
                  or 'alloc', memory alone
    rate_hz       samples per second, 1 to 10000
    depth_frames  how many Python frames of a stack to keep, 1 to 16384
    names         what to name beyond Python frames: 'calls' (C functions and
                  operators), 'opcodes' (how the interpreter had specialized
                  the instruction), 'all' or 'off'
    signal        number of the signal to interrupt threads with; by
                  default one that programs do not use
    defer         sample, all threads, only while any of them is in a
                  region() or a profile() block; nothing is measured in
                  between
    timeline      keep when samples were taken: Profile.between() takes a
                  range of time, and pages have lanes.  Not with *defer*
    calls         what to count exactly, beside the samples: 'python', calls
                  of functions in Python, or 'all', C functions, too; of the
                  interpreter that asks for it.  Not with *defer*
    alloc_bytes   sample allocations, too: a block for each so many bytes,
                  which in mode 'alloc' are 512 KiB if nothing is said.  Not
                  with *defer*

    By default depth_frames is 512 and names is 'all'; or, beside
    subscriptions or blocks of profile(), what these have.

    Raise TypeError or ValueError for a wrong argument, RuntimeError if a
    session is running or others sample with fewer depth_frames or names or
    another signal than asked for, NotImplementedError if the platform
    cannot.
    """
    options = checked(mode, rate_hz, depth_frames, names, signal,
                      alloc_bytes)
    calls = checked_calls(calls)
    if defer:
        if 'alloc_bytes' in options:
            raise ValueError('a deferred session samples no allocations')
        if timeline:
            raise ValueError('a deferred session has no time line')
        if calls != 'off':
            raise ValueError('a deferred session counts no calls')
        options['defer'] = True
    if timeline:
        options['times'] = True
    _, counting = _begin(lambda core: core.start(**options),
                         lambda core, _: core.stop(), calls)
    _countings[:] = [counting]
    latencies.begin_session()
    _core.give_task()


def _begin(begin, end, calls):
    """Begin to sample; return what begin() returned, and the Counting."""
    core = _core.load()
    block = begin(core)
    try:
        return block, Counting(calls)
    except BaseException:
        end(core, block)
        raise


def stop():
    """End the session and return its Profile.

    Raise RuntimeError if none is running.
    """
    core = _core.load()
    counted = None
    while _countings and core.running():
        counted = _countings.pop().end()
    raw = core.stop()
    raw = raw | {'latencies': latencies.end_session(), 'counts': counted}
    return Profile._from_raw(raw)


def snapshot(*, clear=False):
    """Return the Profile of the session so far, which goes on.

    With *clear*, the next snapshot, or stop(), begins where this one ends.
    If blocks of profile() are all that is running, it is that of the one that
    began first.

    Raise RuntimeError if nothing is running, or, with *clear*, no session.
    """
    clear = bool(clear)
    raw = _core.load().snapshot(clear)
    raw = raw | {'latencies': latencies.of_session(clear=clear)}
    for counting in _countings:
        raw['counts'] = counting.so_far(clear=clear)
    return Profile._from_raw(raw)


def running():
    """Return True while a session or a profile() block is running."""
    return _core.load().running()


def stats():
    """Return the counters of the running session, or of the last one.

    They go on; those of a profile are its attribute stats.
    """
    return _core.load().stats()


class profile:
    """A profile of a block, or of each call of a function.

        with profile() as block:
            ...
        print(block.profile)

    When the block ends, the attribute *profile* is the Profile (None
    before): all threads, from the beginning of the block to its end.  With
    *out*, it is also saved to that file; '{pid}' in it stands for the number
    of the process.  A relative name begins in the directory that is the
    current one when profile() is called.

    If nothing samples yet, the block starts it, and it ends with the last
    block.  If something does (a session, -X sampleprof, other blocks), the
    block takes part in that, which loses nothing by it.  Blocks may overlap
    in any order; each is profiled whatever becomes of the others and of the
    session.  A block that is in progress at a fork has no profile in the
    child.

    The other arguments are those of start().  None stands for what the
    running session has, and else for what start() takes.

    As a decorator it does so around each call; the attribute *profile* of
    the function is the Profile of the call that ended last.  A coroutine
    function is profiled from its first step to its end, whatever else runs
    meanwhile; a generator function from its first next() until it is
    exhausted or closed.  A call made while another call of the function is
    being profiled, by recursion or in another thread or task, only runs.

    Raise what start() and Profile.save() raise, OSError when entered if
    *out* cannot be written, and RuntimeError if a session is running with
    other options than those given.
    """

    @with_hints
    def __init__(self, mode=None, *, rate_hz=None, depth_frames=None,
                 names=None, signal=None, out=None, timeline=False,
                 calls=None, alloc_bytes=None):
        self._options = checked(mode, rate_hz, depth_frames, names, signal,
                                alloc_bytes)
        self._path = None
        self._has_timeline = bool(timeline)
        self._calls = checked_calls(calls)
        if out is not None:
            from profile_sampling import _formats
            # A bad name is to be known now, not when the work is done.
            _formats.choose(out)
            self._path = _formats.fixed(out)
        self._block = None
        self.profile = None

    def __enter__(self):
        if self._block is not None:
            raise RuntimeError('this profile() is in progress; a block within '
                               'it, or in another thread, needs one of its '
                               'own')
        self._block = self._begin()
        return self

    def _begin(self):
        """Begin to sample; return what _end() takes."""
        core = _core.load()
        if self._path is not None:
            from profile_sampling import _files
            _files.check(self._path())
        is_first = not core.running()
        block, counting = _begin(
            lambda core: core.begin_block(**self._options,
                                          times=self._has_timeline),
            lambda core, block: core.end_block(block), self._calls)
        if is_first:
            _core.give_task()
        return block, latencies.collect(), counting

    def __exit__(self, exc_type, exc, traceback):
        block = self._block
        self._block = None
        self._end(block)

    def _end(self, block):
        block, collector, counting = block
        counted = counting.end()
        ended = latencies.end(collector)
        raw = _core.load().end_block(block)
        if raw is None:
            return      # it is the parent's, or the interpreter is ending
        raw = raw | {'latencies': ended, 'counts': counted}
        self.profile = Profile._from_raw(raw)
        if self._path is not None:
            from profile_sampling import _formats
            _formats.write(self.profile._tables, self._path())

    def __call__(self, function):
        from profile_sampling._recording import wrap
        return wrap.profiled(self, function)


class region:
    """What a deferred session samples: a block, or calls of a function.

        with region():
            ...

    A session of start(defer=True) samples all threads while at least one
    thread or task is in a region.  Without such a session a region does
    nothing, so it may stay in the program.  Regions may be nested and may
    overlap.  One that is in progress at a fork does not count in the child.

    As a decorator it is entered for each call: of a coroutine function from
    its first step to its end, of a generator function from its first next()
    until it is exhausted or closed.
    """

    __slots__ = ('_core', '_entered')

    def __init__(self):
        self._core = _core.load()
        # By all threads; which of them leaves first makes no difference.
        self._entered = []

    def __enter__(self):
        self._entered.append(self._core.enter_region())
        return self

    def __exit__(self, exc_type, exc, traceback):
        self._core.leave_region(self._entered.pop())

    def __call__(self, function):
        from profile_sampling._recording import wrap
        return wrap.inside(self, function)
