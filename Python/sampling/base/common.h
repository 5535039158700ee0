/* Sampling profiler: what all its parts use.  They are layers; each uses only
   those below:

       hooks, objects      where the interpreter calls in
       reach               what another process asks
       session             who takes part, from when to when
       calls               exact calls, beside the samples
       task                tasks: what they wait for
       sample              WHAT: captures, stacks, a thread's time
       clock               WHEN: deadlines, ticks, the signal
       sinks               who gets a record
       native              which C function a frame is in
       tables              WHERE: names, frames, stacks, samples
       base                time

   No other file of the interpreter includes these headers. */

#ifndef Py_SAMPLING_COMMON_H
#define Py_SAMPLING_COMMON_H

#ifndef Py_BUILD_CORE
#  error "this header requires Py_BUILD_CORE define"
#endif

#include "pycore_runtime.h"           // _PyRuntime
#include "cpython/sampling.h"         // PySampling_State
#include "thread.h"

#include <pthread.h>
#include <time.h>                     // clockid_t

// How something went that users asked for.
typedef enum {
    _PySampling_OK = 0,
    _PySampling_ERR_RUNNING,        // a session is running already
    _PySampling_ERR_NOT_RUNNING,
    _PySampling_ERR_EXIT_SESSION,   // -X started it: it ends at exit
    _PySampling_ERR_SIGNAL_TAKEN,
    _PySampling_ERR_THREAD,         // errno says why
    _PySampling_ERR_OPTIONS,        // it runs with other options
    _PySampling_ERR_FORKED,         // by C code, with no hook called
    _PySampling_ERR_ENDING,         // the process is about to end
    _PySampling_ERR_NO_TOOL_ID,     // sys.monitoring has none left
    _PySampling_ERR_NO_MEMORY,
} _PySampling_Status;

#define _PySampling_COUNT(NAME, N) \
    ((void)_Py_atomic_add_uint64(&_PyRuntime.sampling.counters.NAME, (N)))

// The record of a thread, of whatever epoch; NULL: it has none.
#define _PySampling_RECORD_OF(TSTATE) \
    (((_PyThreadStateImpl *)(TSTATE))->sampling.record)

// Is the thread's record of the epoch that is on?  A thread that waits for
// its GIL asks this, too: what it finds in the record is there, since the load
// pairs with the store in register_thread().
#define _PySampling_IN_EPOCH(THREAD) \
    (_Py_atomic_load_uint(&(THREAD)->epoch) == _PySampling_EPOCH())

// The tables that a thread's rows are in.  NULL: there are none any more,
// since a thread of another GIL has ended the session or begun new tables.
// Lock: tables_mutex.
#define _PySampling_TABLES_OF(THREAD) \
    (_PySampling_IN_EPOCH(THREAD) \
     ? _PyRuntime.sampling.tables : NULL)

// Around what the signal handler of the same thread must not interrupt; they
// nest.
#define _PySampling_ENTER_HOOK(THREAD) \
    do { (THREAD)->in_hook++; _PySampling_FENCE(); } while (0)
#define _PySampling_LEAVE_HOOK(THREAD) \
    do { _PySampling_FENCE(); (THREAD)->in_hook--; } while (0)

// Lists of items with `next` and `prev`; HEAD is a pointer to the first.  An
// empty one is all-zero, which struct llist_node of pycore_llist.h is not.
#define _PySampling_LINK(HEAD, ITEM) \
    do { \
        (ITEM)->prev = NULL; \
        (ITEM)->next = (HEAD); \
        if ((ITEM)->next != NULL) { \
            (ITEM)->next->prev = (ITEM); \
        } \
        (HEAD) = (ITEM); \
    } while (0)
#define _PySampling_UNLINK(HEAD, ITEM) \
    do { \
        if ((ITEM)->prev != NULL) { \
            (ITEM)->prev->next = (ITEM)->next; \
        } \
        else { \
            (HEAD) = (ITEM)->next; \
        } \
        if ((ITEM)->next != NULL) { \
            (ITEM)->next->prev = (ITEM)->prev; \
        } \
    } while (0)

// runtime->sampling.mutex.
static inline void
_PySampling_LockRegistry(void)
{
    PyMutex_LockFlags(&_PyRuntime.sampling.mutex, _Py_LOCK_DONT_DETACH);
}

static inline void
_PySampling_UnlockRegistry(void)
{
    PyMutex_Unlock(&_PyRuntime.sampling.mutex);
}

/* A function that copies what another thread may write meanwhile, and compares
   afterwards: ThreadSanitizer knows of no fence. */
