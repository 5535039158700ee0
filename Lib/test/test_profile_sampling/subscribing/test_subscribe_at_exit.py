"""Subscriptions when the program ends, or its interpreters do."""

import subprocess
import sys
import textwrap
import unittest

from test import support

from ..support.sessions import environment


class AtExitTest(unittest.TestCase):

    def run_python(self, code, status=0):
        process = subprocess.run(
            [sys.executable, '-c', textwrap.dedent(code)],
            capture_output=True, text=True, env=environment(),
            timeout=support.LONG_TIMEOUT)
        self.assertEqual(process.returncode, status, process.stderr)
        self.assertEqual(process.stderr, '')
        return process.stdout

    def test_what_waits_is_delivered(self):
        out = self.run_python('''
            import profile_sampling, sys, threading, time
            def show(batch):
                print('samples', sum(1 for _ in batch))
            profile_sampling.subscribe(show, batch_seconds=3600)
            end = time.monotonic() + 0.05
            while time.monotonic() < end:
                pass
            threading.Thread(target=time.sleep, args=(30,),
                             daemon=True).start()
            sys.exit(3)
            ''', status=3)
        self.assertRegex(out, r'samples [1-9]')

    @support.skip_if_sanitizer("drop_gil() of CPython's daemon threads",
                               address=True)
    def test_one_that_a_finalizer_closes(self):
        # Daemon threads were ended anywhere, the helper in a delivery.
        for _ in range(4):
            self.run_python('''
                import gc, sys, threading, time
                from profile_sampling import subscribe
                def work():
                    while True:
                        subscribe(len).close()
                class Late:
                    def __init__(self):
                        self.cycle = self
                        self.subscription = subscribe(len)
                    def __del__(self):
                        self.subscription.close()
                gc.set_threshold(0)
                Late()
                for _ in range(4):
                    threading.Thread(target=work, daemon=True).start()
                time.sleep(0.2)
                raise SystemExit(7)
                ''', 7)

    def test_one_that_a_finalizer_flushes(self):
        # Nobody is left to deliver, and nobody to wait for.
        for _ in range(3):
            self.run_python('''
                import profile_sampling, sys, threading, time
                subscription = profile_sampling.subscribe(
                    lambda batch: sum(sample.wall_ns for sample in batch),
                    rate_hz=10_000, batch_samples=1)
                class Late:
                    def __del__(self, clock=time.monotonic,
                                subscription=subscription):
                        end = clock() + 0.05
                        while clock() < end:
                            pass
                        subscription.flush()
                        subscription.close()
                def forever():
                    while True:
                        sorted(range(300), key=str)
                for _ in range(3):
                    threading.Thread(target=forever, daemon=True).start()
                sys.late = Late()
                end = time.monotonic() + 0.1
                while time.monotonic() < end:
                    sum(range(50))
                raise SystemExit(7)
                ''', 7)

    def test_one_that_a_module_has(self):
        # No import works when its finalizer runs.
        for config in '', 'legacy', 'isolated':
            code = textwrap.dedent('''
                import profile_sampling
                class Exporter:
                    def __init__(self):
                        self.subscription = profile_sampling.subscribe(len)
                    def __del__(self):
                        self.subscription.flush()
                        self.subscription.close()
                        print('closed')
                exporter = Exporter()
                ''')
            if config:
                code = (f'import _interpreters as i\n'
                        f'one = i.create({config!r})\n'
                        f'i.exec(one, {code!r})\ni.destroy(one)\n')
            with self.subTest(config):
                self.assertEqual(self.run_python(code), 'closed\n')

    def test_after_all_was_closed(self):
        # The function for this was registered later, and ran before.
        out = self.run_python('''
            import atexit
            def late():
                closed.flush()
                with profile_sampling.subscribe(show) as subscription:
                    sum(range(100_000))
                    subscription.flush()
            atexit.register(late)
            import profile_sampling
            def show(batch):
                print('batch')
            closed = profile_sampling.subscribe(len)
            ''')
        self.assertIn('batch', out)

    def test_what_begins_too_late_is_refused(self):
        out = self.run_python('''
            from profile_sampling import start, subscribe
            class Late:
                def __del__(self):
                    for begin in (start, lambda: subscribe(print)):
                        try:
                            begin()
                        except RuntimeError as exc:
                            print(exc)
            # The last collection finds it, when all modules are whole.
            late = Late()
            late.itself = late
            del late
            ''')
        self.assertEqual(out.count('the interpreter is shutting down'), 2)

    def test_what_is_asked_for_too_late(self):
        # Nothing has been imported before that it needs.
        out = self.run_python('''
            import profile_sampling
            class Late:
                def __del__(self):
                    for name in 'subscribe', 'Batch', 'request':
                        try:
                            getattr(profile_sampling, name)
                        except RuntimeError as exc:
                            print(exc)
            late = Late()
            ''')
        self.assertEqual(out.count('the interpreter is shutting down'), 3)

    def test_a_program_that_counts_its_threads(self):
        out = self.run_python('''
            import os, profile_sampling, threading, warnings
            warnings.simplefilter('error')
            with profile_sampling.subscribe(print, batch_seconds=3600,
                                            threads=[]):
                print(threading.active_count(), len(threading.enumerate()))
                if not os.fork():
                    os._exit(0)
                os.wait()
            ''')
        self.assertIn('1 1', out)

    def test_interpreters_that_close_nothing(self):
        out = self.run_python('''
            import _interpreters, glob
            def is_sampler(path):
                with open(path) as file:
                    return file.read() == 'sampleprof\\n'
            for config in 'legacy', 'isolated':
                interpreter = _interpreters.create(config)
                error = _interpreters.exec(interpreter, """if True:
                    import profile_sampling
                    subscription = profile_sampling.subscribe(
                        lambda batch: None)
                    for i in range(100_000): pass
                    """)
                assert error is None, error
                _interpreters.destroy(interpreter)
                print(sum(map(is_sampler, glob.glob(
                    '/proc/self/task/*/comm'))))
            ''')
        self.assertEqual(out.split(), ['0'] * 2)

    def test_interpreters_that_are_left_over(self):
        for config in 'legacy', 'isolated':
            for code in ('profile_sampling.subscribe(len)',
                         'import atexit\\n'
                         'def late():\\n'
                         '    try:\\n'
                         '        profile_sampling.subscribe(len)\\n'
                         '    except RuntimeError:\\n'
                         '        pass\\n'
                         '    else:\\n'
                         '        raise AssertionError\\n'
                         'atexit.register(late)'):
                self.run_python(f'''
                    import _interpreters, warnings
                    interpreter = _interpreters.create('{config}')
                    error = _interpreters.exec(
                        interpreter,
                        "import profile_sampling\\n{code}\\n")
                    assert error is None, error
                    # CPython's, of interpreters that are left over.
                    warnings.simplefilter('ignore')
                    ''')

    def test_interpreters(self):
        out = self.run_python('''
            import _interpreters, profile_sampling
            def run(config):
                interp = _interpreters.create(config)
                error = _interpreters.exec(interp, """if True:
                    import profile_sampling, time
                    seen = []
                    def add(batch):
                        seen.extend([s.thread.interpreter_id for s in batch])
                    def work():
                        end = time.monotonic() + 0.05
                        while time.monotonic() < end:
                            pass
                    with profile_sampling.subscribe(add, rate_hz=2000):
                        work()
                    import _interpreters
                    own, _ = _interpreters.get_current()
                    assert len(seen) > 5 and set(seen) == {own}, seen
                    try:
                        profile_sampling.subscribe(add, all_interpreters=True)
                    except ValueError:
                        pass
                    else:
                        raise AssertionError
                    # Left open: it ends with the interpreter.
                    profile_sampling.subscribe(add)
                    work()
                    """)
                assert error is None, error
                _interpreters.destroy(interp)
                return interp
            seen = set()
            def add(batch):
                seen.update([s.thread.interpreter_id for s in batch])
            with profile_sampling.subscribe(add, all_interpreters=True):
                ids = {run('isolated'), run('legacy')}
            assert ids | {0} == seen, (ids, seen)
            seen.clear()
            with profile_sampling.subscribe(add):
                run('isolated')
            assert seen == {0}, seen
            print('right')
            ''')
        self.assertEqual(out, 'right\n')
