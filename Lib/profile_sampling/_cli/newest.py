"""The newest profiles of a directory: those of one run."""

import os

from profile_sampling._cli.common import Failure, load, summed
from profile_sampling._cli.listing import paths
from profile_sampling._data.values import RUN


def run_in(directory, max_bytes):
    """Return (paths, tables) of the newest profile and of all that other
    processes of its run have left there."""
    found = sorted([(os.stat(path).st_mtime_ns, os.path.normpath(path))
                    for path in paths(directory)], reverse=True)
    if not found:
        where = ('this directory' if directory == os.curdir else directory)
        raise Failure(f'there is no profile in {where}; name a FILE', 2)
    (_, path), *others = found
    tables = load(path, max_bytes)
    its = [(path, tables)]
    run, begin_ns = tables.meta.get(RUN), tables.start_time_ns
    sessions = {_session(tables)}
    for mtime_ns, path in others if run else ():
        # Whoever ended before all of these began is of another run.
        if mtime_ns < begin_ns:
            break
        tables = _loaded(path, max_bytes)
        # A copy of a profile, or a part, is of the same session.
        if (tables is not None and tables.meta.get(RUN) == run
                and _session(tables) not in sessions):
            its.append((path, tables))
            sessions.add(_session(tables))
            begin_ns = min(begin_ns, tables.start_time_ns)
    if len(its) > 1:
        # Only the first process knows its command.
        meta = {}
        for _, one in its:
            meta |= one.meta
        del meta[RUN]
        tables = summed(its, max_bytes).with_facts(meta=meta)
    return [path for path, _ in its], tables


def _session(tables):
    return tables.pid, tables.start_time_ns


def _loaded(path, max_bytes):
    """Return the tables of a file, or None: nobody has asked for this one."""
    try:
        return load(path, max_bytes)
    except Failure:
        return None
