/* Sampling profiler: who takes part, and the engine that sessions and
   subscriptions turn on and off. */

#ifndef Py_SAMPLING_SESSION_H
#define Py_SAMPLING_SESSION_H

#ifndef Py_BUILD_CORE
#  error "this header requires Py_BUILD_CORE define"
#endif

#include "pycore_runtime.h"           // _PyRuntime

#include "../sinks/sinks.h"
#include "../tables/tables.h"
#include "control.h"

// session/counting.c.  Nobody counts calls any more, whoever wanted to.
extern void _PySampling_CountForget(PyThreadState *tstate);
// In the child: calls are counted from 0, or no more.
extern void _PySampling_CountAfterFork(PyThreadState *tstate, int goes_on);

/* --- Threads (session/threads.c). */

// The thread's record, registering it if the session is new.
extern _PySampling_Thread *_PySampling_ThreadEnsure(PyThreadState *tstate);
// The same if C code has moved the thread state to this OS thread.
extern _PySampling_Thread *_PySampling_ThreadMoved(PyThreadState *tstate);
// Do threads of the interpreter stand still while the caller runs?
extern int _PySampling_SharesGIL(struct _sampling_interpreter_state *s,
                                 PyThreadState *caller);
// With the registry locked.  Returns 0 if there is no memory.
extern int _PySampling_RegisterExisting(PyThreadState *caller,
                                        uint64_t wall_ns);
// With the registry locked.
extern unsigned int _PySampling_EnterTables(_PySampling_Thread *thread,
                                            int is_new);
extern void _PySampling_WakeOthers(PyThreadState *caller);
// Brings counters.memory_bytes up to date.
extern void _PySampling_UpdateMemoryBytes(void);

/* --- Thread states of one OS thread (session/siblings.c); the first three
   --- with the registry locked. */

extern void _PySampling_SiblingsLink(_PySampling_Thread *thread,
                                     int is_alone);
extern void _PySampling_SiblingsUnlink(_PySampling_Thread *thread);
extern void _PySampling_SiblingsChoose(_PySampling_Thread *thread);
extern void _PySampling_SiblingsTakeOver(_PySampling_Thread *thread);

// From now on no fork goes unnoticed in the child.
extern void _PySampling_WatchForks(void);
/* --- A process that ends at once (session/ending.c). */

// From now on there is a profile to write: the signals that ask the process to
// end are handled.
extern void _PySampling_EndingBegin(
    void (*write)(PyThreadState *tstate, struct _sampling_profile *handed));
// Has the thread write it that runs none of the program's signal handlers.
// Gives the GIL up.  Returns 0 if there is no such thread.  Does not return if
// a signal has come that ends the process.
extern int _PySampling_EndingWrite(struct _sampling_profile *profile);
// There is none any more.  Does not return if such a signal has come.
extern void _PySampling_EndingOver(void);
// No thread of the program is left.
extern void _PySampling_EndingAbandon(void);
// In the child of a fork.  Async-signal-safe.
extern void _PySampling_EndingForget(void);
extern int _PySampling_EndingHasThread(void);
// Instead of `handler`, which the program is about to set.
extern PyOS_sighandler_t
_PySampling_EndingHandlerFor(int signum, PyOS_sighandler_t handler);
extern int _PySampling_IsEndingHandler(PyOS_sighandler_t handler);
// With the GIL, which this thread has just taken.
extern void _PySampling_ParkAtEnding(void);
// Which thread writes the profile; NULL: none.
extern void _PySampling_SetWriter(PyThreadState *tstate);
extern int _PySampling_AnotherWrites(PyThreadState *tstate);
extern void _PySampling_WaitForWriter(PyThreadState *tstate);

// session/allocating.c, with control_mutex.  May blocks be sampled so often?
extern int _PySampling_AllocMayJoin(uint64_t alloc_bytes);
// Allocations are sampled while any profile that is open wants it.
extern _PySampling_Status _PySampling_AllocReconfigure(void);
extern void _PySampling_AllocAfterFork(void);

// session/autostart.c.  What -X sampleprof and PYTHONSAMPLEPROF ask for.
extern PyStatus _PySampling_Autostart(PyThreadState *tstate);
// Ends whatever there is, and writes what is to be written.
extern void _PySampling_EndAutostart(PyThreadState *tstate);
// Never raises.  Runs Python code.
extern void _PySampling_WriteBeforeExec(PyThreadState *tstate,
                                        const char *path);

// session/session.c.  Before the process ends: nobody gets samples any more.
extern void _PySampling_EndSubscriptions(PyThreadState *tstate);

/* --- Who shares the tables (session/sharing.c).  The same lock as below. */

static inline void
_PySampling_LockControl(void)
{
    PyMutex_LockFlags(&_PyRuntime.sampling.control_mutex,
                      _Py_LOCK_DONT_DETACH);
}

