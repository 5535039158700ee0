"""The command record: run a program and keep its profile."""

import os

from profile_sampling import _files, _formats
from profile_sampling._cli import (
    attached, child, meta, program, reached, repeat, run)
from profile_sampling._cli.common import (
    Failure, add_format, choose_format, file_name, flush, refuse_terminal)
from profile_sampling._recording.at_exit import META_VARIABLE

DEFAULT_OUTPUT = 'sampleprof.{pid}'


def add(commands):
    parser = commands.add_parser(
        'record', usage=program.USAGE, help='run a program and keep its '
                                            'profile',
        description='Run a program with its arguments, and write its profile '
                    'when it ends.  A program of Python runs in this very '
                    'process, so that its number, its status, its signals '
                    'and its terminal are its own; after --, any command is '
                    'a child, and so is a program whose profile goes to '
                    'stdout or is not pprof, collapsed or text.')
    program.add(parser)
    attached.add(parser)
    parser.add_argument(
        '-o', '--output', metavar='OUT', type=file_name,
        help='the file to write; {pid} stands for the number of the process; '
             '- is stdout, as text unless --format is given '
             '(default: sampleprof.{pid} with the extension of the format)')
    add_format(parser, 'pprof')
    parser.add_argument('--no-source', action='store_true',
                        help='leave the text of functions out of a page')
    parser.add_argument('-q', '--quiet', action='store_true',
                        help='print nothing if all goes well')
    program.add_kept(parser)
    repeat.add(parser)
    meta.add(parser)
    parser.set_defaults(run=_run, program=None)


def _run(options):
    if options.alternate:
        return repeat.take_turns(options, options.output)
    format, output = _output(options)
    if options.pid is not None:
        attached.check(options)
        return reached.or_refusal(
            lambda options: attached.record(options, format, output), options)
    wanted = program.program_of(options)
    run.check_format(format, options)
    program.check_script(wanted)
    if options.repeat is not None:
        return repeat.run_all(wanted, options, format, output)
    program.check_output(output)
    # The program itself writes a file only, for it may close its stdout, and
    # of few formats.
    if (wanted.is_foreign or _files.descriptor(output) is not None
            or format not in _formats.AT_EXIT):
        return child.end_as(run.to_file(wanted, options, format,
                                        _formats.with_pid(output)))
    text = program.session_text(options, out=output, quiet=options.quiet,
                                format=format)
    command = wanted.command(text)
    flush()
    known = meta.of(wanted, options)
    if known:
        os.environ[META_VARIABLE] = '\n'.join(
            [f'{name}={text}' for name, text in known.items()])
    try:
        os.execv(command[0], command)
    except OSError as exc:
        raise Failure(f'cannot run {command[0]}: {exc.strerror}') from None


def _output(options):
    """Return the format and the name of the file."""
    output = options.output
    if output is None:
        format = options.format or 'pprof'
        output = DEFAULT_OUTPUT + _formats.extension(format)
    else:
        format = choose_format(options, 'text')
        refuse_terminal(format, output)
    return format, output
