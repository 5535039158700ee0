"""The commands stat and exec: what a program used, and its report.

What is said of it is _formats.summary's.
"""

import json
import sys

from profile_sampling import _formats
from profile_sampling._cli import (
    attached, child, gather, meta, program, reached, run)
from profile_sampling._cli.common import (
    Failure, add_idle, add_mine, file_name, format_of, show)
from profile_sampling._cli.screen import width_of
from profile_sampling._data.allocations import MODE as ALLOC
from profile_sampling._formats import summary, text

_FORMATS = 'text', 'json'


def add(commands):
    _add(commands, 'stat', 'run a program and say what it used',
         'Run a program as a child, and say on standard error what it and its '
         'processes used: time by what threads did, memory, faults, and what '
         'the profiler itself cost.', report=False)
    _add(commands, 'exec', 'run a program, say what it used, and report',
         'As stat, followed by the report of the profile.', report=True)


def _add(commands, name, help, description, *, report):
    parser = commands.add_parser(name, usage=program.USAGE, help=help,
                                 description=description)
    program.add(parser)
    if not report:
        attached.add(parser)
    parser.add_argument(
        '-o', '--output', metavar='OUT',
        help='keep the profile, too; the extension chooses its format')
    parser.add_argument(
        '--to', metavar='FILE', type=file_name,
        help='say it to this file instead of standard error; - is stdout')
    if report:
        parser.set_defaults(format='text')
        add_mine(parser)
        add_idle(parser)
    else:
        parser.add_argument('--format', choices=_FORMATS, default='text',
                            help='how to say it (default: %(default)s)')
    meta.add(parser)
    parser.set_defaults(run=_run, program=None, report=report,
                        timeline=False, calls=None, watch=())


def _run(options):
    if options.mode == ALLOC:
        raise Failure('--alloc is of memory alone, and this command says where '
                      'time goes; --alloc-bytes is of both', 2)
    if not options.report and options.pid is not None:
        attached.check(options)
        return reached.or_refusal(attached.stat, options)
    wanted = program.program_of(options)
    output = options.output
    format = None
    if output is not None:
        output = _formats.with_pid(output)
        format = format_of(output)
        program.check_output(output)
    if options.to is not None:
        program.check_output(options.to)
    program.check_script(wanted)
    return child.end_as(run.saved(wanted, options, gather.Parts(), _say,
                                  output, format))


def _say(ended, wanted, options, parts, output, format):
    """Say what a program used; return whether its profile could be kept."""
    tables = run.merged(wanted, options, parts)
    used = summary.used(ended.usage, ended.real_s, ended.least_kb)
    command = meta.command(wanted, options)
    if options.format == 'json':
        said = json.dumps(summary.as_json(command, ended.status, used,
                                          tables), indent=2) + '\n'
    else:
        width = width_of(options.to, sys.stderr)
        said = summary.render(command, used, tables, width)
        if options.report and tables is not None:
            said += '\n' + text.render(tables, mine=options.mine, width=width,
                                       all=options.all,
                                       idle=options.idle)
    show(said, options.to)
    if tables is None:
        run.say_nothing_written(wanted, parts)
        return False
    if output is not None:
        parts.save(tables, output, format)
    return True
