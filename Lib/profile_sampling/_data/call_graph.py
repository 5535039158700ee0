"""Who called whom and for how long, of all functions at once.

A function, or a call of one by another, can be on a stack more than once, by
recursion.  Each sum here says what it counts of that, and none counts a sample
twice.
"""

from profile_sampling._data.stacks import Calls, sum_by_key


class CallGraph:
    """The functions and the calls of a tree of stacks.

    keys      list of what stands for the functions, in order; places that
              have equal keys are one function
    function  per place of the tree, its number in *keys*
    calls     list of (caller, function that is called): the caller is a
              function or, with *by_place*, a place

    Methods take a column with a number per node of the tree: *cum*, the sums
    of all stacks that come this way, or *own*, of those that end there.
    """

    def __init__(self, paths, keys, *, by_place=False):
        """*keys* has the key of each of paths.places."""
        numbers = {}
        self.function = [numbers.setdefault(key, len(numbers))
                         for key in keys]
        self.keys = list(numbers)
        self._calls = Calls(paths.parents, paths.place, self.function,
                            by_place=by_place)
        self.calls = list(self._calls.pairs)

    def of_functions(self, cum):
        """Per function, the sum of all stacks that it is on."""
        return sum_by_key(self._calls.first_function, cum, len(self.keys))

    def of_functions_alone(self, own):
        """Per function, the sum of all stacks that end with it."""
        return sum_by_key(self._calls.function, own, len(self.keys))

    def of_calls(self, cum):
        """Per call, the sum of all stacks that it is on."""
        return sum_by_key(self._calls.first_call, cum, len(self.calls))

    def of_calls_alone(self, own):
        """Per call, the sum of all stacks that end with it."""
        return sum_by_key(self._calls.call, own, len(self.calls))

    def of_innermost_calls(self, cum):
        """Per call, the sum of all stacks where it is by the innermost of
        its caller's frames.

        With what it did itself, what a function called adds up to the sum of
        all stacks that it is on.
        """
        return [value - outer for value, outer in zip(
            sum_by_key(self._calls.call, cum, len(self.calls)),
            sum_by_key(self._calls.outer_call, cum, len(self.calls)))]
