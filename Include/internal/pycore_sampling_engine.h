/* Sampling profiler: what the files of the session share: the engine that
   sampling.c (sessions, subscriptions, forks) turns on and off.  Of no concern
   to others.

   Lock of everything here: control_mutex, and the caller is attached. */

#ifndef Py_INTERNAL_SAMPLING_ENGINE_H
#define Py_INTERNAL_SAMPLING_ENGINE_H
#ifdef __cplusplus
extern "C" {
#endif

#ifndef Py_BUILD_CORE
#  error "this header requires Py_BUILD_CORE define"
#endif

#include "pycore_sampling_events.h"

#ifdef _PySampling_SUPPORTED

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

#endif  // _PySampling_SUPPORTED

#ifdef __cplusplus
}
#endif
#endif  // !Py_INTERNAL_SAMPLING_ENGINE_H
