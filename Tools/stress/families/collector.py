"""The collector: cycles, finalizers, weak references, callbacks."""

import gc
import weakref

OPERATORS = {'dict.__getitem__', 'module.__getattribute__', 'range.__iter__',
             'range_iterator.__next__', 'type.__getattribute__'}
ENTRIES = {'work', 'gc_callback', 'Finalized.__del__', 'weak_callback'}
INTERRUPTS = {'Finalized.__del__', 'weak_callback', 'gc_callback'}
CALLS = {
    'work': {'gc.set_threshold', 'make_cycles', 'collect', 'make_types',
             'drop', 'program.*', 'random.*', '_random.*', 'list.append',
             'list.remove'},
    'make_cycles': {'families.collector.Node', 'range',
                    'families.collector.Finalized', 'Finalized.__del__',
                    'weakref.*', 'ref', 'list.append', 'weak_callback',
                    'weakref.ReferenceType', 'ReferenceType',
                    'list.__setitem__'},
    'collect': {'gc.collect', 'gc.set_threshold'},
    'gc.collect': INTERRUPTS,
    'Finalized.__del__': {'spin'},
    'gc_callback': {'spin', 'dict.__getitem__'},
    'weak_callback': {'spin'},
    'spin': {'builtins.sum', 'range'},
    'make_types': {'type', 'families.collector.Made', 'range', 'gc.collect'},
    'drop': {'list.clear', 'Finalized.__del__', 'weak_callback'},
    'list.clear': INTERRUPTS,
}


class Node:
    pass


class Finalized:
    def __del__(self):
        spin(100)


def spin(n):
    return sum(range(n))


def gc_callback(phase, info):
    spin(10)


def weak_callback(reference):
    spin(20)


def make_cycles(n, kept):
    for _ in range(n):
        a, b = Node(), Finalized()
        a.other, b.other = b, a
        kept.append(weakref.ref(a, weak_callback))


def drop(kept):
    kept.clear()


def collect(generation):
    gc.collect(generation)


def make_types(n):
    for _ in range(n):
        made = type('Made', (Node,), {'x': 1})
        made().y = 1


def work(run):
    rng = run.rng('collector')
    gc.callbacks.append(gc_callback)
    kept = []
    try:
        while not run.over():
            gc.set_threshold(rng.choice((1, 10, 100, 2000)))
            make_cycles(rng.randrange(500), kept)
            make_types(rng.randrange(30))
            collect(rng.randrange(3))
            drop(kept)
            run.count('collections')
    finally:
        gc.callbacks.remove(gc_callback)
        gc.set_threshold(2000)
