/* Sampling profiler: the record of a task.

   Says who writes it: whoever holds the GIL of its interpreter.  Must not know
   what the parts that read it make of it. */

#ifndef Py_SAMPLING_TASK_H
#define Py_SAMPLING_TASK_H

#ifndef Py_BUILD_CORE
#  error "this header requires Py_BUILD_CORE define"
#endif

#include "pycore_sampling.h"

typedef enum {
    _PySampling_TASK_AWAITS,
    _PySampling_TASK_IS_WOKEN,  // its loop is to run it
    _PySampling_TASK_RUNS,
} _PySampling_TaskState;

/* From the first thing that happens to a task in a session until it ends. */
struct _sampling_task {
    struct _sampling_task *next;
    struct _sampling_task *prev;
    struct _sampling_interpreter_state *owner;  // of the list
    struct _sampling_task_info info;    // borrowed: the task ends the record
    PyCodeObject *code;         // owned: that it runs; NULL: no Python code
    _PySampling_Thread *thread; // that ran it last; NULL: none, or it ended
    unsigned int epoch;         // what follows is of that one
    int state;                  // _PySampling_TaskState
    int is_woken;               // while it runs
    int is_whole;               // nothing of its life was before
    uint32_t pauses;            // of the session, when its life began
    uint64_t since_ns;          // it is in that state, or the last flush
    uint64_t left_ns;           // the end of its last step
    uint64_t awaited_ns;        // before it was woken, on no record yet
    uint64_t ran_ns;            // in steps that no sink has yet
    uint64_t num_steps;         // these
    uint64_t longest_step_ns;   // of these
    uint64_t step_ns;           // of the step that it is in
    uint64_t life_ns;           // all that is on records, or carried
    uint64_t running_ns;        // of that
    uint64_t loop_wait_ns;      // of that
    unsigned int serial;        // of the tables that `coroutine` is a row of
    uint32_t coroutine;
};

/* Of a task that has a layout. */
static inline PyObject *
_PySampling_TaskObject(const _PySampling_TaskInfo *info, size_t offset)
{
    return *(PyObject **)((char *)info->task + offset);
}

static inline PyObject *
_PySampling_TaskCoroutine(const _PySampling_TaskInfo *info)
{
    return _PySampling_TaskObject(info, info->layout->coroutine);
}

/* Where its record is, or will be. */
static inline struct _sampling_task **
_PySampling_TaskRecord(const _PySampling_TaskInfo *info)
{
    return (struct _sampling_task **)((char *)info->task
                                      + info->layout->record);
}

/* NULL: it has none yet, or of such tasks there are none. */
static inline struct _sampling_task *
_PySampling_RecordOfTask(const _PySampling_TaskInfo *info)
{
    return info->layout != NULL ? *_PySampling_TaskRecord(info) : NULL;
}

#endif  // !Py_SAMPLING_TASK_H
