"""What the processes of a directory of segments did, over time.

A letter is a state: in lower case a thread works or waits for the world, a
capital is one to look at.
"""

from profile_sampling._data.by_state import whole
from profile_sampling._data.idle import shown
from profile_sampling._data.on_clocks import on_clocks
from profile_sampling._data.states import SHOWN
from profile_sampling._data.values import STATES
from profile_sampling._formats.words import clock, state_name

# In the order of bars.
LETTERS = {state.name: state.letter for state in SHOWN
           if state.of == 'threads' and state.name != 'idle'}
_HEIGHTS = '▁▂▃▄▅▆▇█'
_COLUMNS, _BAR, _EVERY = 60, 12, 15
_SECOND = 1_000_000_000


class History:
    """Segments that are added one by one."""

    def __init__(self):
        self._parts = []

    def add(self, segment, tables):
        sums = whole(shown(on_clocks(tables)))
        self._parts.append((segment, [
            sums.by_state[STATES.index(state)] for state in LETTERS]))

    def lines(self):
        """Return what stands above a report; nothing if there is only one
        process and one segment."""
        if len(self._parts) < 2:
            return []
        lines, threads = self._over_time()
        return [*lines, '', *self._by_process(), *self._legend(threads)]

    def _over_time(self):
        begin_ns = min([segment.begin_ns for segment, _ in self._parts])
        end_ns = max([segment.end_ns for segment, _ in self._parts])
        column_ns = max(1, -(-(end_ns - begin_ns) // _COLUMNS))
        columns = [[0] * len(LETTERS) for _ in range(_COLUMNS)]
        for segment, sums in self._parts:
            length_ns = max(1, segment.end_ns - segment.begin_ns)
            first = (segment.begin_ns - begin_ns) // column_ns
            last = min(_COLUMNS - 1, (segment.end_ns - begin_ns) // column_ns)
            for number in range(first, last + 1):
                from_ns = begin_ns + number * column_ns
                part = (min(segment.end_ns, from_ns + column_ns)
                        - max(segment.begin_ns, from_ns)) / length_ns
                columns[number] = [its + part * ns for its, ns
                                   in zip(columns[number], sums)]
        most = max(map(sum, columns)) or 1
        times = ''.join([
            f'{clock(begin_ns + number * column_ns):<{_EVERY}}'
            for number in range(0, _COLUMNS, _EVERY)])
        # Of a part of a thread something is seen, too.
        heights = [' ' if not sum(sums) else _HEIGHTS[
            min(len(_HEIGHTS) - 1, int(len(_HEIGHTS) * sum(sums) / most))]
            for sums in columns]
        letters = list(LETTERS.values())
        doing = [letters[sums.index(max(sums))] if sum(sums) else ' '
                 for sums in columns]
        return [f'        {times.rstrip()}',
                f'Busy    {"".join(heights).rstrip()}',
                f'Doing   {"".join(doing).rstrip()}'], most / column_ns

    def _by_process(self):
        processes = {}
        for segment, sums in self._parts:
            its = processes.setdefault((segment.host, segment.pid),
                                       [0, [0] * len(LETTERS)])
            its[0] += segment.end_ns - segment.begin_ns
            its[1] = list(map(int.__add__, its[1], sums))
        width = max([4, *[len(host) for host, _ in processes]])
        yield f'    PID  {"Host":<{width}}  {"Time":>9}  Doing'
        for (host, pid), (ns, sums) in sorted(processes.items()):
            yield (f'{pid:>7}  {host:<{width}}  {ns / _SECOND:>7,.0f} s  '
                   f'{_bar(sums)}').rstrip()

    def _legend(self, threads):
        names = ', '.join([
            f'{letter} {state_name(state)}'
            for place, (state, letter) in enumerate(LETTERS.items())
            if any([sums[place] for _, sums in self._parts])])
        yield f'Busy: up to {threads:.1f} threads, without what is idle'
        yield f'Doing: {names}'


def _bar(sums):
    """Return letters by the parts of a sum; the largest remainders have what
    rounding leaves."""
    total = sum(sums)
    if not total:
        return ''
    exact = [_BAR * its / total for its in sums]
    cells = list(map(int, exact))
    for number in sorted(range(len(sums)), key=lambda number: (
            cells[number] - exact[number]))[:_BAR - sum(cells)]:
        cells[number] += 1
    return ''.join([letter * number for letter, number
                    in zip(LETTERS.values(), cells)])
