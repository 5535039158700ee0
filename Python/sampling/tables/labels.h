/* Sampling profiler: what the program says a sample belongs to: the label set
   of its context, and asyncio's current task. */

#ifndef Py_SAMPLING_LABELS_H
#define Py_SAMPLING_LABELS_H

#ifndef Py_BUILD_CORE
#  error "this header requires Py_BUILD_CORE define"
#endif

#include "tables.h"

/* The value of an interpreter's label variable (Modules/_profile/labels.c).
   It is immutable but for what it remembers about tables. */
typedef struct {
    PyObject_HEAD
    PyObject *pairs;            // tuple of str: key, value, ...; keys ascend
    // Its row in the tables of that serial number.  Owner: whoever holds the
    // GIL of the object's interpreter.
    unsigned int serial;
    uint32_t row;
} _PySampling_LabelSet;

/* A request or a job under way: alive until it ends (Modules/_profile/
   labels.c).  Those of an interpreter are in a list, which another process may
   ask for at any moment: it is changed by writing one pointer.  Owner: whoever
   holds the GIL. */
typedef struct _sampling_request {
    PyObject_HEAD
    struct _sampling_request *next;
    struct _sampling_request **at;      // what points here
    PyObject *labels;           // dict of str: a value is a str or None
    uint64_t begin_ns;          // of the monotonic clock
    unsigned long native_id;    // of the thread in which it began
    uintptr_t task;             // address of its task; 0: it is in none
    unsigned int num_forks;     // another number: it is the parent's
} _PySampling_Request;

// Nobody else refers to the task that the thread has entered: so whoever ran
// it has failed, and never says that it is left.
static inline int
_PySampling_IsAbandoned(const struct _sampling_task_info *entered)
{
    return Py_REFCNT(entered->task) == 1;
}

// The labels of `context`, which may be NULL, and the task of a thread that
// runs, or that stands still while the caller has its GIL.  Makes no Python
// object.  Lock: tables_mutex.
extern uint32_t _PySampling_LabelsOf(struct _sampling_tables *tables,
                                     PyThreadState *tstate,
                                     PyObject *context);

// The same labels as a tuple of str: key, value, ...; borrowed.  NULL: there
// are none.
extern PyObject *_PySampling_PairsOf(PyThreadState *tstate,
                                     PyObject *context);

// The labels of a task that waits, and what it runs.
extern uint32_t
_PySampling_LabelsOfWait(struct _sampling_tables *tables,
                         PyThreadState *tstate,
                         const _PySampling_TaskInfo *task);

// These labels (tuple of str: key, value, ...; keys ascend) in the thread's
// task.
extern uint32_t _PySampling_LabelsWith(struct _sampling_tables *tables,
                                       PyThreadState *tstate,
                                       PyObject *pairs);

// One label more than `labels` has: key and value are strings of the tables, or
// UINT32_MAX.
extern uint32_t _PySampling_LabelsBelow(struct _sampling_tables *tables,
                                        uint32_t labels, uint32_t key,
                                        uint32_t value);

// The task that the thread is in, or works for: what other threads can work
// for on its behalf.
extern struct _sampling_work _PySampling_WorkOf(
    struct _sampling_tables *tables, PyThreadState *tstate);

#endif  // !Py_SAMPLING_LABELS_H
