"""Who called whom and for how long, of all functions at once.

This file owns the sums over pairs of callers and callees.  It must not know
how they are shown.

A function, or a call of one by another, can be on a stack more than once, by
recursion.  Each sum here says what it counts of that, and none counts a sample
twice.
"""

from profile_sampling._data.call_paths import ROOT


class CallGraph:
    """The functions and the calls of a tree of stacks.

    keys      list of what stands for the functions, in order; places that
              have equal keys are one function
    function  per place of the tree, its number in *keys*
    calls     list of (caller, function that is called): the caller is a
              function or, with *by_place*, a place

    Methods take a list with a number per node of the tree: *cum*, the sums of
    all stacks that come this way, or *own*, of those that end there.
    """

    def __init__(self, paths, keys, *, by_place=False):
        """*keys* has the key of each of paths.places."""
        numbers = {}
        self.function = [numbers.setdefault(key, len(numbers))
                         for key in keys]
        self.keys = list(numbers)
        self._parents = parents = paths.parents
        self._place = place = paths.place
        callers = range(len(keys)) if by_place else self.function
        calls = {}
        # Nobody calls what is on top.
        self._call = [-1] * len(parents)
        for node in range(1, len(parents)):
            caller = parents[node]
            if caller != ROOT:
                call = callers[place[caller]], self.function[place[node]]
                self._call[node] = calls.setdefault(call, len(calls))
        self.calls = list(calls)
        self._look_at_recursion()

    def of_functions(self, cum):
        """Per function, the sum of all stacks that it is on."""
        return self._sums(len(self.keys), self._function, cum,
                          self._is_first_function)

    def of_functions_alone(self, own):
        """Per function, the sum of all stacks that end with it."""
        return self._sums(len(self.keys), self._function, own)

    def of_calls(self, cum):
        """Per call, the sum of all stacks that it is on."""
        return self._sums(len(self.calls), self._call, cum,
                          self._is_first_call)

    def of_calls_alone(self, own):
        """Per call, the sum of all stacks that end with it."""
        return self._sums(len(self.calls), self._call, own)

    def of_innermost_calls(self, cum):
        """Per call, the sum of all stacks where it is by the innermost of
        its caller's frames.

        With what it did itself, what a function called adds up to the sum of
        all stacks that it is on.
        """
        sums = self._sums(len(self.calls), self._call, cum)
        for node, call in self._outer_calls:
            sums[call] -= cum[node]
        return sums

    def _sums(self, n_keys, keys, values, is_counted=None):
        sums = [0] * n_keys
        for node in range(1, len(values)):
            key = keys[node]
            if key >= 0 and (is_counted is None or is_counted[node]):
                sums[key] += values[node]
        return sums

    def _look_at_recursion(self):
        """Find what is on a stack already when it comes again.

        *_outer_calls* has (node, call) where a function comes again: what
        its frame above had called on this way.
        """
        n_nodes = len(self._parents)
        self._function = [-1] + [self.function[place]
                                 for place in self._place[1:]]
        self._is_first_function = bytearray(n_nodes)
        self._is_first_call = bytearray(n_nodes)
        self._outer_calls = []
        # Where on the way down to a node each function is, and how often
        # each call; the last is for what nobody calls, -1.
        depths = [[] for _ in self.keys]
        n_calls = [0] * (len(self.calls) + 1)
        way = []
        for node in range(1, n_nodes):
            while way and way[-1] != self._parents[node]:
                left = way.pop()
                depths[self._function[left]].pop()
                n_calls[self._call[left]] -= 1
            call = self._call[node]
            its_depths = depths[self._function[node]]
            self._is_first_function[node] = not its_depths
            self._is_first_call[node] = call >= 0 and not n_calls[call]
            way.append(node)
            if its_depths:
                called = way[its_depths[-1] + 1]
                self._outer_calls.append((node, self._call[called]))
            its_depths.append(len(way) - 1)
            n_calls[call] += 1
