"""Encoder of pprof messages.

What the fields mean, and what is in the header, is in writer.py.  It is
imported before the program runs, and it works while the interpreter ends: it
imports little.
"""

from profile_sampling._data import label_names, opcodes
from profile_sampling._data.values import NOT_KNOWN, OPCODES
from profile_sampling._formats.pprof import (
    KIND_PLACES, STATE_TEXTS, process_text, wire)
from profile_sampling._formats.pprof.wire import number, payload, varint

# Fields of Profile, the outermost message.
(SAMPLE_TYPE, SAMPLE, MAPPING, LOCATION, FUNCTION, STRING) = range(1, 7)
(TIME_NS, DURATION_NS, PERIOD_TYPE, PERIOD, COMMENT, DEFAULT_TYPE,
 DOC_URL) = range(9, 16)
LABEL = 3                   # of Sample


class Header:
    """What a file says of the whole; `comments` are texts."""

    __slots__ = ('binary', 'time_ns', 'duration_ns', 'period_ns', 'comments',
                 'doc_url')

    def __init__(self, binary, time_ns, duration_ns, period_ns, comments,
                 doc_url):
        self.binary = binary
        self.time_ns = time_ns
        self.duration_ns = duration_ns
        self.period_ns = period_ns
        self.comments = comments
        self.doc_url = doc_url


