"""Tables as the core gives them, from stacks written by hand.

    b = Builder(mode='wall')
    worker = b.thread('worker')
    b.sample('app.main:3 app.f:12 C:time.sleep [waiting]', wall_ns=5,
             thread=worker, state='waiting')
    profile = b.profile()

A stack is root first.  A frame is a word: module.qualname:line for Python
(a module is one name here), with the instruction if that matters
(a.f:3@CALL+8: offset 8), C:name and op:name for calls and operators, a word
in brackets for a pseudo frame; or, where words do not do, what function()
returned, or a pair of that and a line.
"""

import io
from array import array
from itertools import zip_longest

from profile_sampling import Profile
from profile_sampling._data import opcodes as _opcodes
from profile_sampling._data.schema import CORE_KEYS
from profile_sampling._formats.pprof import encoder, writer

from . import validator

STATES = ('running', 'waiting', 'gil_wait', 'gc', 'lost', 'unsampled',
          'custom', 'asleep_with_gil', 'awaiting', 'loop_wait', 'native',
          'cpu_wait', 'idle')
PYTHON, C, OPERATOR, PSEUDO = range(4)
# What the core measures; a row of fewer values has 0 for the rest.
_MEASURED = (('samples', 'count'), ('cpu', 'nanoseconds'),
             ('wall', 'nanoseconds'), ('task', 'nanoseconds'),
             ('delay', 'nanoseconds'))


def _number(table, row):
    if row not in table:
        table[row] = len(table)
    return table[row]


class Builder:

    def __init__(self, **facts):
        self.facts = {
            'mode': 'wall', 'rate_hz': 1000, 'depth_frames': 512,
            'start_time_ns': 1_700_000_000_000_000_000,
            'duration_ns': 2_000_000_000, 'stats': {}} | facts
        self.functions = {}
        self.frames = {}
        self.nodes = {}
        self.samples = {}
        self.labels = {(0, None, None, 0): 0}
        self.threads = []
        self.task_classes = []
        # What the core has beside what it has today.
        self.more_keys, self.more_values = [], []

    def task_class(self, name, *, finished=0, cancelled=0, running_ns=0,
                   loop_wait_ns=0, awaiting_ns=0, longest_step_ns=0,
                   longest_life_ns=0, steps=0, lives=()):
        """A class of tasks, what its counters say, and the lives of those
        that have ended.  Return what sample() takes."""
        counts = [0] * 512
        for life in lives:
            exponent = max(life.bit_length() - 4, 0)
            counts[8 * exponent + (life >> exponent)] += 1
        while counts and not counts[-1]:
            counts.pop()
        function, *_ = self._frame(name)
        self.task_classes.append((
            function, finished or len(lives), cancelled, running_ns,
            loop_wait_ns, awaiting_ns, longest_step_ns,
            longest_life_ns or max(lives, default=0), steps, sum(lives),
            array('I', counts).tobytes()))
        return len(self.task_classes)

    def thread(self, name=None, *, ident=None, native_id=None,
               interpreter=0, process=None):
        number = len(self.threads)
        self.threads.append((
            140_000_000_000_000 + number if ident is None else ident,
            4000 + number if native_id is None else native_id,
            name, interpreter, process))
        return number

    def function(self, module, qualname, filename=None, first_line=1,
                 kind=PYTHON):
        if filename is None:
            filename = f'/src/{module}.py' if kind == PYTHON else ''
        if kind != PYTHON:
            first_line = 0
        return _number(self.functions,
                       (module, qualname, filename, first_line, kind))

    def _frame(self, word):
        if isinstance(word, int):
            word = word, 0
        if isinstance(word, tuple):
            return word
        if word.startswith('['):
            return self.function(None, word, kind=PSEUDO), 0
        for prefix, kind in ('C:', C), ('op:', OPERATOR):
            if word.startswith(prefix):
                module, _, name = word.removeprefix(prefix).partition('.')
                return self.function(module, name, kind=kind), 0
        place, _, instruction = word.partition('@')
        name, _, line = place.partition(':')
        module, _, qualname = name.partition('.')
        frame = self.function(module, qualname), int(line or 0)
        if instruction:
            opname, _, offset = instruction.partition('+')
            frame += 0, int(offset), _opcodes.number(opname)
        return frame

    def node(self, stack):
        if isinstance(stack, str):
            stack = [word.replace('~', ' ') for word in stack.split()]
        node = 0
        for word in stack:
            function, line, *rest = self._frame(word)
            column, offset, opcode = rest or (0, -1, 0)
            frame = _number(self.frames,
                            (function, line, column, offset, opcode))
            node = _number(self.nodes, (node, frame)) + 1
        return node

    def sample(self, stack, *, wall_ns=0, cpu_ns=0, count=1, values=None,
               thread=0, state='running', labels=(), task=None, holder=None,
               task_ns=0, delay_ns=0, task_class=0, key=(), more=()):
        """*holder*, who had the GIL: (thread or -1, 'm.f:3 C:call').

        *values* instead of all that, if there is a fact 'value_types'.
        """
        if values is None:
            values = count, cpu_ns, wall_ns, task_ns, delay_ns, *more
        if not self.threads:
            self.thread('MainThread')
        key = (self.node(stack), thread, self._labels(labels, task, task_class),
               STATES.index(state), *self._holder(holder), *key)
        old = self.samples.get(key, ())
        self.samples[key] = tuple([a + b for a, b in zip_longest(
            old, values, fillvalue=0)])
        return self

    def _holder(self, holder):
        if holder is None:
            return (-1, 0) if 'value_types' in self.facts else (0, 0)
        thread, place = holder
        return thread, self.node(place)

    def _labels(self, labels, task, task_class):
        """Row of a dict of labels and a task, as (name, id)."""
        row = 0
        for key, value in sorted(dict(labels).items()):
            row = _number(self.labels, (row, key, value, 0))
        if task is not None or task_class:
            name, task_id = task or (None, 0)
            row = _number(self.labels, (row, None, name, task_id,
                                        *[task_class] * bool(task_class)))
        return row

    def raw(self):
        labels = list(self.labels)
        of_tasks = {}
        n_values = 0
        if 'value_types' not in self.facts:
            # As the core gives them.
            labels = [(*row, 0, 0)[:6] for row in labels]
            of_tasks = {'task_classes': self.task_classes,
                        'measured': (*_MEASURED, *self.more_values),
                        # Functions are of any interpreter.
                        'installed': None}
            n_values = len(_MEASURED) + len(self.more_values)
            if self.more_keys:
                of_tasks['keys'] = *CORE_KEYS, *self.more_keys
        return self.facts | of_tasks | {
            'labels': labels,
            'functions': list(self.functions),
            'frames': _packed('i', self.frames),
            'nodes': _packed('I', [(0, 0), *self.nodes]),
            'samples': _packed('q', [
                key + weights + (0,) * (n_values - len(weights))
                for key, weights in self.samples.items()]),
            'threads': list(self.threads)}

    def profile(self):
        profile = Profile._from_raw(self.raw())
        validator.check_profile(profile)
        return profile


