/* Sampling profiler: the copy of a stack.  Between sample/walk.c, which
   makes it, and sample/capture.c, which asks for it; of no concern to
   others. */

#ifndef Py_SAMPLING_WALK_H
#define Py_SAMPLING_WALK_H

#ifndef Py_BUILD_CORE
#  error "this header requires Py_BUILD_CORE define"
#endif

#include "pycore_code.h"          // _PyCode_DEF()
#include "pycore_frame.h"         // _PyInterpreterFrame
#include "../native/native.h"

extern const struct _PyCode_DEF(8) _Py_InitCleanup;

/* Frames that stand for no Python code: the eval loop's entry frames, and the
   shim that checks what __init__ returned. */
static inline int
_PySampling_IsArtificial(_PyInterpreterFrame *frame)
{
    return frame->owner == FRAME_OWNED_BY_CSTACK
        || frame->f_executable == (PyObject *)&_Py_InitCleanup;
}

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
