"""What is wrong with an argument is said alike by all public methods."""

import io
import os
import random
import re
import tempfile
import unittest

from profile_sampling import Profile, ProfileDiff

from ..support.builders import Builder
from ..support.timed import timed

# By method: what is wrong with the type of an argument, which is in the
# message, and what with its value.
_KEY = ([(1,), (None,)], 'key must be a str'), ([('nix',)], "label 'nix'")
_PATTERN = ([(1,), (None,)], 'pattern must be'), ([('(',)], 'no regular exp')
_NAME = ([(1,)], 'function must be'), ([], '')
_VALUE = ([(1,)], 'value must be a str'), ([('nix',)], "no value 'nix'")
_METHODS = {
    'total': _VALUE, 'by_value': _VALUE, 'group_by': _KEY,
    'label_values': _KEY, 'tasks_by': _KEY, 'slow_requests': _KEY,
    'focus': _PATTERN, 'ignore': _PATTERN, 'hide': _PATTERN,
    'collapse': _PATTERN, 'root': _PATTERN, 'callers': _NAME,
    'callees': _NAME,
    'columns': (([(1,), (['samples'],)], 'what must be a str'),
                ([('nix',), ('',)], "'samples', .* or 'gil_holders', not")),
    'between': (([('a', 'b'), (0.5, 2), (None, 2)], 'begin_ns must be an int'),
                ([(-1, 2)], 'begin_ns must be at least 0')),
    'load': (([(1,), (None,)], 'os.PathLike'), ([], '')),
    'merge': (([(1,)], 'Profile'), ([()], 'no profiles')),
}
# The same of arguments with a name.
_NAMED = {
    'slow_requests': [('share', 'route', ['1', True, None], [-1, 2])],
    'call_tree': [('by', False, [1], ['file'])],
    'call_sites': [('mine', None, [1], ['('])],
    'findings': [('mine', None, [1], ['('])],
    'diff': [('by', Profile, [1], ['nix']), ('value', Profile, [1], ['nix']),
             ('per', Profile, [1], ['nix']), ('gates', Profile, [1], ['nix']),
             ('mine', Profile, [1], ['(']), ('what', Profile, [1], [])],
    'filter': [('function', None, [1], []), ('file', None, [1], []),
               ('state', None, [1], ['nix']), ('thread', None, [1.5], []),
               ('task', None, [1], []),
               ('labels', None, ['nix', {'route': 1}], [{'nix': 'x'}])],
    'report': [('sort', io.StringIO, [1], ['flat']),
               ('top', io.StringIO, ['5', True], [0]),
               ('width', io.StringIO, [80.5], [59]),
               ('color', io.StringIO, [1], ['red']),
               ('mine', io.StringIO, [1], ['(']),
               ('file', None, ['out.txt'], [])],
    'load': [('max_bytes', os.devnull, ['1', 1.5], [-1])],
    'merge': [('max_bytes', Profile, ['1'], [-1])],
}
_SAVED = [('out.html', 'source', [1, 1.5], []),
          ('out', 'format', [], ['nix', 1])]


def _profile():
    b = Builder().sample('a.f:1', wall_ns=1, labels={'route': '/'})
    return timed(b.profile(), random.Random(1))


class ArgumentsTest(unittest.TestCase):

    def setUp(self):
        self.profile = _profile()

    def refuse(self, error, message, name, *arguments, **options):
        with self.subTest(name, arguments=arguments, options=options), \
                self.assertRaisesRegex(error, message):
            getattr(self.profile, name)(*arguments, **options)

    def test_types_and_values(self):
        for name, cases in _METHODS.items():
            for error, (wrong, message) in zip((TypeError, ValueError), cases):
                for arguments in wrong:
                    self.refuse(error, message, name, *arguments)

    def test_named(self):
        for name, cases in _NAMED.items():
            for option, first, *cases in cases:
                first = (() if first is None else (self.profile,)
                         if first is Profile else (io.StringIO(),)
                         if first is io.StringIO else (first,))
                for error, wrong in zip((TypeError, ValueError), cases):
                    for value in wrong:
                        self.refuse(error, '', name, *first, **{option: value})

    def test_files(self):
        with tempfile.TemporaryDirectory() as directory:
            for name, option, *cases in _SAVED:
                path = os.path.join(directory, name)
                for error, wrong in zip((TypeError, ValueError), cases):
                    for value in wrong:
                        self.refuse(error, '', 'save', path, **{option: value})
            self.assertEqual(os.listdir(directory), [])

    def test_a_number_is_no_file(self):
        with tempfile.TemporaryFile() as file:
            with self.assertRaises(TypeError):
                Profile.load(file.fileno())
            os.fstat(file.fileno())

    def test_sides(self):
        for side, error in ((1, TypeError), ([1], TypeError), ([], ValueError)):
            for sides in (side, self.profile), (self.profile, side):
                with self.subTest(sides), self.assertRaises(error):
                    ProfileDiff(*sides)

    def test_one_stands_for_several(self):
        profile = self.profile
        for mine in 'nix', ['nix'], re.compile('nix'):
            self.assertEqual(profile.call_sites(mine=mine),
                             profile.call_sites(mine=['nix']))
        self.assertEqual(len(profile.diff(profile, gates='total').gates), 1)
