"""The command help: the whole reference, for people and for assistants.

What the options are, it asks the commands.
"""

import textwrap

from profile_sampling._cli.common import PROG, write_text
from profile_sampling._data import states
from profile_sampling._data.values import OFF_CLOCKS, STATES

_ABOUT = '''\
A sampling profiler inside the interpreter.  It takes samples of all threads
by itself, with the C functions and operators that they are in, and weighs
each by measured wall-clock and CPU time: the weights of a thread add up to
its time, to the nanosecond.

FIRST STEPS

  P stands for {prog}.

  P exec script.py                       run it and see where time goes
  P record -o a.pb.gz script.py          keep the profile
  P report a.pb.gz                       look at it again
  P report --open a.pb.gz                the same in a browser
  P record -o w.pb.gz -- gunicorn app    all processes of a command as one
  python -X sampleprof=out=a.pb.gz script.py       the same as P record
  python -X sampleprof=rate_hz=100,spool=DIR script.py   always on, in segments
  P report DIR --last 10m                what it did in the last ten minutes
  with profile_sampling.profile() as block: ...    a part of a program
'''

_WORDS = '''\
STATES OF A THREAD, the columns of the report

{threads}

STATES OF AN ASYNCIO TASK that no thread runs, in report --tasks

{tasks}

FRAMES THAT ARE NO PYTHON FUNCTIONS

  time.sleep, dict.get      C functions, by the place that calls them
  int.__add__               operators, by the types they met
  [waiting] [GIL wait] [GC gen2] [asleep with GIL] [CPU wait]
  [unsampled] [lost] [awaiting] [loop wait]
                            what a thread did instead of running code

CLOCKS

  wall   what a user waits for.  The sum over threads is larger than the
         duration: three threads that wait for a second have three seconds
  CPU    what the machine worked.  Running with little CPU time means that
         the machine was busy with others
  self   in the function itself; cumulative: with all that it called

FORMATS, by extension

{formats}

HOW TO READ A PROFILE

  Much GIL wait      threads compete: who holds the GIL is in the report.
                     More processes help, or C code that gives the GIL up
  Much waiting       look at the lines that wait: sockets, locks, files
  Much CPU wait      the machine is too busy: take CPU time (--value cpu)
  Much GC            many cyclic objects are made: gc.freeze(), thresholds
  asleep with GIL    a C extension that does not give the GIL up
  lost               the header says how much: shares are less certain then
  unsampled          many short threads or bursts: raise the rate
'''


def add(commands):
    parser = commands.add_parser(
        'help', help='the whole reference',
        description='Print the whole reference: every command with its '
                    'options, and the words that profiles have.')
    parser.set_defaults(run=_run, commands=commands)


def _described(state):
    return textwrap.fill(
        f'{state.word:<17}{state.tip}', 79, initial_indent='  ',
        subsequent_indent=' ' * 19)


def _run(options):
    from profile_sampling._formats import FORMATS, REPORTS, by_extension
    formats = '\n'.join([f'  {extension:<12} {format}' for extension, format
                         in by_extension(FORMATS | REPORTS).items()])
    parts = [_ABOUT.format(prog=PROG), 'COMMANDS\n']
    for name, parser in options.commands.choices.items():
        parts.append(parser.format_help())
    of_tasks = {STATES[number] for number in OFF_CLOCKS}
    threads, tasks = ['\n'.join([
        _described(state) for state in states.SHOWN
        if (state.name in of_tasks) == is_task]) for is_task in (False, True)]
    parts.append(_WORDS.format(formats=formats, threads=threads, tasks=tasks))
    write_text('\n'.join(parts))
