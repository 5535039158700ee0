"""What a file does not tell apart.

This file owns which samples of a profile are one in its pprof file.  It must
not know how a file is encoded or decoded: it has that done.
"""

from array import array

from profile_sampling._data.tables import (
    KEY_COLUMNS, THREAD, Tables, function_row, thread_row)
from profile_sampling._formats.pprof import decoder
from profile_sampling._formats.pprof.budget import Budget

# The tables are there already, and were not hostile.
_NO_LIMIT = 1 << 62


def rows_as_read(tables, message):
    """Return which sample of the file each sample of the tables is in.

    *message* returns the bytes of the message of some tables.

    Samples that differ in what files do not have are one there.  What that
    is, a file tells best: in one in which each sample is of a thread of its
    own none are one, and what is read of it tells which would be.
    """
    width = tables.sample_columns
    samples = array('q', tables.samples)
    threads = list(map(thread_row, tables.threads))
    alone = []
    for row, start in enumerate(range(0, len(samples), width)):
        _, native_id, name, interpreter = threads[samples[start + THREAD]]
        samples[start + THREAD] = len(threads) + row
        alone.append((row, native_id, name, interpreter))
    raw = _raw(tables) | {
        'threads': threads + alone, 'samples': samples.tobytes()}
    chunks = iter((message(Tables(raw)), b''))
    read = Tables(decoder.decode(chunks.__next__, Budget(_NO_LIMIT)))
    numbers = {}
    return [numbers.setdefault((old[THREAD], new[:THREAD],
                                new[THREAD + 1:KEY_COLUMNS]), len(numbers))
            for old, new in zip(tables.row_tuples(), read.row_tuples(),
                                strict=True)]


def _raw(tables):
    """Return tables as the core would give them, without a time line."""
    return tables.facts() | {
        'functions': [function_row(function)
                      for function in tables.functions],
        'frames': tables.frames, 'nodes': tables.nodes,
        'labels': tables.labels}