class Encoder:
    """The message of one profile."""

    def __init__(self, tables):
        self._tables = tables
        self._strings = _Strings()
        self._frames = list(tables.frame_tuples())
        self._parents, self._frame_of_node = [
            column.tolist() for column in tables.node_columns()]
        self._locations = {}
        self._is_python = [function.kind == 'python'
                           for function in tables.functions]
        self._keys = [name for name in tables.schema.key_names
                      if name != 'stack']
        # Encoded labels by what they are of.
        self._about = {}
        # Of one process the head of the file says which.
        self._has_processes = len(tables.processes) > 1
        self._instructions = {}
        self._has_instructions = bool(tables.names & OPCODES)
        self.samples = {}
        self.rows = []
        self._add_samples()

    def message(self, header):
        """Return the message as bytes."""
        types = self._tables.value_types
        own = self._tables.own
        # What the profile is about is last.
        order = [*range(own), *range(own + 1, len(types)), own]
        own_type = self._type(types[own])
        parts = [payload(SAMPLE_TYPE, self._type(types[place]))
                 for place in order]
        parts += self._encoded_samples(order)
        # One mapping that says that names are complete: else pprof looks
        # for the binary to find them.
        parts.append(payload(MAPPING, number(1, 1)
                             + number(5, self._strings[header.binary])
                             + number(7, 1) + number(8, 1) + number(9, 1)))
        parts += [payload(LOCATION, number(1, place) + number(2, 1) + payload(
                      4, number(1, function + 1) + number(2, line)
                      + number(3, column)))
                  for (function, line, column), place
                  in self._locations.items()]
        parts += [payload(FUNCTION, number(1, place)
                          + number(2, self._strings[function.name])
                          + number(4, self._strings[_place(function)])
                          + number(5, function.first_line))
                  for place, function
                  in enumerate(self._tables.functions, 1)]
        comments = b''.join([varint(self._strings[comment])
                             for comment in header.comments])
        facts = [number(TIME_NS, header.time_ns),
                 number(DURATION_NS, header.duration_ns),
                 payload(PERIOD_TYPE, own_type),
                 number(PERIOD, header.period_ns),
                 payload(COMMENT, comments) if comments else b'',
                 number(DEFAULT_TYPE, self._strings[types[own].kind]),
                 number(DOC_URL, self._strings[header.doc_url])]
        parts += [payload(STRING, text) for text in self._strings.texts]
        return b''.join(parts + facts)

    def _type(self, value_type):
        return (number(1, self._strings[value_type.kind])
                + number(2, self._strings[value_type.unit]))

    def _add_samples(self):
        """Add up what is one sample in the file.

        `samples` is {(stack, labels, labels of the instruction): values}, all
        but the values encoded; `rows` has the number of its sample in the
        file for each sample of the tables.
        """
        tables = self._tables
        encoded_stack = self._stacks()
        numbers = {}
        samples = self.samples
        for node, about, values in zip(
                tables.column('stack'), zip(*map(tables.column, self._keys)),
                tables.values()):
            key = (encoded_stack(node),
                   self._about.get(about) or self._labels_of(about),
                   self._instruction(node) if self._has_instructions else b'')
            known = samples.get(key)
            samples[key] = values if known is None else [
                one + more for one, more in zip(known, values)]
            self.rows.append(numbers.setdefault(key, len(numbers)))

    def _encoded_samples(self, order):
        # A full table has 100,000: this is inlined, as payload() has it.
        stack_key, values_key, sample_key = [
            varint(field << 3 | wire.BYTES) for field in (1, 2, SAMPLE)]
        for (stack, labels, instruction), values in self.samples.items():
            data = b''.join([varint(values[place]) for place in order])
            data = b''.join((
                stack_key, varint(len(stack)), stack, values_key,
                varint(len(data)), data, labels, instruction)
                if stack else (
                values_key, varint(len(data)), data, labels, instruction))
            yield sample_key
            yield varint(len(data))
            yield data

    def _stacks(self):
        """Return a function of a node that returns the numbers of its stack's
        locations, the innermost first.

        Not those of all nodes: their size is the square of the depth.
        """
        numbers = [varint(self._locations.setdefault(
                       frame[:3], len(self._locations) + 1))
                   for frame in self._frames]
        locations = [b'', *[numbers[frame]
                            for frame in self._frame_of_node[1:]]]
        parents = self._parents

        def encoded(node):
            stack = []
            add = stack.append
            while node:
                add(locations[node])
                node = parents[node]
            return b''.join(stack)
        return encoded

    def _instruction(self, node):
        """Return the labels of the instruction that the innermost frame of
        Python had come to."""
        while node:
            number = self._frame_of_node[node]
            frame = self._frames[number]
            if self._is_python[frame[0]]:
                break
            node = self._parents[node]
        else:
            return b''
        labels = self._instructions.get(number)
        if labels is None:
            _, _, _, offset, opcode = frame
            name = opcodes.name(opcode)
            labels = self._instructions[number] = (
                (self._label(label_names.OPCODE, name) if name else b'')
                + (self._label(label_names.OFFSET, number=offset)
                   if offset >= 0 else b''))
        return labels

    # Labels.

    def _label(self, key, text=None, number=0):
        data = wire.number(1, self._strings[key])
        if text is not None:
            data += wire.number(2, self._strings[text])
        return payload(LABEL, data + wire.number(3, number))

    def _labels_of(self, about):
        """Return the labels of a sample but those of its instruction."""
        tables = self._tables
        its = dict(zip(self._keys, about))
        thread = tables.threads[its['thread']]
        found = [self._label_set(its['labels']), self._thread(thread),
                 self._label(label_names.STATE, STATE_TEXTS[its['state']])]
        if its['holder']:
            found.append(self._holder(its['holder']))
            if its['holder_thread'] != NOT_KNOWN:
                found.append(self._holder_thread(
                    tables.threads[its['holder_thread']], thread))
        found += [self._label(name, number=its[name])
                  for name in tables.schema.plain_keys if its[name]]
        result = self._about[about] = b''.join(found)
        return result

    def _label_set(self, row):
        labels, task_name, task_id = self._tables.label_set(row)
        found = [self._label(label_names.filed(key), text)
                 for key, text in labels.items()]
        if task_name is not None:
            found.append(self._label(label_names.TASK_NAME, task_name))
        if task_id is not None:
            found.append(self._label(label_names.TASK_ID, number=task_id))
        return b''.join(found)

    def _thread(self, thread):
        found = [self._label(label_names.THREAD_ID, number=thread.ident),
                 self._label(label_names.THREAD_NATIVE_ID,
                             number=thread.native_id)]
        if self._has_processes and thread.process is not None:
            found.append(self._label(label_names.PROCESS,
                                     process_text(thread.process)))
        if thread.name:
            found.append(self._label(label_names.THREAD_NAME, thread.name))
        found.append(self._label(label_names.INTERPRETER,
                                 number=thread.interpreter_id))
        return b''.join(found)

    def _holder(self, node):
        """Return the labels of who held the GIL: 'function (callee)', and
        'file:line' if the function is Python; of its line of mine the same,
        if that is another."""
        holder = self._tables.gil_holder(NOT_KNOWN, node)
        labels = self._place(label_names.HOLDER, holder.name,
                             label_names.HOLDER_PLACE, holder)
        site = holder.site
        if site is not None and (site.function, site.line) != (
                holder.function, holder.line):
            labels += self._place(label_names.HOLDER_SITE, site.function.name,
                                  label_names.HOLDER_SITE_PLACE, site)
        return labels

    def _place(self, key, name, place_key, its):
        labels = self._label(key, name)
        if its.function.kind == 'python':
            labels += self._label(place_key,
                                  f'{its.function.filename}:{its.line}')
        return labels

    def _holder_thread(self, thread, waiter):
        found = []
        if thread.name:
            found.append(self._label(label_names.HOLDER_THREAD, thread.name))
        found += [self._label(label_names.HOLDER_THREAD_ID,
                              number=thread.ident),
                  self._label(label_names.HOLDER_THREAD_NATIVE_ID,
                              number=thread.native_id)]
        if thread.interpreter_id != waiter.interpreter_id:
            found.append(self._label(label_names.HOLDER_INTERPRETER,
                                     number=thread.interpreter_id))
        return b''.join(found)


class _Strings(dict):
    """The number of each text that was asked for; `texts` are encoded."""

    def __init__(self):
        self.texts = []
        self._numbers = {}
        self['']

    def __missing__(self, text):
        data = text.encode('utf-8', 'backslashreplace')
        # Texts that differ only in what cannot be encoded are one.
        number = self[text] = self._numbers.setdefault(data, len(self.texts))
        if number == len(self.texts):
            self.texts.append(data)
        return number


def _place(function):
    return KIND_PLACES.get(function.kind, function.filename)
