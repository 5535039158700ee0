"""Runs one scenario under the profiler and compares its answer.

    python truth_child.py SCENARIO.json

A scenario is a list of threads, each a list of names with a kind of work
and planned milliseconds, and the shuffled order in which they are called.
Every name is a function of its own, made here, in which the call that is
measured stands alone on its line:

    def name(arg):
        cpu = cpu_clock()
        wall = wall_clock(); result = work(arg)
        wall_after = wall_clock(); cpu_after = cpu_clock()

The wall clock is read first on the same line as the call, then on the
next: a thread gives up the GIL after a call has returned, so what lies
between the two readings is exactly that line.  Only wall time can pass
between the other readings.

Prints JSON; see compare().
"""

import itertools
import json
import sys
import threading
import time

import profile_sampling
from truth_work import CALLEES, Work

# The call is on this line of each function.
LINE = 3
TEMPLATE = '''\
def {name}(arg):
    cpu = cpu_clock()
    wall = wall_clock(); result = work(arg)
    wall_after = wall_clock(); cpu_after = cpu_clock()
    truth[0] += wall_after - wall
    truth[1] += cpu_after - cpu
    truth[2] += 1
'''


class Slot:
    """One name: its function, its argument, and its measured truth."""

    def __init__(self, name, kind, ms, work):
        self.name = name
        self.kind = kind
        self.ms = ms
        self.truth = [0, 0, 0]      # wall_ns, cpu_ns, calls
        function, self.argument = work.plan(kind, ms)
        self.filename = f'<{name}>'
        space = {'cpu_clock': time.thread_time_ns, 'truth': self.truth,
                 'wall_clock': time.perf_counter_ns, 'work': function}
        exec(compile(TEMPLATE.format(name=name), self.filename, 'exec'),
             space)
        self.function = space[name]

    def call(self):
        self.function(self.argument)


class Worker:
    """One thread of a scenario, and how long it lived."""

    def __init__(self, plan, work):
        self.slots = [Slot(name, kind, ms, work)
                      for name, kind, ms in plan['slots']]
        self.order = plan['order']
        self.native_id = None
        self.wall_ns = self.cpu_ns = 0

    def run(self):
        wall_ns, cpu_ns = time.perf_counter_ns(), time.thread_time_ns()
        self.native_id = threading.get_native_id()
        for index in self.order:
            self.slots[index].call()
        self.cpu_ns = time.thread_time_ns() - cpu_ns
        self.wall_ns = time.perf_counter_ns() - wall_ns


def run(scenario, workers):
    """Run all threads under the profiler; return the profile and the
    life of the main thread in the session."""
    main = workers[0]
    profile_sampling.start(scenario['mode'], rate_hz=scenario['rate_hz'])
    wall_ns, cpu_ns = time.perf_counter_ns(), time.thread_time_ns()
    others = [threading.Thread(target=worker.run) for worker in workers[1:]]
    for thread in others:
        thread.start()
    main.run()
    for thread in others:
        thread.join()
    main.cpu_ns = time.thread_time_ns() - cpu_ns
    main.wall_ns = time.perf_counter_ns() - wall_ns
    return profile_sampling.stop()


def thread_sums(profile):
    """{native id: [wall_ns, cpu_ns]} of all samples."""
    sums = {}
    for sample in profile.samples:
        own = sums.setdefault(sample.thread.native_id, [0, 0])
        own[0] += sample.wall_ns
        own[1] += sample.cpu_ns
    return sums


def callee_sums(profile):
    """{(file of the caller, name): [wall_ns, cpu_ns]} of what lines call."""
    sums = {}
    for sample in profile.samples:
        for callee, caller in itertools.pairwise(sample.stack):
            if callee.function.kind == 'C' and caller.line == LINE:
                own = sums.setdefault((caller.function.filename,
                                       callee.function.name), [0, 0])
                own[0] += sample.wall_ns
                own[1] += sample.cpu_ns
    return sums


def compare(profile, workers):
    """Names with truth and answer, threads with life and sum.

    The answer is what the profile says of the line, or, where the line calls
    a C function, of that function's name.
    """
    rows = {(row.function.filename, row.line):
            (row.cum_wall_ns, row.cum_cpu_ns) for row in profile.lines()}
    callees = callee_sums(profile)
    names = []
    for worker in workers:
        for slot in worker.slots:
            wall_ns, cpu_ns = (
                callees.get((slot.filename, CALLEES[slot.kind]), (0, 0))
                if slot.kind in CALLEES
                else rows.get((slot.filename, LINE), (0, 0)))
            names.append({
                'name': slot.name, 'kind': slot.kind,
                'planned_ms': slot.ms, 'calls': slot.truth[2],
                'true_wall_ns': slot.truth[0], 'true_cpu_ns': slot.truth[1],
                'wall_ns': wall_ns, 'cpu_ns': cpu_ns})
    sums = thread_sums(profile)
    threads = []
    for worker in workers:
        wall_ns, cpu_ns = sums.get(worker.native_id, (0, 0))
        threads.append({'life_ns': worker.wall_ns, 'cpu_ns': worker.cpu_ns,
                        'sum_wall_ns': wall_ns, 'sum_cpu_ns': cpu_ns})
    return {'names': names, 'threads': threads, 'stats': profile.stats}


def main():
    with open(sys.argv[1]) as file:
        scenario = json.load(file)
    work = Work()
    workers = [Worker(plan, work) for plan in scenario['threads']]
    json.dump(compare(run(scenario, workers), workers), sys.stdout)


if __name__ == '__main__':
    main()
