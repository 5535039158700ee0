/* Sampling profiler: what a task spends its life on.

   Owns the states of tasks: each nanosecond from the moment that a task is to
   run for the first time until it is done is running, awaiting or waiting for
   its loop.  Must not know who tells of them, or how a wait is recorded
   (task/waits.c).

   - Running: from the moment its loop enters it until it leaves it.  That is
     time of the thread, and on the thread's samples; here it is only summed,
     and shared by these samples in Lib/profile_sampling/_data/shared.py.
   - Awaiting: until what it waits for has happened.
   - Waiting for its loop: until it is entered.

   Lock: the GIL for tasks, tables_mutex for rows. */

#include "Python.h"

#include "pycore_interp.h"            // PyInterpreterState.sampling
#include "pycore_pystate.h"           // _PyThreadState_GET()
#include "pycore_runtime.h"           // _PyRuntime
#include "pycore_tstate.h"            // _PyThreadStateImpl

#include "task.h"

#define STATE (&_PyRuntime.sampling)

/* At most so many of the waits that go on are recorded by a flush, about. */
#define MAX_RECORDED_PER_FLUSH 1000

/* Of struct _sampling_task_info. */
enum {PENDING, CANCELLED};


/* Records. */

static struct _sampling_interpreter_state *
interpreter_state(void)
{
    return &_PyInterpreterState_GET()->sampling;
}

/* Who measures memory may have another GIL. */
static void
count_records(struct _sampling_interpreter_state *s, int more)
{
    _Py_atomic_store_int_relaxed(&s->num_tasks, s->num_tasks + more);
}

static struct _sampling_task *
new_record(const _PySampling_TaskInfo *info)
{
    struct _sampling_task *task = calloc(1, sizeof(*task));
    if (task != NULL) {
        task->info = *info;
        task->code = _PySampling_CodeOf(info);
        *_PySampling_TaskRecord(info) = task;
        task->owner = interpreter_state();
        _PySampling_LINK(task->owner->tasks, task);
        count_records(task->owner, 1);
    }
    return task;
}

/* The record as it is in this session, or NULL: it is not in it yet. */
static struct _sampling_task *
record_of(const _PySampling_TaskInfo *info)
{
    struct _sampling_task *task = _PySampling_RecordOfTask(info);
    return task != NULL && task->epoch == _PySampling_EPOCH() ? task : NULL;
}

int
_PySampling_TaskRuns(const _PySampling_TaskInfo *info)
{
    struct _sampling_task *task = record_of(info);
    return task != NULL && task->state == _PySampling_TASK_RUNS;
}

/* The task's life begins, or the part of it that the session sees. */
static struct _sampling_task *
begin(const _PySampling_TaskInfo *info, _PySampling_TaskState state,
      uint64_t now_ns)
{
    if (info->layout == NULL) {
        return NULL;
    }
    struct _sampling_task *task = *_PySampling_TaskRecord(info);
    int is_new = task == NULL;
    if (is_new) {
        task = new_record(info);
        if (task == NULL) {
            return NULL;
        }
    }
    task->epoch = _PySampling_EPOCH();
    task->state = state;
    task->is_woken = 0;
    task->is_whole = is_new && _PySampling_HasNotBegun(info);
    task->pauses = _PySampling_PAUSES();
    task->since_ns = task->left_ns = now_ns;
    task->awaited_ns = task->life_ns = 0;
    task->running_ns = task->loop_wait_ns = 0;
    task->ran_ns = task->num_steps = 0;
    task->step_ns = task->longest_step_ns = 0;
    task->serial = 0;
    task->thread = NULL;
    return task;
}

/* Nothing has happened to it since the session sees tasks, and it awaits
   something: so it has been suspended.  NULL: it is no such task. */
static struct _sampling_task *
begin_suspended(const _PySampling_TaskInfo *info)
{
    return !_PySampling_HasNotBegun(info)
            && _PySampling_AwaitedBy(info) != NULL
        ? begin(info, _PySampling_TASK_AWAITS,
                interpreter_state()->tasks_since_ns) : NULL;
}

static void
free_record(struct _sampling_task *task)
{
    _PySampling_UNLINK(task->owner->tasks, task);
    count_records(task->owner, -1);
    *_PySampling_TaskRecord(&task->info) = NULL;
    Py_XDECREF(task->code);
    free(task);
}

/* The task is to run on that thread, or not any more. */
static void
set_woken(struct _sampling_task *task, _PySampling_Thread *thread)
{
    task->state = _PySampling_TASK_IS_WOKEN;
    task->thread = thread;
    thread->ran_tasks = 1;
    thread->num_woken++;
}

