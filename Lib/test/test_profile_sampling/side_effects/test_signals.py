"""Signals: the program's are its own, and the profiler's bother nobody.

What ends system calls is in test_eintr.
"""


from ..support.sessions import OPTION, ProgramTest, environment
from ..support.work import SPIN


class SignalsTest(ProgramTest):

    def check(self, code, lines, option=OPTION, **options):
        code = 'import os, signal, time, _profile\n' + code
        result = self.run_python(*[option] if option else [], '-c', code,
                                 **options)
        self.assertEqual((result.status, result.out.decode().split()),
                         (0, lines.split()), result.err)
        return result

    def test_handler_before_start(self):
        # A signal asked for by name is refused; by default another is taken.
        # The program's handler is called for its own signals only.
        self.check(SPIN +
                   'calls = []\n'
                   'signal.signal(signal.SIGURG, '
                   'lambda *a: calls.append(a))\n'
                   'try: _profile.start(signal=signal.SIGURG)\n'
                   'except RuntimeError as exc: print("signal" in str(exc))\n'
                   'for options in {}, {"signal": signal.SIGUSR2}:\n'
                   '    try: _profile.start(**options)\n'
                   '    except RuntimeError as exc:\n'
                   '        print("signal=" in str(exc))\n'
                   '        continue\n'
                   '    spin(0.3)\n'
                   '    _profile.stop()\n'
                   '    print(_profile.stats()["captures"] > 0)\n'
                   'print(len(calls))',
                   'True True True 0', option=None)

    def test_control_c_before_the_program_begins(self):
        # While our own modules are imported: it is not lost.
        self.file('profile_sampling.py', 'import signal\n'
                  'signal.raise_signal(signal.SIGINT)')
        result = self.run_python(OPTION, '-c', 'print(1)', env=environment(
            PYTHONPATH=self.directory))
        self.assertIn('KeyboardInterrupt', result.err)
        self.assertEqual((result.out, result.status), (b'', 1), result.err)
        self.assertNotIn('not profiling', result.err)

    def test_disposition_comes_back(self):
        self.check('def urg():\n'
                   '    for line in open("/proc/self/status"):\n'
                   '        if line.startswith("SigCgt"):\n'
                   '            return int(line.split()[1], 16) >> 22 & 1\n'
                   'print(urg())\n'
                   '_profile.start()\nprint(urg())\n_profile.stop()\n'
                   'print(urg())', '0 1 0', option=None,
                   env=environment(PYTHONSAMPLEPROFATTACH='0'))

    def test_ignored_after_start(self):
        self.check(SPIN +
                   'signal.signal(signal.SIGURG, signal.SIG_IGN)\n'
                   'spin(0.3)\nprint(_profile.running())', 'True')

    def test_long_work_of_the_kernel_is_no_blocked_signal(self):
        # To give that much memory back takes the kernel more than 20 ms, in
        # which no handler runs.  The ticks after it are not late.
        result = self.check(
            SPIN +
            'spin(0.7)\n'
            'for _ in range(3):\n'
            '    large = bytearray(600_000_000)\n'
            '    del large\n'
            '    spin(0.2)\n'
            'print("freed")', 'freed')
        counters = result.load('profile.pb.gz').stats
        self.assertEqual((counters.get('ticks_no_signal', 0),
                          counters.get('captures_biased', 0)), (0, 0))

    def check_not_pending(self, seconds_before):
        self.check(SPIN +
                   f'spin({seconds_before})\n'
                   'signal.pthread_sigmask(signal.SIG_BLOCK, '
                   'signal.valid_signals())\n'
                   'end = time.monotonic() + 0.5\n'
                   'seen = set()\n'
                   'while time.monotonic() < end:\n'
                   '    seen |= signal.sigpending()\n'
                   'print(seen)', 'set()')

    def test_blocked_signals_are_not_pending(self):
        self.check_not_pending(0)

    def test_unblocked_after_stop(self):
        # A pending signal of ours would end the program here.  It is blocked
        # by C code, so one is sent before the profiler notices.
        self.check('import ctypes\n'
                   'change = ctypes.PyDLL(None).pthread_sigmask\n'
                   'mask = (1 << signal.SIGUSR1 - 1).to_bytes(128, "little")\n'
                   '_profile.start(signal=signal.SIGUSR1, manual=True)\n'
                   'change(signal.SIG_BLOCK, mask, None)\n'
                   '_profile.tick(1000, 1000)\n'
                   'print(signal.SIGUSR1 in signal.sigpending())\n'
                   '_profile.stop()\n'
                   'change(signal.SIG_UNBLOCK, mask, None)\n'
                   'print("alive")', 'True alive', option=None)