def _packed(item, rows):
    return array(item, [value for row in rows for value in row]).tobytes()


def example(**facts):
    """A profile with a bit of everything."""
    b = Builder(**{'stats': {'ticks': 2000, 'captured': 1900,
                             'lost_ring_full': 3, 'lost_wall_ns': 1_000_000},
                   'names': 3} | facts)
    main = b.thread('MainThread')
    worker = b.thread(interpreter=2)
    b.sample('app.<module>:1@CALL+8 app.work:10@CALL_KW+20 json.load:293 '
             'app.hook:7@LOAD_ATTR_SLOT+2', count=700,
             cpu_ns=600_000_000, wall_ns=700_000_000, thread=main)
    b.sample('app.<module>:1@CALL+8 app.work:11@BINARY_OP+30', count=200,
             cpu_ns=200_000_000, wall_ns=200_000_000, thread=main)
    b.sample('app.<module>:1@CALL+8 app.work:11@BINARY_OP_MULTIPLY_INT+30 '
             'op:int.__mul__', count=100, cpu_ns=100_000_000,
             wall_ns=100_000_001, thread=main)
    b.sample('app.<module>:2@CALL+16 C:time.sleep [waiting]', count=2,
             cpu_ns=50, wall_ns=990_000_000, thread=main, state='waiting')
    b.sample('app.spin:5 [GIL~wait]', count=40, wall_ns=60_000_000,
             thread=worker, state='gil_wait',
             holder=(main, 'app.work:11 C:time.sleep'))
    b.sample('app.spin:5 [GC~gen0]', count=1, wall_ns=1_500, cpu_ns=1_500,
             thread=worker, state='gc')
    b.sample('[lost]', count=3, wall_ns=1_000_000, thread=worker,
             state='lost')
    b.sample('', count=1, wall_ns=499, thread=worker, state='unsampled')
    return b


def process(pid, stack='app.main:1 app.f:2', *, ns=1_000, **facts):
    """A profile of that process, with one sample."""
    b = Builder(pid=pid, **facts)
    b.thread('MainThread', native_id=pid)
    return b.sample(stack, wall_ns=ns, cpu_ns=ns // 2).profile()


def instruction_of(sample):
    """Offset and name of the innermost Python frame's instruction."""
    for frame in sample.stack:
        if frame.function.kind == 'python':
            return frame.instruction_offset, frame.opname
    return None


def _holder_facts(holder):
    if holder is None:
        return None
    return (holder.thread, holder.name, holder.line, holder.function.filename,
            holder.function.first_line, holder.function.kind)


def reloaded(profile):
    """The profile as it comes back from a file, which is validated."""
    file = io.BytesIO()
    profile.save(file)
    validator.check_pprof(file.getvalue())
    file.seek(0)
    return Profile.load(file)


def message_with(tables, comments):
    """Encode a pprof message with these comments in place of those of tasks
    and moments."""
    return encoder.Encoder(tables).message(
        writer.header(tables, comments))


def facts_of(profile):
    """What saving and loading must keep, as one comparable value."""
    rows = {}
    for sample in profile.samples:
        key = (tuple([(frame.function.name, frame.function.filename,
                       frame.function.first_line, frame.function.kind,
                       frame.line, frame.column)
                      for frame in sample.stack]),
               sample.thread, sample.state, tuple(sample.labels.items()),
               sample.task_name, sample.task_id,
               instruction_of(sample) if 'opcodes' in profile.names else None,
               _holder_facts(sample.gil_holder))
        weights = rows.setdefault(key, [0] * len(sample.values))
        for i, weight in enumerate(sample.values):
            weights[i] += weight
    return {'samples': rows, 'stats': profile.stats, 'mode': profile.mode,
            'rate_hz': profile.rate_hz, 'depth_frames': profile.depth_frames,
            'names': profile.names, 'pid': profile.pid,
            'start_time_ns': profile.start_time_ns,
            'duration_ns': profile.duration_ns,
            'python_version': profile.python_version,
            'totals': {value_type: profile.total(value_type.name)
                       for value_type in profile.value_types}}
