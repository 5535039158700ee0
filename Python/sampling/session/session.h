/* Sampling profiler: who takes part, and the engine that sessions and
   subscriptions turn on and off. */

#ifndef Py_SAMPLING_SESSION_H
#define Py_SAMPLING_SESSION_H
#ifdef __cplusplus
extern "C" {
#endif

#ifndef Py_BUILD_CORE
#  error "this header requires Py_BUILD_CORE define"
#endif

#include "../sinks/sinks.h"

/* --- Threads (session/threads.c). */

// The thread's record, registering it if the session is new.
extern _PySampling_Thread *_PySampling_ThreadOf(PyThreadState *tstate);
// Do threads of the interpreter stand still while the caller runs?
extern int _PySampling_SharesGIL(struct _sampling_interpreter_state *s,
                                 PyThreadState *caller);
// With the registry locked.  Returns 0 if there is no memory.
extern int _PySampling_RegisterExisting(PyThreadState *caller,
                                        uint64_t wall_ns, int goes_on);
// With the registry locked.
extern unsigned int _PySampling_EnterTables(_PySampling_Thread *thread,
                                            int is_new);
extern void _PySampling_WakeOthers(PyThreadState *caller);

/* --- Thread states of one OS thread (session/siblings.c); the first three
   --- with the registry locked. */

extern void _PySampling_SiblingsLink(_PySampling_Thread *thread,
                                     int is_alone);
extern void _PySampling_SiblingsUnlink(_PySampling_Thread *thread);
extern void _PySampling_SiblingsChoose(_PySampling_Thread *thread);
extern void _PySampling_SiblingsTakeOver(_PySampling_Thread *thread);

// From now on no fork goes unnoticed in the child.
extern void _PySampling_WatchForks(void);
// session/session.c.  Before the process ends: nobody gets samples any more.
extern void _PySampling_EndSubscriptions(PyThreadState *tstate);

/* --- The engine (session/engine.c).  Lock: control_mutex, and the caller is
   --- attached. */

// Brings the engine to what is wanted: it runs if the session samples or
// somebody subscribes, at the highest rate that any of them wants.
extern _PySampling_Status _PySampling_EngineFit(PyThreadState *tstate);

// Whether samples go into the table of the session.
extern void _PySampling_EngineSetAggregating(int is_aggregating);

// Tables to begin with, for `options`, if there are none.  Counters begin
// anew.
extern _PySampling_Status
_PySampling_EnginePrepare(const _PySampling_Options *options);

// Begins anew with other options; subscriptions go on.
extern _PySampling_Status
_PySampling_EngineRestart(PyThreadState *tstate,
                          const _PySampling_Options *options);

// Stops whatever runs, and returns the tables, which are the caller's.
extern struct _sampling_tables *_PySampling_EngineOff(PyThreadState *tstate);

// Every nanosecond up to now goes to a sample, if the engine runs.  Returns 0
// if there is no memory.
extern int _PySampling_EngineFlush(PyThreadState *tstate);

// The tables begin anew, for the session and all threads.
extern struct _sampling_tables *
_PySampling_EngineExchange(PyThreadState *tstate,
                           struct _sampling_tables *fresh);

// The samples begin anew; subscriptions keep their rows.
extern void _PySampling_EngineClearSamples(void);

extern struct _sampling_tables *_PySampling_EngineNewTables(void);

// What a profile tells of its session.
extern void _PySampling_EngineDescribe(struct _sampling_tables *tables);

#ifdef __cplusplus
}
#endif
#endif  // !Py_SAMPLING_SESSION_H
