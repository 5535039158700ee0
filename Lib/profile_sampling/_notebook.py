"""The magic %sampleprof of IPython and Jupyter: the profile of a cell.

    %load_ext profile_sampling

    %%sampleprof -r 5000
    work()

IPython is imported only while it runs: it calls us.
"""

import argparse
import ast
import inspect
import shlex
import sys

from profile_sampling import _formats
from profile_sampling._arguments import add_kind, add_rate
from profile_sampling._data import cells
from profile_sampling._profile import Profile
from profile_sampling._recording.session import profile

# What the magic leaves in the notebook, also if the cell raised.
VARIABLE = '_sampleprof'


class _Misused(Exception):
    pass


class _Parser(argparse.ArgumentParser):

    def error(self, message):
        raise _Misused(message)


def _parser():
    parser = _Parser(prog='%sampleprof', add_help=False)
    add_rate(parser)
    add_kind(parser)
    parser.add_argument('-o', '--output', metavar='OUT')
    parser.add_argument('--timeline', action='store_true')
    parser.add_argument('--no-source', action='store_true')
    parser.add_argument('--all', action='store_true')
    return parser


def load(shell):
    """Add the magic to a shell of IPython."""
    def sampleprof(line, cell=None):
        """Profile a cell, or a statement: the value is the Profile.

            %sampleprof [OPTION]... STATEMENT
            %%sampleprof [OPTION]...

        -r, --rate HZ    samples per second of each thread (default: 1000)
        --mode MODE      wall or cpu (default: wall)
        --depth FRAMES   how many frames of a stack to keep
        --names WHAT     what to name beyond Python functions: all, calls,
                         opcodes or off
        --timeline       keep when each sample was taken: the page has a view
                         of time
        -o, --output OUT also save the profile, or its page, to this file
        --no-source      leave the text of functions out of that page
        --all            with the notebook's own frames and threads

        The profile is also in the variable _sampleprof, if the cell raises,
        too.
        """
        try:
            options, code = _split(line, cell)
            return _run(shell, options, code)
        except _Misused as exc:
            from IPython.core.error import UsageError
            raise UsageError(f'{exc} (see %sampleprof?)') from None

    shell.register_magic_function(sampleprof, 'line_cell', 'sampleprof')


def unload(shell):
    """Take the magic away again."""
    for kind in 'line', 'cell':
        shell.magics_manager.magics[kind].pop('sampleprof', None)


def _split(line, cell):
    """Return the options, and the code that is to be profiled."""
    words, rest = _words(line)
    if cell is not None:
        words, rest = shlex.split(line), cell
    elif not rest.strip():
        raise _Misused('there is no statement to profile')
    options = _parser().parse_args(words)
    if options.output is not None:
        _check(options)
    return options, rest


def _check(options):
    try:
        format = _formats.choose(options.output)
        _formats.options_of(format, source=not options.no_source)
    except ValueError as exc:
        raise _Misused(str(exc)) from None
    if options.timeline and format not in _formats.WITH_TIMELINE:
        raise _Misused(f'a {format} file has no time line')


def _words(line):
    """Return the options at the head of a line, and what follows them."""
    flags = '--timeline', '--no-source', '--all'
    words = []
    rest = line.lstrip()
    while rest.startswith('-'):
        # An option, and its value.
        for _ in range(1 if rest.startswith(flags) else 2):
            lexer = shlex.shlex(rest, posix=True)
            lexer.whitespace_split = True
            lexer.commenters = ''
            word = lexer.get_token()
            if word is None:
                break
            words.append(word)
            rest = lexer.instream.read().lstrip()
            if '=' in word:
                break
    return words, rest


def _run(shell, options, code):
    """Run code as the cell does, and return its Profile."""
    source = shell.transform_cell(code)
    name = shell.compile.cache(source, _number(shell), raw_code=code)
    parts = _compiled(shell, source, name)
    # The cell may change the directory.
    path = options.output and _formats.fixed(options.output)
    before = set(sys._current_frames())
    block = profile(options.mode, rate_hz=options.rate,
                    alloc_bytes=options.alloc_bytes,
                    depth_frames=options.depth, names=options.names,
                    timeline=options.timeline)
    try:
        with block:
            for part in parts:
                exec(part, shell.user_global_ns, shell.user_ns)
    finally:
        found = block.profile
        # None if the block could not begin, which raises its own error.
        if found is not None:
            found = _with_cells(shell, found, name, options, before)
            shell.user_ns[VARIABLE] = found
            if path is not None:
                _formats.write(found._tables, path(), **_formats.options_of(
                    _formats.choose(path()),
                    source=not options.no_source))
    return found


def _number(shell):
    """Return the number of the cell that is run.

    Versions of IPython differ in when execution_count is the next one's.
    """
    frame = sys._getframe()
    while frame is not None:
        known = shell.compile.format_code_name(frame.f_code.co_filename)
        if known is not None:
            return int(''.join(filter(str.isdigit, known[1])))
        frame = frame.f_back
    return shell.execution_count


def _compiled(shell, source, name):
    """Return the code of a cell, and that of an expression at its end, whose
    value is shown."""
    tree = shell.transform_ast(shell.compile.ast_parse(source, filename=name))
    _refuse_await(tree)
    last = []
    if tree.body and isinstance(tree.body[-1], ast.Expr) and (
            not source.rstrip().endswith(';')):
        last = [compile(ast.Interactive([tree.body.pop()]), name, 'single')]
    return [compile(tree, name, 'exec'), *last]


def _refuse_await(tree):
    """A notebook's own loop would have to go on while the code is run."""
    code = compile(tree, '<cell>', 'exec',
                   flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    if code.co_flags & inspect.CO_COROUTINE:
        raise _Misused('await is only profiled in functions; in a cell, use '
                       '"with profile_sampling.profile() as block:"')


def _with_cells(shell, found, name, options, before):
    """Return the Profile with cells by their names."""
    tables = found._tables
    if not options.all:
        tables = cells.without_notebook(tables, name, before)

    def cell(filename):
        known = shell.compile.format_code_name(filename)
        if known is None:
            return None
        _keep_lines(filename, known[1])
        return known[1]

    tables = cells.named(tables, cell).with_facts(
        meta={'command': cell(name)})
    return Profile._from_tables(tables)


def _keep_lines(filename, cell):
    """Have the lines of a cell found by its name, too."""
    import linecache
    lines = linecache.getlines(filename)
    linecache.cache[cell] = (sum(map(len, lines)), None, lines, cell)