static void
unset_woken(struct _sampling_task *task)
{
    if (task->state == _PySampling_TASK_IS_WOKEN && task->thread != NULL
        && task->thread->epoch == task->epoch && task->thread->num_woken > 0)
    {
        task->thread->num_woken--;
    }
}

static uint64_t
since(struct _sampling_task *task, uint64_t now_ns)
{
    uint64_t ns = now_ns > task->since_ns ? now_ns - task->since_ns : 0;
    task->since_ns = now_ns;
    return ns;
}


/* Recording. */

/* The tables, with a row for what the task runs.  NULL: nothing to close. */
static struct _sampling_tables *
open_tables(struct _sampling_task *task, _PySampling_Thread *thread)
{
    struct _sampling_tables *tables = _PySampling_OpenTables(thread);
    if (tables == NULL) {
        return NULL;
    }
    if (task->serial != tables->serial) {
        task->coroutine = _PySampling_CoroutineRow(tables, task);
        task->serial = task->coroutine != UINT32_MAX ? tables->serial : 0;
    }
    if (task->serial == tables->serial) {
        return tables;
    }
    _PySampling_CloseTables();
    return NULL;
}

/* Its step, up to now.  Needs no lock: it goes to the sinks with the next
   wait. */
static void
run_until(struct _sampling_task *task, uint64_t now_ns)
{
    uint64_t ns = since(task, now_ns);
    task->ran_ns += ns;
    task->step_ns += ns;
    task->life_ns += ns;
    task->running_ns += ns;
    task->longest_step_ns = Py_MAX(task->longest_step_ns, task->step_ns);
}

/* Its steps, and waits of that length. */
static void
emit_values(struct _sampling_task *task, uint64_t loop_wait_ns,
            uint64_t awaiting_ns)
{
    _PySampling_EmitTaskValues(
        task->coroutine, &(struct _sampling_task_values){
            .running_ns = task->ran_ns,
            .loop_wait_ns = loop_wait_ns,
            .awaiting_ns = awaiting_ns,
            .num_steps = task->num_steps,
            .longest_step_ns = task->longest_step_ns,
        });
    task->ran_ns = 0;
    task->num_steps = 0;
    task->longest_step_ns = 0;
}

/* Its waits, up to now. */
static void
add_waits(struct _sampling_waiting *w, uint64_t now_ns)
{
    struct _sampling_task *task = w->task;
    uint64_t awaited_ns = task->awaited_ns;
    uint64_t loop_wait_ns = 0;
    if (task->state == _PySampling_TASK_AWAITS) {
        awaited_ns += since(task, now_ns);
    }
    else if (task->state == _PySampling_TASK_IS_WOKEN) {
        loop_wait_ns = since(task, now_ns);
    }
    task->awaited_ns = 0;
    task->life_ns += awaited_ns + loop_wait_ns;
    task->loop_wait_ns += loop_wait_ns;
    emit_values(task, loop_wait_ns, awaited_ns);
    struct _sampling_coroutine_row *row =
        _PySampling_AT(w->tables, coroutine, task->coroutine);
    _PySampling_AddWait(w, &row->awaiting, PySampling_STATE_AWAITING,
                        awaited_ns);
    _PySampling_AddWait(w, &row->loop_wait, PySampling_STATE_LOOP_WAIT,
                        loop_wait_ns);
}

/* All of its life, up to now. */
static void
record_until(PyThreadState *tstate, _PySampling_Thread *own,
             struct _sampling_task *task, uint64_t now_ns, uint64_t period_ns)
{
    struct _sampling_tables *tables = open_tables(task, own);
    if (tables == NULL) {
        return;
    }
    if (task->state == _PySampling_TASK_RUNS) {
        run_until(task, now_ns);
        emit_values(task, 0, 0);
    }
    else {
        add_waits(&(struct _sampling_waiting){
            .tables = tables, .task = task, .tstate = tstate, .thread = own,
            .period_ns = period_ns}, now_ns);
    }
    _PySampling_CloseTables();
}


/* What happens to a task. */

/* The moment at which what it waited for happened, if the loop saw it late. */
static uint64_t
woken_since(PyThreadState *tstate, const struct _sampling_task *task,
            uint64_t now_ns)
{
    if (((_PyThreadStateImpl *)tstate)->sampling.entered.task != NULL
        || STATE->manual_wall_ns != 0)
    {
        return now_ns;      // another task woke it
    }
    uint64_t deadline_ns = _PySampling_Deadline(tstate, task);
    if (deadline_ns + _PySampling_PeriodNow() < task->left_ns) {
        return now_ns;      // none, or on a clock of the loop's own
    }
    return Py_MIN(Py_MAX(deadline_ns, task->since_ns), now_ns);
}

