"""Starting and ending sessions.

This file owns the session of the process, and sessions tied to a block or a
function.  It must not know what a profile holds.
"""

from profile_sampling import _core
from profile_sampling._options import ALL_NAMES, checked
from profile_sampling._profile import Profile

# Number of the session; see profile._end().
_serial = 0


def start(mode='wall', *, rate_hz=1000, depth_frames=512, names=ALL_NAMES,
          signal=None, defer=False):
    """Start a session that samples all threads of this process.

    mode          which clock the profile is about: 'wall', the time that
                  passes, or 'cpu', the time on a CPU.  Both are measured
                  either way
    rate_hz       samples per second, 1 to 10000
    depth_frames  how many Python frames of a stack to keep, 1 to 16384
    names         what to tell beyond Python frames: 'calls' (C functions and
                  operators), 'opcodes' (how the interpreter had specialized
                  the instruction), both, with a comma, or 'off'
    signal        number of the signal to interrupt threads with; by
                  default one that programs do not use
    defer         sample, all threads, only while any of them is in a
                  profile() block; nothing is measured in between

    Raise TypeError or ValueError for a wrong argument, RuntimeError if a
    session is running, NotImplementedError if the platform cannot.
    """
    options = checked(mode, rate_hz, depth_frames, names, signal)
    if defer:
        options['defer'] = True
    _start(options)


def _start(options):
    global _serial
    _core.load().start(**options)
    _serial += 1
    _core.give_names()


def stop():
    """End the session and return its Profile.

    Raise RuntimeError if none is running.
    """
    return Profile._from_raw(_core.load().stop())


def snapshot(*, clear=False):
    """Return the Profile of the session so far, which goes on.

    With *clear*, the next snapshot, or stop(), begins where this one ends.

    Raise RuntimeError if no session is running.
    """
    return Profile._from_raw(_core.load().snapshot(bool(clear)))


def running():
    """Return True while a session is running."""
    return _core.load().running()


def stats():
    """Return the counters of the running session, or of the last one."""
    return _core.load().stats()


class profile:
    """A session for a block, or for each call of a function.

    As a context manager it starts a session and ends it with the block;
    then the attribute *profile* is the Profile (None before).  With *out*,
    it is also saved to that file; '{pid}' in it stands for the number of
    the process.  The arguments of start(), except defer, may be given.  All
    others are labels, as label() takes them, that hold inside.

    While a session started with defer=True is running, the block starts
    none of its own: that session samples while anybody is inside.  Then
    only labels may be given, and *profile* stays None.

    As a decorator it does so around each call; the attribute *profile* of
    the function is the Profile of the call that ended last.  A coroutine
    function is profiled from its first step to its end, whatever else runs
    meanwhile; a generator function from its first next() until it is
    exhausted or closed.  A call made while another call of the function
    holds the session, by recursion or in another thread or task, only runs:
    that session has it already.

    Raise TypeError for a label that looks like an option misspelt,
    RuntimeError when entered while a session is running that is not
    deferred, or with options while one is that is; and what start(),
    label() and Profile.save() raise.
    """

    # An option that was not given is told from its default.
    def __init__(self, /, mode=..., *, rate_hz=..., depth_frames=...,
                 names=..., signal=..., out=..., **labels):
        given = {'mode': mode, 'rate_hz': rate_hz, 'signal': signal,
                 'depth_frames': depth_frames, 'names': names, 'out': out}
        given = {name: value for name, value in given.items()
                 if value is not ...}
        self._given = tuple(given)
        self._out = given.pop('out', None)
        self._options = checked(**given)
        if self._out is not None:
            from profile_sampling import _formats
            # A bad name is to be known now, not when the work is done.
            _formats.choose(self._out)
        self._label = _checked_label(labels) if labels else None
        # Per block that is under way: the deferred session it samples for,
        # None if the session is its own.
        self._blocks = []
        self.profile = None

    def __enter__(self):
        if self._label is not None:
            self._label.__enter__()
        try:
            self._blocks.append(self._begin())
        except BaseException:
            self._leave_label()
            raise
        return self

    def _begin(self):
        """Begin to sample; return the number of the deferred session."""
        core = _core.load()
        if not core.is_deferred():
            _start(self._options)
            return None
        if self._given:
            raise RuntimeError(
                'a deferred session is running, so that profile() takes '
                f'labels only, not {", ".join(self._given)}; give that to '
                'start(defer=True), or stop() the session')
        serial = _serial
        core.enter()
        return serial

    def __exit__(self, exc_type, exc, traceback):
        try:
            self._end(self._blocks.pop())
        finally:
            self._leave_label()

    def _end(self, serial):
        """Undo _begin(), which returned *serial*."""
        if serial is None:
            self.profile = stop()
            if self._out is not None:
                from profile_sampling import _formats
                self.profile.save(_formats.with_pid(self._out))
        elif serial == _serial:
            try:
                _core.load().leave()
            except RuntimeError:
                # It has been stopped; a later one is not this block's.
                pass

    def _leave_label(self):
        if self._label is not None:
            self._label.__exit__(None, None, None)

    def __call__(self, function):
        from profile_sampling._recording import wrap
        return wrap.profiled(self, function)


def _checked_label(labels):
    from profile_sampling._recording import labels as labels_, misspelt
    for name in labels:
        misspelt.check(name)
    return labels_.label(**labels)
