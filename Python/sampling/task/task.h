/* Sampling profiler: tasks, whose whole life is on samples, as a thread's is.

   The states and what is known of them are in
   InternalDocs/profile_sampling/tasks.md. */

#ifndef Py_SAMPLING_TASK_TASK_H
#define Py_SAMPLING_TASK_TASK_H

#ifndef Py_BUILD_CORE
#  error "this header requires Py_BUILD_CORE define"
#endif

#include "../base/axis.h"
#include "../base/task.h"
#include "../sample/sample.h"

// task/life.c.  With the GIL, in a hook of `thread`, which is the caller's.
extern void _PySampling_TaskEntered(PyThreadState *tstate,
                                    _PySampling_Thread *thread,
                                    const _PySampling_TaskInfo *info);
extern void _PySampling_TaskLeft(_PySampling_Thread *thread,
                                 const _PySampling_TaskInfo *info);
// Does the session know that the task is in a step?
extern int _PySampling_TaskRuns(const _PySampling_TaskInfo *info);
// Everything up to now, of the tasks of all threads that have the caller's
// GIL.
extern void _PySampling_TasksFlush(PyThreadState *tstate,
                                   _PySampling_Thread *own,
                                   struct _sampling_interpreter_state *s,
                                   uint64_t now_ns);
// They go on in other tables.
extern void _PySampling_TasksMove(struct _sampling_interpreter_state *s,
                                  unsigned int from_epoch,
                                  unsigned int to_epoch);
extern void _PySampling_TasksForgetThread(_PySampling_Thread *thread);

// With the GIL.  Puts what a task has spent so far on records, before what
// they belong to changes.
extern void _PySampling_FlushTask(PyObject *task);
// How long it has run and waited for its loop in this session.  Returns 0 if
// nothing is known of it.
extern int _PySampling_TaskTimes(PyObject *task, uint64_t *running_ns,
                                 uint64_t *loop_wait_ns);

// task/waits.c.  Lock: tables_mutex, but for the period.
/* A task that waits, or did.  Its stack is walked once, if at all. */
struct _sampling_waiting {
    struct _sampling_tables *tables;
    struct _sampling_task *task;
    PyThreadState *tstate;
    _PySampling_Thread *thread; // of the caller
    int is_entering;            // the caller is its loop
    uint64_t period_ns;
    uint32_t node;              // 0: not known yet
    uint32_t labels;
};
// A wait that is long, or may cover a point, or has no length.
extern void _PySampling_RecordWait(struct _sampling_waiting *w,
                                   struct _sampling_task_waits *waits,
                                   PySampling_State state, uint64_t ns);
// How far the points lie apart that say which waits are recorded.
extern uint64_t _PySampling_PeriodOfWaits(uint64_t now_ns);
// What is carried goes to records.  Takes the lock.
extern void _PySampling_WaitsFlush(_PySampling_Thread *own);

// Most waits are short, and cover no point.
static inline void
_PySampling_AddWait(struct _sampling_waiting *w,
                    struct _sampling_task_waits *waits,
                    PySampling_State state, uint64_t ns)
{
    if (_PySampling_IsLong(ns, w->period_ns)
        || !_PySampling_Carry(&waits->to_go_ns, &waits->carried_ns, ns))
    {
        _PySampling_RecordWait(w, waits, state, ns);
    }
}

// task/deadline.c.  The deadline of what wakes a task, on the clock of
// _PySampling_MonotonicNow(); 0: it is no timer, or it is not known.
extern uint64_t _PySampling_Deadline(PyThreadState *tstate,
                                     const struct _sampling_task *task);

// task/awaits.c.  Lock: tables_mutex.
// The stack of a task that waits, below `node`, down to what it awaits.  A
// coroutine that runs is on its thread's stack.
extern uint32_t _PySampling_AwaitsNode(struct _sampling_tables *tables,
                                       uint32_t node,
                                       const _PySampling_TaskInfo *info);
// The innermost of its coroutines, or NULL: it is not suspended in any.
extern struct _PyInterpreterFrame *
_PySampling_InnermostAwait(const _PySampling_TaskInfo *info);
// The frame of the next suspended coroutine of a chain, which goes on to what
// it awaits; NULL: there is none.
extern struct _PyInterpreterFrame *_PySampling_NextAwait(PyObject **next);
extern int _PySampling_IsExecuting(PyObject *coroutine);
extern int _PySampling_HasEnded(PyObject *coroutine);
// Has no step been run yet?  If it is not known, yes.
extern int _PySampling_HasNotBegun(const _PySampling_TaskInfo *info);
// The function that a coroutine is a call of, within all decorators, or NULL:
// it is not known.  Borrowed.
extern PyObject *_PySampling_FunctionOf(PyObject *coroutine);
// The code of its coroutine: a new reference; NULL: it has none.
extern PyCodeObject *_PySampling_CodeOf(const _PySampling_TaskInfo *info);
// What it awaits, or NULL: it is not known.  Borrowed.
extern PyObject *_PySampling_AwaitedBy(const _PySampling_TaskInfo *info);
// The row of that in the tables, or UINT32_MAX.
extern uint32_t _PySampling_CoroutineRow(struct _sampling_tables *tables,
                                         const struct _sampling_task *task);

#endif  // !Py_SAMPLING_TASK_TASK_H
