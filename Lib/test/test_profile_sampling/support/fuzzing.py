"""Damaging pprof files with their structure in mind, and judging the reader.

Owns the mutations of encoded messages and what must be true of any file,
however damaged.  Used by test_fuzz and by Tools/fuzz.
"""

import gzip
import os
import zlib

from profile_sampling import Profile, _formats
from profile_sampling._data.values import MODES
from profile_sampling._formats.pprof import writer as _pprof

from . import validator
from .builders import Builder, example, facts_of
from .wire import BYTES, FIXED_32, FIXED_64, VARINT, fields, varint

# Where a reader might count wrongly.
EDGES = (0, 1, 2, 5, 6, 127, 128, 255, 4095, 4096, 65_535, 2 ** 31 - 1,
         2 ** 31, 2 ** 32, 2 ** 63 - 1, 2 ** 63, 2 ** 64 - 1)
# Fields of Profile that hold messages, and their fields that do.
NESTED = {(): (1, 2, 3, 4, 5, 11), (2,): (3,), (4,): (4,)}
MAX_BYTES = 16 << 20
MAX_REPETITIONS = 20_000


def seeds():
    """Valid messages to begin with."""
    small = Builder().sample('a.f:1', wall_ns=1)
    labelled = Builder(names=3)
    labelled.sample('a.main:1@CALL+4 a.f:2@BINARY_OP+6 op:int.__add__',
                    wall_ns=2, labels={'route': '/a', 'n': '1'},
                    task=('t', 7))
    labelled.sample('[lost]', wall_ns=3, state='lost')
    return [_pprof.encode(builder.profile()._tables, compress=False)
            for builder in (small, labelled, example(),
                            example(mode='cpu', names=0))]


# A message is a list of [field, wire type, value]; a value is a number, bytes
# or, where the format has a message, such a list.

def parse(data, path=()):
    message = []
    for field, wire_type, value in fields(data):
        if wire_type == BYTES and field in NESTED.get(path, ()):
            value = parse(value, (*path, field))
        message.append([field, wire_type, value])
    return message


def serialize(message):
    result = bytearray()
    for field, wire_type, value in message:
        if isinstance(value, list):
            value = serialize(value)
        result += varint(field << 3 | wire_type)
        if wire_type == VARINT and isinstance(value, int):
            result += varint(value)
        elif isinstance(value, int):
            result += value.to_bytes(8, 'little')
        else:
            if wire_type == BYTES:
                result += varint(len(value))
            result += value
    return bytes(result)


def _messages(message):
    """All messages in one, itself included."""
    yield message
    for _, _, value in message:
        if isinstance(value, list):
            yield from _messages(value)


def mutate(rng, message, other):
    """Change *message* in one place; *other* is one to take parts from."""
    target = rng.choice(list(_messages(message)))
    action = rng.choice((_delete, _repeat, _swap, _renumber, _change,
                         _change, _change, _splice, _retype))
    if target:
        action(rng, target, other)


def _delete(rng, message, other):
    del message[rng.randrange(len(message))]


def _repeat(rng, message, other):
    times = rng.choice((1, 1, 2, 100, MAX_REPETITIONS))
    at = rng.randrange(len(message))
    message[at:at] = [message[at]] * times


def _swap(rng, message, other):
    a, b = rng.randrange(len(message)), rng.randrange(len(message))
    message[a], message[b] = message[b], message[a]


def _renumber(rng, message, other):
    message[rng.randrange(len(message))][0] = rng.choice(
        (*range(1, 17), 2 ** 29 - 1))


def _change(rng, message, other):
    entry = rng.choice(message)
    value = entry[2]
    if isinstance(value, int):
        entry[2] = rng.choice((rng.choice(EDGES), value + 1,
                               max(value - 1, 0)))
    elif isinstance(value, bytes):
        entry[2] = damage(rng, value)


def _splice(rng, message, other):
    part = rng.choice(list(_messages(other)))
    if part:
        message.insert(rng.randrange(len(message) + 1),
                       list(rng.choice(part)))


