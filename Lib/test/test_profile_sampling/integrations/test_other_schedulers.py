"""Libraries that put modules, threads and loops of their own in the place of
the standard library's.

Each program is what it would be without us, profiled or not: its output, its
status, and nothing on stderr.  What it prints is what CPython's own 3.13
prints.  PITFALLS L43.
"""

import importlib.util
import os

from ..support.sessions import ProgramTest, environment

# For each package what starts it up, and a small program.
PROGRAMS = {
    'eventlet': ('''if True:
        import eventlet
        eventlet.monkey_patch()
        import eventlet.tpool, queue, socket, subprocess, sys
        import threading, time
        print(threading.Thread.__module__, time.sleep.__module__)
        seen = []
        def work(n):
            time.sleep(0.01)
            seen.append(n)
        threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
        for thread in threads:
            thread.start()
            thread.name = 'renamed'
        for thread in threads:
            thread.join()
        print(seen, thread.name)
        pool = eventlet.GreenPool(3)
        print(list(pool.imap(lambda n: n * n, range(4))))
        print(eventlet.tpool.execute(sum, range(10)))
        one, other = socket.socketpair()
        eventlet.spawn(one.sendall, b'hello')
        print(other.recv(5))
        print(subprocess.run([sys.executable, '-c', 'print(1)'],
                             capture_output=True).stdout)
        ''',
        b"threading eventlet.greenthread\n[0, 1, 2] renamed\n[0, 1, 4, 9]\n"
        b"45\nb'hello'\nb'1\\n'\n"),
    'gevent': ('''if True:
        from gevent import monkey
        monkey.patch_all()
        import concurrent.futures, gevent, queue, socket, subprocess, sys
        import threading, time
        print(monkey.is_module_patched('threading'))
        seen = []
        def work(n):
            time.sleep(0.01)
            threading.current_thread().name = f'work {n}'
            seen.append((n, threading.current_thread().name))
        threads = [threading.Thread(target=work, args=(n,)) for n in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        # One that threading has not made.
        gevent.joinall([gevent.spawn(work, 2)])
        print(seen)
        with concurrent.futures.ThreadPoolExecutor(2) as executor:
            print(list(executor.map(lambda n: n * n, range(4))))
        print(gevent.get_hub().threadpool.apply(sum, (range(10),)))
        one, other = socket.socketpair()
        gevent.spawn(one.sendall, b'hello')
        print(other.recv(5))
        print(subprocess.run([sys.executable, '-c', 'print(1)'],
                             capture_output=True).stdout)
        ''',
        b"True\n[(0, 'work 0'), (1, 'work 1'), (2, 'work 2')]\n[0, 1, 4, 9]\n"
        b"45\nb'hello'\nb'1\\n'\n"),
    'trio': ('''if True:
        import sys, threading, trio
        async def work(n):
            await trio.sleep(0.01 * n)
            seen.append(n)
        async def main():
            async with trio.open_nursery() as nursery:
                for n in range(3):
                    nursery.start_soon(work, n)
            names = {await trio.to_thread.run_sync(
                lambda: threading.current_thread().name.split()[0])}
            done = await trio.run_process([sys.executable, '-c', 'print(1)'],
                                          capture_stdout=True)
            return names, done.stdout
        seen = []
        print(trio.run(main), seen)
        ''',
        b"({'<lambda>'}, b'1\\n') [0, 1, 2]\n"),
}


class OtherSchedulersTest(ProgramTest):

    def check(self, package):
        if importlib.util.find_spec(package) is None:
            self.skipTest(f'the {package} package is not installed')
        code, expected = PROGRAMS[package]
        self.file('program.py', code)
        for option in ('off', 'wall,out={pid}.pb.gz', 'cpu,out=one.pb.gz',
                       'wall,rate_hz=5000,timeline=1,out={pid}.pb.gz'):
            for variable in False, True:
                with self.subTest(option=option, variable=variable):
                    self.check_run(option, variable, expected)

    def check_run(self, option, variable, expected):
        changes = {'PYTHONSAMPLEPROF': option} if variable else {}
        result = self.run_python(
            '-Wignore', *([] if variable else [f'-Xsampleprof={option}']),
            'program.py', env=environment(**changes))
        self.assertEqual((result.out, result.status), (expected, 0),
                         result.err)
        self.assertEqual(result.err.splitlines(), result.said())
        names = [name for name in self.files() if name != 'program.py']
        # The child that is started is profiled where it is by a variable.
        self.assertEqual(len(names), 0 if option == 'off'
                         else 2 if variable and '{pid}' in option else 1)
        for name in names:
            self.load(name)
            os.unlink(os.path.join(self.directory, name))

    def test_eventlet(self):
        self.check('eventlet')

    def test_gevent(self):
        self.check('gevent')

    def test_trio(self):
        self.check('trio')


# A _thread that knows nothing of us, as eventlet puts one in its place while
# it imports threading anew.
SUBSTITUTED = '''if True:
    import sys, types, _thread
    own = types.ModuleType('_thread')
    own.__dict__.update({name: value for name, value in vars(_thread).items()
                         if 'sampled' not in name})
    for name in 'threading', 'concurrent.futures.thread', 'asyncio':
        sys.modules.pop(name, None)
    sys.modules['_thread'] = own
    import asyncio, concurrent.futures, multiprocessing.pool, threading
    thread = threading.Thread(target=print, args=(1,), name='a')
    thread.start()
    thread.name = 'b'
    thread.join()
    with concurrent.futures.ThreadPoolExecutor(1) as executor:
        print(executor.submit(sum, [1, 2]).result())
    print(asyncio.run(asyncio.to_thread(sum, [3, 4])))
    with multiprocessing.pool.ThreadPool(1) as pool:
        print(pool.map(abs, [-5]))
    '''

# Objects that others make for the standard library's code.
FOREIGN = '''if True:
    import concurrent.futures, threading
    class Item:
        def run(self): print('run')
    with concurrent.futures.ThreadPoolExecutor(1) as executor:
        executor.submit(int).result()
        executor._work_queue.put(Item())
    class Bare(threading.Thread):
        """Neither has what threading gives a thread of its own."""
        def __init__(self):
            self._initialized, self._name, self._ident = True, 'bare', 5
    bare = Bare()
    bare.name = 'renamed'
    print(bare.name)
    class Odd(threading.Thread):
        def run(self): print('odd')
    odd = Odd()
    odd._name = None
    odd.start()
    odd.join()
    '''


class SubstitutesTest(ProgramTest):

    def check(self, code, expected):
        for option in 'off', 'wall,out=p.pb.gz':
            with self.subTest(option=option):
                result = self.run_python(f'-Xsampleprof={option}', '-c', code)
                self.assertEqual((result.out, result.status), (expected, 0),
                                 result.err)
                self.assertEqual(result.err.splitlines(), result.said())

    def test_a_thread_module_without_our_functions(self):
        self.check(SUBSTITUTED, b'1\n3\n7\n[5]\n')

    def test_objects_that_others_make(self):
        self.check(FOREIGN, b'run\nrenamed\nodd\n')
