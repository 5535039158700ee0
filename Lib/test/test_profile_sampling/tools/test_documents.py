"""Do the pages of Doc/ say what is so?  Tools/docs/pages.py runs them.

What a page shows is run as it stands there.  Numbers are not compared, as
they differ from run to run; the shares of the tutorial's program are, with
those that the program measures itself.
"""

import ast
import pathlib
import re
import textwrap
import unittest

import profile_sampling

# There is nothing to run without a core that samples.
from ..support import sessions  # noqa: F401
from ..support import documents
from ..support.documents import DOC, HOWTOS, PROGRAMS, REFERENCE, pages


class CountersTest(unittest.TestCase):

    def test_the_table_has_them_all(self):
        text = (DOC / 'library/profile_sampling-formats.rst').read_text()
        table, = [part for part in re.split('\n=+ +=+\n\n', text)
                  if '\n``ticks``  ' in part]
        names = re.findall('^``([a-z_0-9]+)``  ', table, re.MULTILINE)
        self.assertEqual(sorted(names), sorted(profile_sampling.stats()))


class PagesTest(unittest.TestCase):

    def check(self, page, run):
        """Call run(place); what needs a package that is missing is left."""
        with self.subTest(page=page.name), pages.Place(DOC) as place:
            try:
                run(place)
            except pages.NeedsPackage as exc:
                self.skipTest(f'needs {exc}')

    def test_commands(self):
        for page in HOWTOS:
            self.check(page, lambda place: pages.check_commands(page, place))

    def test_python(self):
        for page in [*HOWTOS, *REFERENCE]:
            source = pages.python_of(page)
            if source:
                self.check(page, lambda place: place.run_python(source))

    def test_there_is_something_to_check(self):
        kinds = [block.kind for page in [*HOWTOS, *REFERENCE]
                 for block in pages.blocks(page.read_text())]
        self.assertGreater(kinds.count('console'), 15)
        self.assertGreater(kinds.count('python'), 10)

    def test_programs_are_shown(self):
        # A program that no page shows is one that nobody keeps true.
        text = ''.join([page.read_text() for page in HOWTOS])
        for program in PROGRAMS:
            with self.subTest(program=program.name):
                self.assertIn(f'profile_sampling/{program.name}\n', text)


class ReferenceTest(unittest.TestCase):
    """The reference and the stubs, which stubtest holds to the code, have the
    same names and signatures."""

    # Of classes that are described as another one and more.
    AS = {'LineRow': 'FunctionRow'}
    # What only other packages and ours call, and what is said once of all rows.
    OURS = re.compile(r"""(un)?load_ipython_extension | TrioInstrument\..*
        | CallCount\.(key|numbers) | TaskLabelRow\.name | .*\.app
        | .*Row\.value_types""", re.VERBOSE)

    def stub(self, module):
        """Return {dotted name: its node}."""
        path = pathlib.Path(profile_sampling.__file__).parent.joinpath(
            *module.split('.')[1:])
        if path.is_dir():
            path /= '__init__'
        tree = ast.parse(path.with_suffix('.pyi').read_text())
        classes = {node.name: node for node in tree.body
                   if isinstance(node, ast.ClassDef)}
        found = {}
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                found[node.name] = node
        for name, node in classes.items():
            found[name] = None
            for base in [*reversed(node.bases), node]:
                body = classes.get(getattr(base, 'id', name), node).body
                for its in body:
                    if isinstance(its, ast.AnnAssign):
                        found[f'{name}.{its.target.id}'] = None
                    elif isinstance(its, ast.FunctionDef):
                        found[f'{name}.{its.name}'] = its
            found[name] = found.get(f'{name}.__init__',
                                    found.get(f'{name}.__new__'))
        return found

    def parameters(self, arguments):
        """Return what a signature says but for annotations."""
        for its in ast.walk(arguments):
            if isinstance(its, ast.arg):
                its.annotation = None
        said = ast.unparse(arguments)
        return re.sub(r'^(self|cls)(, /)?(, |$)', '', said)

    def test_signatures(self):
        for module, name, said in documents.signatures():
            stub = self.stub(module)
            owner = name.partition('.')[0]
            with self.subTest(name):
                if name not in stub:
                    self.assertIn(f'{owner}.__getattr__', stub)
                    self.assertEqual(said, '')
                elif said and stub[name] is None:
                    self.assertEqual(said, '()')
                elif said and not stub[name].args.kwarg:
                    its = ast.parse(f'def f{said}: ...').body[0].args
                    self.assertEqual(self.parameters(its),
                                     self.parameters(stub[name].args))

    def test_nothing_is_left_out(self):
        there = {}
        for module, name, _ in documents.signatures():
            there.setdefault(module, set()).add(name)
        for module, names in there.items():
            public = {name for name in self.stub(module)
                      if '_' not in (name[0], name.partition('.')[2][:1])}
            for name, other in self.AS.items():
                names |= {f'{name}.{its.partition(".")[2]}' for its in names
                          if its.startswith(f'{other}.')}
            with self.subTest(module):
                self.assertEqual({name for name in public - names
                                  if not self.OURS.fullmatch(name)}, set())


