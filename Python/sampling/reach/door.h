/* Sampling profiler: what hooks.c asks of reach/. */

#ifndef Py_SAMPLING_DOOR_H
#define Py_SAMPLING_DOOR_H

#ifndef Py_BUILD_CORE
#  error "this header requires Py_BUILD_CORE define"
#endif

#include "../base/common.h"

// From now on other processes may ask this one.
extern void _PySampling_ReachBegin(PyThreadState *tstate);

// The process is about to end: who watches gets what there is.  Gives the GIL
// up.
extern void _PySampling_WatchEnd(void);

// At a safepoint: answers the request that waits for one.  May run audit
// hooks.
extern void _PySampling_AnswerPending(PyThreadState *tstate);

#endif  // !Py_SAMPLING_DOOR_H
