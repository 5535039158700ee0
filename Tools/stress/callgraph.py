"""Which function may call which: what makes a stack impossible.

Owns the judgement of stacks.  Each family of workloads declares, in CALLS,
the callees of each of its functions, and in ENTRIES which functions code
other than its own may call.  A name is a function of the same file, or a full
name, or 'module.*'.  OPERATORS are those that any of its functions may use.
INTERRUPTS is what the collector, signals and others may call in the midst of
anything; the collector below its own frame, unless it began before the
session.
"""

import itertools
import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))
# A frame below these can be anything: they say that something is not known.
UNKNOWN_BELOW = re.compile(r'\[truncated \d+\+ frames\]')
COLLECTOR = re.compile(r'\[GC gen[012]\]')
# Weak references die anywhere; these are the standard library's.
WEAK_CALLBACK = re.compile(r'.*<locals>\._?remove')
# Reading a global name, where the instruction is not specialized.
USED_EVERYWHERE = {'dict.__getitem__'}
# The numbers that generated functions and files carry.
NUMBER = re.compile(r'\d+')


class CallGraph:
    """The declarations of all families, and the lines of their functions."""

    def __init__(self, families):
        self._families = {family.__file__: family for family in families}
        self._generated = {family.GENERATED: family for family in families
                           if hasattr(family, 'GENERATED')}
        self._lines = {}
        self._judged = {}
        for path, family in self._families.items():
            with open(path, encoding='utf-8') as file:
                code = compile(file.read(), path, 'exec')
            self._learn_lines(code)

    def _learn_lines(self, code):
        key = code.co_filename, code.co_qualname, code.co_firstlineno
        lines = {line for *_, line in code.co_lines() if line is not None}
        # Functions of one name in one line share an entry.
        self._lines.setdefault(key, {0}).update(lines)
        for constant in code.co_consts:
            if hasattr(constant, 'co_lines'):
                self._learn_lines(constant)

    def faults(self, stack):
        """Texts on what is impossible in a stack, which is leaf first."""
        faults = []
        if stack and not self._may_be_root(stack[-1].function):
            faults.append(f'{stack[-1].function.name} is the root')
        for frame in stack:
            if not self._has_line(frame):
                faults.append(f'{frame.function.name} has no line '
                              f'{frame.line}')
        caller = None
        c_leaf = c_leaf_of(stack)
        is_cut = any([UNKNOWN_BELOW.fullmatch(frame.function.qualname)
                      for frame in stack])
        for below, above in itertools.pairwise(reversed(stack)):
            # *below* is nearer to the root.
            if below.function.kind == 'python':
                caller = below.function
            if above.function.kind == 'operator' or above is c_leaf:
                continue                # see wrong_leaf()
            if is_cut and COLLECTOR.fullmatch(below.function.qualname):
                continue                # it stands amid what was cut out
            if not self._may_call(below.function, above.function, caller):
                faults.append(f'{below.function.name} calls '
                              f'{above.function.name}')
        return faults

    def wrong_leaf(self, stack):
        """Text on C code that the innermost function does not use, or ''.

        What an instruction works on is read while it runs.  In its last
        moment the result lies there already, and may be taken for it; so
        this is no fault unless it is frequent.
        """
        leaf = c_leaf_of(stack)
        if leaf is None:
            return ''
        caller = stack[stack.index(leaf) + 1].function
        family = self._family(caller)
        if caller.kind != 'python' or family is None:
            return ''
        if leaf.function.kind == 'operator':
            right = matches(leaf.function, family,
                            family.OPERATORS | USED_EVERYWHERE)
        else:
            right = self._may_call(caller, leaf.function, caller)
        return '' if right else f'{caller.name}: {leaf.function.name}'

    def _family(self, function):
        family = self._families.get(function.filename)
        if family is None and function.filename.startswith('<'):
            return self._generated.get(NUMBER.sub('N', function.filename))
        return family

    def _has_line(self, frame):
        function = frame.function
        if function.filename not in self._families:
            return True
        lines = self._lines.get((function.filename, function.qualname,
                                 function.first_line))
        return lines is not None and frame.line in lines

    def _may_be_root(self, function):
        family = self._family(function)
        if family is None or function.kind != 'python':
            return True
        name = NUMBER.sub('N', function.qualname)
        return name in family.ENTRIES or name == '<module>'

    def _may_call(self, caller, callee, python_caller):
        key = caller, callee, python_caller
        verdict = self._judged.get(key)
        if verdict is None:
            verdict = self._judged[key] = self._judge(*key)
        return verdict

    def _judge(self, caller, callee, python_caller):
        if caller.kind == 'pseudo':
            if COLLECTOR.fullmatch(caller.qualname):
                return (self._family(callee) is None
                        or self._is_interrupt(callee))
            return bool(UNKNOWN_BELOW.fullmatch(caller.qualname))
        if callee.kind == 'pseudo':
            return True
        family = self._family(caller)
        if caller.kind == 'python':
            if family is None:
                return self._is_entry(callee)
            if os.path.dirname(callee.filename) == HERE:
                return True             # time, chance, counts, threads
            return (self._is_declared(family, caller, callee)
                    or self._is_interrupt(callee))
        family = python_caller and self._family(python_caller)
        if family is None or self._family(callee) is None:
            return self._is_entry(callee)
        return (callee.qualname == '<module>'
                or caller.name == 'builtins.__build_class__'
                or matches(callee, family,
                           family.CALLS.get(caller.name, ()))
                or self._is_interrupt(callee))

    def _is_entry(self, callee):
        family = self._family(callee)
        return (family is None or callee.kind != 'python'
                or callee.qualname == '<module>'        # it is imported
                or NUMBER.sub('N', callee.qualname) in family.ENTRIES)

    def _is_interrupt(self, callee):
        family = self._family(callee)
        if family is None:
            return WEAK_CALLBACK.fullmatch(callee.qualname)
        return callee.qualname in getattr(family, 'INTERRUPTS', ())

    def _is_declared(self, family, caller, callee):
        if (self._family(callee) is family
                and NUMBER.findall(caller.filename)
                != NUMBER.findall(callee.filename)
                and caller.filename.startswith('<')):
            return False                # of two pieces of generated code
        if caller.qualname == '<module>' and '<module>' not in family.CALLS:
            return True
        allowed = family.CALLS.get(NUMBER.sub('N', caller.qualname), ())
        if matches(callee, family, allowed):
            return True
        # The name of the C function between the two may be missing.
        return callee.kind == 'python' and any(
            matches(callee, family, family.CALLS.get(name, ()))
            for name in allowed)


def c_leaf_of(stack):
    """The frame of C code that the stack ends with, or None."""
    for frame in stack[:-1]:
        if frame.function.kind != 'pseudo':
            return frame if frame.function.kind != 'python' else None
    return None


def is_of(family, function):
    return function.filename == family.__file__ or (
        NUMBER.sub('N', function.filename)
        == getattr(family, 'GENERATED', None))


def matches(callee, family, allowed):
    """Is *callee* one of the names that *family* declares?"""
    name = callee.name
    if callee.kind == 'python':
        if is_of(family, callee):
            name = NUMBER.sub('N', callee.qualname)
        elif callee.module is None:
            return True         # it had returned before that could be seen
    elif hasattr(family, 'GENERATED'):
        name = NUMBER.sub('N', name)
    return name in allowed or any(
        name.startswith(pattern[:-1]) for pattern in allowed
        if pattern.endswith('.*'))
