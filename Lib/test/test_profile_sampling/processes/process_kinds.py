"""A program that makes children of one kind: process_kinds.py KIND COUNT.

Each child computes for a while in in_child() and leaves a file PID.life with
the nanoseconds it knows it lived, none more than that.  The program itself
computes in in_parent() and checks the status of each child.
"""

import atexit
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

STATUS = 7
CHILD_CPU_S = 0.01


def busy(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def in_parent():
    busy(0.002)


def in_child():
    busy(CHILD_CPU_S)


def live(*_):
    begun = time.monotonic_ns()
    in_child()
    lived = time.monotonic_ns() - begun
    fd = os.open(f'{os.getpid()}.life', os.O_WRONLY | os.O_CREAT)
    os.write(fd, b'%d' % lived)
    os.close(fd)
    return os.getpid()


def wait(pid, status=STATUS):
    found = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if found != status:
        sys.exit(f'child {pid} ended with {found}, not {status}')


def forked(end):
    """Fork a child that lives and ends in a way of its own."""
    def run():
        pid = os.fork()
        if not pid:
            live()
            end()
        wait(pid)
    return run


def fork_that_fails():
    pid = os.fork()
    if not pid:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        live()
        1 / 0
    wait(pid, 1)


def fork_in_a_thread():
    thread = threading.Thread(target=forked(lambda: os._exit(STATUS)))
    thread.start()
    thread.join()


def thread_of_a_child():
    pid = os.fork()
    if not pid:
        thread = threading.Thread(
            target=lambda: (live(), os._exit(STATUS)))
        thread.start()
        thread.join()
    wait(pid)


def fork_in_a_signal_handler():
    run = forked(lambda: os._exit(STATUS))
    signal.signal(signal.SIGUSR1, lambda *_: run())
    os.kill(os.getpid(), signal.SIGUSR1)


def forkpty():
    pid, fd = os.forkpty()
    if not pid:
        live()
        os._exit(STATUS)
    wait(pid)
    os.close(fd)


def fork_of_a_fork():
    pid = os.fork()
    if not pid:
        forked(lambda: os._exit(STATUS))()
        live()
        os._exit(STATUS)
    wait(pid)


def daemon():
    """What a daemon does to be nobody's child."""
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        os.setsid()
        if os.fork():
            os._exit(STATUS)
        os.closerange(0, write)
        live()
        # Its profile is written when the pipe is closed, by its end.
        sys.exit()
    os.close(write)
    wait(pid)
    os.read(read, 1)
    os.close(read)


def exit_in_a_handler():
    pid = os.fork()
    if not pid:
        signal.signal(signal.SIGTERM, lambda *_: os._exit(STATUS))
        live()
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(60)
    wait(pid)


def exit_twice():
    """Two threads end the process at once: both with the same status."""
    pid = os.fork()
    if not pid:
        barrier = threading.Barrier(2)

        def end():
            barrier.wait()
            os._exit(STATUS)
        live()
        threading.Thread(target=end).start()
        end()
    wait(pid)


def multiprocess(method):
    def run():
        context = multiprocessing.get_context(method)
        process = context.Process(target=end_of_process)
        process.start()
        process.join()
        if process.exitcode != STATUS:
            sys.exit(f'{process} ended with {process.exitcode}')
    return run


def end_of_process():
    live()
    sys.exit(STATUS)


def pool(method):
    """A worker for each task."""
    def run_all(count):
        context = multiprocessing.get_context(method)
        with context.Pool(2, maxtasksperchild=1) as workers:
            pids = workers.map(live, range(count), chunksize=1)
            workers.close()
            workers.join()
        if len(set(pids)) != count:
            sys.exit(f'{count} workers were {len(set(pids))}')
    return run_all


def at_exit(count):
    @atexit.register
    def fork():
        for _ in range(count):
            pid = os.fork()
            if not pid:
                live()
                os._exit(STATUS)
            wait(pid)


def each(run):
    def run_all(count):
        for _ in range(count):
            in_parent()
            run()
    return run_all


# What leaves no profile, but must end as it would.

def program(*command, status=0, **options):
    def run():
        result = subprocess.run(command, stdout=subprocess.DEVNULL,
                                **options)
        if result.returncode != status:
            sys.exit(f'{command} ended with {result.returncode}')
    return run


def fork_and_exec():
    pid = os.fork()
    if not pid:
        os.execv('/bin/sh', ['sh', '-c', f'exit {STATUS}'])
    wait(pid)


def spawn():
    wait(os.posix_spawn('/bin/sh', ['sh', '-c', f'kill -l >&2; '
                                                f'exit {STATUS}'],
                        os.environ,
                        file_actions=[(os.POSIX_SPAWN_OPEN, 2, '/dev/null',
                                       os.O_WRONLY, 0)]))


def busy_fork_and_exec():
    """A child that is sampled until the moment that it is another program.
    """
    pid = os.fork()
    if not pid:
        busy(0.002)
        os.execv('/bin/sh', ['sh', '-c', f'exit {STATUS}'])
    wait(pid)


def killed():
    pid = os.fork()
    if not pid:
        os.kill(os.getpid(), signal.SIGKILL)
    wait(pid, -signal.SIGKILL)


def end_of_a_thread():
    """The child ends with the thread that was forked."""
    def run():
        pid = os.fork()
        if pid:
            wait(pid, 0)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()


def end_of_a_thread_with_another():
    def run():
        pid = os.fork()
        if pid:
            wait(pid, 0)
        else:
            threading.Thread(target=busy, args=(0.005,)).start()
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()


WITH_PROFILE = {
    'fork, os._exit': each(forked(lambda: os._exit(STATUS))),
    'fork, sys.exit': each(forked(lambda: sys.exit(STATUS))),
    'fork, an exception': each(fork_that_fails),
    'fork in a thread': each(fork_in_a_thread),
    'fork, os._exit in a thread': each(thread_of_a_child),
    'fork in a signal handler': each(fork_in_a_signal_handler),
    'fork, os._exit in a signal handler': each(exit_in_a_handler),
    'fork, os._exit in two threads': each(exit_twice),
    'fork in atexit': at_exit,
    'fork of a fork': each(fork_of_a_fork),
    'forkpty': each(forkpty),
    'daemon': each(daemon),
    'Process, fork': each(multiprocess('fork')),
    'Process, spawn': each(multiprocess('spawn')),
    'Process, forkserver': each(multiprocess('forkserver')),
    'Pool, fork': pool('fork'),
    'Pool, spawn': pool('spawn'),
    'Pool, forkserver': pool('forkserver'),
}
WITHOUT_PROFILE = {
    '/bin/true': each(program('/bin/true')),
    'vfork': each(program('/bin/sh', '-c', 'kill -l', close_fds=False)),
    'preexec_fn': each(program('/bin/sh', '-c', 'kill -l', preexec_fn=int)),
    'fork and exec': each(fork_and_exec),
    'busy fork and exec': each(busy_fork_and_exec),
    'posix_spawn': each(spawn),
    'fork, SIGKILL': each(killed),
    'end of a thread': each(end_of_a_thread),
    'end of a thread with another': each(end_of_a_thread_with_another),
}
# Of these, what becomes another program: a signal that is on its way then
# finds no handler.
EXECS = '/bin/true', 'vfork', 'preexec_fn', 'fork and exec', \
    'busy fork and exec', 'posix_spawn'


def main():
    kind, count = sys.argv[1:]
    import warnings
    # Of forks in programs with threads.
    warnings.simplefilter('ignore', DeprecationWarning)
    (WITH_PROFILE | WITHOUT_PROFILE)[kind](int(count))
    if kind.endswith('forkserver'):
        # Wait for its profile.
        multiprocessing.forkserver._forkserver._stop()


if __name__ == '__main__':
    main()