#ifdef _Py_THREAD_SANITIZER
#  define _PySampling_RACES __attribute__((no_sanitize("thread")))
#else
#  define _PySampling_RACES
#endif

// Who has the tables drains for some microseconds: to wait for that costs a
// thread of another GIL less than to sleep, and to be woken.
#define _PySampling_TABLES_SPINS 400

static inline void
_PySampling_Relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

// runtime->sampling.tables_mutex.
static inline void
_PySampling_LockTables(void)
{
    PyMutex *mutex = &_PyRuntime.sampling.tables_mutex;
    for (int i = 0;
         i < _PySampling_TABLES_SPINS && PyMutex_IsLocked(mutex); i++)
    {
        _PySampling_Relax();
    }
    PyMutex_LockFlags(mutex, _Py_LOCK_DONT_DETACH);
}

static inline void
_PySampling_UnlockTables(void)
{
    PyMutex_Unlock(&_PyRuntime.sampling.tables_mutex);
}

// xorshift64 (Marsaglia, "Xorshift RNGs", 2003).  The state is never 0.
static inline uint64_t
_PySampling_NextRandom(uint64_t *state)
{
    uint64_t x = *state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return *state = x;
}

// A period that varies by a quarter to both sides, so that a program with a
// rhythm of its own is not seen at the same beat each time.
static inline uint64_t
_PySampling_Jittered(uint64_t period_ns, uint64_t *random_state)
{
    uint64_t spread = period_ns / 4;
    return period_ns - spread
        + _PySampling_NextRandom(random_state) % (2 * spread + 1);
}

// The rate may change at any moment: who asks twice takes it once.
static inline uint64_t
_PySampling_PeriodNow(void)
{
    return _Py_atomic_load_uint64_relaxed(&_PyRuntime.sampling.period_ns);
}

// What one gets who has so much of all weight.  Those that share it take their
// parts one after the other, each of what is left: they add up to all.
static inline uint64_t
_PySampling_PartOf(uint64_t ns, uint64_t weight, uint64_t all)
{
    if (all == 0) {
        return 0;
    }
#ifdef __SIZEOF_INT128__
    return (uint64_t)((unsigned __int128)ns * weight / all);
#else
    uint64_t part_ns = (uint64_t)((double)ns * (double)weight / (double)all);
    return weight == all ? ns : Py_MIN(part_ns, ns);
#endif
}

static inline void
_PySampling_AddTime(struct _sampling_time *to, struct _sampling_time time)
{
    to->wall_ns += time.wall_ns;
    to->cpu_ns += time.cpu_ns;
}

// base/process.c.  Did C code fork without a word to the interpreter?
extern int _PySampling_ForkedWithoutHooks(void);
// The number that the kernel has for the calling thread; in the child of a
// fork it is another one.
extern int _PySampling_OwnNativeId(void);
extern uint64_t _PySampling_OwnSleeps(void);
extern void _PySampling_ForgetNativeId(void);
extern int _PySampling_StartThread(pthread_t *thread, size_t stack_bytes,
                                   void *(*run)(void *), void *arg);

// base/time.c.  The first one is async-signal-safe.
typedef int (*_PySampling_ReadClock)(clockid_t clock, struct timespec *now);
extern uint64_t _PySampling_MonotonicNow(void);
extern uint64_t _PySampling_ProcessCpuNow(void);
extern uint64_t _PySampling_OwnCpuNow(void);    // of the calling thread
extern uint64_t _PySampling_WallNow(void);
extern uint64_t _PySampling_WallAt(uint64_t monotonic_ns);
// How far that is behind the monotonic clock.
extern uint64_t _PySampling_SkippedNow(void);
extern uint64_t _PySampling_CpuNow(_PySampling_Thread *thread);
// Of a manual session: moves the wall clock and the thread's CPU clock, and
// returns the new wall time.
extern void _PySampling_ClocksBegin(int is_manual);
extern uint64_t _PySampling_ClocksMove(_PySampling_Thread *thread,
                                       struct _sampling_time distance);
// Time stands still from now on, or goes on.  No thread loses or gets any.
extern void _PySampling_ClocksStop(void);
extern void _PySampling_ClocksGoOn(void);
#define _PySampling_PAUSES() \
    _Py_atomic_load_uint32_relaxed(&_PyRuntime.sampling.pauses)
#define _PySampling_STANDS_STILL(PAUSES) (((PAUSES) & 1) != 0)
// Not 0; the same each time in a manual session.
extern uint64_t _PySampling_RandomSeed(_PySampling_Thread *thread);

#endif  // !Py_SAMPLING_COMMON_H