static inline void
_PySampling_UnlockControl(void)
{
    PyMutex_Unlock(&_PyRuntime.sampling.control_mutex);
}

// See _PySampling_DefaultOptions(), which locks.
extern void _PySampling_FillOptions(_PySampling_Options *options);
// May anybody begin to sample?
extern _PySampling_Status _PySampling_MayBegin(void);
// The signal that the clock has, or will take; 0: any.
extern int _PySampling_ClockSignal(void);
// The tables are there, and if others use them already, with no less than is
// asked for.
extern _PySampling_Status
_PySampling_TablesEnsureOrCheck(const _PySampling_Options *options);

/* --- How sessions and blocks are handed over (session/profiles.c).  The same
   --- lock, but for HandOver(). */

extern void _PySampling_ReadCounters(struct _sampling_counters *counters);
extern void
_PySampling_CountersSince(struct _sampling_counters *counters,
                          const struct _sampling_counters *before);
// Its time begins here.
extern void _PySampling_BeginSink(struct _sampling_sink *sink,
                                  uint64_t wall_ns);
// The same, without the rows that were taken.
extern void _PySampling_BeginSinkAnew(struct _sampling_sink *sink,
                                      uint64_t wall_ns);
// Its time begins here, for those that were opened while the engine was off.
extern void _PySampling_SinksBegin(uint64_t wall_ns);

/* Rows that nobody changes any more, and what is to be said of them. */
struct _sampling_taken {
    struct _sampling_rows *rows;        // a reference
    struct _sampling_alloc_table allocations;   // a copy
    _PySampling_Options options;
    int64_t start_time_ns;
    uint64_t start_wall_ns;
    uint64_t duration_ns;
    struct _sampling_counters counters;
};

// All since the beginning, which the sink keeps.  Returns 0 without memory.
extern int _PySampling_TakeSoFar(struct _sampling_sink *sink, uint64_t end_ns,
                                 struct _sampling_taken *taken);
// The same from a sink that gets nothing any more.
extern void _PySampling_TakeAll(struct _sampling_sink *sink, uint64_t end_ns,
                                struct _sampling_taken *taken);
// Frees what was taken.  May give the GIL up meanwhile.
extern _PySampling_Status
_PySampling_HandOver(struct _sampling_taken *taken,
                     struct _sampling_profile **result);

// session/sharing.c.  From here on it gets records, and the engine runs.  It
// may be closed and opened again.
extern _PySampling_Status
_PySampling_OpenSink(PyThreadState *tstate, struct _sampling_sink *sink);
extern _PySampling_Status
_PySampling_CloseSink(PyThreadState *tstate, struct _sampling_sink *sink);
// It has got everything up to the moment that is returned; the engine is off
// if nobody else needs it.  0: no memory.
extern uint64_t _PySampling_SinkEnd(PyThreadState *tstate,
                                    const struct _sampling_sink *sink);

// session/blocks.c.  At exit, without the lock.
extern void _PySampling_BlocksEnd(PyThreadState *tstate);

/* --- All time on samples (session/flush.c).  The same lock. */

// Every nanosecond up to now goes to a sample, if the engine runs.  Returns 0
// if there is no memory.
extern int _PySampling_Flush(PyThreadState *tstate);

// All time before this moment is on samples, if anybody flushed just now.
extern uint64_t _PySampling_FlushedNow(void);

// The same while it runs, in the way of `account`.  Returns the moment.
extern uint64_t
_PySampling_FlushThreads(
    PyThreadState *tstate,
    void (*account)(_PySampling_Thread *thread, uint64_t now_ns));

// What threads of other GILs have not accounted for yet is lost with the
// tables they did not get to.
extern void _PySampling_RecordLostThreads(PyThreadState *caller,
                                          uint64_t now_ns);

/* --- The engine (session/engine.c).  Lock: control_mutex, and the caller is
   --- attached. */

// Does nobody else need the engine and its tables?
extern int _PySampling_IsLast(const struct _sampling_sink *sink);
// Brings the engine to what is wanted: it runs if the session samples, a block
// is in progress or somebody subscribes, at the highest rate that any of them
// wants.
extern _PySampling_Status _PySampling_EngineReconfigure(PyThreadState *tstate);

// Tables to begin with, for `options`, if there are none.  Counters begin
// anew.
extern _PySampling_Status
_PySampling_EnginePrepare(const _PySampling_Options *options);

// Stops whatever runs, and has no tables any more.  Returns the moment.
extern uint64_t _PySampling_EngineOff(PyThreadState *tstate);

// The tables begin anew, for all threads; what was before is on samples.
extern void _PySampling_EngineExchange(PyThreadState *tstate,
                                       struct _sampling_tables *fresh);

extern struct _sampling_tables *_PySampling_EngineNewTables(void);

#endif  // !Py_SAMPLING_SESSION_H
