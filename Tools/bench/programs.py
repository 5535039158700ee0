"""The programs that are timed and counted.

Each is a function that prepares its data and returns run(n), which does n
equal portions of work.  They must not depend on a clock, on the order of a
set, or on anything outside this process, so that two interpreters execute
the same instructions.

    python programs.py NAME N LAYOUT   run one, as off.py does
"""

import sys


def calls():
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    def run(n):
        for _ in range(n):
            fib(16)
    return run


def nbody():
    bodies = [[float(i), i * 0.5, i * 0.25, 0.1, 0.2, 0.3, 1.0 / (i + 1)]
              for i in range(5)]
    pairs = [(a, b) for i, a in enumerate(bodies) for b in bodies[i + 1:]]

    def advance(dt):
        for a, b in pairs:
            dx, dy, dz = a[0] - b[0], a[1] - b[1], a[2] - b[2]
            force = dt * (dx * dx + dy * dy + dz * dz + 0.01) ** -1.5
            mass_a, mass_b = a[6] * force, b[6] * force
            a[3] -= dx * mass_b
            a[4] -= dy * mass_b
            a[5] -= dz * mass_b
            b[3] += dx * mass_a
            b[4] += dy * mass_a
            b[5] += dz * mass_a
        for body in bodies:
            body[0] += dt * body[3]
            body[1] += dt * body[4]
            body[2] += dt * body[5]

    def run(n):
        for _ in range(n * 60):
            advance(0.001)
    return run


def objects():
    class Shape:
        __slots__ = ('width', 'height')

        def __init__(self, width, height):
            self.width = width
            self.height = height

        def area(self):
            return self.width * self.height

    class Square(Shape):
        def __init__(self, side):
            super().__init__(side, side)

        @property
        def side(self):
            return self.width

        def __lt__(self, other):
            return self.area() < other.area()

    def run(n):
        for _ in range(n):
            squares = [Square(i % 17) for i in range(300)]
            total = sum([s.area() + s.side for s in squares])
            smaller = [a < b for a, b in zip(squares, squares[1:])]
            assert total and len(smaller) == 299
    return run


def generators():
    def numbers(n):
        for i in range(n):
            yield i

    def tree(depth):
        if depth:
            yield from tree(depth - 1)
            yield depth
            yield from tree(depth - 1)

    def run(n):
        for _ in range(n):
            assert sum(x * 2 for x in numbers(1500)) == 2248500
            assert sum(tree(7)) == 247
    return run


def coroutines():
    import asyncio

    async def worker(queue, steps):
        for i in range(steps):
            await queue.put(i)
            await asyncio.sleep(0)

    async def reader(queue, steps):
        total = 0
        for _ in range(steps):
            total += await queue.get()
        return total

    async def portion():
        queue = asyncio.Queue(4)
        workers = [worker(queue, 20) for _ in range(4)]
        await asyncio.gather(reader(queue, 80), *workers)

    runner = asyncio.Runner()

    def run(n):
        for _ in range(n):
            runner.run(portion())
    return run


def exceptions():
    class Refused(ValueError):
        pass

    def descend(depth):
        if depth == 0:
            raise Refused('at the bottom')
        try:
            descend(depth - 1)
        finally:
            depth += 1

    def run(n):
        for _ in range(n * 20):
            try:
                descend(12)
            except Refused:
                pass
            for key in (1, 'a', None):
                try:
                    {}[key]
                except KeyError as exc:
                    assert exc.args == (key,)
    return run


def jsons():
    import json
    data = {'rows': [{'id': i, 'name': f'row {i}', 'tags': ['a', 'b', str(i)],
                      'value': i / 7, 'none': None, 'flag': i % 2 == 0}
                     for i in range(40)]}

    def run(n):
        for _ in range(n):
            text = json.dumps(data)
            assert json.loads(text) == data
            json.dumps(data, indent=1, sort_keys=True)
    return run


def regexes():
    import re
    text = ' '.join([f'user{i}@host{i % 7}.example.org, tel +{i}-{i * 37};'
                     for i in range(60)])
    mail = re.compile(r'[\w.]+@(?:[\w-]+\.)+\w+')
    phone = re.compile(r'\+(\d+)-(\d+)')

    def run(n):
        for _ in range(n):
            assert len(mail.findall(text)) == 60
            phone.sub(lambda m: m[2] + '/' + m[1], text)
            re.split(r'[,;]\s*', text)
    return run


def sorting():
    numbers = [(i * 7919) % 10007 for i in range(1200)]
    words = [f'w{x}' for x in numbers]

    def run(n):
        for _ in range(n):
            sorted(numbers)
            sorted(words)
            sorted(numbers, key=lambda x: x % 100)
            sorted(zip(numbers, words), reverse=True)
    return run


def comprehensions():
    text = 'the quick brown fox jumps over the lazy dog ' * 12

    def run(n):
        for _ in range(n):
            counts = {}
            for char in text:
                counts[char] = counts.get(char, 0) + 1
            words = [word.upper() for word in text.split() if 'o' in word]
            table = {word: len(word) for word in words}
            nested = [[a * b for a in range(20)] for b in range(20)]
            assert len(table) == 4 and len(counts) == 27 and nested
    return run


def strings():
    lines = [f'{i},name {i},{i * 1.5:.2f}' for i in range(200)]

    def run(n):
        for _ in range(n):
            rows = [line.split(',') for line in lines]
            names = [row[1].replace('name', 'n').strip() for row in rows]
            total = sum([float(row[2]) for row in rows])
            out = '\n'.join([f'{a:>8}|{i:04d}' for i, a in enumerate(names)])
            assert len(out.encode()) == 2799 and total
    return run


def threads():
    """Two threads that hand the GIL over by blocking, and I/O releases.

    Neither ever waits long enough to ask for the GIL by force: the switch
    interval is out of reach, so no clock decides what is executed.
    """
    import os
    import threading
    sys.setswitchinterval(100)

    def follow(mine, other, steps):
        for _ in range(steps):
            mine.acquire()
            other.release()

    def run(n):
        for _ in range(n):
            ping, pong = threading.Lock(), threading.Lock()
            ping.acquire()
            pong.acquire()
            thread = threading.Thread(target=follow, args=(ping, pong, 150))
            thread.start()
            for _ in range(150):
                ping.release()
                pong.acquire()
            thread.join()
            read_end, write_end = os.pipe()
            for _ in range(150):
                os.write(write_end, b'x')
                os.read(read_end, 1)
            os.close(read_end)
            os.close(write_end)
    return run


# Portions for off.py: some 10^8 instructions each.
PROGRAMS = {
    calls: 180,
    nbody: 100,
    objects: 200,
    generators: 260,
    coroutines: 100,
    exceptions: 450,
    jsons: 130,
    regexes: 330,
    sorting: 55,
    comprehensions: 650,
    strings: 180,
    threads: 240,
}
BY_NAME = {program.__name__: program for program in PROGRAMS}


def moved(layout):
    """Move what is allocated from here on, in every size class, until what is
    returned is dropped."""
    return [bytes(size) for size in range(0, 480, 16)
            for _ in range(13 * layout)]


def main():
    name, portions, layout = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    padding = moved(layout)
    run = BY_NAME[name]()
    run(2)      # specializes the bytecode and fills caches
    run(portions)
    assert len(padding) == 390 * layout


if __name__ == '__main__':
    main()
