/* Sampling profiler: what time it is.

   Owns the clocks: the monotonic one, a thread's CPU clock, and the ones that
   tests move by hand in a manual session.  Who only wants to know the time
   does not ask which of them it is.

   A library that is loaded before the C library (libfaketime) may tell the
   program another time.  The kernel's timers and waits know nothing of it, so
   the C library's own function is called. */

#include "Python.h"

#include "pycore_runtime.h"           // _PyRuntime

#include "common.h"

#include <dlfcn.h>                    // dlsym()
#include <time.h>

/* Is first called when the handler of SIGURG is set up or a session starts: no
   signal handler gets here. */
static _PySampling_ReadClock
find_read_clock(void)
{
    _PySampling_ReadClock found = NULL;
    void *library = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    if (library != NULL) {
        found = (_PySampling_ReadClock)dlsym(library, "clock_gettime");
        dlclose(library);       // it is loaded all the same
    }
    return found != NULL ? found : clock_gettime;
}

static uint64_t
read_clock(clockid_t clock)
{
    struct timespec ts;
    _PySampling_ReadClock read = (_PySampling_ReadClock)
        _Py_atomic_load_ptr_relaxed(&_PyRuntime.sampling.read_clock);
    if (read == NULL) {
        read = find_read_clock();
        _Py_atomic_store_ptr_relaxed(&_PyRuntime.sampling.read_clock,
                                     (void *)read);
    }
    if (read(clock, &ts) != 0) {
        return 0;       // the thread has ended
    }
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* The monotonic clock.  Async-signal-safe. */
uint64_t
_PySampling_MonotonicNow(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

/* The CPU time of all threads. */
uint64_t
_PySampling_ProcessCpuNow(void)
{
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

uint64_t
_PySampling_OwnCpuNow(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

/* The monotonic clock, or the tests' own. */
static uint64_t
that_goes_on(uint64_t monotonic_ns)
{
    // Not options.manual: a thread that waits for its GIL may ask while a
    // session starts.
    uint64_t manual_ns = _Py_atomic_load_uint64_relaxed(
        &_PyRuntime.sampling.manual_wall_ns);
    return manual_ns != 0 ? manual_ns : monotonic_ns;
}

/* The clock of the session at a moment of the monotonic clock, which is now:
   as long as it has not stood still.  So a thread that stands still itself has
   nothing to do when the session stops or goes on. */
uint64_t
_PySampling_WallAt(uint64_t monotonic_ns)
{
    // Pairs with the store in ClocksGoOn().
    uint64_t stopped_ns =
        _Py_atomic_load_uint64(&_PyRuntime.sampling.stopped_ns);
    return stopped_ns != 0 ? stopped_ns
        : that_goes_on(monotonic_ns)
          - _Py_atomic_load_uint64_relaxed(&_PyRuntime.sampling.skipped_ns);
}

uint64_t
_PySampling_SkippedNow(void)
{
    uint64_t now_ns = _PySampling_MonotonicNow();
    return that_goes_on(now_ns) - _PySampling_WallAt(now_ns);
}

static void
next_pause(void)
{
    _Py_atomic_store_uint32_relaxed(&_PyRuntime.sampling.pauses,
                                    _PyRuntime.sampling.pauses + 1);
}

void
_PySampling_ClocksStop(void)
{
    _Py_atomic_store_uint64(&_PyRuntime.sampling.stopped_ns,
                            _PySampling_WallNow());
    next_pause();
}

void
_PySampling_ClocksGoOn(void)
{
    _Py_atomic_store_uint64_relaxed(&_PyRuntime.sampling.skipped_ns,
                                    _PySampling_SkippedNow());
    _Py_atomic_store_uint64(&_PyRuntime.sampling.stopped_ns, 0);
    next_pause();
}

uint64_t
_PySampling_WallNow(void)
{
    return _PySampling_WallAt(_PySampling_MonotonicNow());
}

/* The CPU clock of a thread, which may be another one; 0 if it has ended. */
uint64_t
_PySampling_CpuNow(_PySampling_Thread *thread)
{
    if (_PyRuntime.sampling.options.manual) {
        return thread->manual_cpu_ns;
    }
    return read_clock((clockid_t)thread->cpu_clock);
}


/* Clocks moved by hand.  They begin at 1, for 0 says that there is none. */

void
_PySampling_ClocksBegin(int is_manual)
{
    if (_PySampling_STANDS_STILL(_PySampling_PAUSES())) {
        _PySampling_ClocksGoOn();
    }
    _Py_atomic_store_uint64_relaxed(&_PyRuntime.sampling.skipped_ns, 0);
    _Py_atomic_store_uint64_relaxed(&_PyRuntime.sampling.manual_wall_ns,
                                    is_manual != 0);
}

uint64_t
_PySampling_ClocksMove(_PySampling_Thread *thread,
                       struct _sampling_time distance)
{
    uint64_t wall_ns = that_goes_on(0) + distance.wall_ns;
    _Py_atomic_store_uint64_relaxed(&_PyRuntime.sampling.manual_wall_ns,
                                    wall_ns);
    thread->manual_cpu_ns += distance.cpu_ns;
    return wall_ns;
}

uint64_t
_PySampling_RandomSeed(_PySampling_Thread *thread)
{
    return _PyRuntime.sampling.options.manual
        ? 1 : (_PySampling_MonotonicNow() ^ (uintptr_t)thread) | 1;
}
