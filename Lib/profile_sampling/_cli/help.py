"""The command help: the whole reference, for people and for assistants.

This file owns what is said of words that profiles have.  What the options
are, it asks the commands.
"""

from profile_sampling._cli.common import PROG, write_text

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
  with profile_sampling.profile() as block: ...    a part of a program
'''

_WORDS = '''\
STATES OF A THREAD, the columns of the report

  running          on a CPU with the GIL: Python code, or C code
  native           on a CPU without the GIL: C code that let it go, such as
                   NumPy's and zlib's; other threads can run meanwhile
  waiting          on no CPU and without the GIL: for a socket, a disk, a
                   lock, a sleep
  GIL wait         could run, but another thread has the GIL
  CPU wait         could run, but the machine gave it no CPU: other processes,
                   or a container's limit
  GC               the garbage collector, started by this thread
  asleep with GIL  a call sleeps and keeps the GIL: nobody else can run
  unsampled        ran too shortly for any tick; how long is known
  lost             its tables were full, or it could not be reached
  idle             waits because there is nothing to do; left out without
                   --idle
  custom           counted by profile_sampling.sample(), weighs no time

STATES OF AN ASYNCIO TASK that no thread runs, in report --tasks

  awaiting         what it awaits has not happened yet
  loop wait        that has, or it is new, but its loop is busy

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


def _run(options):
    from profile_sampling._formats import FORMATS, REPORTS, by_extension
    formats = '\n'.join([f'  {extension:<12} {format}' for extension, format
                         in by_extension(FORMATS | REPORTS).items()])
    parts = [_ABOUT.format(prog=PROG), 'COMMANDS\n']
    for name, parser in options.commands.choices.items():
        parts.append(parser.format_help())
    parts.append(_WORDS.format(formats=formats))
    write_text('\n'.join(parts))
