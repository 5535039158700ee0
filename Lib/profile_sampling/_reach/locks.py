"""Locks: who has one, who wants one, and who waits for whom for ever.

An owner is known of an RLock, which notes it, and of a lock that a thread
stands inside the `with` of; else nothing is claimed.
"""

WANTS, HAS = 1, 2


class Lock:
    """A lock that a thread wants.

    owner   the Thread that has it, or None: not known
    """

    def __init__(self, address, name):
        self.address = address
        self.name = name
        self.owner = None


def connect(said, threads):
    """Give each thread the locks that it has and wants."""
    found = {}
    by_ident = {thread.ident: thread for thread in threads}

    def lock(address):
        return found.setdefault(address, Lock(
            address, chr(ord('A') + len(found)) if len(found) < 26
            else f'L{len(found)}'))

    by_native_id = {thread.native_id: thread for thread in threads}
    for raw in said.threads:
        thread = by_native_id[raw.native_id]
        for what, address, owner in raw.locks:
            if what == WANTS and thread.state == 'waiting':
                thread.wants = lock(address)
                if owner in by_ident:
                    thread.wants.owner = by_ident[owner]
    for raw in said.threads:
        thread = by_native_id[raw.native_id]
        for what, address, _ in raw.locks:
            if what == HAS and address in found:
                held = found[address]
                held.owner = held.owner or thread
    # A lock that one thread alone wants, and nobody is known to have, is how a
    # condition waits.
    for thread in threads:
        lock_of = thread.wants
        if (lock_of is not None and lock_of.owner is None
                and sum(other.wants is lock_of for other in threads) < 2):
            thread.wants = None
    for held in found.values():
        if held.owner is not None:
            held.owner.has.append(held)


def circles(threads):
    """Return lists of threads that each want what the next one has."""
    found, seen = [], set()
    for thread in threads:
        path = []
        while (thread is not None and thread.wants is not None
               and id(thread) not in seen):
            seen.add(id(thread))
            path.append(thread)
            thread = thread.wants.owner
        if thread in path:
            found.append(path[path.index(thread):])
    return found


def behind(threads, circles):
    """Return threads that wait for what one of a circle has, not in it."""
    stuck = {id(thread) for circle in circles for thread in circle}
    found = []
    grows = True
    while grows:
        more = [thread for thread in threads
                if id(thread) not in stuck and thread.wants is not None
                and thread.wants.owner is not None
                and id(thread.wants.owner) in stuck]
        grows = bool(more)
        found += more
        stuck |= {id(thread) for thread in more}
    return found