def _retype(rng, message, other):
    entry = rng.choice(message)
    entry[1] = rng.choice((VARINT, FIXED_64, BYTES, FIXED_32))
    if entry[1] in (FIXED_64, FIXED_32):
        entry[2] = rng.randbytes(8 if entry[1] == FIXED_64 else 4)


def damage(rng, data):
    """Change bytes without regard to what they mean."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        at = rng.randrange(len(data) + 1)
        size = rng.choice((0, 1, 1, 2, 8, 64))
        data[at:at + size] = rng.choice((
            b'', rng.randbytes(1), rng.randbytes(rng.randrange(9)),
            rng.choice((b'\xff', b'\x80', b'\0')) * rng.randrange(12),
            bytes(byte ^ 1 << rng.randrange(8)
                  for byte in data[at:at + size])))
    return bytes(data)


def file_content(rng, messages, bombs=True):
    """The bytes of a damaged file."""
    if rng.random() < 0.2:
        data = damage(rng, rng.choice(messages))
    else:
        message = parse(rng.choice(messages))
        other = parse(rng.choice(messages))
        for _ in range(rng.choice((1, 1, 1, 2, 3, 10))):
            mutate(rng, message, other)
        data = serialize(message)
    kind = rng.random()
    if kind < 0.5 or (kind >= 0.9 and not bombs):
        return data
    if kind < 0.7:
        return gzip.compress(data, 1, mtime=0)
    if kind < 0.8:
        return damage(rng, gzip.compress(data, 1, mtime=0))
    if kind < 0.9:
        half = rng.randrange(len(data) + 1)
        return (gzip.compress(data[:half], 1) + bytes(rng.randrange(3))
                + gzip.compress(data[half:], 1))
    return bomb(rng, data)


def bomb(rng, data):
    """A small file of some hundred megabytes."""
    deflate = zlib.compressobj(1, wbits=31)
    chunk = (data + rng.choice((bytes(8), b'\x32\x00', b'\x12\x00',
                                data[-64:])) * 20_000)
    parts = [deflate.compress(chunk)
             for _ in range(1 + (200 << 20) // len(chunk))]
    return b''.join(parts) + deflate.flush()


class Refused(Exception):
    """The reader refused a file as it should; the text is its own."""


def judge(path, max_bytes=MAX_BYTES):
    """Load what lies at *path*.

    Raise Refused if the reader refuses it in a proper way, AssertionError
    for anything that must never be, and what should never be raised.
    """
    try:
        profile = Profile.load(path, max_bytes=max_bytes)
    except ValueError as exc:
        text = str(exc)
        head = f'{os.fsdecode(path)}: '
        validator.check(text.startswith(head) and len(text) > len(head),
                        'no file or no fault is named:', text)
        validator.check('\n' not in text, 'more than a line:', text)
        raise Refused(text) from None
    validator.check_profile(profile)
    _judge_formats(profile)
    again = os.fsdecode(path) + '.again.pb.gz'
    profile.save(again)
    try:
        loaded = Profile.load(again)
        with open(again, 'rb') as file:
            validator.check_pprof(file.read())
    finally:
        os.unlink(again)
    validator.check(facts_of(loaded) == facts_of(profile),
                    'what is loaded is not what was saved')
    _judge_sum(profile, max_bytes)
    return profile


def _judge_formats(profile):
    """Write a profile in every format that can show it."""
    for format in _formats.FORMATS:
        try:
            _formats.encode(profile._tables, format)
        except ValueError as exc:
            validator.check('negative values' in str(exc), format, exc)


def _judge_sum(profile, max_bytes):
    """Add a profile to a good one, if it is about a clock."""
    if profile.mode not in MODES:
        return
    good = example(mode=profile.mode).profile()
    try:
        merged = Profile.merge(good, profile, max_bytes=max_bytes)
    except ValueError as exc:
        validator.check('\n' not in str(exc) and str(exc), 'merge:', exc)
        return
    validator.check_profile(merged)
    validator.check(
        merged.total_wall_ns == good.total_wall_ns + profile.total_wall_ns,
        'the sum of two is not their sum')
