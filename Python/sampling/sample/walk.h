/* Sampling profiler: the copy of a stack.  Between sample/walk.c, which
   makes it, and sample/capture.c, which asks for it; of no concern to
   others. */

#ifndef Py_SAMPLING_WALK_H
#define Py_SAMPLING_WALK_H

#ifndef Py_BUILD_CORE
#  error "this header requires Py_BUILD_CORE define"
#endif

#include "../base/frame.h"
#include "../native/native.h"

/* A stack that is being copied. */
struct _sampling_walk {
    PyInterpreterState *interp;
    struct _sampling_slots *slots;
    int names;                  // of _PySampling_NAME_*
    const struct _sampling_call *call;  // the leaf's, which is over; or NULL
    _PySampling_Frame *out;     // leaf first
    int num_entries;
};

// Copies the stack from `frame` up to its root: at most `depth_frames` Python
// frames, what C code each of them is in, one mark if some are left out, and
// one for the collection `thread` is in.  Returns how many frames the stack
// has.  `is_in_c`: the leaf may be in C code.  Async-signal-safe.
extern int _PySampling_Walk(struct _sampling_walk *w,
                            _PySampling_Thread *thread,
                            _PyInterpreterFrame *frame, int depth_frames,
                            int is_in_c);

#endif  // !Py_SAMPLING_WALK_H