class CheckerTest(unittest.TestCase):
    """The check of pages finds what is wrong with one."""

    def setUp(self):
        self.place = self.enterContext(pages.Place(DOC))
        self.page = self.place.path / 'page.rst'

    def write(self, text):
        self.page.write_text(textwrap.dedent(text))

    def test_wrong_output(self):
        self.write("""
            .. code-block:: console

               $ echo two
               three
            """)
        with self.assertRaisesRegex(pages.Failure, 'three'):
            pages.check_commands(self.page, self.place)

    def test_what_some_runs_have(self):
        self.write("""
            .. code-block:: console

               $ echo 'waited in'
               waited how in
               [without]: none of them
            """)
        pages.check_commands(self.page, self.place)

    def test_mark(self):
        self.write("""
            .. code-block:: console

               $ echo '1 [without]'
               [without]: none of them
            """)
        with self.assertRaisesRegex(pages.Failure, 'none of them'):
            pages.check_commands(self.page, self.place)

    def test_status(self):
        self.write("""
            .. code-block:: console

               $ exit 3
            """)
        with self.assertRaisesRegex(pages.Failure, 'status 3'):
            pages.check_commands(self.page, self.place)

    def test_python_is_one_program(self):
        self.write("""
            .. testsetup::

               number = 1

            Text::

               number += 1

            .. code-block:: none

               not Python
            """)
        self.assertEqual(pages.python_of(self.page),
                         'number = 1\n\nnumber += 1')


class TutorialTest(unittest.TestCase):
    """The shares of the tutorial's program are those it measures itself."""

    # Points of the whole.  Each function has hundreds of samples, but for
    # total(), which is short.
    TOLERANCE = 3.0
    PROGRAM = textwrap.dedent("""
        import time
        import orders
        import profile_sampling

        spent = {}

        def timed(function):
            def call(*args):
                start = time.perf_counter()
                try:
                    return function(*args)
                finally:
                    spent[name] = time.perf_counter() - start
            name = function.__name__
            return call

        for name in 'fetch', 'parse', 'distinct', 'total', 'main':
            setattr(orders, name, timed(getattr(orders, name)))
        with profile_sampling.profile() as session:
            orders.main()
        rows = {row.function.name: row.cum_wall_ns
                for row in session.profile.functions()}
        for name, seconds in spent.items():
            print('share', name, 100 * seconds / spent['main'],
                  100 * rows.get(f'orders.{name}', 0) / rows['orders.main'])
        """)

    def test_shares(self):
        with pages.Place(DOC) as place:
            printed = place.run_python(self.PROGRAM)
        shares = {}
        for line in printed:
            if line.startswith('share '):
                _, name, true, profiled = line.split()
                shares[name] = float(true), float(profiled)
        self.assertEqual(len(shares), 5, printed)
        for name, (true, profiled) in shares.items():
            with self.subTest(function=name, true=true):
                self.assertAlmostEqual(profiled, true, delta=self.TOLERANCE)
        # What the text says of it.
        self.assertEqual(max(shares, key=lambda name: shares[name][0]
                             * (name != 'main')), 'distinct')