static void
wake_awaiting(PyThreadState *tstate, _PySampling_Thread *thread,
              struct _sampling_task *task, uint64_t now_ns)
{
    uint64_t woken_ns = woken_since(tstate, task, now_ns);
    task->awaited_ns += since(task, woken_ns);
    if (woken_ns != now_ns) {
        _PySampling_ENTER_HOOK(thread);
        _PySampling_Drain(tstate, thread);
        if (_PySampling_OpenTables(thread) != NULL) {
            _PySampling_DelaysCharge(thread, woken_ns);
            _PySampling_CloseTables();
        }
        _PySampling_LEAVE_HOOK(thread);
    }
    set_woken(task, thread);
}

void
_PySampling_TaskWoken(const _PySampling_TaskInfo *info)
{
    PyThreadState *tstate = _PyThreadState_GET();
    _PySampling_Thread *thread = _PySampling_RECORD_OF(tstate);
    if (thread == NULL || !_PySampling_IN_EPOCH(thread) || thread->excluded) {
        return;
    }
    struct _sampling_task *task = record_of(info);
    if (task == NULL) {
        task = begin_suspended(info);
    }
    if (task == NULL) {
        task = begin(info, _PySampling_TASK_IS_WOKEN, _PySampling_WallNow());
        if (task != NULL) {
            set_woken(task, thread);
        }
    }
    else if (task->state == _PySampling_TASK_AWAITS) {
        wake_awaiting(tstate, thread, task, _PySampling_WallNow());
    }
    else if (task->state == _PySampling_TASK_RUNS) {
        task->is_woken = 1;
    }
}

void
_PySampling_TaskEntered(PyThreadState *tstate, _PySampling_Thread *thread,
                        const _PySampling_TaskInfo *info)
{
    if (info->layout == NULL) {
        _PySampling_COUNT(tasks_untracked, 1);
        return;
    }
    uint64_t now_ns = _PySampling_WallNow();
    struct _sampling_task *task = record_of(info);
    if (task == NULL) {
        task = begin(info, _PySampling_TASK_RUNS, now_ns);
        if (task == NULL) {
            return;
        }
    }
    task->info.skip_frames = info->skip_frames;
    unset_woken(task);
    task->thread = thread;
    thread->ran_tasks = 1;
    struct _sampling_tables *tables = open_tables(task, thread);
    if (tables != NULL) {
        add_waits(&(struct _sampling_waiting){
            .tables = tables, .task = task, .tstate = tstate,
            .thread = thread, .is_entering = 1,
            .period_ns = _PySampling_PeriodOfWaits(now_ns)}, now_ns);
        _PySampling_CloseTables();
    }
    task->state = _PySampling_TASK_RUNS;
    task->since_ns = now_ns;
    task->step_ns = 0;
}

static void
finish(struct _sampling_task *task, _PySampling_Thread *thread,
       int is_cancelled)
{
    struct _sampling_tables *tables = open_tables(task, thread);
    if (tables != NULL) {
        emit_values(task, 0, 0);
        if (task->is_whole && task->pauses == _PySampling_PAUSES()) {
            _PySampling_EmitTaskValues(
                task->coroutine, &(struct _sampling_task_values){
                    .num_finished = 1,
                    .num_cancelled = is_cancelled != 0,
                    .lives_ns = task->life_ns,
                });
        }
        _PySampling_CloseTables();
    }
    free_record(task);
}

void
_PySampling_TaskLeft(_PySampling_Thread *thread,
                     const _PySampling_TaskInfo *info)
{
    struct _sampling_task *task = record_of(info);
    uint64_t now_ns = _PySampling_WallNow();
    if (task == NULL && info->state == PENDING) {
        // It ran when the session began.
        (void)begin(info, _PySampling_TASK_AWAITS, now_ns);
        return;
    }
    if (task == NULL || (task->state != _PySampling_TASK_RUNS
                         && info->state == PENDING))
    {
        return;
    }
    if (task->state != _PySampling_TASK_RUNS) {
        // Another was entered in its step, and has not been left.
        record_until(_PyThreadState_GET(), thread, task, now_ns,
                     _PySampling_PeriodOfWaits(now_ns));
        unset_woken(task);
        finish(task, thread, info->state == CANCELLED);
        return;
    }
    run_until(task, now_ns);
    task->num_steps += !_PySampling_STANDS_STILL(_PySampling_PAUSES());
    if (info->state != PENDING) {
        finish(task, thread, info->state == CANCELLED);
        return;
    }
    task->state = _PySampling_TASK_AWAITS;
    task->left_ns = now_ns;
    if (task->is_woken) {
        set_woken(task, thread);
    }
    task->is_woken = 0;
}

