"""Subinterpreters, with GILs of their own and without, made and destroyed."""

import _interpreters
import os
import sys

OPERATORS = {'float.__lt__', 'float.__truediv__', 'list.__iter__',
             'list_iterator.__next__', 'module.__getattribute__',
             'range.__iter__', 'range_iterator.__next__'}
ENTRIES = {'work', 'one_after_the_other'}
CALLS = {
    'work': {'at_once', 'one_after_the_other', 'program.*', 'random.*',
             '_random.*', 'episode.*'},
    'at_once': {'random.*', '_random.*', 'ledger.*', 'threading.*',
                '_thread.*', 'range'},
    'one_after_the_other': {'str.format', '_interpreters.*', 'range',
                            'str.replace', 'builtins.repr', 'random.*',
                            '_random.*'},
}

INSIDE = os.path.join(os.path.dirname(__file__), 'inside.py')
with open(INSIDE, encoding='utf-8') as inside:
    TEXT = inside.read()
PROGRAM = ('import sys; sys.path[:] = {path!r}\n'
           'exec(compile({text!r}, {file!r}, "exec"),'
           ' {{"__name__": "inside", "SECONDS": {seconds},'
           ' "PROFILES": {profiles}}})')


def one_after_the_other(run, config, rounds, seconds, profiles):
    for _ in range(rounds):
        interpreter = _interpreters.create(config)
        failed = _interpreters.exec(interpreter, PROGRAM.format(
            path=sys.path, text=TEXT, file=INSIDE, seconds=seconds,
            profiles=profiles))
        if failed is not None:
            run.fault(f'in a subinterpreter: {failed.formatted}')
        _interpreters.destroy(interpreter)
        run.count('interpreters')


def at_once(run, rng):
    threads = [run.ledger.thread(
        one_after_the_other, run,
        'isolated' if rng.random() < 0.8 else 'legacy',
        rng.randrange(1, 4), rng.random() / 10,
        run.profiled_inside and rng.random() < 0.3, travels=True)
        for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def work(run):
    rng = run.rng('interpreters')
    while not run.over():
        at_once(run, rng)
