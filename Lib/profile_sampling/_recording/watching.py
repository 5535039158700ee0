"""Functions whose calls are counted as queries, found as they are imported."""

import sys
from types import FunctionType

from profile_sampling._data.watched import KIND_OF


class Watch:
    """Looks for the functions of the list in modules, once in each.

    *more* are others, 'module.qualname'; they may be in any of the modules
    whose name it begins with.
    """

    def __init__(self, core, more=()):
        self._core = core
        # The program may put other modules in their place.
        self._modules = sys.modules
        self._pending = {}
        for module, name in KIND_OF:
            self._pending.setdefault(module, []).append(name)
        for words in [name.split('.') for name in more]:
            for end in range(1, len(words)):
                self._pending.setdefault('.'.join(words[:end]), []).append(
                    '.'.join(words[end:]))
        self.look()
        core.watch_imports(
            self._modules['_frozen_importlib']._load_unlocked, self.look)

    def look(self):
        """Watch what modules have that have been imported meanwhile."""
        for name in self._pending.keys() & self._modules.keys():
            module = self._modules[name]
            spec = getattr(module, '__spec__', None)
            if getattr(spec, '_initializing', False):
                continue        # it is looked at when it has all its names
            for qualname in self._pending.pop(name):
                function = _found(module, qualname)
                if function is not None:
                    self._core.watch_queries(function)


def _found(module, qualname):
    """Return the function of a qualified name; None if it is none, or there is
    none in this version of the library."""
    *owners, last = qualname.split('.')
    found = module
    for owner in owners:
        found = _entry(found, owner)
        if not isinstance(found, type):
            return None
    found = _entry(found, last)
    while isinstance(found, FunctionType) and '__wrapped__' in vars(found):
        found = found.__wrapped__
    return found if isinstance(found, FunctionType) else None


def _entry(owner, name):
    # No code of the program's runs.
    return getattr(owner, '__dict__', {}).get(name)