/* All tasks of a type keep it at the same place.  NULL: it has none. */
static struct _sampling_task *
record_of_object(PyObject *object)
{
    struct _sampling_task *like = interpreter_state()->tasks;
    while (like != NULL && !Py_IS_TYPE(like->info.task, Py_TYPE(object))) {
        like = like->next;
    }
    if (like == NULL) {
        return NULL;
    }
    const _PySampling_TaskInfo info = {
        .task = object, .layout = like->info.layout};
    return _PySampling_RecordOfTask(&info);
}

int
_PySampling_TaskTimes(PyObject *object, uint64_t *running_ns,
                      uint64_t *loop_wait_ns)
{
    struct _sampling_task *task = record_of_object(object);
    if (task == NULL || task->epoch != _PySampling_EPOCH()) {
        return 0;
    }
    uint64_t now_ns = _PySampling_WallNow();
    uint64_t ns = now_ns - Py_MIN(task->since_ns, now_ns);
    *running_ns = task->running_ns
        + (task->state == _PySampling_TASK_RUNS ? ns : 0);
    *loop_wait_ns = task->loop_wait_ns
        + (task->state == _PySampling_TASK_IS_WOKEN ? ns : 0);
    return 1;
}

static void
record_now(PyThreadState *tstate, _PySampling_Thread *thread,
           struct _sampling_task *task)
{
    _PySampling_ENTER_HOOK(thread);
    _PySampling_Drain(tstate, thread);
    uint64_t now_ns = _PySampling_WallNow();
    record_until(tstate, thread, task, now_ns,
                 _PySampling_PeriodOfWaits(now_ns));
    _PySampling_LEAVE_HOOK(thread);
}

/* What it has spent so far has the labels that it has now. */
void
_PySampling_FlushTask(PyObject *object)
{
    PyThreadState *tstate = _PyThreadState_GET();
    _PySampling_Thread *thread = _PySampling_RECORD_OF(tstate);
    if (!_PySampling_ACTIVE() || thread == NULL
        || !_PySampling_IN_EPOCH(thread) || thread->excluded)
    {
        return;
    }
    struct _sampling_task *task = record_of_object(object);
    if (task != NULL && task->epoch == thread->epoch) {
        record_now(tstate, thread, task);
    }
}

/* Destroyed while it waited, unless it is of another session. */
void
(_PySampling_TaskEnd)(struct _sampling_task **record)
{
    struct _sampling_task *task = *record;
    PyThreadState *tstate = _PyThreadState_GET();
    _PySampling_Thread *thread = _PySampling_RECORD_OF(tstate);
    if (_PySampling_ACTIVE() && thread != NULL && _PySampling_IN_EPOCH(thread)
        && task->epoch == thread->epoch)
    {
        record_now(tstate, thread, task);
    }
    unset_woken(task);
    free_record(task);
}


/* Everything up to now. */

static uint64_t
waiting_ns(const struct _sampling_interpreter_state *s, uint64_t now_ns)
{
    uint64_t all_ns = 0;
    for (struct _sampling_task *t = s->tasks; t != NULL; t = t->next) {
        if (t->epoch == STATE->epoch && t->state != _PySampling_TASK_RUNS) {
            all_ns += t->awaited_ns + (now_ns - t->since_ns);
        }
    }
    return all_ns;
}

void
_PySampling_TasksFlush(PyThreadState *tstate, _PySampling_Thread *own,
                       struct _sampling_interpreter_state *s, uint64_t now_ns)
{
    uint64_t period_ns = Py_MAX(
        _PySampling_PeriodOfWaits(now_ns),
        waiting_ns(s, now_ns) / MAX_RECORDED_PER_FLUSH);
    for (struct _sampling_task *t = s->tasks; t != NULL; t = t->next) {
        if (t->epoch == STATE->epoch) {
            record_until(tstate, own, t, now_ns, period_ns);
        }
    }
    _PySampling_WaitsFlush(own);
    s->tasks_since_ns = now_ns;
}

void
_PySampling_TasksMove(struct _sampling_interpreter_state *s,
                      unsigned int from_epoch, unsigned int to_epoch)
{
    for (struct _sampling_task *t = s->tasks; t != NULL; t = t->next) {
        if (t->epoch == from_epoch) {
            t->epoch = to_epoch;
        }
    }
}

void
_PySampling_TasksForgetThread(_PySampling_Thread *thread)
{
    if (!thread->ran_tasks) {
        return;
    }
    for (struct _sampling_task *t = thread->interp->tasks; t != NULL;
         t = t->next)
    {
        if (t->thread == thread) {
            t->thread = NULL;
        }
    }
}
