"""What the labels of a pprof file's samples say.

Several values of one label in a sample become one, with commas between.

The instructions of our files are named, because their numbers differ between
versions of Python: one that this version does not have is not known here.
"""

from profile_sampling._data import label_names, opcodes
from profile_sampling._data.values import (
    EMPTY_LABELS, NOBODY, NOT_KNOWN, WAITING)
from profile_sampling._formats.pprof import (
    BLOCKED, STATE_TEXTS, process_of)
from profile_sampling._formats.pprof.builder import UNKNOWN


class Labels:
    """Reads label sets; `threads` and `rows` are what they come to.

    *meanings* has the key, the text and the number of each label.
    """

    def __init__(self, meanings, functions, budget, *, is_ours, instructions,
                 process=None, plain=()):
        self._meanings = meanings
        self._functions = functions
        self._budget = budget
        # Labels of these names in other tools' files are not ours.
        self._instruction_keys = (
            label_names.OF_INSTRUCTIONS if instructions else ())
        # Of samples that do not say it.
        self._process = process
        # In other tools' files all labels are the program's.
        self._is_ours = is_ours
        # Keys whose numbers are labels.
        self._plain = plain
        self._threads = {}
        self._rows = {EMPTY_LABELS: 0}
        # What sets without the labels of instructions say.
        self._known = {}

    @property
    def threads(self):
        return list(self._threads)

    @property
    def rows(self):
        return list(self._rows)

    def read(self, label_set):
        """Return what a set of labels, given by their numbers, says.

        That is the thread, the row of labels, the state, the thread and the
        number of the holder of the GIL, what plain keys have, and the
        instruction.
        """
        offset, opcode = UNKNOWN
        others = []
        for label in label_set:
            key, text, number = self._meanings[label]
            if key not in self._instruction_keys:
                others.append(label)
            elif key == label_names.OFFSET:
                offset = _offset(number)
            else:
                opcode = opcodes.number(text)
        others = tuple(others)
        about = self._known.get(others)
        if about is None:
            self._budget.spend(500 + 8 * len(others))
            about = self._known[others] = self._about(others)
        return *about, (offset, opcode)

    def _about(self, others):
        """Return the numbers of the thread, the labels, the state and the
        GIL's holder."""
        texts = {}
        values = {}
        labels = {}
        numbers = dict.fromkeys(self._plain, 0)
        for label in others:
            key, text, number = self._meanings[label]
            if key in self._plain:
                numbers[key] = number
            elif not self._is_ours or key not in label_names.OF_SAMPLES:
                # Other tools have labels that are numbers.
                value = text or (str(number) if number else '')
                if self._is_ours:
                    key = label_names.without_mark(key)
                labels.setdefault(key, {})[value] = None
            elif text:
                texts[key] = text
            else:
                values[key] = number
        thread = (_unsigned(values.get(label_names.THREAD_ID, 0)),
                  values.get(label_names.THREAD_NATIVE_ID, 0),
                  texts.get(label_names.THREAD_NAME),
                  _unsigned(values.get(label_names.INTERPRETER, 0)),
                  self._process_of(texts, labels))
        state = texts.get(label_names.STATE, 'running')
        number = (BLOCKED if state == 'blocked' else
                  STATE_TEXTS.index(state) if state in STATE_TEXTS else
                  # That a later version has is at least none that would say
                  # that code was slow.
                  WAITING)
        task_id = values.get(label_names.TASK_ID)
        if task_id is not None:
            task_id = _unsigned(task_id)
        task_name = _text(label_names.TASK_NAME, texts, values)
        return (self._thread(thread),
                self._row(labels, task_name, task_id),
                number, *self._holder(texts, values, thread),
                *numbers.values())

    def _holder(self, texts, values, waiter):
        name = _text(label_names.HOLDER, texts, values)
        if name is None:
            return NOBODY
        thread = NOT_KNOWN
        if label_names.HOLDER_THREAD_ID in values:
            *_, interpreter, process = waiter
            thread = self._thread((
                _unsigned(values[label_names.HOLDER_THREAD_ID]),
                values.get(label_names.HOLDER_THREAD_NATIVE_ID, 0),
                texts.get(label_names.HOLDER_THREAD),
                _unsigned(values.get(label_names.HOLDER_INTERPRETER,
                                     interpreter)), process))
        return thread, self._functions.holder(name, *map(texts.get, (
            label_names.HOLDER_PLACE, label_names.HOLDER_SITE,
            label_names.HOLDER_SITE_PLACE)))

    def _process_of(self, texts, labels):
        if label_names.PROCESS in texts:
            return process_of(texts[label_names.PROCESS])
        if self._process is None and self._is_ours:
            # Merged files of earlier versions have nothing else.
            for pid in labels.get('pid', ()):
                return process_of(pid)
        return self._process

    def _thread(self, thread):
        index = self._threads.get(thread)
        if index is None:
            self._budget.spend(300)
            index = self._threads[thread] = len(self._threads)
        return index

    def _row(self, labels, task_name, task_id):
        row = 0
        for key in sorted(labels):
            row = self._label((row, key, self._joined(labels[key]), 0))
        if task_id is not None or task_name is not None:
            row = self._label((row, None, task_name, task_id or 0))
        return row

    def _label(self, key):
        row = self._rows.get(key)
        if row is None:
            self._budget.spend(250)
            row = self._rows[key] = len(self._rows)
        return row

    def _joined(self, values):
        """Return one text for what other tools give several values."""
        if len(values) == 1:
            return next(iter(values))
        self._budget.spend(sum([80 + 4 * (len(value) + 2)
                                for value in values]))
        return ', '.join(values)


def _text(key, texts, values):
    """Return a label's text; a file has none for an empty one."""
    return texts.get(key, '' if key in values else None)


def _unsigned(value):
    return value & 0xFFFF_FFFF_FFFF_FFFF


def _offset(number):
    if not 0 <= number < 1 << 31:
        raise ValueError(f'an instruction has offset {number}')
    return number
