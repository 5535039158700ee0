/* Sampling profiler: what is asked of it from above, by the _profile module
   and by what starts and ends a session with the process.  In
   session/session.c, where nothing else is said. */

#ifndef Py_SAMPLING_CONTROL_H
#define Py_SAMPLING_CONTROL_H

#ifndef Py_BUILD_CORE
#  error "this header requires Py_BUILD_CORE define"
#endif

#include "../base/common.h"

extern _PySampling_Status _PySampling_Start(PyThreadState *tstate,
                                            const _PySampling_Options *opts);
extern void _PySampling_LimitOverhead(int percent);
extern _PySampling_Status _PySampling_Stop(PyThreadState *tstate,
                                           struct _sampling_profile **result);
extern _PySampling_Status
_PySampling_Snapshot(PyThreadState *tstate, int clear,
                     struct _sampling_profile **result);

// The session that -X started ends and its profile is written; the program
// goes on (session/autostart.c).  Never raises.  Runs Python code.
extern void _PySampling_WriteNow(PyThreadState *tstate);
// session/autostart.c.  The running session is that of -X sampleprof.
extern void _PySampling_WriteAtExit(PyObject *write, int quiet, int children);

// The counters of the session, or of the last one.
extern void _PySampling_GetCounters(struct _sampling_counters *counters);

// Is there a session, or a block of profile()?  (session/sharing.c)
extern int _PySampling_IsRunning(void);

// Blocks of profile() (session/blocks.c).  A rate_hz, depth_frames or signal
// of 0, names of -1 and a mode of _PySampling_ANY_MODE stand for what holds
// already, or the default.
extern _PySampling_Status
_PySampling_BlockBegin(PyThreadState *tstate,
                       const _PySampling_Options *asked,
                       struct _sampling_sink **result);
// `*result` is NULL if the block has ended before, by a fork or at exit.
extern _PySampling_Status
_PySampling_BlockEnd(PyThreadState *tstate, struct _sampling_sink *block,
                     struct _sampling_profile **result);
// What there is of it, and it goes on with nothing: no moment is in both, or in
// none.
extern _PySampling_Status
_PySampling_BlockRenew(PyThreadState *tstate, struct _sampling_sink *block,
                       struct _sampling_profile **result);
// Frees it; if it has not ended, it ends.
extern void _PySampling_BlockFree(PyThreadState *tstate,
                                  struct _sampling_sink *block);

// A deferred session samples while anybody is in a region.  Leaving takes the
// number that entering gave: what is entered before a fork counts in the
// parent only.
extern _PySampling_Status _PySampling_RegionEnter(PyThreadState *tstate,
                                                  unsigned int *number);
extern _PySampling_Status _PySampling_RegionLeave(PyThreadState *tstate,
                                                  unsigned int number);

// Subscriptions (sinks/sinks.h).
extern _PySampling_Status
_PySampling_Subscribe(PyThreadState *tstate,
                      struct _sampling_sink *sub,
                      const _PySampling_Options *options);
extern _PySampling_Status
_PySampling_Unsubscribe(PyThreadState *tstate,
                        struct _sampling_sink *sub);
// Everything up to now can be taken.
extern _PySampling_Status
_PySampling_FlushSubscription(PyThreadState *tstate,
                              struct _sampling_sink *sub);
extern _PySampling_Status
_PySampling_SetSubscriptionRate(PyThreadState *tstate,
                                struct _sampling_sink *sub,
                                int rate_hz);

// Replaces depth_frames of 0 and names of -1: by what holds already, or by the
// default (session/sharing.c).
extern void _PySampling_DefaultOptions(_PySampling_Options *options);
// Begins with new tables if nobody but subscribers uses them and they are
// nearly full.
extern _PySampling_Status _PySampling_RenewIfFull(PyThreadState *tstate);

// Makes samples of intervals off the GIL that have not ended yet
// (session/engine.c).
extern void _PySampling_AccountForBlocked(PyThreadState *tstate);

// Exact calls of this interpreter (session/counting.c).  What is counted is
// the most that anybody asks for, a _PySampling_CountMode; it begins anew when
// the last user is gone.
// `libraries`: tuple of str, found in names of files that are not the user's.
extern _PySampling_Status _PySampling_CountBegin(PyThreadState *tstate,
                                                 int mode,
                                                 PyObject *libraries,
                                                 unsigned int *token);
// Not if the token is of what a fork has ended.
extern void _PySampling_CountEnd(PyThreadState *tstate, int mode,
                                 unsigned int token);
// Calls of the function are queries.
extern _PySampling_Status
_PySampling_CountWatch(PyThreadState *tstate, PyFunctionObject *function);
// The callback is called when the function returns, which imports modules.
// The first one stays.
extern _PySampling_Status
_PySampling_CountWatchImports(PyThreadState *tstate,
                              PyFunctionObject *function, PyObject *callback);
// All that has been counted, in rows that are valid until the next event.
// NULL: nobody counts.
extern const struct _sampling_calls *
_PySampling_CountRead(PyThreadState *tstate);

// A sample that the program takes of itself, in a Python function that is left
// out: its caller's stack.  `pairs`: its labels, a tuple of str.
extern _PySampling_Status
_PySampling_Sample(PyThreadState *tstate, uint64_t weight, PyObject *pairs);

// One tick of a manual session, `wall_ns` and `cpu_ns` after the last.
extern _PySampling_Status _PySampling_ManualTick(PyThreadState *tstate,
                                                 uint64_t wall_ns,
                                                 uint64_t cpu_ns);

#endif  // !Py_SAMPLING_CONTROL_H
