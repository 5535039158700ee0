"""Sampled allocations, for a page: what was allocated and freed when, and of
what the memory of the process consisted.
"""

from profile_sampling._data import by_memory, growth, resident
from profile_sampling._data.allocations import (
    ALLOCATED, AMOUNTS, BEGUN, ENDED, FREED, IN_USE, LIFETIME, PEAK, PEAK_NS,
    VALUES, has_memory, has_moments, limit_bytes, margin_unit, period_bytes)
from profile_sampling._data.by_site import sites_of
from profile_sampling._data.label_names import BLOCK_TYPE
from profile_sampling._data.values import printable
from profile_sampling._formats import memory as words_of

# A step of what is still in use, and of what has no moments.
_NEVER = 255
_LINKS = {growth.GREW: 'What grew', PEAK: 'At the peak',
          ALLOCATED: 'Allocated', '': 'Where RSS is'}


def memory(tables, sites, columns, mine, all):
    """Return what the document says of memory, or None; its blocks become
    columns of the document.

    *columns* are the Columns of the same samples as those of *sites*.
    """
    if not has_memory(tables):
        return None
    steps = growth.steps(tables)
    _add_blocks(sites.tables, columns, steps)
    own = sites.tables if words_of.is_about(tables) else (
        tables.by_value(f'{IN_USE}_space'))
    its_sites = sites if own is sites.tables else sites_of(own, mine, all)
    amounts = by_memory.by_line(own, its_sites, words_of.TOP)
    grown = growth.growth(own) if has_moments(tables) else None
    parts = resident.parts(own)
    labels = columns.label_keys
    peak_ns = int(tables.meta.get(PEAK_NS, 0))
    return {
        'is_all': words_of.is_about(tables),
        'period': words_of.round_figure(period_bytes(tables)),
        'has_moments': has_moments(tables),
        'least_bytes': amounts.least_samples_bytes,
        'least': words_of.round_figure(amounts.least_samples_bytes),
        'margin_unit': margin_unit(),
        'type': labels.index(BLOCK_TYPE) if BLOCK_TYPE in labels else -1,
        'begin_ns': steps.begin_ns, 'step_ns': steps.step_ns,
        'n_steps': steps.number,
        'quarter': steps.of(growth.quarter(tables))
        if has_moments(tables) else 0,
        'peak': steps.of(tables.start_time_ns + peak_ns) if peak_ns else -1,
        'peak_ns': peak_ns,
        'limit': limit_bytes(tables),
        'goes_on': bool(grown and grown.is_growth
                        and grown.stopped_ns is None),
        'cards': [{
            'title': its.title, 'a': its.a, 'text': f'{its.text}.',
            'figure': words_of.said(its.bytes),
            'go': 'allocated' if its.amount == ALLOCATED else its.amount,
            'link': _LINKS[its.amount]}
            for its in list(words_of.findings(
                own, its_sites, amounts, grown, _place))[:3]],
        'parts': [{'name': part.name, 'bytes': part.bytes,
                   'margin': part.margin, 'is_most': part.is_most,
                   'known_by': part.known_by} for part in parts],
        'history': _history(own, steps)}


def _place(row):
    """Return how cards name a line."""
    if isinstance(row.of, str) or not row.of.line:
        return f'`{words_of.where(row)}`'
    file = row.of.function.filename.replace('\\', '/').rpartition('/')[2]
    return f'`{printable(file or row.of.function.name)}:{row.of.line}`'


def _history(tables, steps):
    """Return, for each step, the parts of the RSS at its last reading, and
    the RSS; None before the first one."""
    found = [None] * steps.number
    for time_ns, parts in resident.history(tables):
        found[steps.of(time_ns)] = list(parts.values())
    for number in range(1, steps.number):
        found[number] = found[number] or found[number - 1]
    return found if any(found) else []


def _add_blocks(tables, columns, steps):
    """Add what was allocated and freed: a row for each sample and pair of
    moments."""
    values = {its: tables.value(its.name) for its in VALUES
              if its in tables.value_types}
    amounts = {which: [values[its] for its in VALUES
                       if its.kind.startswith(f'{which}_') and its in values]
               for which in AMOUNTS}
    rows = {}
    n_rows = range(len(tables))
    moments = [tables.column(name) for name in (BEGUN, ENDED, LIFETIME)
               ] if has_moments(tables) else [[0] * len(tables)] * 3
    for number, sample, begun, ended, lifetime in zip(
            n_rows, columns.number_of, *moments):
        its = [column[number] for which in (ALLOCATED, FREED, IN_USE, PEAK)
               for column in amounts[which][1:] or ([0] * len(tables),) * 2]
        if sample < 0 or not any(its):
            continue
        key = (sample, steps.of(begun) if begun else 0,
               steps.of(ended) if ended else _NEVER, lifetime)
        row = rows.setdefault(key, [0] * len(its))
        for place, value in enumerate(its):
            row[place] += value
    keys, sums = list(zip(*rows)) or [()] * 4, list(zip(*rows.values())) or [
        ()] * 8
    for name, type, column in zip(
            ('sample', 'begun', 'ended', 'lifetime'),
            ('u32', 'u8', 'u8', 'u8'), keys):
        columns.packed.add(f'block_{name}', type, column)
    for place, which in enumerate(('allocated', 'freed', 'in_use', 'peak')):
        columns.packed.add(f'block_{which}', 'f64', sums[2 * place])
        columns.packed.add(f'block_{which}_v', 'f64', sums[2 * place + 1])
