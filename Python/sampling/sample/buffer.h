/* Sampling profiler: where captures wait for the drain.  Between the handler,
   which writes (sample/capture.c), and those who read: stacks become nodes
   (sample/stack.c), captures become records (sample/record.c). */

#ifndef Py_SAMPLING_BUFFER_H
#define Py_SAMPLING_BUFFER_H

#ifndef Py_BUILD_CORE
#  error "this header requires Py_BUILD_CORE define"
#endif

#include "pycore_interp.h"            // PyInterpreterState.sampling

#include "../native/native.h"
#include "../tables/tables.h"

/* Captures between two safepoints: straight-line code of operators, each of
   them longer than a tick.  More than this many wait for the next tick. */
#define _PySampling_MAX_CAPTURES 64

/* A capture: which frames, since when, how often.  Its frames lie in the
   buffer from `first` on, leaf first. */
struct _sampling_capture {
    int first;
    int depth;
    int gc_generation;
    _PyInterpreterFrame *frame;     // compared, never followed
    _Py_CODEUNIT *instr;
    PyObject *context;              // borrowed
    uint64_t time_ns;               // of its last tick
    uint64_t asleep_ns;             // the same, of those that found it asleep
    uint64_t first_tick;            // that met it
    uint64_t count;
    struct _sampling_time span;     // what its ticks stand for
    struct _sampling_time spent;    // since the capture before
};

/* One per interpreter, used by whichever thread holds its GIL: a thread
   drains before it gives the GIL up, so the buffer is empty by then. */
struct _sampling_buffer {
    int depth_frames;
    int capacity;
    int used;
    int num_captures;
    unsigned int epoch;             // the captures are of that one
    struct _sampling_slots *slots;
    unsigned int slots_epoch;       // they are of that one
    struct _sampling_capture captures[_PySampling_MAX_CAPTURES];
    // The stack interned last, root first: the next one mostly shares it.
    int path_depth;
    unsigned int path_version;      // of the tables' code_version
    unsigned int path_serial;       // of the tables
    int path_wants_module;          // the function of its leaf
    _PySampling_Frame *path;
    uint32_t *path_nodes;
    _PySampling_Frame frames[];
};

/* Does a capture wait?  With the GIL. */
static inline int
_PySampling_HasCaptures(PyThreadState *tstate)
{
    const struct _sampling_interpreter_state *s = &tstate->interp->sampling;
    return (s->buffer != NULL && s->buffer->num_captures != 0)
        || s->num_alloc_captures != 0;
}

// The most entries that a stack of so many frames takes.
extern int _PySampling_MaxEntries(int depth_frames);

#endif  // !Py_SAMPLING_BUFFER_H
